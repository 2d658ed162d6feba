package resp

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// fuzzLimits returns limits that short inputs can reach, or the default ones.
func fuzzLimits(small bool) Limits {
	if small {
		return Limits{Bulk: 40, Line: 20, Elements: 12, Depth: 3, Frame: 120, Streamed: 50}
	}
	return Limits{}
}

func addVectors(f *testing.F) {
	for i, c := range slices.Concat(valid, invalid) {
		if len(c.in) < 4096 {
			f.Add([]byte(c.in), uint64(i), c.limits != Limits{})
		}
	}
}

// outcome is the result of scanning a stream: the lengths and verdicts of its messages, and how it
// ended.
type outcome struct {
	lengths  []int
	verdicts []Verdict
	hint     int
	err      string
}

// scanAll scans a stream. After so many bytes have been seen, visible returns how many can be seen
// next.
func scanAll(t *testing.T, l Limits, data []byte, visible func(seen int) int) (o outcome) {
	s := NewScanner(l)
	begin, seen := 0, 0
	for {
		n, v, err := s.Scan(data[begin:seen])
		switch {
		case err != nil:
			if !errors.As(err, new(*ProtocolError)) {
				t.Fatalf("error %v of type %T", err, err)
			}
			o.err = err.Error()
			return o
		case v == More:
			if n <= seen-begin {
				t.Fatalf("Scan(%q) wants %d bytes, and has more", data[begin:seen], n)
			}
			if seen == len(data) {
				o.hint = n
				return o
			}
			seen = min(max(visible(seen), seen+1), len(data))
		default:
			if n <= 0 || n > seen-begin {
				t.Fatalf("Scan(%q) = %d", data[begin:seen], n)
			}
			o.lengths, o.verdicts = append(o.lengths, n), append(o.verdicts, v)
			begin += n
		}
	}
}

// FuzzScannerSplit checks that the messages, the last hint and the error are the same however a
// stream is split into reads.
func FuzzScannerSplit(f *testing.F) {
	addVectors(f)
	f.Fuzz(func(t *testing.T, data []byte, seed uint64, small bool) {
		l := fuzzLimits(small)
		whole := scanAll(t, l, data, func(int) int { return len(data) })
		bytewise := scanAll(t, l, data, func(seen int) int { return seen + 1 })
		r := rand.New(rand.NewPCG(seed, 0))
		random := scanAll(t, l, data, func(seen int) int { return seen + 1 + r.IntN(16) })
		for _, o := range []outcome{bytewise, random} {
			if !slices.Equal(o.lengths, whole.lengths) || !slices.Equal(o.verdicts, whole.verdicts) || o.hint != whole.hint || o.err != whole.err {
				t.Fatalf("%q: at once %+v, in pieces %+v", data, whole, o)
			}
		}
	})
}

// FuzzScanParseAgree checks that all readers agree on whether bytes are a message, the start of
// one, or neither.
func FuzzScanParseAgree(f *testing.F) {
	addVectors(f)
	f.Fuzz(func(t *testing.T, data []byte, _ uint64, small bool) {
		l := fuzzLimits(small)
		n, v, err := NewScanner(l).Scan(data)
		value, rest, perr := Parse(data, l)
		if perr != nil && !errors.As(perr, new(*ProtocolError)) {
			t.Fatalf("Parse(%q): error %v of type %T", data, perr, perr)
		}
		if err != nil || v == More {
			if perr == nil || err == nil && !errors.Is(perr, ErrTruncated) {
				t.Fatalf("%q: Scan %v, %v; Parse %s, %v", data, v, err, render(value), perr)
			}
			return
		}
		if perr != nil || len(data)-len(rest) != n || (value.Kind == Push) != (v == Push) {
			t.Fatalf("%q: Scan %d, %v; Parse %s, rest %q, %v", data, n, v, render(value), rest, perr)
		}
		checkDecoder(t, data[:n])
		if got := decoded(t, data[:n]); got != render(value) {
			t.Fatalf("%q: tree %s, token by token %s", data, render(value), got)
		}
	})
}

// decoded builds a value from tokens, including attributes, and renders it.
func decoded(t *testing.T, frame []byte) string {
	d := NewDecoder(frame)
	d.Aside = true
	v := nextValue(t, &d, 0)
	if len(d.Rest()) > 0 {
		t.Fatalf("%q: the decoder leaves %q", frame, d.Rest())
	}
	return render(v)
}

func nextValue(t *testing.T, d *Decoder, depth int) (v Value) {
	for {
		tok, err := d.Next()
		if err != nil {
			t.Fatalf("%q: %v", d.frame, err)
		}
		// The only thing that is not a value is an invalidation inside an aggregate.
		aside := false
		if tok.Kind == Push && depth > 0 {
			is, _ := isInvalidation(d.Rest())
			aside = is && tok.Len > 0
		}
		elems := nextElems(t, d, tok, depth)
		switch {
		case tok.Kind == Attribute:
			v.Attr = append(v.Attr, elems...)
			continue
		case aside:
			v.Attr = nil
			continue
		}
		v.Kind, v.Null, v.Bool, v.Format = tok.Kind, tok.Null, tok.Bool, tok.Format
		v.Int, v.Float, v.Str, v.Elems = tok.Int, tok.Float, tok.Bytes, elems
		return v
	}
}

func nextElems(t *testing.T, d *Decoder, tok Token, depth int) (elems []Value) {
	if tok.Len > len(d.Rest())/least {
		t.Fatalf("%q: %v of %d before %d bytes", d.frame, tok.Kind, tok.Len, len(d.Rest()))
	}
	for tok.Len < 0 || len(elems) < tok.Len {
		if tok.Len < 0 && d.Rest()[0] == byte(End) {
			if end, err := d.Next(); err != nil || end.Kind != End {
				t.Fatalf("%q: %v, %v, want the end", d.frame, end.Kind, err)
			}
			break
		}
		elems = append(elems, nextValue(t, d, depth+1))
	}
	return elems
}

// FuzzRoundTrip checks that every value is unchanged after it was encoded in any way and decoded
// again.
func FuzzRoundTrip(f *testing.F) {
	for i := range 64 {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		seed := make([]byte, 8+r.IntN(200))
		for j := range seed {
			seed[j] = byte(r.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &fuzzed{data}
		v := anyValue(c, 4)
		for _, frame := range [][]byte{AppendValue([]byte("x"), v)[1:], appendWild(nil, v, c)} {
			n, _, err := new(Scanner).Scan(frame)
			if n != len(frame) || err != nil {
				t.Fatalf("Scan(%q) = %d, %v", frame, n, err)
			}
			back, rest, err := Parse(frame, Limits{})
			if err != nil || len(rest) != 0 || render(back) != render(v) {
				t.Fatalf("%q: %s, rest %q, %v; want %s", frame, render(back), rest, err, render(v))
			}
			again := AppendValue(nil, back)
			if plain := AppendValue(nil, v); !bytes.Equal(again, plain) {
				t.Fatalf("encoded %q, read back and encoded again %q", plain, again)
			}
		}
	})
}

// FuzzCommand checks that commands are read as they were sent, in both forms, and that any other
// bytes are split in the same way whatever the sizes of the reads.
func FuzzCommand(f *testing.F) {
	for i, c := range commands {
		if len(c.in) < 4096 {
			f.Add([]byte(c.in), uint64(i))
		}
	}
	f.Add([]byte("\x00set k\x00\x00 'v' \\'\""), uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		if words := wordsOf(data); len(data) < 8192 {
			for _, in := range []string{string(AppendCommand(nil, words...)), quote(words, r)} {
				n, args, v, err := new(CommandScanner).Scan([]byte(in))
				if n != len(in) || v != Done || err != nil || !slices.Equal(texts(args), words) {
					t.Fatalf("Scan(%q) = %d, %q, %v, %v; want %q", in, n, texts(args), v, err, words)
				}
			}
		}
		var whole, pieces CommandScanner
		n, args, v, err := whole.Scan(data)
		for seen := 0; ; seen = min(seen+1+r.IntN(8), len(data)) {
			m, pieceArgs, pv, perr := pieces.Scan(data[:seen])
			if perr == nil && pv == More && seen < len(data) {
				if m <= seen {
					t.Fatalf("Scan(%q) wants %d bytes, and has more", data[:seen], m)
				}
				continue
			}
			if m != n || pv != v || (perr == nil) != (err == nil) || !slices.Equal(texts(args), texts(pieceArgs)) {
				t.Fatalf("%q: at once %d, %q, %v, %v; in pieces %d, %q, %v, %v", data, n, args, v, err, m, pieceArgs, pv, perr)
			}
			if err != nil && (perr.Error() != err.Error() || !errors.As(err, new(*ProtocolError))) {
				t.Fatalf("%q: at once %v, in pieces %v", data, err, perr)
			}
			break
		}
	})
}

// wordsOf splits data at zero bytes.
func wordsOf(data []byte) (words []string) {
	for part := range bytes.SplitSeq(data, []byte{0}) {
		words = append(words, string(part))
	}
	return words
}

// FuzzDecoder checks that any sequence of calls on any bytes is safe and makes progress.
func FuzzDecoder(f *testing.F) {
	for _, c := range slices.Concat(valid, invalid) {
		if len(c.in) < 4096 {
			f.Add([]byte(c.in), []byte{0, 0, 1, 2})
		}
	}
	f.Fuzz(func(t *testing.T, data, calls []byte) {
		d := NewDecoder(data)
		for i := 0; ; i++ {
			call := byte(0)
			if len(calls) > 0 {
				call = calls[i%len(calls)]
			}
			d.Aside = call&2 != 0
			before := d.Offset()
			var tok Token
			var err error
			if call&1 == 0 {
				tok, err = d.Next()
			} else {
				err = d.Skip()
			}
			if err == ErrEndOfFrame {
				if d.Offset() != len(data) {
					t.Fatalf("%q: ErrEndOfFrame at %d", data, d.Offset())
				}
				return
			}
			if err != nil {
				if p := new(ProtocolError); !errors.As(err, &p) || p.Offset < 0 || p.Offset > len(data) {
					t.Fatalf("%q: error %v of type %T", data, err, err)
				}
				return
			}
			if d.Offset() <= before || d.Offset() > len(data) || tok.Len > len(d.Rest())/least {
				t.Fatalf("%q: %+v from %d to %d", data, tok, before, d.Offset())
			}
		}
	})
}

// FuzzNumbers checks that numbers are parsed as strconv parses them.
func FuzzNumbers(f *testing.F) {
	for _, seed := range []string{"0", "-9223372036854775808", "1.5e-3", "inf", "-nan", "0x1p-2", "1_000", "99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(checkNumber)
}
