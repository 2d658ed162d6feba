package resp

import "math"

// Limits bounds what one message may claim and take. Zero and negative fields
// mean the default.
type Limits struct {
	// Bulk is the most bytes of a bulk string, bulk error or verbatim string.
	// Default 512 MiB, which is the limit of Redis itself.
	Bulk int
	// Line is the most bytes of a line of text. Default 64 KiB.
	Line int
	// Elements is the most elements of all aggregates of a message together; a
	// map of n pairs has 2n, and an attribute without pairs counts as one.
	// Default 1<<20.
	Elements int
	// Depth is the most aggregates around a value, attributes included. Default
	// 64, at most 1024.
	Depth int
	// Frame is the maximum number of bytes of a message. Default 1 GiB.
	Frame int
	// Streamed is the most bytes of a value that is sent without a count, as
	// they are on the wire. Default 16 MiB.
	Streamed int
}

// greatestDepth bounds the recursion of the readers.
const greatestDepth = 1024

// resolved returns the limits with their defaults. Their greatest values are such
// that no sum of theirs exceeds an int: see [Scanner.need].
func (l Limits) resolved() Limits {
	choose := func(v, otherwise, most int) int {
		if v <= 0 {
			v = otherwise
		}
		return min(v, most)
	}
	return Limits{
		Bulk:     choose(l.Bulk, 512<<20, math.MaxInt/4),
		Line:     choose(l.Line, 64<<10, math.MaxInt/16),
		Elements: choose(l.Elements, 1<<20, math.MaxInt/16),
		Depth:    choose(l.Depth, 64, greatestDepth),
		Frame:    choose(l.Frame, 1<<30, math.MaxInt/2),
		Streamed: choose(l.Streamed, 16<<20, math.MaxInt/4),
	}
}

// least is the minimum number of bytes of any value, and of an end: "_\r\n".
const least = 3
