package disk

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// The relevant parts of bbolt's file format (its internal/common/meta.go and page.go, version 2):
// two meta pages, at 0 and at one page size, in the byte order of the machine. A page header has
// 16 bytes: the page's number (8), flags and a count (2 each), and how many pages follow that
// belong to it (4). After it, a meta page has magic, version, page size and flags (4 bytes each),
// root and sequence, freelist, first page that does not exist, transaction, and FNV-1a of all that
// (8 each); a freelist has the ascending numbers of the free pages (8 each), of which the first is
// their count if the header's is 0xFFFF.
const (
	pageHeader   = 16
	metaSize     = 64
	metaMagic    = 0xED0CDAED
	freelistFlag = 0x10
	noFreelist   = 1<<64 - 1
)

type metaPage struct {
	pageSize, freelist, pages, transaction uint64
}

// parseMeta parses a meta page; ok is false if it is not one.
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
	return metaPage{pageSize: uint64(n.Uint32(b[8:])), freelist: n.Uint64(b[32:]), pages: n.Uint64(b[40:]), transaction: n.Uint64(b[48:])}, true
}

// size returns how large a file must be for all its pages.
func (m metaPage) size() int64 { return int64(m.pages * m.pageSize) }

// newestMeta returns the newest intact meta page, or the zero value if there is none.
func newestMeta(f io.ReaderAt) (newest metaPage, err error) {
	// The offset of the second page follows from the page size, which is unknown if the
	// first page is damaged.
	for _, at := range []int64{0, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10} {
		b := make([]byte, pageHeader+metaSize)
		if _, err := f.ReadAt(b, at); err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return metaPage{}, err
		}
		m, ok := parseMeta(b)
		if ok && m.pageSize <= 64<<10 && m.pages < 1<<50 && (at == 0 || uint64(at) == m.pageSize) && m.transaction >= newest.transaction {
			newest = m
		}
	}
	return newest, nil
}

// checkFreelist returns an error if the list of free pages is damaged.
// bbolt would write a page wherever the list says that one is free: over another page, or
// far beyond the end of the file. The file has all pages of the meta page.
func (m metaPage) checkFreelist(f io.ReaderAt) error {
	if m.pages == 0 || m.freelist == noFreelist {
		return nil
	}
	if m.freelist < 2 || m.freelist >= m.pages {
		return fmt.Errorf("its list of free pages is page %d of %d", m.freelist, m.pages)
	}
	at := int64(m.freelist * m.pageSize)
	header := make([]byte, pageHeader+8)
	if _, err := f.ReadAt(header, at); err != nil {
		return err
	}
	n := binary.NativeEndian
	count, room := uint64(n.Uint16(header[10:])), (uint64(n.Uint32(header[12:]))+1)*m.pageSize-pageHeader
	at += pageHeader
	if count == 0xFFFF {
		count = n.Uint64(header[pageHeader:])
		at, room = at+8, room-8
	}
	if flags := n.Uint16(header[8:]); flags != freelistFlag || count > m.pages || count*8 > room {
		return fmt.Errorf("its list of free pages has %d entries in %d bytes and flags %#x", count, room, flags)
	}
	ids := bufio.NewReader(io.NewSectionReader(f, at, int64(count*8)))
	last := uint64(1) // the meta pages are never free
	for range count {
		var b [8]byte
		if _, err := io.ReadFull(ids, b[:]); err != nil {
			return err
		}
		id := n.Uint64(b[:])
		if id <= last || id >= m.pages {
			return fmt.Errorf("its list of free pages has page %d after page %d, of %d", id, last, m.pages)
		}
		last = id
	}
	return nil
}
