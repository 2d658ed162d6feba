//go:build !purego

package bulk

// available returns the implementations that this processor can execute, the fastest first. All
// processors that Go supports have NEON.
func available() []implementation { return []implementation{neon, plain} }

// convert converts elements of width bytes. dst and src have the same length, a multiple of width.
//
// It is not inlined: its prologue is where the scheduler preempts a goroutine that converts a list
// part by part.
//
//go:noinline
func convert(dst, src []byte, width uintptr) {
	if chosen != neon || len(src) < 16 || len(dst) != len(src) {
		convertPlain(dst, src, width)
		return
	}
	switch width {
	case 2:
		swap16NEON(&dst[0], &src[0], len(src))
	case 4:
		swap32NEON(&dst[0], &src[0], len(src))
	default:
		swap64NEON(&dst[0], &src[0], len(src))
	}
}

// convertBools sets each byte of dst to 0 if the byte of src is 0, and to 1 otherwise. dst and src
// have the same length. It is not inlined for the same reason as convert.
//
//go:noinline
func convertBools(dst, src []byte) {
	if chosen == neon && len(src) >= 16 && len(dst) == len(src) {
		boolsNEON(&dst[0], &src[0], len(src))
		return
	}
	convertBoolsPlain(dst, src)
}

// swap16NEON copies n bytes from src to dst and reverses each 2 of them. n is at least 16 and a
// multiple of 2.
//
//go:noescape
func swap16NEON(dst, src *byte, n int)

// swap32NEON copies n bytes from src to dst and reverses each 4 of them. n is at least 16 and a
// multiple of 4.
//
//go:noescape
func swap32NEON(dst, src *byte, n int)

// swap64NEON copies n bytes from src to dst and reverses each 8 of them. n is at least 16 and a
// multiple of 8.
//
//go:noescape
func swap64NEON(dst, src *byte, n int)

// boolsNEON sets n bytes at dst to 0 where the byte at src is 0, and to 1 elsewhere. n is at least
// 16.
//
//go:noescape
func boolsNEON(dst, src *byte, n int)
