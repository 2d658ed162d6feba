package buf

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// poison fills returned memory in checked mode. It is neither a digit nor a letter nor valid UTF-8,
// so a stale slice does not parse.
const poison = 0xDB

// quarantined is the number of returned slices of a class that are held before the oldest is
// reused: until then, a stale slice shows poison and not the bytes of another owner. At most twice
// as many are held.
func quarantined(class int) int { return min(max(256<<10/sizeOf(class), 2), 32) }

// checked says that checked mode is on. Get and Put each read it once.
var checked atomic.Bool

// checker replaces the pools in checked mode. Its memory is not garbage-collected, so a known
// address has no other owner.
var checker struct {
	// Guarded by mu.
	mu     sync.Mutex
	queues [len(pools)][]unsafe.Pointer // of returned memory, oldest first
	held   map[unsafe.Pointer]bool      // everything in queues
}

// Check switches checked mode on for the whole process, permanently. It is for tests: Put fills the
// memory that it gets with 0xDB, a second Put of the same memory without a Get in between panics,
// and so does a Get or Put that finds memory that was written to after its Put. In this mode, the
// pools cost a lock and a pass over the memory.
func Check() { checked.Store(true) }

// Forget lets the garbage collector free the contents of the pools, as it does outside checked
// mode. It is for tests that measure memory.
func Forget() {
	checker.mu.Lock()
	defer checker.mu.Unlock()
	clear(checker.queues[:])
	clear(checker.held)
}

// checkedGet returns an empty slice of a class, or nil if none can be reused.
func checkedGet(class int) []byte {
	checker.mu.Lock()
	defer checker.mu.Unlock()
	if len(checker.queues[class]) <= quarantined(class) {
		return nil
	}
	return takeOldest(class)
}

// takeOldest removes the oldest slice from the queue of a class. The caller holds
// checker.mu.
func takeOldest(class int) []byte {
	queue := checker.queues[class]
	p := queue[0]
	checker.queues[class] = slices.Delete(queue, 0, 1)
	delete(checker.held, p)
	b := unsafe.Slice((*byte)(p), sizeOf(class))
	for i, c := range b {
		if c != poison {
			panic(fmt.Sprintf("buf: memory of %d bytes was written to at %d after its Put", len(b), i))
		}
	}
	return b[:0]
}

// checkedPut poisons b, whose length is its capacity, and keeps it if its capacity is that of the
// class.
func checkedPut(class int, ofClass bool, b []byte) {
	if len(b) == 0 {
		return
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	checker.mu.Lock()
	defer checker.mu.Unlock()
	if checker.held[p] {
		panic(fmt.Sprintf("buf: second Put of the same memory of %d bytes without a Get in between", len(b)))
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
	if len(checker.queues[class]) > 2*quarantined(class) {
		takeOldest(class) // left to the garbage collector
	}
}
