//go:build unix

package thrift_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"
)

// atEndOfPage returns size bytes that end at an inaccessible page.
func atEndOfPage(t *testing.T, size int) []byte {
	t.Helper()
	page := os.Getpagesize()
	readable := (size + page - 1) / page * page
	all, err := unix.Mmap(-1, 0, readable+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(all); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mprotect(all[readable:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return all[readable-size : readable : readable]
}

// faultOf calls f. If f causes a memory fault, it returns the fault as an error.
func faultOf(f func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%v", fault)
		}
	}()
	f()
	return nil
}

// Views never read after the end of the frame, whatever its length and contents.
func TestViewsStayInTheFrame(t *testing.T) {
	rnd := rand.New(rand.NewPCG(13, 13))
	var frames [][]byte
	for _, as := range []order{byID, fixedFirst, anyOrder} {
		frames = append(frames, mixed(rnd, smallOrder().AppendThrift(nil), as, true))
	}
	for _, change := range alikes {
		frames = append(frames, alike(rnd, 18, change).AppendThrift(nil))
	}
	for _, b := range frames {
		p := atEndOfPage(t, len(b))
		for n := len(b); n >= 0; n -= 1 + len(b)/1500 {
			frame := p[len(p)-n:]
			copy(frame, b)
			for range 5 {
				if err := faultOf(func() {
					var v OrderView
					if v.OpenThrift(frame) == nil {
						orderOf(&v)
					}
				}); err != nil {
					t.Fatalf("%d bytes of %x: %v", n, b, err)
				}
				if n > 0 {
					frame[rnd.IntN(n)] = byte(rnd.Uint32())
				}
			}
		}
	}
}
