package thrift

import (
	"bytes"
	"testing"
)

type wide int64

var wides = []wide{0, 1, -1, 1<<31 - 1, -1 << 31}

// Enums of 64 bits are encoded as i32, including in lists.
func TestWideEnumsAreI32s(t *testing.T) {
	narrow := make([]int32, len(wides))
	for i, v := range wides {
		narrow[i] = int32(v)
	}
	want := AppendList(nil, TypeI32, len(narrow))
	want = Extend(want, 4*len(narrow))
	PutI32s(want, len(want)-4*len(narrow), narrow)
	got := Extend(AppendList(nil, TypeI32, len(wides)), 4*len(wides))
	if n := PutWideEnums(got, 5, wides); n != len(got) || !bytes.Equal(got, want) {
		t.Errorf("%d, %x, want %x", n, got, want)
	}
	var r Reader
	r.Begin(len(got))
	var list []wide
	if end := ReadWideEnums(&r, got, 0, &list); end != len(got) || !equalWides(list) {
		t.Errorf("%d, %v", end, list)
	}
	compact := AppendCompactWideEnums(nil, wides)
	if want := AppendCompactInts(nil, CompactTypeI32, narrow); !bytes.Equal(compact, want) {
		t.Errorf("%x, want %x", compact, want)
	}
	list = nil
	if end := CompactWideEnums(&r, compact, 0, &list); end != len(compact) || !equalWides(list) {
		t.Errorf("%d, %v", end, list)
	}
	for end := range len(got) {
		if next := ReadWideEnums(&r, got[:end], 0, &list); next >= 0 {
			t.Errorf("%d bytes: %d", end, next)
		}
	}
	for end := range len(compact) {
		if next := CompactWideEnums(&r, compact[:end], 0, &list); next >= 0 {
			t.Errorf("%d bytes in the Compact protocol: %d", end, next)
		}
	}
	var v wide
	if next := ReadWideEnum([]byte{1, 2, 3}, 0, &v); next != CodeShort {
		t.Error(next)
	}
	if next := CompactWideEnum(&r, AppendCompactInt(nil, int64(1)<<31), 0, &v); next != CodeNumber {
		t.Error("a number of more than 32 bits was read as a value of an enum:", next, v)
	}
}

func equalWides(list []wide) bool {
	if len(list) != len(wides) {
		return false
	}
	for i := range list {
		if list[i] != wides[i] {
			return false
		}
	}
	return true
}

// The elements of a list of pointers are new, and count toward the memory limit.
func TestListsOfPointers(t *testing.T) {
	type large struct{ _ [1000]int64 }
	for name, read := range map[string]func(r *Reader, n int, to *[]*large) int{
		"binary": func(r *Reader, n int, to *[]*large) int {
			b := append(AppendList(nil, TypeStruct, n), make([]byte, n)...)
			r.Begin(len(b))
			return Pointers(r, b, 0, TypeStruct, 1, to)
		},
		"compact": func(r *Reader, n int, to *[]*large) int {
			b := append(AppendCompactList(nil, CompactTypeStruct, n), make([]byte, n)...)
			r.Begin(len(b))
			return CompactPointers(r, b, 0, CompactTypeStruct, to)
		},
	} {
		var list []*large
		if next := read(new(Reader), 3, &list); next < 0 || len(list) != 3 || list[0] == nil || list[1] == list[2] {
			t.Errorf("%s: %d, %v", name, next, list)
		}
		old := list[0]
		if next := read(new(Reader), 1, &list); next < 0 || len(list) != 1 || list[0] == old {
			t.Errorf("%s: %d, %v", name, next, list)
		}
		if next := read(new(Reader), 100000, &list); next != CodeMemory {
			t.Errorf("%s: %d elements of 8000 bytes: %d", name, len(list), next)
		}
	}
	var r Reader
	r.Begin(9)
	var list []*large
	if next := Pointers(&r, AppendList(nil, TypeStruct, 1<<30), 0, TypeStruct, 1, &list); next >= 0 {
		t.Error("more elements than bytes were accepted:", next)
	}
}
