package bulk

import (
	"bytes"
	"encoding/binary"
	"math"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// Types that generated code declares, such as enums, are converted like their underlying types.
type enum int32

// list contains the functions for lists of one type, and reference functions for one element. The
// functions for few elements are nil if there are none.
type list[E comparable] struct {
	name           string
	put            func(dst []byte, src []E)
	get            func(dst []E, src []byte)
	putFew, getFew func(elements []E, buf []byte) bool
	putOne         func(dst []byte, v E)
	getOne         func(src []byte) E
}

// tester tests lists of one type.
type tester interface {
	equal(t *testing.T)
	tooShort(t *testing.T)
	fewOnly(t *testing.T)
}

func lists() map[string]tester {
	return map[string]tester{
		"bool": list[bool]{"bool", PutBool[bool], GetBool[bool], nil, GetFewBool[bool],
			func(dst []byte, v bool) {
				dst[0] = 0
				if v {
					dst[0] = 1
				}
			},
			func(src []byte) bool { return src[0] != 0 }},
		"i8": list[int8]{"i8", PutI8[int8], GetI8[int8], nil, nil,
			func(dst []byte, v int8) { dst[0] = byte(v) },
			func(src []byte) int8 { return int8(src[0]) }},
		"i16": list[int16]{"i16", PutI16[int16], GetI16[int16], reverse(PutFewI16[int16]), GetFewI16[int16],
			func(dst []byte, v int16) { binary.BigEndian.PutUint16(dst, uint16(v)) },
			func(src []byte) int16 { return int16(binary.BigEndian.Uint16(src)) }},
		"i32": list[enum]{"i32", PutI32[enum], GetI32[enum], reverse(PutFewI32[enum]), GetFewI32[enum],
			func(dst []byte, v enum) { binary.BigEndian.PutUint32(dst, uint32(v)) },
			func(src []byte) enum { return enum(binary.BigEndian.Uint32(src)) }},
		"i64": list[int64]{"i64", PutI64[int64], GetI64[int64], reverse(PutFewI64[int64]), GetFewI64[int64],
			func(dst []byte, v int64) { binary.BigEndian.PutUint64(dst, uint64(v)) },
			func(src []byte) int64 { return int64(binary.BigEndian.Uint64(src)) }},
		"double": list[float64]{"double", PutDouble[float64], GetDouble[float64], reverse(PutFewDouble[float64]), GetFewDouble[float64],
			func(dst []byte, v float64) { binary.BigEndian.PutUint64(dst, math.Float64bits(v)) },
			func(src []byte) float64 { return math.Float64frombits(binary.BigEndian.Uint64(src)) }},
	}
}

func reverse[E any](put func([]byte, []E) bool) func([]E, []byte) bool {
	return func(elements []E, buf []byte) bool { return put(buf, elements) }
}

// eachList runs test with every type and every implementation.
func eachList(t *testing.T, test func(l tester, t *testing.T)) {
	t.Helper()
	for name, l := range lists() {
		t.Run(name, func(t *testing.T) {
			eachImplementation(t, func(t *testing.T) { test(l, t) })
		})
	}
}

func (l list[E]) width() int { var v E; return int(unsafe.Sizeof(v)) }

// view returns the bytes of elements.
func view[E any](elements []E) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(elements))), len(elements)*int(unsafe.Sizeof(*new(E))))
}

// typed returns memory as a slice of elements.
func typed[E any](memory []byte) []E {
	return unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/int(unsafe.Sizeof(*new(E))))
}

// samples returns n bytes in wire form and their elements, read one by one. The bytes are also the
// encoding of the elements.
func (l list[E]) samples(n int) (wire []byte, elements []E) {
	w := l.width()
	wire, elements = numbers(n*w), make([]E, n)
	for i := range elements {
		elements[i] = l.getOne(wire[i*w:])
		l.putOne(wire[i*w:], elements[i]) // bytes that are not 0 or 1 become 1
	}
	return wire, elements
}

// equal checks that lists of any length at any alignment are converted like their elements one by
// one, and that nothing around them is written to.
func (l list[E]) equal(t *testing.T) {
	w := l.width()
	wire, elements := l.samples(longest)
	source, target := aligned(offsets+longest*w), field(longest*w)
	for offset := range offsets {
		copy(source[offset:], wire)
		for start := 0; start < offsets; start += w { // elements are aligned to their size
			from := typed[E](aligned(start + longest*w)[start:])
			copy(from, elements)
			for n := range longest + 1 {
				buf, written := around(target, offset, n*w)
				l.put(buf, from[:n])
				if !bytes.Equal(buf, wire[:n*w]) || written() {
					t.Fatalf("Put of %d elements from offset %d to %d:\ngot  %x\nwant %x\nwritten around it: %v", n, start, offset, buf, wire[:n*w], written())
				}
				memory, written := around(target, start, n*w)
				l.get(typed[E](memory), source[offset:offset+n*w:offset+n*w])
				if !bytes.Equal(memory, view(elements[:n])) || written() {
					t.Fatalf("Get of %d elements from offset %d to %d:\ngot  %x\nwant %x\nwritten around it: %v", n, offset, start, memory, view(elements[:n]), written())
				}
			}
		}
	}
}

func TestListsEqualThePlainLoopAtEveryLengthAndAlignment(t *testing.T) {
	eachList(t, tester.equal)
}

// tooShort checks that a conversion panics if the length of the buffer is too short, regardless of
// its capacity, and that it does not write beyond the length.
func (l list[E]) tooShort(t *testing.T) {
	w := l.width()
	for _, n := range []int{1, 2, Few - 1, Few, Few + 1, 40, 2*part/w + 3} {
		wire, elements := l.samples(n)
		for _, length := range []int{0, 1, n*w - w, n*w - 1} {
			if length >= n*w {
				continue
			}
			buf := bytes.Clone(canary)
			for len(buf) < n*w {
				buf = append(buf, canary...)
			}
			calls := map[string]func(){
				"Put": func() { l.put(buf[:length], elements) },
				"Get": func() { l.get(make([]E, n), wire[:length]) },
			}
			if l.putFew != nil && n < Few {
				calls["PutFew"] = func() { l.putFew(elements, buf[:length]) }
			}
			if l.getFew != nil && n < Few {
				calls["GetFew"] = func() { l.getFew(make([]E, n), wire[:length]) }
			}
			for name, call := range calls {
				if !panics(call) {
					t.Errorf("%s of %d elements with a buffer of %d bytes did not panic", name, n, length)
				}
				if beyond := buf[length : n*w]; !bytes.Equal(beyond, bytes.Repeat(canary[:1], len(beyond))) {
					t.Errorf("%s of %d elements wrote beyond a buffer of %d bytes", name, n, length)
				}
			}
		}
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestBuffersThatAreTooShortPanic(t *testing.T) {
	eachList(t, tester.tooShort)
}

// fewOnly checks that the functions for few elements have the same results as those for any number,
// and do nothing for more elements.
func (l list[E]) fewOnly(t *testing.T) {
	w := l.width()
	for n := range Few + 2 {
		wire, elements := l.samples(n)
		if l.putFew != nil {
			buf, want := bytes.Clone(canary[:n*w]), canary[:n*w]
			if n < Few {
				want = wire
			}
			if done := l.putFew(elements, buf); done != (n < Few) || !bytes.Equal(buf, want) {
				t.Errorf("PutFew of %d elements: %v, %x; want %v, %x", n, done, buf, n < Few, want)
			}
		}
		if l.getFew != nil {
			got, want := make([]E, n), make([]E, n)
			if n < Few {
				want = elements
			}
			if done := l.getFew(got, wire); done != (n < Few) || !bytes.Equal(view(got), view(want)) {
				t.Errorf("GetFew of %d elements: %v, %v; want %v, %v", n, done, got, n < Few, want)
			}
		}
	}
}

func TestFunctionsForFewElementsRefuseMore(t *testing.T) {
	eachList(t, tester.fewOnly)
}

// TestWireForm compares the encoding with literal bytes.
func TestWireForm(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		for _, n := range []int{1, Few - 1, Few, 100} {
			wire := func(size int, put func(dst []byte)) string {
				buf := make([]byte, n*size)
				put(buf)
				return string(buf)
			}
			for _, c := range []struct{ name, got, want string }{
				{"bool", wire(1, func(b []byte) { PutBool(b, repeat(true, n)) }), "\x01"},
				{"i8", wire(1, func(b []byte) { PutI8(b, repeat(int8(-2), n)) }), "\xfe"},
				{"i16", wire(2, func(b []byte) { PutI16(b, repeat(int16(-2), n)) }), "\xff\xfe"},
				{"i32", wire(4, func(b []byte) { PutI32(b, repeat(int32(0x01020304), n)) }), "\x01\x02\x03\x04"},
				{"i64", wire(8, func(b []byte) { PutI64(b, repeat(int64(0x0102030405060708), n)) }), "\x01\x02\x03\x04\x05\x06\x07\x08"},
				{"double", wire(8, func(b []byte) { PutDouble(b, repeat(-2.5, n)) }), "\xc0\x04\x00\x00\x00\x00\x00\x00"},
			} {
				if c.got != strings.Repeat(c.want, n) {
					t.Errorf("%d elements of %s: %x, want %x of each", n, c.name, c.got, c.want)
				}
			}
		}
	})
}

func repeat[E any](v E, n int) []E {
	all := make([]E, n)
	for i := range all {
		all[i] = v
	}
	return all
}

// A conversion does not move the buffer or the list to the heap.
func TestConversionsDoNotAllocate(t *testing.T) {
	eachImplementation(t, func(t *testing.T) {
		n := testing.AllocsPerRun(100, func() {
			var buf [800]byte
			var bools [100]bool
			var numbers [100]int64
			var doubles [100]float64
			PutBool(buf[:], bools[:])
			GetBool(bools[:], buf[:])
			PutI64(buf[:], numbers[:])
			GetI64(numbers[:], buf[:])
			PutDouble(buf[:], doubles[:])
			GetDouble(doubles[:], buf[:])
			if !PutFewI64(buf[:], numbers[:7]) || !GetFewI64(numbers[:7], buf[:]) {
				panic("7 elements are few")
			}
		})
		if n != 0 {
			t.Errorf("%v allocations, want none", n)
		}
	})
}

// inlined reports whether the function of this package that panics in call was inlined into call.
// The runtime has no function for the frame of an inlined call.
func inlined(name string, call func()) (yes, found bool) {
	defer func() {
		if recover() == nil {
			return
		}
		callers := make([]uintptr, 32)
		frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
		for more := true; more && !found; {
			var frame runtime.Frame
			frame, more = frames.Next()
			if base, _, _ := strings.Cut(frame.Function, "["); strings.HasSuffix(base, "/bulk."+name) {
				yes, found = frame.Func == nil, true
			}
		}
	}()
	call()
	return false, false
}

func first(b []byte) byte { return b[0] }

func TestFunctionsForFewElementsAreInlined(t *testing.T) {
	var sink byte
	if yes, found := inlined("first", func() { sink = first(nil) }); !found {
		t.Fatal("the frame of a function that panics was not found")
	} else if !yes {
		t.Skip("inlining is disabled, as with -gcflags=-l")
	}
	_ = sink
	for name, call := range map[string]func(){
		"PutFewI16":    func() { PutFewI16(nil, make([]int16, 3)) },
		"PutFewI32":    func() { PutFewI32(nil, make([]enum, 3)) },
		"PutFewI64":    func() { PutFewI64(nil, make([]int64, 3)) },
		"PutFewDouble": func() { PutFewDouble(nil, make([]float64, 3)) },
		"GetFewBool":   func() { GetFewBool(make([]bool, 3), nil) },
		"GetFewI16":    func() { GetFewI16(make([]int16, 3), nil) },
		"GetFewI32":    func() { GetFewI32(make([]enum, 3), nil) },
		"GetFewI64":    func() { GetFewI64(make([]int64, 3), nil) },
		"GetFewDouble": func() { GetFewDouble(make([]float64, 3), nil) },
		"PutBool":      func() { PutBool(nil, make([]bool, 3)) },
		"PutI8":        func() { PutI8(nil, make([]int8, 3)) },
		"GetI8":        func() { GetI8(make([]int8, 3), nil) },
	} {
		if yes, found := inlined(name, call); !found || !yes {
			t.Errorf("%s: inlined %v, found %v; a call costs more than a few elements", name, yes, found)
		}
	}
}
