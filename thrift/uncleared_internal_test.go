package thrift

import (
	"bytes"
	"testing"
)

// dirty writes nonzero bytes to memory that the runtime is going to reuse.
func dirty(size int) {
	for range 64 {
		b := bytes.Repeat([]byte{0xa5}, size)
		if b[size-1] != 0xa5 {
			panic("not written")
		}
	}
}

// Memory for lists is not cleared when it is allocated, so elements that were not read must not
// contain old data.
func TestElementsThatAreNotReadAreZero(t *testing.T) {
	const n = 4096
	r := new(Reader)
	in := AppendCompactList(nil, CompactTypeI64, n)
	in = append(in, bytes.Repeat([]byte{2}, n/2)...)
	in = append(in, bytes.Repeat([]byte{0xff}, n/2)...) // a number with too many bytes
	for range 50 {
		dirty(8 * n)
		var list []int64
		r.Begin(len(in))
		if end := CompactInts(r, in, 0, CompactTypeI64, &list); end >= 0 || len(list) != n {
			t.Fatalf("read to %d, %d elements", end, len(list))
		}
		for i, v := range list {
			if want := int64(1); i < n/2 && v != want || i >= n/2 && v != 0 {
				t.Fatalf("element %d is %#x", i, v)
			}
		}
		r.Begin(2 * n)
		p := r.flat(n, 8, 2*n)
		for i, b := range (*[8 * n]byte)(p) {
			if b != 0 {
				t.Fatalf("byte %d of a list of JSON is %#x before it is read", i, b)
			}
		}
	}
}
