package resp

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

// frames contains messages that clients receive most often.
var frames = []struct {
	name  string
	frame []byte
}{
	{"simple", []byte("+OK\r\n")},
	{"integer", []byte(":1234567\r\n")},
	{"null", []byte("_\r\n")},
	{"bulk-16", AppendBulk(nil, make([]byte, 16))},
	{"bulk-1k", AppendBulk(nil, make([]byte, 1024))},
	{"bulk-64k", AppendBulk(nil, make([]byte, 64<<10))},
	{"array-10", append([]byte("*10\r\n"), bytes.Repeat([]byte("$16\r\n0123456789abcdef\r\n"), 10)...)},
	{"map-10", append([]byte("%5\r\n"), bytes.Repeat([]byte("+field\r\n,1.5\r\n"), 5)...)},
	{"nested", []byte("*2\r\n*2\r\n$3\r\n1-1\r\n*2\r\n+f\r\n#t\r\n|1\r\n+ttl\r\n:1\r\n*?\r\n:1\r\n(12\r\n.\r\n")},
	{"error", []byte("-MOVED 3999 127.0.0.1:6381\r\n")},
	{"push", []byte(">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n")},
}

// noAllocs fails if f allocates.
func noAllocs(t *testing.T, name string, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%s: %v allocations, want none", name, n)
	}
}

func TestReadingDoesNotAllocate(t *testing.T) {
	var s Scanner
	var tokens int
	for _, c := range frames {
		noAllocs(t, "Scan "+c.name, func() {
			if n, _, err := s.Scan(c.frame); n != len(c.frame) || err != nil {
				t.Fatal(n, err)
			}
		})
		noAllocs(t, "Scan in two pieces "+c.name, func() {
			if _, v, err := s.Scan(c.frame[:len(c.frame)-1]); v != More || err != nil {
				t.Fatal(v, err)
			}
			if n, _, err := s.Scan(c.frame); n != len(c.frame) || err != nil {
				t.Fatal(n, err)
			}
		})
		noAllocs(t, "Next "+c.name, func() {
			d := NewDecoder(c.frame)
			for {
				if _, err := d.Next(); err != nil {
					break
				}
				tokens++
			}
		})
		noAllocs(t, "Skip "+c.name, func() {
			d := NewDecoder(c.frame)
			if err := d.Skip(); err != nil {
				t.Fatal(err)
			}
		})
	}
	number, float := []byte("-1234567890123456789"), []byte("-1234.5678e-10")
	noAllocs(t, "ParseInt and ParseFloat", func() {
		_, err1 := ParseInt(number)
		_, err2 := ParseFloat(float)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
	})
	one := []byte("$?\r\n;3\r\nabc\r\n;0\r\n")
	noAllocs(t, "Next of a streamed string of one part", func() {
		d := NewDecoder(one)
		if tok, err := d.Next(); string(tok.Bytes) != "abc" || err != nil {
			t.Fatal(tok, err)
		}
	})
	if tokens == 0 {
		t.Error("no token was read")
	}
}

func TestReadingCommandsDoesNotAllocate(t *testing.T) {
	var s CommandScanner
	for _, in := range []string{"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n", "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", "set k \"a b\"\r\n"} {
		b := []byte(in)
		noAllocs(t, "Scan "+in, func() {
			if n, args, _, err := s.Scan(b); n != len(b) || len(args) < 2 || err != nil {
				t.Fatal(n, err)
			}
		})
	}
}

func TestAppendersDoNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 4096)
	long, text := make([]byte, 1000), strings.Repeat("x", 1000)
	v, _, err := Parse(frames[len(frames)-3].frame, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func(b []byte) []byte{
		"AppendCommand":      func(b []byte) []byte { return AppendCommand(b, "SET", "key", text) },
		"AppendBulk":         func(b []byte) []byte { return AppendBulk(b, long) },
		"AppendBulkString":   func(b []byte) []byte { return AppendBulkString(b, text) },
		"AppendBulkInt":      func(b []byte) []byte { return AppendBulkInt(b, -1234567890123456789) },
		"AppendBulkUint":     func(b []byte) []byte { return AppendBulkUint(b, 1<<63) },
		"AppendBulkFloat":    func(b []byte) []byte { return AppendBulkFloat(b, -1.2345678901234567e-300) },
		"AppendSimpleString": func(b []byte) []byte { return AppendSimpleString(b, "OK") },
		"AppendError":        func(b []byte) []byte { return AppendError(b, "ERR no") },
		"AppendInt":          func(b []byte) []byte { return AppendInt(b, -1<<63) },
		"AppendDouble":       func(b []byte) []byte { return AppendDouble(b, 0.1) },
		"AppendVerbatim":     func(b []byte) []byte { return AppendVerbatim(b, [3]byte{'t', 'x', 't'}, long) },
		"AppendMapHeader":    func(b []byte) []byte { return AppendMapHeader(b, 1000) },
		"AppendStreamedPart": func(b []byte) []byte { return AppendStreamedPart(b, long) },
		"AppendValue":        func(b []byte) []byte { return AppendValue(b, v) },
	} {
		noAllocs(t, name, func() { buf = f(buf[:0]) })
	}
}

// A tree costs one allocation for each aggregate that has elements, and none
// for scalars.
func TestParseAllocatesElementsOnly(t *testing.T) {
	for _, c := range []struct {
		in   string
		want float64
	}{
		{"$5\r\nhello\r\n", 0},
		{"*0\r\n", 0},
		{"*3\r\n:1\r\n$1\r\na\r\n_\r\n", 1},
		{"*2\r\n*1\r\n:1\r\n%1\r\n+a\r\n+b\r\n", 3},
	} {
		b := []byte(c.in)
		if got := testing.AllocsPerRun(100, func() { _, _, _ = Parse(b, Limits{}) }); got != c.want {
			t.Errorf("Parse(%q): %v allocations, want %v", c.in, got, c.want)
		}
	}
}

// TestSizes checks the sizes that the documentation and the limits state.
func TestSizes(t *testing.T) {
	if n := unsafe.Sizeof(Value{}); n > 96 {
		t.Errorf("a Value has %d bytes, Parse promises at most 96", n)
	}
	if n := unsafe.Sizeof(Scanner{}); n > 256 {
		t.Errorf("a Scanner has %d bytes: there is one for each connection", n)
	}
}

func BenchmarkScan(b *testing.B) {
	for _, c := range frames {
		b.Run(c.name, func(b *testing.B) {
			var s Scanner
			b.ReportAllocs()
			for b.Loop() {
				if n, _, err := s.Scan(c.frame); n != len(c.frame) || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}

func BenchmarkDecoder(b *testing.B) {
	for _, c := range frames {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d := NewDecoder(c.frame)
				for {
					if _, err := d.Next(); err != nil {
						break
					}
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, c := range frames {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := Parse(c.frame, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendCommand(b *testing.B) {
	for _, size := range []int{16, 1024} {
		b.Run(fmt.Sprintf("set-%d", size), func(b *testing.B) {
			value := strings.Repeat("x", size)
			buf := make([]byte, 0, 4096)
			b.ReportAllocs()
			for b.Loop() {
				buf = AppendCommand(buf[:0], "SET", "key:000000000001", value)
			}
		})
	}
	b.Run("get", func(b *testing.B) {
		buf := make([]byte, 0, 4096)
		b.ReportAllocs()
		for b.Loop() {
			buf = AppendCommand(buf[:0], "GET", "key:000000000001")
		}
	})
}

func BenchmarkAppendBulkInt(b *testing.B) {
	for _, v := range []int64{7, 1234, -1234567890123456789} {
		b.Run(fmt.Sprint(v), func(b *testing.B) {
			buf := make([]byte, 0, 64)
			for b.Loop() {
				buf = AppendBulkInt(buf[:0], v)
			}
		})
	}
}

func BenchmarkCommandScanner(b *testing.B) {
	frame := AppendCommand(nil, "SET", "key:000000000001", "0123456789abcdef")
	var s CommandScanner
	b.ReportAllocs()
	for b.Loop() {
		if n, _, _, err := s.Scan(frame); n != len(frame) || err != nil {
			b.Fatal(n, err)
		}
	}
}
