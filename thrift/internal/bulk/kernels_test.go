package bulk

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// names are the names of implementations.
var names = map[implementation]string{plain: "Go", avx2: "AVX2", neon: "NEON"}

// eachImplementation runs test with every implementation that this processor supports.
func eachImplementation(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	before := chosen
	defer func() { chosen = before }()
	for _, with := range available() {
		chosen = with
		t.Run(names[with], test)
	}
}

// kernel is a conversion and its reference implementation.
type kernel struct {
	name  string
	width int
	run   func(dst, src []byte)
	plain func(dst, src []byte)
}

func kernels() []kernel {
	all := []kernel{{"bool", 1, convertBools, func(dst, src []byte) {
		for i, b := range src {
			dst[i] = 1
			if b == 0 {
				dst[i] = 0
			}
		}
	}}}
	for _, width := range []int{2, 4, 8} {
		all = append(all, kernel{fmt.Sprint(8*width, " bits"), width,
			func(dst, src []byte) { convert(dst, src, uintptr(width)) },
			func(dst, src []byte) {
				for i := range src {
					if bigEndian {
						dst[i] = src[i]
					} else {
						dst[i] = src[i/width*width+width-1-i%width]
					}
				}
			}})
	}
	return all
}

// numbers returns n bytes, half of which are 0 or 1. They repeat after 8200 bytes, which does not
// divide the size of a part.
func numbers(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	const period = 8200
	for i := range min(n, period) {
		b[i] = byte(r.Uint32())
		if r.IntN(2) == 0 {
			b[i] &= 1
		}
	}
	for i := period; i < n; i += period {
		copy(b[i:], b[:period])
	}
	return b
}

// aligned returns n bytes whose address is a multiple of 64.
func aligned(n int) []byte {
	b := make([]byte, n+64)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & 63
	return b[skip : skip+n : skip+n]
}

const (
	longest = 300 // elements
	margin  = 64  // bytes around a destination that must not change
	offsets = 32  // alignments
)

// canary is the contents of memory that must not be written to.
var canary = bytes.Repeat([]byte{0xa5}, 1<<17)

// around returns a destination of size bytes at offset in memory, and a function that reports
// whether the bytes before and after it were written to.
func around(memory []byte, offset, size int) (dst []byte, written func() bool) {
	all := memory[:margin+offset+size+margin]
	copy(all, canary)
	before, after := all[:margin+offset], all[margin+offset+size:]
	return all[len(before) : len(before)+size : len(before)+size], func() bool {
		return !bytes.Equal(before, canary[:len(before)]) || !bytes.Equal(after, canary[:margin])
	}
}

// field returns memory for around with destinations of up to size bytes.
func field(size int) []byte { return aligned(margin + offsets + size + margin) }

func TestKernelsEqualThePlainLoopAtEveryLengthAndAlignment(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		for _, k := range kernels() {
			t.Run(k.name, func(t *testing.T) {
				size := longest * k.width
				input, want := numbers(size), make([]byte, size)
				k.plain(want, input)
				source, target := aligned(offsets+size), field(size)
				for from := range offsets {
					copy(source[from:], input)
					for n := 0; n <= size; n += k.width {
						src := source[from : from+n : from+n]
						for to := range offsets {
							dst, written := around(target, to, n)
							k.run(dst, src)
							if !bytes.Equal(dst, want[:n]) {
								t.Fatalf("%d bytes from offset %d to %d:\ngot  %x\nwant %x", n, from, to, dst, want[:n])
							}
							if written() {
								t.Fatalf("%d bytes from offset %d to %d: wrote outside of the destination", n, from, to)
							}
						}
					}
					if !bytes.Equal(source[from:from+size], input) {
						t.Fatal("the source was changed")
					}
				}
			})
		}
	})
}

// Converting a list in several parts has the same result as a plain loop.
func TestLongListsEqualThePlainLoop(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		for _, k := range kernels() {
			for _, size := range []int{2*part - 8, 2 * part, 3*part - 8, 4*part + 40} {
				src, dst, want := numbers(size), make([]byte, size), make([]byte, size)
				k.plain(want, src)
				if k.width == 1 {
					getBool(dst, src)
				} else {
					convertAll(dst, src, uintptr(k.width))
				}
				if !bytes.Equal(dst, want) {
					t.Errorf("%s, %d bytes: not equal to the plain loop", k.name, size)
				}
			}
		}
	})
}

func TestEveryByteOtherThanZeroIsTrue(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		for b := range 256 {
			for n := 0; n <= 100; n++ {
				src := bytes.Repeat([]byte{byte(b)}, n)
				want := make([]byte, n)
				if b != 0 {
					want = bytes.Repeat([]byte{1}, n)
				}
				got := bytes.Repeat([]byte{0xa5}, n)
				getBool(got, src)
				if !bytes.Equal(got, want) {
					t.Fatalf("%d bytes %#x: got %x", n, b, got)
				}
			}
		}
	})
}

func TestAssemblyIsUsedUnlessTheProgramIsInstrumented(t *testing.T) {
	for _, with := range available() {
		t.Logf("available: %s", names[with])
	}
	want := available()[0]
	if instrumented {
		want = plain
	}
	if chosen != want {
		t.Errorf("chosen: %s, want %s", names[chosen], names[want])
	}
	if last := available()[len(available())-1]; last != plain {
		t.Errorf("the last implementation is %s, want Go, which every processor has", names[last])
	}
}

// FuzzKernels checks for every input and alignment that all implementations have the result of the
// plain loop, and that the bytes around the destination do not change.
func FuzzKernels(f *testing.F) {
	f.Add([]byte("a list of sixteen bytes, and one of more than 128: "+
		"aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbccccccccccccccccddddddddddddddddeeeeeeeeeeeeeeeeffffffff"), uint8(3), uint8(5))
	f.Add([]byte("\x00\x01\x02\x80\xff\x01\x01\x00\x00"), uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, input []byte, from, to uint8) {
		if len(input) > 1<<16 {
			return
		}
		offset := int(from) % offsets
		source := aligned(offset + len(input))
		copy(source[offset:], input)
		target := field(len(input))
		before := chosen
		defer func() { chosen = before }()
		for _, chosen = range available() {
			for _, k := range kernels() {
				size := len(input) / k.width * k.width
				want := make([]byte, size)
				k.plain(want, input[:size])
				dst, written := around(target, int(to)%offsets, size)
				k.run(dst, source[offset:offset+size:offset+size])
				if !bytes.Equal(dst, want) || written() {
					t.Errorf("%s of %s, %d bytes:\ngot  %x\nwant %x\nwritten around it: %v", k.name, names[chosen], size, dst, want, written())
				}
			}
		}
	})
}

func TestNoCallOfAKernelIsLong(t *testing.T) {
	for _, size := range []int{1, 8, part, 2*part - 1, 2 * part, 2*part + 1, 10*part + 7, 1 << 30} {
		n := nextPart(size)
		if rest := size - n; n < 1 || n >= 1<<20 || rest < 0 || rest > 0 && (n%64 != 0 || rest < 64) {
			t.Errorf("%d bytes: the first call converts %d, want at most 1 MiB, and unless that is all, a multiple of 64 with at least 64 left", size, n)
		}
	}
}
