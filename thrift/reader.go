package thrift

import (
	"math"
	"strings"
	"sync"
	"unsafe"
)

// The strings, binaries and lists of numbers of a message share allocations. In a list of structs,
// the first allocation is as large as the value that needs it, multiplied by the number of
// remaining elements. Later allocations are as large as the rest of the message is expected to
// need, extrapolated from the part that was read, but not larger than the rest of the input. A
// value that does not fit into the free part of an allocation is larger than that part, so all
// allocations together take at most about twice the size of the values.
//
// MaxMemory: a struct without required fields is one byte in the input and can be a kilobyte in Go.
// Therefore structs, lists of structs and maps count toward the limit, and so do lists of numbers
// and strings in the Compact protocol. The default, 4 MiB plus 64 times the size of the input,
// accepts sparse structs and rejects bombs.
//
// Lists and maps keep their memory, and Recycle makes the memory of strings available again. Lists
// that are read after the first Recycle have separate memory, because the value may still use them
// when that memory is reused for strings. List returns how many elements have old contents, because
// only those need to be cleared.
//
// Without Recycle, a Reader keeps no memory between messages, so no allocation holds values of two
// messages. With Recycle, the memory follows the size of the messages: an allocation is replaced by
// a smaller one after 16 consecutive messages that need less than a quarter of it.

// Memory says where the strings, binaries and lists of numbers of a message are stored.
type Memory uint8

const (
	// MemoryShared stores them in a few large allocations, each of which holds values of only one
	// message. A value keeps the other values of its allocation in memory: clone it, for example
	// with strings.Clone, if it is kept for much longer than they are.
	MemoryShared Memory = iota
	// MemorySeparate makes a separate allocation for each.
	MemorySeparate
	// MemoryFrame lets strings and binaries refer to the input, which must not change as long as
	// one of them is in use; the rest is as in MemoryShared. Appending to a binary allocates.
	MemoryFrame
)

// Limits of the memory that values take: see Reader.MaxMemory.
const (
	memoryOfByte = 64
	memoryFloor  = 4 << 20
)

// Reader reads structs. The zero value is ready for use. A Reader is not safe for concurrent use.
type Reader struct {
	// Owned by the caller, which may set them before it reads a message.

	// Memory says where strings, binaries and lists of numbers are stored. The zero value is
	// MemoryShared.
	Memory Memory
	// MaxMemory limits the bytes that the structs, lists and maps of a message take. If it is 0,
	// the limit is 4 MiB plus 64 times the size of the input. Strings and binaries do not count:
	// they take about as much memory as in the input.
	MaxMemory int

	// Owned by generated code.

	// Left is the number of elements of the innermost list of structs that remain to be read,
	// including the current one. Allocations are made large enough for them.
	Left int

	// Owned by the functions that read.

	chunk  []byte   // the free part of the current allocation
	lists  []byte   // the same for lists of numbers, if the caller uses Recycle
	texts  []string // the same for lists of strings
	taken  int      // bytes allotted since Begin
	size   int      // of the message
	budget int      // bytes that values may still take
	at     int      // the offset of the value that an error code refers to, or -1
	clears int      // maps cleared since Begin
	again  bool     // Recycle was called
	whole  []byte   // the allocation for strings after Recycle
	used   int      // bytes of strings and binaries since Recycle
	idle   int      // how many times in a row whole was much too large
}

// Read reads the struct at b[off:] into v and returns the offset after it. Errors are of type
// *Error; v is then incomplete. Fields that are missing in the input keep their values, and slices
// and maps of v are reused. If a field occurs more than once, the last value counts. If off is a
// negative code, such as one returned by ReadMessage, Read returns the error for that code.
func (r *Reader) Read(b []byte, off int, v Struct) (int, error) {
	if off < 0 {
		return 0, Err(off, 0)
	}
	r.Begin(len(b) - off)
	next := v.ReadThrift(r, b, off, MaxDepth)
	r.release()
	if next < 0 {
		return off, r.explain(b, off, next, v, (*walker).binaryFields)
	}
	return next, nil
}

// ReadCompact is Read for the Compact protocol.
func (r *Reader) ReadCompact(b []byte, off int, v CompactStruct) (int, error) {
	if off < 0 {
		return 0, Err(off, 0)
	}
	r.Begin(len(b) - off)
	next := v.ReadCompact(r, b, off, MaxDepth)
	r.release()
	if next < 0 {
		return off, r.explain(b, off, next, v, (*walker).compactFields)
	}
	return next, nil
}

// Limits of the memory that a Reader keeps for Recycle.
const (
	idleFrom  = 64 << 10 // smaller allocations are always kept
	idleTimes = 16       // messages that need less than a quarter before the allocation is replaced
)

// Recycle makes the memory of the strings and binaries that were read so far available for those
// that are read next. If Memory is MemoryShared, the old ones must not be used anymore. Lists keep
// their memory, and are reused when the value is read into again.
//
// After the first call, the Reader keeps memory between messages, about as much as the largest of
// the latest messages needed.
func (r *Reader) Recycle() {
	switch r.again = true; {
	case r.used > len(r.whole):
		r.whole, r.idle = alignedBytes(r.used+r.used/8), 0
	case r.used >= len(r.whole)/4 || len(r.whole) <= idleFrom:
		r.idle = 0
	default:
		if r.idle++; r.idle == idleTimes {
			r.whole, r.idle = alignedBytes(2*r.used), 0
		}
	}
	r.chunk, r.used = r.whole, 0
}

// release drops the memory that values of the message share, so that it holds values of only one
// message. A Reader that recycles keeps the memory.
func (r *Reader) release() {
	if !r.again {
		r.chunk, r.texts = nil, nil
	}
}

var readers = sync.Pool{New: func() any { return new(Reader) }}

// Unmarshal reads the struct that b begins with, in the Binary protocol. It is [Reader.Read] with
// a zero Reader.
func Unmarshal(b []byte, v Struct) error {
	r := readers.Get().(*Reader)
	_, err := r.Read(b, 0, v)
	*r = Reader{}
	readers.Put(r)
	return err
}

// UnmarshalCompact is Unmarshal for the Compact protocol.
func UnmarshalCompact(b []byte, v CompactStruct) error {
	r := readers.Get().(*Reader)
	_, err := r.ReadCompact(b, 0, v)
	*r = Reader{}
	readers.Put(r)
	return err
}

// Begin prepares the Reader for a message of size bytes. Read and ReadCompact call it; code that
// calls other methods must call it first.
func (r *Reader) Begin(size int) {
	r.budget = r.MaxMemory
	if r.budget == 0 {
		r.budget = memoryFloor + memoryOfByte*min(size, (math.MaxInt-memoryFloor)/memoryOfByte)
	}
	r.Left, r.at, r.taken, r.size, r.clears = 0, -1, 0, size, 0
	r.release()
}

// Refuses reports whether no further struct may be read, because depth is not positive or the
// message needs too much memory. Refusal returns the code.
func (r *Reader) Refuses(depth int) bool { return depth <= 0 || r.budget < 0 }

// Refusal returns the code for a struct at off for which Refuses returned true.
func (r *Reader) Refusal(off, depth int) int {
	if depth <= 0 {
		return r.fail(CodeDeep, off)
	}
	return r.fail(CodeMemory, off)
}

// fail records that code refers to the value at off, and returns code.
func (r *Reader) fail(code, off int) int {
	if r.at < 0 {
		r.at = off
	}
	return code
}

// Fail records that code refers to the value at off, and returns code. Generated code calls it for
// errors that it detects.
func (r *Reader) Fail(code, off int) int { return r.fail(code, off) }

// charge subtracts n values of size bytes from the budget. It reports whether they fit.
func (r *Reader) charge(n, size int) bool {
	if size != 0 && n > r.budget/size {
		r.budget = -1
		return false
	}
	r.budget -= n * size
	return true
}

const (
	chunkSize = 1024 // the size of an allocation outside of lists
	maxShare  = 256  // the size of the largest value in it
)

// take returns n bytes of chunk, which may not be zero, at an address that is a multiple of align.
// left is the size of the rest of the input, beginning with this value; each byte of it needs at
// most factor bytes of memory.
//
// The unused end of a chunk is smaller than the value that did not fit into it. Therefore all
// chunks except the last one take at most twice the size of the values in them. The last one is not
// larger than the rest of the input can need.
func (r *Reader) take(chunk *[]byte, n, left, factor, align int) []byte {
	pad := -int(uintptr(unsafe.Pointer(unsafe.SliceData(*chunk)))) & (align - 1)
	if pad+n > len(*chunk) {
		if n > maxShare && r.Left <= 1 {
			return alignedBytes(n)
		}
		*chunk = alignedBytes(max(n, min(r.expect(n, left), left*factor)))
		pad = 0
	}
	p := (*chunk)[pad : pad+n : pad+n]
	*chunk = (*chunk)[pad+n:]
	r.taken += pad + n
	return p
}

// expect estimates how many bytes the rest of the message needs, beginning with a value of n bytes.
// In a list of structs, it extrapolates from the part of the message that was read; for the first
// value of a message, it assumes n bytes for each element.
func (r *Reader) expect(n, left int) int {
	if r.Left <= 1 {
		return chunkSize
	}
	if r.taken == 0 {
		return n * min(r.Left, left/n)
	}
	read := max(1, r.size-left)
	return int(uint64(r.taken)*uint64(left)/uint64(read))*17/16 + maxShare
}

// alignedBytes returns n bytes with undefined contents, aligned to 8. Callers write to all of them,
// or clear them, before an error can end the reading. Clearing memory before it is written took an
// eighth of the time of an RPC of 32 KiB. A strings.Builder provides memory that is not cleared.
func alignedBytes(n int) []byte {
	var b strings.Builder
	b.Grow((max(n, 1) + 7) &^ 7)
	b.WriteByte(0) // unsafe.StringData is unspecified for an empty string
	return unsafe.Slice(unsafe.StringData(b.String()), n)
}

// bytes returns the bytes of b between from and to, stored as r.Memory says.
func (r *Reader) bytes(b []byte, from, to int) []byte {
	if from == to {
		return []byte{}
	}
	switch r.Memory {
	case MemoryFrame:
		return b[from:to:to]
	case MemorySeparate:
		return append(make([]byte, 0, to-from), b[from:to]...)
	}
	p := r.take(&r.chunk, to-from, len(b)-from, 1, 1)
	copy(p, b[from:to])
	r.used += len(p)
	return p
}

// text is like bytes, but returns a string.
func (r *Reader) text(b []byte, from, to int) string {
	if from == to {
		return ""
	}
	if r.Memory == MemorySeparate {
		return string(b[from:to])
	}
	p := r.bytes(b, from, to)
	return unsafe.String(unsafe.SliceData(p), len(p))
}

// numbers returns list with n elements, or a new list if it has no room for them. T has no
// pointers. left is the size of the rest of the input; each byte of it needs at most factor bytes
// of memory.
func numbers[T any](r *Reader, list []T, n, left, factor int) []T {
	if n <= cap(list) && list != nil {
		return list[:n]
	}
	if n == 0 {
		return []T{}
	}
	if r.Memory == MemorySeparate {
		return make([]T, n)
	}
	var zero T
	p := r.take(r.forLists(), n*int(unsafe.Sizeof(zero)), left, factor, int(unsafe.Alignof(zero)))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(p))), n)
}

// forLists returns the allocation for lists of numbers.
func (r *Reader) forLists() *[]byte {
	if r.again { // The list may still be in use after Recycle has made chunk available.
		return &r.lists
	}
	return &r.chunk
}

// flat returns memory for n elements of size bytes without pointers. An element takes at least two
// bytes of the input.
func (r *Reader) flat(n, size, left int) unsafe.Pointer {
	if r.Memory == MemorySeparate {
		return unsafe.Pointer(unsafe.SliceData(make([]uint64, (n*size+7)/8)))
	}
	p := r.take(r.forLists(), n*size, left, (size+1)/2, min(size, 8))
	clear(p) // reading may end at an invalid element
	return unsafe.Pointer(unsafe.SliceData(p))
}

// extraTexts is the number of additional strings in an allocation for a list of structs, for the
// lists after it.
const extraTexts = 16

// strings is numbers for strings. At most left strings can follow.
func (r *Reader) strings(list []string, n, left int) []string {
	if n <= cap(list) && list != nil {
		return list[:n]
	}
	if n == 0 {
		return []string{}
	}
	if r.Memory == MemorySeparate || r.Left <= 1 && n > len(r.texts) {
		return make([]string, n)
	}
	if n > len(r.texts) {
		r.texts = make([]string, max(n, min(left, n*r.Left+extraTexts)))
	}
	list = r.texts[:n:n]
	r.texts = r.texts[n:]
	return list
}
