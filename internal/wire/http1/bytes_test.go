package http1

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The loops that check eight bytes at a time must return the same as loops over single bytes.
func TestWordLoops(t *testing.T) {
	naive := func(b []byte, i int, good func(c byte) bool) int {
		for i < len(b) && good(b[i]) {
			i++
		}
		return i
	}
	inValue := func(c byte) bool { return c == '\t' || c >= ' ' && c != 0x7f }
	inPath := func(c byte) bool { return c > ' ' && c < 0x7f && !strings.ContainsRune("#%?", rune(c)) }
	check := func(b []byte, from int) {
		t.Helper()
		if got, want := valueEnd(b, from), naive(b, from, inValue); got != want {
			t.Fatalf("valueEnd(%q, %d) = %d, want %d", b, from, got, want)
		}
		if got, want := pathEnd(b, from), naive(b, from, inPath); got != want {
			t.Fatalf("pathEnd(%q, %d) = %d, want %d", b, from, got, want)
		}
		for _, c := range []byte{'\n', ':', b[0]} {
			if got, want := index(b, c), bytes.IndexByte(b, c); got != want {
				t.Fatalf("index(%q, %q) = %d, want %d", b, c, got, want)
			}
		}
	}
	// Every pair of bytes is tested side by side in a word, where a wrong borrow would show.
	for first := range 256 {
		for second := range 256 {
			for at := range 8 {
				b := []byte("abcdefghijklm")
				b[at], b[at+1] = byte(first), byte(second)
				check(b, 0)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		b := make([]byte, 1+r.IntN(30))
		for i := range b {
			if b[i] = byte('a' + r.IntN(26)); r.IntN(8) == 0 {
				b[i] = byte(r.Uint32())
			}
		}
		check(b, r.IntN(len(b)+1))
	}
}

// A name must be recognized in every mixture of cases, and not if any of its bytes is replaced by
// another.
func TestLookUp(t *testing.T) {
	for id := fieldHost; int(id) < len(fieldNames); id++ {
		name := fieldNames[id]
		for _, known := range []string{name, strings.ToUpper(name), http.CanonicalHeaderKey(name)} {
			if got := lookUp([]byte(known)); got != id {
				t.Errorf("lookUp(%q) = %d, want %d", known, got, id)
			}
		}
		for at := range len(name) {
			for c := range 256 {
				b := []byte(name)
				b[at] = byte(c)
				want := unknownField
				if strings.EqualFold(string(b), name) && c < 0x80 {
					want = id
				}
				if got := lookUp(b); got != want {
					t.Errorf("lookUp(%q) = %d, want %d", b, got, want)
				}
			}
		}
		for _, other := range []string{name[1:], name[:len(name)-1], name + "s", "x" + name} {
			if got := lookUp([]byte(other)); got != unknownField {
				t.Errorf("lookUp(%q) = %d, want none", other, got)
			}
		}
	}
	for n := range 40 {
		for _, c := range []byte{0, ' ', 'a'} {
			if got := lookUp(bytes.Repeat([]byte{c}, n)); got != unknownField {
				t.Errorf("%d times %q is field %d", n, c, got)
			}
		}
	}
}

// The cost of a head that arrives byte by byte must grow with its length, not with the square of
// its length.
func TestLinear(t *testing.T) {
	const short, long = 2 << 10, 16 << 10
	const begin = "GET / HTTP/1.1\r\nHost: a\r\n"
	for name, head := range map[string]func(n int) string{
		"target":         func(n int) string { return "GET /" + strings.Repeat("x", n) },
		"percent signs":  func(n int) string { return "GET /" + strings.Repeat("%41", n/3) },
		"broken target":  func(n int) string { return "GET " + strings.Repeat("x", n) },
		"broken version": func(n int) string { return "GET / " + strings.Repeat(" ", n) },
		"name":           func(n int) string { return begin + strings.Repeat("x", n) },
		"broken name":    func(n int) string { return begin + " " + strings.Repeat("x", n) },
		"value":          func(n int) string { return begin + "X: " + strings.Repeat("x", n) },
		"broken value":   func(n int) string { return begin + "X: \x00" + strings.Repeat("x", n) },
		"blanks":         func(n int) string { return begin + "X:" + strings.Repeat(" \t", n/2) },
		"many fields":    func(n int) string { return begin + strings.Repeat("X: "+strings.Repeat("y", n/90)+"\r\n", 90) },
	} {
		cost := func(n int) time.Duration {
			in := []byte(head(n))
			best := time.Hour
			for range 3 {
				var s Scanner
				var h Head
				start := time.Now()
				for seen := range len(in) {
					if _, v, why := s.Scan(in[:seen], 1<<20, &h); v != More {
						t.Fatalf("%s: %v, %v after %d bytes", name, v, why, seen)
					}
				}
				best = min(best, time.Since(start))
			}
			return best
		}
		// With 8 times as many bytes, linear code takes 8 times as long and quadratic code 64 times
		// as long.
		base := max(cost(short), 10*time.Microsecond)
		if got := cost(long); got > 32*base {
			t.Fatalf("%s: %v for %d bytes, %v for %d", name, base, short, got, long)
		}
	}
}
