//go:build purego || !(amd64 || arm64)

package bulk

// available returns the implementations that this processor can execute, the fastest first.
func available() []implementation { return []implementation{plain} }

// convert converts elements of width bytes. dst and src have the same length, a multiple of width.
func convert(dst, src []byte, width uintptr) { convertPlain(dst, src, width) }

// convertBools sets each byte of dst to 0 if the byte of src is 0, and to 1 otherwise. dst and src
// have the same length.
func convertBools(dst, src []byte) { convertBoolsPlain(dst, src) }
