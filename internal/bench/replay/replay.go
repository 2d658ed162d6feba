package replay

import (
	"cmp"
	"slices"
	"time"
)

// Formats of files.
const (
	List       = "list"        // of paths and URLs
	AccessLog  = "access log"  // in the Common Log Format, or the Combined one
	RequestLog = "request log" // of the gateway
)

// Reasons why a line of a log is skipped.
const (
	OtherMethod   = "other methods"   // than GET and HEAD: a log holds no bodies
	OtherProtocol = "other protocols" // than HTTP
	NoPath        = "no path"         // garbage, or a target such as *
	Truncated     = "truncated"       // the log holds only a part of the target
	Lost          = "lost"            // the log has lost the request
)

// Bounds of a File.
const (
	maxRequests = 10_000_000
	maxText     = 512 << 20
	maxTarget   = 8 << 10
	maxLine     = 64 << 10
)

// A File is requests in their order. It is immutable.
type File struct {
	Name    string // without its directory
	Format  string
	Skipped map[string]uint64 // lines by reason

	text     []byte // all targets
	requests []request
	ticks    time.Duration // resolution of the times; 0: there are none
}

// A request has no pointers, so that the garbage collector has nothing to do with them.
type request struct {
	at     int64  // nanoseconds from the first; 0: there are no times
	target uint32 // its place in text
	size   uint16 // of the target
	status uint16
	head   bool
}

// Len returns the number of requests, which is at least 1.
func (f *File) Len() int { return len(f.requests) }

// A Request is one of a File.
type Request struct {
	Head   bool   // HEAD, or else GET
	Target []byte // a path, with its query; it must not be changed
	Status int    // that the log has; 0: unknown
}

// Request returns request i, from 0.
func (f *File) Request(i int) Request {
	r := &f.requests[i]
	return Request{r.head, f.text[r.target:][:r.size:r.size], int(r.status)}
}

// Timed reports whether it is known when the requests were sent.
func (f *File) Timed() bool { return f.ticks > 0 }

// Trace returns when the requests of a timed file are to be sent, speed times as fast as they were.
func (f *File) Trace(speed float64) Trace { return Trace{f, speed} }

// A Trace is the times of requests.
type Trace struct {
	file  *File
	speed float64
}

// Len returns the number of requests.
func (t Trace) Len() int { return t.file.Len() }

// At returns when request i is to be sent, from the start.
func (t Trace) At(i int) time.Duration {
	return time.Duration(min(float64(t.file.requests[i].at)/t.speed, latest))
}

// latest is later than all times that a run has.
const latest = 1 << 62

// arrange brings the requests into the order of their times, and makes these relative to the first.
// Those with the same time are spread evenly over the time until the next tick of the log's clock.
func (f *File) arrange() {
	byTime := func(a, b request) int { return cmp.Compare(a.at, b.at) }
	if !slices.IsSortedFunc(f.requests, byTime) {
		slices.SortStableFunc(f.requests, byTime)
	}
	start := f.requests[0].at
	for i := 0; i < len(f.requests); {
		at, end := f.requests[i].at, i+1
		for end < len(f.requests) && f.requests[end].at == at {
			end++
		}
		for k := i; k < end; k++ {
			f.requests[k].at = at - start + int64(f.ticks)*int64(k-i)/int64(end-i)
		}
		i = end
	}
}
