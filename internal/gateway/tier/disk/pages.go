package disk

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"os"
)

// What is known of bbolt's file format (its internal/common/meta.go, version 2): two meta
// pages, at 0 and at one page size, in the byte order of the machine. Behind a page header
// of 16 bytes: magic, version, page size and flags (4 bytes each), root and sequence,
// freelist, first page that does not exist, transaction, FNV-1a of all before (8 each).
const (
	pageHeader = 16
	metaSize   = 64
	metaMagic  = 0xED0CDAED
)

type metaPage struct {
	pageSize, pages, transaction uint64
}

// parseMeta reads a meta page; false if it is none.
func parseMeta(b []byte) (metaPage, bool) {
	if len(b) < pageHeader+metaSize {
		return metaPage{}, false
	}
	b = b[pageHeader:]
	n := binary.NativeEndian
	h := fnv.New64a()
	h.Write(b[:metaSize-8])
	if n.Uint32(b) != metaMagic || n.Uint64(b[metaSize-8:]) != h.Sum64() {
		return metaPage{}, false
	}
	return metaPage{pageSize: uint64(n.Uint32(b[8:])), pages: n.Uint64(b[40:]), transaction: n.Uint64(b[48:])}, true
}

// pagesSize returns how large a file must be for the pages that its newest meta page speaks
// of, 0 if it has no meta page that is whole.
func pagesSize(dir *os.Root) (int64, error) {
	f, err := dir.Open(FileName)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var newest metaPage
	// The second page's place follows from the page size, which a damaged first page does
	// not tell.
	for _, at := range []int64{0, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10} {
		b := make([]byte, pageHeader+metaSize)
		if _, err := f.ReadAt(b, at); err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return 0, err
		}
		m, ok := parseMeta(b)
		if ok && m.pageSize <= 64<<10 && m.pages < 1<<50 && (at == 0 || uint64(at) == m.pageSize) && m.transaction >= newest.transaction {
			newest = m
		}
	}
	return int64(newest.pages * newest.pageSize), nil
}
