package disk

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// mapping is the file in memory, for walks that must not wait: the kernel says by mincore(2)
// which of its pages are there. What it said holds for warmFor: a page that was read a moment
// ago is the last that it would give away, and asking takes 0.3 us.
type mapping struct {
	// Immutable.
	data     []byte // of the budget, beyond the end of the file
	pageSize int    // of the kernel

	// Atomics. Bits of pages, set by readers, cleared by who finds that warmFor has passed.
	warm    []atomic.Uint32
	cleared atomic.Int64 // when, since began
	began   time.Time
}

// warmFor is how long a page that was in memory is taken to be still there.
const warmFor = 100 * time.Millisecond

// newMapping maps a file of at most size bytes.
func newMapping(path string, size int64) (*mapping, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping stays
	data, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	page := os.Getpagesize()
	return &mapping{data: data, pageSize: page, warm: make([]atomic.Uint32, len(data)/page/32+1), began: time.Now()}, nil
}

// close unmaps the file. Nobody may walk over it any more.
func (m *mapping) close() { _ = syscall.Munmap(m.data) }

// near reports whether the bytes from..to are in memory.
func (m *mapping) near(from, to int) bool {
	first, last := from/m.pageSize, (to-1)/m.pageSize
	now := int64(time.Since(m.began))
	if then := m.cleared.Load(); now-then > int64(warmFor) && m.cleared.CompareAndSwap(then, now) {
		for i := range m.warm {
			if m.warm[i].Load() != 0 {
				m.warm[i].Store(0)
			}
		}
	}
	for first <= last && m.warm[first/32].Load()&(1<<(first%32)) != 0 {
		first++
	}
	if first > last {
		return true
	}
	var there [16]byte
	if last-first >= len(there) {
		return false // a large document: somebody who may wait reads it
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
		m.warm[i/32].Or(1 << (i % 32))
	}
	return true
}
