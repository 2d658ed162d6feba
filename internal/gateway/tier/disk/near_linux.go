package disk

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// mapping is the file in memory, for walks that must not wait: mincore(2) says which of its
// pages are there. The answer is used for warmFor: the kernel evicts a recently read page last,
// and the call takes 0.3 us.
type mapping struct {
	// Immutable.
	data     []byte // of the budget, beyond the end of the file
	pageSize int    // of the kernel

	began time.Time

	// Atomics, written and read by readers: for each 16 pages the moment, in units of
	// warmFor since began, and below it a bit for each that was in memory then. So nothing
	// has to be cleared: for a file of 50 GiB that would hold up an event loop for 0.3 ms.
	warm []atomic.Uint32
}

// warmPages is how many pages share a word of mapping.warm.
const warmPages = 16

// warmFor is how long a page that was in memory is assumed to be still there.
const warmFor = 100 * time.Millisecond

// newMapping maps an open file of at most size bytes. The mapping stays when the file is closed.
func newMapping(f *os.File, size int64) (*mapping, error) {
	data, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	page := os.Getpagesize()
	return &mapping{data: data, pageSize: page, warm: make([]atomic.Uint32, len(data)/page/warmPages+1), began: time.Now()}, nil
}

// close unmaps the file. No walk may use it anymore.
func (m *mapping) close() { _ = syscall.Munmap(m.data) }

// near reports whether the bytes from..to are in memory.
func (m *mapping) near(from, to int) bool {
	first, last := from/m.pageSize, (to-1)/m.pageSize
	moment := uint32(time.Since(m.began)/warmFor) << warmPages
	for first <= last && m.isWarm(first, moment) {
		first++
	}
	if first > last {
		return true
	}
	var there [16]byte
	if last-first >= len(there) {
		return false // a large document: a caller that may wait reads it
	}
	_, _, failed := syscall.RawSyscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&m.data[first*m.pageSize])),
		uintptr((last-first+1)*m.pageSize), uintptr(unsafe.Pointer(&there)))
	if failed != 0 {
		return false
	}
	for i := first; i <= last; i++ {
		if there[i-first]&1 == 0 {
			return false
		}
		m.setWarm(i, moment)
	}
	return true
}

// isWarm reports whether the page was in memory at this moment already.
func (m *mapping) isWarm(page int, moment uint32) bool {
	v := m.warm[page/warmPages].Load()
	return v>>warmPages == moment>>warmPages && v&(1<<(page%warmPages)) != 0
}

func (m *mapping) setWarm(page int, moment uint32) {
	word := &m.warm[page/warmPages]
	for {
		old := word.Load()
		next := old
		if old>>warmPages != moment>>warmPages {
			next = moment
		}
		if word.CompareAndSwap(old, next|1<<(page%warmPages)) {
			return
		}
	}
}
