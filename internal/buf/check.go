package buf

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"
)

// poison is what memory given back is filled with in checked mode. It is no
// digit, no letter and no valid UTF-8, so a stale slice does not parse.
const poison = 0xDB

// quarantined is how many slices of a class wait before the oldest is given out
// again: a stale slice shows poison for that long, not somebody else's bytes.
const quarantined = 32

// checked says that pools are checked. It is read once in Get and Put.
var checked atomic.Bool

// checker takes the place of the pools in checked mode. It never drops memory,
// so an address that it holds is nobody else's.
var checker struct {
	// Guarded by mu.
	mu     sync.Mutex
	queues [len(pools)][]unsafe.Pointer // of what was given back, oldest first
	held   map[unsafe.Pointer]bool      // all that the queues hold
}

// Check switches checked mode on for the whole process and for good. It is for
// tests: what Put gets is filled with 0xDB, a second Put of the same memory
// before a Get panics, and so does a Get of memory that was written to after its
// Put. Pools then cost a lock and a pass over the memory.
func Check() { checked.Store(true) }

// checkedGet returns an empty slice of a class, nil if none is to be reused.
func checkedGet(class int) []byte {
	checker.mu.Lock()
	queue := checker.queues[class]
	if len(queue) <= quarantined {
		checker.mu.Unlock()
		return nil
	}
	p := queue[0]
	checker.queues[class] = append(queue[:0], queue[1:]...)
	delete(checker.held, p)
	checker.mu.Unlock()
	b := unsafe.Slice((*byte)(p), 1<<(class+minBits))
	for i, c := range b {
		if c != poison {
			panic(fmt.Sprintf("buf: memory of %d bytes was written to at %d after its Put", len(b), i))
		}
	}
	return b[:0]
}

// checkedPut poisons b, whose length is its capacity, and keeps it if it is of
// the class.
func checkedPut(class int, ofClass bool, b []byte) {
	if len(b) == 0 {
		return
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	checker.mu.Lock()
	defer checker.mu.Unlock()
	if checker.held[p] {
		panic(fmt.Sprintf("buf: second Put of the same memory of %d bytes without a Get between", len(b)))
	}
	for i := range b {
		b[i] = poison
	}
	if !ofClass {
		return
	}
	if checker.held == nil {
		checker.held = make(map[unsafe.Pointer]bool)
	}
	checker.held[p] = true
	checker.queues[class] = append(checker.queues[class], p)
}
