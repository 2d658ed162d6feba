//go:build !purego

package bulk

import "golang.org/x/sys/cpu"

// available returns the implementations that this processor can execute, the fastest first.
//
// There is no assembly for processors without AVX2, because few of them are in use, and the loops
// in Go convert 8 bytes at a time.
func available() []implementation {
	if cpu.X86.HasAVX2 { // true only if the operating system also saves the registers
		return []implementation{avx2, plain}
	}
	return []implementation{plain}
}

// reversed contains the orders that reverse the bytes of elements of 2, 4 and 8 bytes. Byte i of 16
// is replaced by the byte at index order[i].
var reversed = [3][16]byte{
	{1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14},
	{3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12},
	{7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8},
}

// convert converts elements of width bytes. dst and src have the same length, a multiple of width.
//
// It is not inlined: its prologue is where the scheduler preempts a goroutine that converts a list
// part by part.
//
//go:noinline
func convert(dst, src []byte, width uintptr) {
	if chosen == avx2 && len(src) >= 16 && len(dst) == len(src) {
		shuffleAVX2(&dst[0], &src[0], len(src), &reversed[width/4])
		return
	}
	convertPlain(dst, src, width)
}

// convertBools sets each byte of dst to 0 if the byte of src is 0, and to 1 otherwise. dst and src
// have the same length. It is not inlined for the same reason as convert.
//
//go:noinline
func convertBools(dst, src []byte) {
	if chosen == avx2 && len(src) >= 32 && len(dst) == len(src) {
		boolsAVX2(&dst[0], &src[0], len(src))
		return
	}
	convertBoolsPlain(dst, src)
}

// shuffleAVX2 copies n bytes from src to dst, and permutes each 16 of them by order, which moves
// bytes only within an element. n is at least 16 and a multiple of the size of an element.
//
//go:noescape
func shuffleAVX2(dst, src *byte, n int, order *[16]byte)

// boolsAVX2 sets n bytes at dst to 0 where the byte at src is 0, and to 1 elsewhere. n is at least
// 32.
//
//go:noescape
func boolsAVX2(dst, src *byte, n int)
