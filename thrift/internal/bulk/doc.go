// Package bulk converts lists of fixed-size elements between Go slices and the encoding of Thrift's
// Binary protocol: big-endian, one element after the other.
//
// A Put function writes the elements of a slice to the beginning of a buffer. A Get function reads
// the elements of its destination from the beginning of a buffer. Both panic if the buffer is too
// short, and never access anything beyond its length. The buffer may have any alignment; it must
// not overlap the elements. All functions are safe for concurrent use. None allocates.
//
// # Short and long lists
//
// A call costs more than the conversion of a few elements. Functions with Few in their names
// convert lists of fewer than [Few] elements with a loop that the compiler inlines into the caller,
// and report whether they did:
//
//	if !bulk.PutFewI64(buf, list) {
//		bulk.PutI64(buf, list)
//	}
//
// One function for both is not possible: it exceeds the inlining budget of the compiler.
//
// Longer lists are converted by a kernel: assembly for AVX2 (amd64) and NEON (arm64), and Go for
// all other processors. The kernel is chosen once, when the program starts. The build tag purego
// excludes the assembly. Programs that are built for the race detector or a sanitizer use Go,
// because these do not see memory accesses in assembly.
//
// The scheduler cannot preempt assembly. A kernel therefore converts less than 1 MiB in one call.
//
// # Kernels
//
// The elements are bool, i8, i16, i32, i64 and double. On a little-endian processor the conversion
// is a copy that reverses the bytes of each element, the same in both directions. Lists of i8 are
// copied.
//
//	PutFewI64   fewer than 8 elements: a loop that is inlined into the caller
//	PutI64 --> put --> convertAll, parts of 512 KiB --> convert --> shuffleAVX2 | swap64NEON | swap64
//
// The reasons are:
//
//   - AVX2 permutes 32 bytes with one VPSHUFB; the same function serves all widths, with different
//     orders. NEON has an instruction for each width (VREV16, VREV32, VREV64). The Go loops convert
//     words of 8 bytes: one i64, two i32 or four i16. The choice is made once, when the program
//     starts. The assembly is not generated: six short functions, commented line by line, are
//     easier to review than a generator. There is no SSSE3 version, because nearly all processors
//     in use have AVX2.
//   - A call costs more than a few elements, so the loop for these must be inlined into generated
//     code. One function with the loop and the call of the kernel costs at least 82 nodes, and the
//     compiler inlines up to 80, so each is a separate function (25): generated code calls
//     thrift.PutFewI64s, and PutI64s if that returns false. TestFunctionsForFewElementsAreInlined
//     and TestHotFunctionsAreInlined fail if a compiler no longer inlines them.
//   - The bytes at the end of a list that do not fill a block are converted with the bytes before
//     it, as the last whole block of the list. No access is outside of the list, and no loop for
//     single elements is needed. Therefore source and destination must not overlap or be the same.
//   - Go cannot preempt assembly. A kernel converts less than 1 MiB in one call, and convert is a
//     Go function that is not inlined: the scheduler can preempt the goroutine in its prologue.
//   - Every byte except 0 is true, in lists as in fields: a program that writes a byte other than 0
//     and 1 copies the memory of a C bool, where it means true. The C++ and Python libraries of
//     Apache Thrift do the same (those for Java and Go, and Kitex, read only 1 as true). The bytes
//     in memory are always 0 or 1, because the compiler relies on it.
//
// The tests compare each kernel that the processor supports with a plain loop: every length up to
// 300, every alignment of source and destination up to 31, and lists that begin or end next to
// inaccessible pages. make check-arm64 runs them for arm64 under qemu-user, and is part of make
// check.
//
// # Bools
//
// On the wire, a bool is a byte, 0 or 1. Implementations of Thrift differ about other values: the
// Java and Go libraries of Apache Thrift read only 1 as true, and so does Kitex; the C++ and Python
// libraries read every byte except 0 as true. [GetBool] does the same as the latter, and so does
// the runtime for fields. It never stores a byte other than 0 and 1: the behavior of a Go bool with
// another representation is undefined.
package bulk

// Few is the minimum number of elements of a list that is converted by a kernel.
const Few = 8
