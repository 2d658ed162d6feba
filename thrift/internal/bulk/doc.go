// Package bulk converts lists of fixed-size elements between Go slices and the form that
// Thrift's Binary protocol gives them: big-endian, one element after the other.
//
// A Put function writes the elements of a slice to the beginning of a buffer. A Get function reads
// as many elements from the beginning of a buffer as its destination has. Both panic if the buffer
// is too short, and never access anything beyond its length. The buffer may have any alignment; it
// must not overlap the elements. All functions are safe for concurrent use. None allocates.
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
// because accesses of assembly are invisible to these.
//
// The scheduler cannot preempt assembly. A kernel therefore converts less than 1 MiB in one call.
//
// # Bools
//
// On the wire, a bool is a byte, 0 or 1. Implementations of Thrift differ about other values: the
// Java and Go libraries of Apache Thrift read only 1 as true, and so does Kitex; the C++ and Python
// libraries read everything but 0 as true. [GetBool] does as these, and so does the runtime for
// fields. It never stores a byte other than 0 and 1: a Go bool with another representation is
// undefined.
package bulk

// Few is the number of elements from which a list is converted by a kernel.
const Few = 8
