//go:build unix

package bulk

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// page returns memory of at least size bytes between two inaccessible pages.
func page(t *testing.T, size int) []byte {
	t.Helper()
	one := os.Getpagesize()
	size = (size + one - 1) / one * one
	all, err := unix.Mmap(-1, 0, size+2*one, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(all); err != nil {
			t.Error(err)
		}
	})
	for _, guard := range [][]byte{all[:one], all[one+size:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return all[one : one+size : one+size]
}

// safely calls a kernel. If it causes a memory fault, safely returns the fault as an error.
func (k kernel) safely(dst, src []byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%v", fault)
		}
	}()
	k.run(dst, src)
	return nil
}

// No kernel reads or writes a byte outside of its lists. The lists begin or end at the boundary of
// an inaccessible page.
func TestKernelsStayInTheirPages(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		for _, k := range kernels() {
			size := longest * k.width
			source, target := page(t, size), page(t, size)
			copy(source, numbers(len(source)))
			if err := unix.Mprotect(source, unix.PROT_READ); err != nil {
				t.Fatal(err)
			}
			want := make([]byte, size)
			for n := 0; n <= size; n += k.width {
				for _, from := range []int{0, len(source) - n} {
					src := source[from : from+n]
					k.plain(want, src)
					for _, to := range []int{0, len(target) - n} {
						dst := target[to : to+n]
						clear(dst)
						if err := k.safely(dst, src); err != nil {
							t.Fatalf("%s, %d bytes from %d to %d of a page of %d: %v", k.name, n, from, to, len(source), err)
						}
						if !bytes.Equal(dst, want[:n]) {
							t.Fatalf("%s, %d bytes from %d to %d of a page of %d: not equal to the plain loop", k.name, n, from, to, len(source))
						}
					}
				}
			}
		}
	})
}

// The test above is valid only if accesses of the adjacent pages are detected.
func TestAccessOutsideOfAPageIsNoticed(t *testing.T) {
	memory := page(t, 1)
	reader := kernel{run: func(dst, src []byte) { dst[0] = src[0] }}
	if err := reader.safely(make([]byte, 1), unsafeBefore(memory)); err == nil {
		t.Error("a read before the page was not noticed")
	}
	if err := reader.safely(memory, memory); err != nil {
		t.Errorf("a read of the page: %v", err)
	}
}

// unsafeBefore returns the byte before memory.
func unsafeBefore(memory []byte) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&memory[0]), -1)), 1)
}
