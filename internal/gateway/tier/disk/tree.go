package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// The relevant parts of bbolt's pages (its internal/common/page.go, version 2), in the byte
// order of the machine. A page begins with its number (8 bytes), flags (2), the number of its
// elements (2) and how many further pages it takes (4). An element of a branch has the distance
// of its key from itself (4), the key's length (4) and the page below (8); one of a leaf has
// flags (4), the distance (4), and the lengths of key and value (4 each), which follow one
// another.
const (
	branchPage, leafPage = 0x01, 0x02
	elementSize          = 16
	bucketElement        = 0x01

	// deepestTree bounds a walk over pages that are damaged: with two elements per page, a
	// tree of this depth is larger than any file.
	deepestTree = 48
)

// errTree is returned by a walk over pages that are not a tree. The caller then
// falls back to bbolt, or checks the checksum of the whole file.
var errTree = errors.New("pages that are not a tree")

// errElsewhere says that a page is not in memory, or that this walk cannot decide.
var errElsewhere = errors.New("a page that is not in memory")

// tree walks over the pages of a bucket as a snapshot sees them. It only reads pages that are
// in memory according to near.
type tree struct {
	// Immutable.
	data     []byte // the file, as far as pages go
	pageSize int
	root     uint64
	// near reports whether the bytes of data from..to are in memory.
	near func(from, to int) bool
}

// find returns the value of the key, or nil if there is none. The error is errElsewhere or errTree.
func (t *tree) find(key []byte) ([]byte, error) {
	id := t.root
	for range deepestTree {
		page, err := t.page(id)
		if err != nil {
			return nil, err
		}
		n := binary.NativeEndian
		count := int(n.Uint16(page[10:]))
		if pageHeader+count*elementSize > len(page) {
			return nil, errTree
		}
		at, exact := 0, false
		leaf := n.Uint16(page[8:])&leafPage != 0
		for low, high := 0, count; low < high; {
			middle := int(uint(low+high) / 2)
			k, _, ok := element(page, middle, leaf)
			if !ok {
				return nil, errTree
			}
			switch c := bytes.Compare(k, key); {
			case c == 0:
				at, exact, low = middle, true, high
			case c < 0:
				at, low = middle, middle+1
			default:
				high = middle
			}
		}
		if leaf {
			if !exact {
				return nil, nil
			}
			_, value, ok := element(page, at, true)
			if !ok || n.Uint32(page[pageHeader+at*elementSize:])&bucketElement != 0 {
				return nil, errTree
			}
			return value, nil
		}
		if n.Uint16(page[8:])&branchPage == 0 || count == 0 {
			return nil, errTree
		}
		id = n.Uint64(page[pageHeader+at*elementSize+8:])
	}
	return nil, errTree
}

// page returns a page with those that belong to it, if all are in memory.
func (t *tree) page(id uint64) ([]byte, error) {
	if id < 2 || id >= uint64(len(t.data)/t.pageSize) {
		return nil, errTree // the first two are not pages of a tree
	}
	from := int(id) * t.pageSize
	if !t.near(from, from+t.pageSize) {
		return nil, errElsewhere
	}
	head := t.data[from:]
	if binary.NativeEndian.Uint64(head) != id {
		return nil, errTree
	}
	more := int(binary.NativeEndian.Uint32(head[12:]))
	if more == 0 {
		return head[:t.pageSize], nil
	}
	if more >= len(t.data)/t.pageSize-int(id) {
		return nil, errTree
	}
	to := from + (1+more)*t.pageSize
	if !t.near(from, to) {
		return nil, errElsewhere
	}
	return t.data[from:to], nil
}

// element returns key and value of an element; a branch has no values.
func element(page []byte, i int, leaf bool) (key, value []byte, ok bool) {
	n := binary.NativeEndian
	at := pageHeader + i*elementSize
	var distance, keySize, valueSize int
	if leaf {
		distance, keySize, valueSize = int(n.Uint32(page[at+4:])), int(n.Uint32(page[at+8:])), int(n.Uint32(page[at+12:]))
	} else {
		distance, keySize = int(n.Uint32(page[at:])), int(n.Uint32(page[at+4:]))
	}
	from := at + distance
	if keySize > len(page)-from || valueSize > len(page)-from-keySize {
		return nil, nil, false
	}
	return page[from : from+keySize], page[from+keySize : from+keySize+valueSize : from+keySize+valueSize], true
}
