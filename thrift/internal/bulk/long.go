package bulk

import "unsafe"

// part is the number of bytes of a long list that a kernel converts in one call; the last call
// converts less than two parts. Between two calls the scheduler can preempt the goroutine.
const part = 512 << 10

// implementation is a set of kernels.
type implementation uint8

const (
	plain implementation = iota // in Go, for all processors
	avx2                        // assembly for amd64
	neon                        // assembly for arm64
)

// chosen is the implementation that converts long lists. It is set when the program starts; only
// tests change it later.
var chosen = best()

// best returns the fastest implementation for this processor. The race detector and the sanitizers
// do not see memory accesses in assembly, so programs that are built with them use Go.
func best() implementation {
	if instrumented {
		return plain
	}
	return available()[0]
}

// put writes the n elements of width bytes at src to dst.
func put(dst []byte, src unsafe.Pointer, n int, width uintptr) {
	size := n * int(width) // no overflow, because a slice has this size
	convertAll(dst[:size:len(dst)], unsafe.Slice((*byte)(src), size), width)
}

// get reads n elements of width bytes from src to dst.
func get(dst unsafe.Pointer, src []byte, n int, width uintptr) {
	size := n * int(width)
	convertAll(unsafe.Slice((*byte)(dst), size), src[:size:len(src)], width)
}

// getBool reads len(dst) bools from src.
func getBool(dst, src []byte) {
	src = src[:len(dst):len(src)]
	for len(src) > 0 {
		n := nextPart(len(src))
		convertBools(dst[:n], src[:n])
		dst, src = dst[n:], src[n:]
	}
}

// convertAll converts elements of width bytes. dst and src have the same length, a multiple of
// width.
func convertAll(dst, src []byte, width uintptr) {
	for len(src) > 0 {
		n := nextPart(len(src))
		convert(dst[:n], src[:n], width)
		dst, src = dst[n:], src[n:]
	}
}

// nextPart returns how many of size bytes the next call of a kernel converts: less than 1 MiB. The
// rest is either empty or at least a part.
func nextPart(size int) int {
	if size < 2*part {
		return size
	}
	return part
}
