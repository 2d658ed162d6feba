package iproto

import "errors"

// Limits bound the memory of decoded values: a value of one byte, such as nil, may take hundreds of
// bytes in memory. Fields that are 0 have defaults.
type Limits struct {
	// Elements is the maximum number of values in all arrays and maps together; a map of n pairs
	// counts as 2n. Values that are skipped or read as raw bytes do not count. If 0, it defaults to
	// [DefaultElements].
	Elements int
	// Bytes is the maximum memory of values, as far as this package allocates it or it is reported
	// with [Decoder.Claim]. With [Decoder.Any], an element takes 40 bytes and a pair 112, plus the
	// bytes of strings. If 0, it defaults to [DefaultBytes].
	Bytes int
}

// Defaults of [Limits].
const (
	DefaultElements = 16 << 20
	DefaultBytes    = 1 << 30
)

// ErrLimit is in the chain of an error (errors.Is) if a limit of the decoder is exceeded.
var ErrLimit = errors.New("decoding limit exceeded")

// Limit sets the limits for what d decodes from now on. Before the first call, and after Reset, the
// default limits apply.
func (d *Decoder) Limit(l Limits) {
	// The counts start there so that they can be compared with constants, and so that a decoder
	// with default limits needs no setup.
	d.elements, d.bytes = 0, 0
	if l.Elements > 0 {
		d.elements = DefaultElements - l.Elements
	}
	if l.Bytes > 0 {
		d.bytes = DefaultBytes - l.Bytes
	}
}

// Claim counts the memory of n values of size bytes, which the caller is about to allocate. It
// reports whether they are within the limit. If not, d fails.
func (d *Decoder) Claim(n, size int) bool {
	if n > 0 && size > 0 {
		if n > (DefaultBytes-d.bytes)/size {
			return d.tooMuch()
		}
		d.bytes += n * size
	}
	return d.err == nil
}

// use counts bytes, which must not exceed the size of the input.
func (d *Decoder) use(bytes int) bool {
	d.bytes += bytes
	return d.bytes <= DefaultBytes || d.tooMuch()
}

// tooMuch records that the limit of bytes is exceeded, and returns false.
func (d *Decoder) tooMuch() bool {
	d.failAt(d.at, "decoded values that take too much memory", "at most Limits.Bytes", ErrLimit)
	return false
}

// tooMany records that the limit of elements is exceeded.
func (d *Decoder) tooMany(start int) int {
	d.failAt(start, "too many elements of arrays and maps", "at most Limits.Elements", ErrLimit)
	return 0
}
