package resp

import "math"

// Limits limits the sizes of a message. A field that is 0 or less means the default.
type Limits struct {
	// Bulk is the maximum length of a bulk string, bulk error or verbatim string. The default is
	// 512 MiB, which is also the limit of Redis.
	Bulk int
	// Line is the maximum length of a line of text. The default is 64 KiB.
	Line int
	// Elements is the maximum number of elements in all aggregates of a message together. A map of
	// n pairs has 2n elements, and an attribute without pairs counts as one element. The default is
	// 1<<20.
	Elements int
	// Depth is the maximum number of aggregates around a value, including attributes. The default
	// is 64, and values above 1024 count as 1024.
	Depth int
	// Frame is the maximum length of a message. The default is 1 GiB.
	Frame int
	// Streamed is the maximum encoded length of a value that is sent without a count. The default
	// is 16 MiB.
	Streamed int
}

// greatestDepth limits the recursion of the readers.
const greatestDepth = 1024

// resolved returns the limits with their defaults filled in. It caps them so that no sum of them
// overflows an int: see [Scanner.need].
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

// least is the minimum length of a value or an end: "_\r\n".
const least = 3
