package resp

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// choices is a source of decisions: a random generator, or the bytes from a fuzzer.
type choices interface{ IntN(n int) int }

// fuzzed makes decisions from bytes. After the last byte, it always makes the first choice.
type fuzzed struct{ data []byte }

func (f *fuzzed) IntN(n int) int {
	if len(f.data) == 0 {
		return 0
	}
	v := int(f.data[0])
	f.data = f.data[1:]
	return v % n
}

// anyValue returns a value with up to depth levels. It may have attributes.
func anyValue(c choices, depth int) Value {
	kinds := []Kind{SimpleString, SimpleError, Integer, BulkString, Null, Boolean, Double, BigNumber, BulkError, VerbatimString}
	if depth > 0 {
		kinds = append(kinds, Array, Map, Set, Push)
	}
	v := Value{Kind: kinds[c.IntN(len(kinds))]}
	switch v.Kind {
	case SimpleString, SimpleError:
		v.Str = []byte(strings.Map(func(r rune) rune {
			if r == '\r' || r == '\n' {
				return '.'
			}
			return r
		}, string(anyBytes(c))))
	case BulkString:
		if v.Null = c.IntN(8) == 7; !v.Null {
			v.Str = anyBytes(c)
		}
	case BulkError:
		v.Str = anyBytes(c)
	case VerbatimString:
		v.Format, v.Str = [3]byte{'t', 'x', 't'}, anyBytes(c)
	case Integer:
		v.Int = anyInt(c)
	case Boolean:
		v.Bool = c.IntN(2) == 1
	case Double:
		v.Float = []float64{0, 1.5, -1e300, 5e-324, math.Inf(1), math.Inf(-1), math.NaN(), float64(anyInt(c))}[c.IntN(8)]
	case BigNumber:
		v.Str = []byte("-123456789012345678901234567890")[c.IntN(2) : 2+c.IntN(29)]
	case Null:
		v.Null = true
	case Array:
		if v.Null = c.IntN(8) == 7; !v.Null {
			v.Elems = anyElems(c, depth-1, 1)
		}
	case Set:
		v.Elems = anyElems(c, depth-1, 1)
	case Push:
		v.Elems = append([]Value{{Kind: BulkString, Str: []byte("message")}}, anyElems(c, depth-1, 1)...)
	case Map:
		v.Elems = anyElems(c, depth-1, 2)
	}
	if depth > 0 && c.IntN(16) == 15 {
		v.Attr = anyElems(c, depth-1, 2)
	}
	return v
}

func anyElems(c choices, depth, each int) []Value {
	elems := make([]Value, each*c.IntN(4))
	for i := range elems {
		elems[i] = anyValue(c, depth)
	}
	if len(elems) == 0 {
		return nil
	}
	return elems
}

func anyBytes(c choices) []byte {
	const alphabet = "ab:$*;.\r\n\x00\xff0|>-\t"
	p := make([]byte, c.IntN(24))
	for i := range p {
		p[i] = alphabet[c.IntN(len(alphabet))]
	}
	return p
}

func anyInt(c choices) int64 {
	v := uint64(1)
	for range c.IntN(20) {
		v = v*10 + uint64(c.IntN(10))
	}
	return int64(v) * int64(1-2*c.IntN(2))
}

// appendWild encodes a value in any of the ways that the specification allows, with invalidations
// between elements as Redis 6 may send them.
func appendWild(b []byte, v Value, c choices) []byte {
	if len(v.Attr) > 0 {
		at := 2 * c.IntN(len(v.Attr)/2+1) // in one or two attributes
		b = AppendAttributeHeader(b, at/2)
		b = appendWildElems(b, v.Attr[:at], c, false)
		b = AppendAttributeHeader(b, (len(v.Attr)-at)/2)
		b = appendWildElems(b, v.Attr[at:], c, false)
	}
	if v.Null || v.Kind == Push || c.IntN(2) == 0 {
		switch v.Kind {
		case Array, Map, Set, Push:
			if !v.Null {
				n := len(v.Elems)
				if v.Kind == Map {
					n /= 2
				}
				return appendWildElems(appendHeader(b, v.Kind, n), v.Elems, c, true)
			}
		}
		v.Attr = nil
		return AppendValue(b, v)
	}
	switch v.Kind {
	case BulkString:
		b = AppendStreamedString(b)
		for rest := v.Str; len(rest) > 0; {
			n := 1 + c.IntN(len(rest))
			b = AppendStreamedPart(b, rest[:n])
			rest = rest[n:]
		}
		return AppendStreamedStringEnd(b)
	case Array:
		return AppendStreamedEnd(appendWildElems(AppendStreamedArray(b), v.Elems, c, true))
	case Set:
		return AppendStreamedEnd(appendWildElems(AppendStreamedSet(b), v.Elems, c, true))
	case Map:
		return AppendStreamedEnd(appendWildElems(AppendStreamedMap(b), v.Elems, c, true))
	}
	v.Attr = nil
	return AppendValue(b, v)
}

func appendWildElems(b []byte, elems []Value, c choices, aside bool) []byte {
	for _, e := range elems {
		if aside && c.IntN(16) == 15 {
			b = AppendPushHeader(b, 2)
			b = AppendBulkString(b, "invalidate")
			b = AppendNull(b)
		}
		b = appendWild(b, e, c)
	}
	return b
}

// TestRandomStreams sends random messages in random encodings through a buffer in random pieces,
// and compares the results.
func TestRandomStreams(t *testing.T) {
	r := testkit.Rand(t)
	for range 400 {
		var want []string
		var verdicts []Verdict
		var stream []byte
		for range 1 + r.IntN(20) {
			v := anyValue(r, 4)
			want = append(want, render(v))
			verdict := Done
			if v.Kind == Push {
				verdict = Push
			}
			verdicts = append(verdicts, verdict)
			stream = appendWild(stream, v, r)
		}
		got := cutStream(t, stream, r)
		if len(got) != len(want) {
			t.Fatalf("%q: %d messages, want %d", stream, len(got), len(want))
		}
		for i, g := range got {
			v, rest, err := Parse(g.frame, Limits{})
			if err != nil || len(rest) != 0 || render(v) != want[i] || g.verdict != verdicts[i] {
				t.Fatalf("message %q: %s, %v, rest %q, %v; want %s, %v", g.frame, render(v), g.verdict, rest, err, want[i], verdicts[i])
			}
			checkDecoder(t, g.frame)
		}
	}
}

// cut is a message that a scanner found.
type cut struct {
	frame   []byte
	verdict Verdict
}

// cutStream passes a stream of complete messages to a scanner in random pieces. It reads like a
// connection: never past the end of the buffer, whose size follows the hints.
func cutStream(t *testing.T, stream []byte, r *rand.Rand) (found []cut) {
	t.Helper()
	var s Scanner
	begin, have := 0, 0
	for begin < len(stream) {
		n, v, err := s.Scan(stream[begin:have])
		if err != nil {
			t.Fatalf("Scan at %d of %q: %v", begin, stream, err)
		}
		if v != More {
			found = append(found, cut{stream[begin : begin+n], v})
			begin += n
			continue
		}
		if n <= have-begin || begin+n > len(stream) {
			t.Fatalf("Scan at %d of %q wants %d bytes, has %d of %d", begin, stream, n, have-begin, len(stream)-begin)
		}
		switch r.IntN(3) {
		case 0:
			have++
		case 1:
			have = begin + n
		case 2:
			have = min(len(stream), have+1+r.IntN(64))
		}
	}
	return found
}

// The hint for a string whose length is known must be exact wherever the string is, so that a
// buffer grows only once.
func TestHints(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int
	}{
		{"", 3},
		{"$", 3},
		{"$65536\r\n", 8 + 65536 + 2},
		{"$65536\r\nabc", 8 + 65536 + 2},
		{"!100\r\n", 6 + 102},
		{"=100\r\n", 6 + 102},
		{"*1\r\n$100\r\n", 10 + 102},
		{"*3\r\n$100\r\n", 10 + 102 + 6}, // two more of at least "_\r\n"
		{"*1000\r\n", 7 + 3000},
		{"%1000\r\n", 7 + 6000},
		{"|1\r\n", 4 + 9}, // plus the value after it
		{"*?\r\n", 7},
		{"*?\r\n*2\r\n:1\r\n", 12 + 6},
		{"$?\r\n;10\r\n", 9 + 12 + 3},
		{"+abc", 5},
	} {
		var s Scanner
		if n, v, err := s.Scan([]byte(c.in)); n != c.want || v != More || err != nil {
			t.Errorf("Scan(%q) = %d, %v, %v; want %d, More", c.in, n, v, err, c.want)
		}
	}
}
