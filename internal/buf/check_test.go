package buf_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/buf"
)

// All tests run in checked mode, so that each of them also tests that memory is released once.
func TestMain(m *testing.M) {
	buf.Check()
	os.Exit(m.Run())
}

// unchecked switches checked mode off until the test ends.
func unchecked(t testing.TB) {
	buf.SetChecked(false)
	t.Cleanup(buf.Check)
}

// panicOf returns the value that f panicked with, or "" if it did not panic.
func panicOf(f func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

func TestCheckFindsASecondPut(t *testing.T) {
	for _, n := range []int{1, 4096, buf.MaxPooled} {
		b := buf.Get(n)
		buf.Put(b)
		got := panicOf(func() { buf.Put(b) })
		if !strings.Contains(got, "second Put") {
			t.Errorf("Get(%d), two Puts: panic %q, want one that reports the second Put", n, got)
		}
	}
}

func TestCheckPoisons(t *testing.T) {
	for _, b := range [][]byte{buf.Get(512)[:512], make([]byte, 700)} {
		copy(b, "text")
		buf.Put(b[:0])
		if b[0] != 0xDB || b[len(b)-1] != 0xDB {
			t.Errorf("after Put of %d bytes: %x and %x, want db", len(b), b[0], b[len(b)-1])
		}
	}
}

func TestCheckFindsAWriteAfterPut(t *testing.T) {
	const n = 1 << 17 // a class that no other test uses
	b := buf.Get(n)[:n]
	buf.Put(b)
	b[100] = 'x'
	got := panicOf(func() {
		for range 1000 {
			other := buf.Get(n)
			defer buf.Put(other)
			buf.Put(buf.Get(n))
			buf.Put(make([]byte, n))
		}
	})
	if !strings.Contains(got, "written to at 100") {
		t.Errorf("panic %q, want one that reports the write at 100", got)
	}
}

// Memory is reused in either mode, whichever mode was on when it was put back.
func TestCheckReuses(t *testing.T) {
	seen := make(map[*byte]bool)
	for range 1000 {
		b := buf.Get(2048)[:1]
		seen[&b[0]] = true
		buf.Put(b)
	}
	if len(seen) > 100 {
		t.Errorf("1000 Gets and Puts used %d pieces of memory, want about 32", len(seen))
	}
}

func BenchmarkGetPut(b *testing.B) {
	unchecked(b)
	for b.Loop() {
		buf.Put(buf.Get(4096))
	}
}
