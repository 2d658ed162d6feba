package resp

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

// allocated returns the number of bytes that f allocates, including garbage.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHostileBytes gives each reader bytes that a hostile server could send. No reader may use more
// memory than a small multiple of their number, or take long.
func TestHostileBytes(t *testing.T) {
	const many = 1 << 16
	inputs := map[string]string{
		"nested arrays":            strings.Repeat("*1\r\n", many),
		"nested wide arrays":       strings.Repeat("*1000\r\n", many),
		"nested huge arrays":       strings.Repeat("*1048576\r\n", many),
		"nested maps":              strings.Repeat("%1\r\n", many),
		"nested attributes":        strings.Repeat("|1\r\n", many),
		"attributes of nothing":    strings.Repeat("|0\r\n", many),
		"attributes in a row":      strings.Repeat("|1\r\n_\r\n_\r\n", many),
		"nested streams":           strings.Repeat("*?\r\n", many),
		"nested streamed maps":     strings.Repeat("%?\r\n", many),
		"streams inside arrays":    strings.Repeat("*2\r\n*?\r\n", many),
		"invalidations":            "*2\r\n" + strings.Repeat(">1\r\n$10\r\ninvalidate\r\n", many),
		"nested invalidations":     "*2\r\n" + strings.Repeat(">3\r\n$10\r\ninvalidate\r\n", many),
		"streamed elements":        "*?\r\n" + strings.Repeat("*0\r\n", many),
		"streamed parts":           "$?\r\n" + strings.Repeat(";1\r\nx\r\n", many) + ";0\r\n",
		"endless line":             "+" + strings.Repeat("x", many),
		"endless error":            "-" + strings.Repeat("\t", many),
		"endless integer":          ":" + strings.Repeat("1", many),
		"endless count":            "*" + strings.Repeat("1", many),
		"endless big number":       "(" + strings.Repeat("1", many),
		"announced 512 MiB":        "$536870912\r\n" + strings.Repeat("x", many),
		"announced 1 Mi elements":  "*1048576\r\n" + strings.Repeat("_\r\n", many),
		"announced 512 Ki pairs":   "%524288\r\n" + strings.Repeat("_\r\n", many),
		"announced 16 MiB of part": "$?\r\n;16777000\r\n" + strings.Repeat("x", many),
	}
	for _, c := range invalid {
		inputs["invalid "+short(c.in)] = c.in
	}
	for name, in := range inputs {
		b := []byte(in)
		readers := map[string]func() error{
			"Scanner":        func() error { _, _, err := new(Scanner).Scan(b); return err },
			"Parse":          func() error { _, _, err := Parse(b, Limits{}); return err },
			"Parse, deep":    func() error { _, _, err := Parse(b, Limits{Depth: greatestDepth}); return err },
			"Skip":           func() error { d := NewDecoder(b); return d.Skip() },
			"Next":           func() error { d := NewDecoder(b); return drain(&d) },
			"Next, aside":    func() error { d := NewDecoder(b); d.Aside = true; return drain(&d) },
			"CommandScanner": func() error { _, _, _, err := new(CommandScanner).Scan(b); return err },
		}
		for reader, read := range readers {
			var err error
			begin := time.Now()
			took := allocated(func() { err = read() })
			if elapsed := time.Since(begin); elapsed > 2*time.Second {
				t.Errorf("%s, %s: took %v", name, reader, elapsed)
			}
			// A Value has 96 bytes and takes at least three on the wire. Slices of unknown length
			// are copied as they grow.
			limit := uint64(16<<10 + 128*len(b))
			if reader == "Scanner" || reader == "CommandScanner" {
				limit = 256 << 10
			}
			if took > limit {
				t.Errorf("%s, %s: %d bytes allocated for %d, want at most %d", name, reader, took, len(b), limit)
			}
			if err != nil && !errors.As(err, new(*ProtocolError)) {
				t.Errorf("%s, %s: error %v of type %T", name, reader, err, err)
			}
		}
	}
}

func drain(d *Decoder) error {
	for {
		if _, err := d.Next(); err == ErrEndOfFrame {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// TestEndlessMessages sends messages that never end to a scanner in pieces, and checks that it
// returns an error before the bytes exceed the limits.
func TestEndlessMessages(t *testing.T) {
	for _, c := range []struct {
		begin, again string
		limits       Limits
		most         int // bytes until the error
	}{
		{"+", "x", Limits{}, 64<<10 + 2},
		{"-", "\t", Limits{Line: 100}, 102},
		{"$", "1", Limits{}, 34},
		{"", "*1\r\n", Limits{}, 65 * 4},
		{"", "*?\r\n", Limits{Depth: 10}, 11 * 4},
		{"", "|1\r\n_\r\n_\r\n", Limits{Elements: 100}, 51 * 10},
		{"", "|0\r\n", Limits{Elements: 100}, 101 * 4},
		{"*?\r\n", "*0\r\n", Limits{Elements: 100}, 4 + 101*4},
		{"*?\r\n", "$1\r\nx\r\n", Limits{Streamed: 1000}, 4 + 143*7},
		{"$?\r\n", ";1\r\nx\r\n", Limits{Streamed: 1000}, 4 + 143*7},
		{"*2\r\n", ">1\r\n$10\r\ninvalidate\r\n", Limits{Elements: 100}, 4 + 99*21},
		{"*1048576\r\n", "$1000\r\n" + strings.Repeat("x", 1000) + "\r\n", Limits{Frame: 4 << 20}, 4 << 20},
	} {
		s := NewScanner(c.limits)
		b := []byte(c.begin)
		var err error
		for err == nil && len(b) < 8<<20 {
			for range max(1, 100/len(c.again)) {
				b = append(b, c.again...)
			}
			_, _, err = s.Scan(b)
		}
		if !errors.As(err, new(*ProtocolError)) || len(b) > c.most+100+len(c.again) {
			t.Errorf("%q and %q again and again: %v after %d bytes, want an error after %d", c.begin, c.again, err, len(b), c.most)
		}
	}
}

// TestScanningByByteIsLinear checks the time: a scanner that started over for each piece would scan
// 10^10 bytes here, which takes minutes.
func TestScanningByByteIsLinear(t *testing.T) {
	array := bytes.Repeat([]byte(":1\r\n"), 100_000)
	streamed := bytes.Repeat([]byte(";1\r\nx\r\n"), 40_000)
	command := bytes.Repeat([]byte("$1\r\nx\r\n"), 40_000)
	begin := time.Now()
	for _, in := range [][]byte{
		append([]byte("*100000\r\n"), array...),
		append([]byte("*1\r\n*100000\r\n"), array...),
		[]byte("$300000\r\n" + strings.Repeat("x", 300_000) + "\r\n"),
		[]byte("+" + strings.Repeat("\t", 60_000) + "\r\n"),
		append(append([]byte("$?\r\n"), streamed...), ";0\r\n"...),
	} {
		var s Scanner
		for n := range len(in) {
			if _, v, err := s.Scan(in[:n]); v != More || err != nil {
				t.Fatalf("Scan of %d bytes: %v, %v", n, v, err)
			}
		}
		if n, v, err := s.Scan(in); n != len(in) || v != Done || err != nil {
			t.Fatalf("Scan of all %d bytes: %d, %v, %v", len(in), n, v, err)
		}
	}
	for _, in := range [][]byte{
		append([]byte("*40000\r\n"), command...),
		[]byte(strings.Repeat("x", 60_000) + "\n"),
	} {
		var s CommandScanner
		for n := range len(in) {
			if _, _, v, err := s.Scan(in[:n]); v != More || err != nil {
				t.Fatalf("Scan of %d bytes: %v, %v", n, v, err)
			}
		}
		if n, _, v, err := s.Scan(in); n != len(in) || v != Done || err != nil {
			t.Fatalf("Scan of all %d bytes: %d, %v, %v", len(in), n, v, err)
		}
	}
	if elapsed := time.Since(begin); elapsed > 20*time.Second {
		t.Errorf("took %v for 2 MiB byte by byte", elapsed)
	}
}

// The decoder has no limits other than those of its stack and of the input.
func TestSkipIsBounded(t *testing.T) {
	for in, want := range map[string]string{
		strings.Repeat("*?\r\n", greatestDepth+1): "nesting depth 1025",
		strings.Repeat("*?\r\n", greatestDepth):   "the input ends",
		"*2\r\n*1\r\n:1\r\n":                      "2 further values",
		"*2\r\n:1\r\n.\r\n":                       "end of a streamed aggregate",
	} {
		d := NewDecoder([]byte(in))
		if err := d.Skip(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Skip over %s: %v, want %q", short(in), err, want)
		}
	}
}
