package trace

import (
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
)

const (
	traceID = "12345678901234567890123456789012"
	spanID  = "1234567890123456"
	simple  = "00-" + traceID + "-" + spanID + "-01"
)

// The cases of the W3C's own test suite for the field traceparent, and some more.
func TestParse(t *testing.T) {
	for _, test := range []struct {
		name, value string
		ok, sampled bool
	}{
		{"sampled", simple, true, true},
		{"not sampled", "00-" + traceID + "-" + spanID + "-00", true, false},
		{"other flags, not sampled", "00-" + traceID + "-" + spanID + "-fe", true, false},
		{"other flags, sampled", "00-" + traceID + "-" + spanID + "-ff", true, true},
		{"random flag of level 2", "00-" + traceID + "-" + spanID + "-03", true, true},

		{"absent", "", false, false},
		{"version 00, one more character", simple + ".", false, false},
		{"version 00, one more part", simple + "-what-the-future-will-be-like", false, false},
		{"version 00, a hyphen more", simple + "-", false, false},
		{"version cc", "cc" + simple[2:], true, true},
		{"version cc, more parts", "cc" + simple[2:] + "-what-the-future-will-be-like", true, true},
		{"version cc, an empty part", "cc" + simple[2:] + "-", true, true},
		{"version cc, not a part", "cc" + simple[2:] + ".what-the-future-will-be-like", false, false},
		{"version cc, too short", "cc" + simple[2:54], false, false},
		{"version fe", "fe" + simple[2:], true, true},
		{"version ff", "ff" + simple[2:], false, false},
		{"version ff, more parts", "ff" + simple[2:] + "-x", false, false},
		{"version, first character", ".0" + simple[2:], false, false},
		{"version, second character", "0." + simple[2:], false, false},
		{"version of three", "000" + simple[2:], false, false},
		{"version of four", "0000" + simple[2:], false, false},
		{"version of one", "0" + simple[2:], false, false},
		{"version in upper case", "CC" + simple[2:], false, false},

		{"trace id zero", "00-" + strings.Repeat("0", 32) + "-" + spanID + "-01", false, false},
		{"trace id, first character", "00-." + traceID[1:] + "-" + spanID + "-01", false, false},
		{"trace id, last character", "00-" + traceID[:31] + ".-" + spanID + "-01", false, false},
		{"trace id in upper case", "00-A" + traceID[1:] + "-" + spanID + "-01", false, false},
		{"trace id too long", "00-1" + traceID + "-" + spanID + "-01", false, false},
		{"trace id too short", "00-" + traceID[1:] + "-" + spanID + "-01", false, false},

		{"span id zero", "00-" + traceID + "-" + strings.Repeat("0", 16) + "-01", false, false},
		{"span id, first character", "00-" + traceID + "-." + spanID[1:] + "-01", false, false},
		{"span id, last character", "00-" + traceID + "-" + spanID[:15] + ".-01", false, false},
		{"span id in upper case", "00-" + traceID + "-A" + spanID[1:] + "-01", false, false},
		{"span id too long", "00-" + traceID + "-1" + spanID + "-01", false, false},
		{"span id too short", "00-" + traceID + "-" + spanID[1:] + "-01", false, false},

		{"flags, first character", simple[:53] + ".0", false, false},
		{"flags, second character", simple[:53] + "0.", false, false},
		{"flags in upper case", simple[:53] + "0A", false, false},
		{"flags too long", simple[:53] + "001", false, false},
		{"flags too short", simple[:53] + "1", false, false},

		{"twice, as a list", simple + ", " + simple, false, false},
		{"twice, of a later version", "cc" + simple[2:] + ", cc" + simple[2:], false, false},
		{"white space before", " " + simple, false, false},
		{"white space after", simple + " ", false, false},
		{"white space inside", simple[:2] + " " + simple[3:], false, false},
		{"other hyphens", strings.ReplaceAll(simple, "-", "_"), false, false},
		{"not ASCII", "00-" + strings.Repeat("é", 16) + "-" + spanID + "-01", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, ok := Parse(test.value)
			if ok != test.ok || c.Valid() != test.ok || c.Sampled() != test.sampled {
				t.Fatalf("%q: got ok %v, valid %v, sampled %v; want %v, %v", test.value, ok, c.Valid(), c.Sampled(), test.ok, test.sampled)
			}
			if !ok {
				if c != (Context{}) {
					t.Errorf("got %+v, want the zero context", c)
				}
				return
			}
			if got := hex.EncodeToString(c.TraceID[:]); got != traceID {
				t.Errorf("trace id: got %s, want %s", got, traceID)
			}
			if got := hex.EncodeToString(c.SpanID[:]); got != spanID {
				t.Errorf("span id: got %s, want %s", got, spanID)
			}
		})
	}
}

func TestChild(t *testing.T) {
	parent, _ := Parse(simple)
	child := parent.Child()
	if child.TraceID != parent.TraceID || child.SpanID == parent.SpanID || !child.Valid() || !child.Sampled() {
		t.Errorf("child of %+v: got %+v, want the same trace, another span, sampled", parent, child)
	}
	for _, none := range []Context{
		{Flags: FlagSampled},
		{TraceID: parent.TraceID, Flags: FlagSampled},
		{SpanID: parent.SpanID, Flags: FlagSampled},
	} {
		root := none.Child()
		if !root.Valid() || root.Sampled() || root.TraceID == none.TraceID || root.SpanID == none.SpanID {
			t.Errorf("child of %+v: got %+v, want a new trace, not sampled", none, root)
		}
	}
}

func TestWithSampled(t *testing.T) {
	c, _ := Parse(simple)
	if got := c.WithSampled(false); got.Sampled() || got.TraceID != c.TraceID {
		t.Errorf("got %+v, want the same trace, not sampled", got)
	}
	if got := c.WithSampled(false).WithSampled(true); got != c {
		t.Errorf("got %+v, want %+v", got, c)
	}
}

func TestAppendTraceparent(t *testing.T) {
	c, _ := Parse(simple)
	if got := string(c.AppendTraceparent([]byte("x"))); got != "x"+simple {
		t.Errorf("got %q, want %q", got, "x"+simple)
	}
	c.Flags = 0xfe // reserved flags are not passed on
	if got, want := string(c.AppendTraceparent(nil)), simple[:53]+"00"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := string(Context{}.AppendTraceparent([]byte("x"))); got != "x" {
		t.Errorf("no context: got %q, want nothing appended", got)
	}
}

func TestRequestID(t *testing.T) {
	long := strings.Repeat("x", maxRequestID)
	for _, given := range []string{"a", "0", "a.b_C-9", long, "."} {
		if got := RequestID(given); got != given {
			t.Errorf("%q: got %q, want it kept", given, got)
		}
	}
	for _, given := range []string{"", long + "x", "a b", "a\r\nb", "a,b", "é", "a\x00", "a/b", "a=b", "a:b", "a@b", "[", "`", "{"} {
		got := RequestID(given)
		if got == given || len(got) != 22 || !AcceptableRequestID(got) {
			t.Errorf("%q: got %q, want a new one of 22 acceptable characters", given, got)
		}
	}
}

// Ids of many goroutines are all different.
func TestUnique(t *testing.T) {
	const goroutines, each = 8, 20_000
	var wg sync.WaitGroup
	drawn := make([][]string, goroutines)
	for g := range goroutines {
		wg.Go(func() { // ends with its loop, awaited below
			for range each {
				c := Context{}.Child()
				drawn[g] = append(drawn[g], RequestID(""), string(c.TraceID[:]), string(c.SpanID[:]), string(c.TraceID[8:]))
			}
		})
	}
	wg.Wait()
	seen := make(map[string]bool)
	for _, ids := range drawn {
		for _, id := range ids {
			if seen[id] {
				t.Fatalf("%x was drawn twice", id)
			}
			seen[id] = true
		}
	}
}

func TestAllocations(t *testing.T) {
	b := make([]byte, 0, 64)
	for _, test := range []struct {
		name string
		call func()
		want float64
	}{
		{"parse, child, append", func() {
			c, _ := Parse(simple)
			b = c.Child().AppendTraceparent(b[:0])
		}, 0},
		{"a new trace", func() { b = Context{}.Child().AppendTraceparent(b[:0]) }, 0},
		{"a request id given", func() { b = append(b[:0], RequestID("abc-1")...) }, 0},
		{"a new request id", func() { kept = RequestID("") }, 1},
	} {
		if got := testing.AllocsPerRun(100, test.call); got != test.want {
			t.Errorf("%s: got %v allocations, want %v", test.name, got, test.want)
		}
	}
}

var kept string

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", simple, "cc" + simple[2:] + "-more", "ff" + simple[2:], simple + "-", strings.ToUpper(simple)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		c, ok := Parse(value)
		if ok != c.Valid() {
			t.Fatalf("%q: ok %v, valid %v", value, ok, c.Valid())
		}
		if !ok {
			return
		}
		// An accepted value is formatted the same, up to the version and reserved flags.
		written := string(c.AppendTraceparent(nil))
		if len(written) != length || written[2:53] != value[2:53] {
			t.Errorf("%q is written %q", value, written)
		}
		if again, ok := Parse(written); !ok || again != c {
			t.Errorf("%q: got %+v, want %+v", written, again, c)
		}
	})
}

func FuzzRequestID(f *testing.F) {
	f.Add("")
	f.Add("a.b_c-1")
	f.Add("a\nb")
	f.Fuzz(func(t *testing.T, given string) {
		id := RequestID(given)
		if id == "" || len(id) > maxRequestID || strings.ContainsFunc(id, func(r rune) bool {
			return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", r)
		}) {
			t.Errorf("%q became %q", given, id)
		}
	})
}

func ExampleContext_Child() {
	c, ok := Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	child := c.Child()
	fmt.Println(ok, child.TraceID == c.TraceID, child.Sampled())
	// Output: true true true
}

func BenchmarkParseChildAppend(b *testing.B) {
	b.ReportAllocs()
	buf := make([]byte, 0, 64)
	for b.Loop() {
		c, _ := Parse(simple)
		buf = c.Child().AppendTraceparent(buf[:0])
	}
}

func BenchmarkNewTraceAndRequestID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = Context{}.Child()
		kept = RequestID("")
	}
}
