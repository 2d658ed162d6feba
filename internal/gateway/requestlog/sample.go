package requestlog

import (
	"math"
	"strconv"
	"time"
)

// sample decides which requests get a line. The zero value selects all.
type sample struct {
	// Immutable.
	on    bool
	below uint64 // of 2^32: random numbers below it select a request
	slow  time.Duration
	share []byte // the part of the line of a request that was selected at random
}

// whole is that part of the line of a request that is always selected.
var whole = []byte(`,"sample":1`)

func newSample(part float64, slow time.Duration) sample {
	if part == 0 || part >= 1 {
		return sample{}
	}
	s := sample{on: true, slow: slow}
	if part > 0 {
		s.below = uint64(math.Ceil(part * (1 << 32)))
		s.share = strconv.AppendFloat([]byte(`,"sample":`), part, 'g', -1, 64)
	}
	return s
}

// takes reports whether the request gets a line, and sets its share. random is a random
// number.
func (s *sample) takes(e *Entry, random uint32) bool {
	switch {
	case !s.on:
		e.share = nil
	case e.failed() || s.slow > 0 && e.Took > s.slow:
		e.share = whole
	case uint64(random) < s.below:
		e.share = s.share
	default:
		return false
	}
	return true
}

// failed distinguishes errors from answers. A missing row is an answer.
func (e *Entry) failed() bool {
	const badRequest, notFound = 400, 404
	return e.Error != "" || e.Status >= badRequest && e.Status != notFound
}
