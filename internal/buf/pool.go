package buf

import (
	"math/bits"
	"sync"
	"unsafe"
)

// Size classes are powers of two from 512 bytes to 1 MiB: below, an allocation
// is as cheap as a pool; above, the garbage collector should have it back.
const (
	minBits = 9
	maxBits = 20
)

// MaxPooled is the largest capacity that Put keeps.
const MaxPooled = 1 << maxBits

// Pools hold pointers to the first byte, which fit into an interface without an
// allocation; a slice header would not.
var pools [maxBits - minBits + 1]sync.Pool

// Get returns an empty slice with a capacity of at least n bytes, of the next
// size class. Its contents are arbitrary. More than 1 MiB is allocated exactly.
func Get(n int) []byte {
	class := classOf(n)
	if class >= len(pools) {
		return make([]byte, 0, n)
	}
	size := 1 << (class + minBits)
	if checked.Load() {
		if b := checkedGet(class); b != nil {
			return b
		}
		return make([]byte, 0, size)
	}
	if p, ok := pools[class].Get().(unsafe.Pointer); ok {
		return unsafe.Slice((*byte)(p), size)[:0]
	}
	return make([]byte, 0, size)
}

// Size returns the capacity of the slices that Get(n) returns.
func Size(n int) int {
	if class := classOf(n); class < len(pools) {
		return 1 << (class + minBits)
	}
	return n
}

// Put gives b back. The caller must hold the only reference to its memory. A
// slice whose capacity is not one of a size class is left to the collector, so
// Put takes any slice.
func Put(b []byte) {
	size := cap(b)
	class := classOf(size)
	pooled := class < len(pools) && size == 1<<(class+minBits)
	if checked.Load() {
		checkedPut(class, pooled, b[:size])
		return
	}
	if !pooled {
		return
	}
	pools[class].Put(unsafe.Pointer(unsafe.SliceData(b)))
}

func classOf(n int) int {
	if n <= 1<<minBits {
		return 0
	}
	return bits.Len(uint(n-1)) - minBits
}
