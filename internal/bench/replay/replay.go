package replay

import (
	"cmp"
	"slices"
	"time"
)

// Formats of files.
const (
	List       = "list"        // of paths and URLs
	AccessLog  = "access log"  // in the Common or the Combined Log Format
	RequestLog = "request log" // of the gateway
)

// Reasons why a line of a log is skipped.
const (
	OtherMethod   = "other methods"   // methods other than GET and HEAD: a log contains no bodies
	OtherProtocol = "other protocols" // protocols other than HTTP
	NoPath        = "no path"         // garbage, or a target such as *
	Truncated     = "truncated"       // the log contains only a part of the target
	Lost          = "lost"            // the log is missing the request
)

// Bounds of a File.
const (
	maxRequests = 10_000_000
	maxText     = 512 << 20
	maxTarget   = 8 << 10
	maxLine     = 64 << 10
)

// A File is an ordered list of requests. It is immutable.
type File struct {
	Name    string // without its directory
	Format  string
	Skipped map[string]uint64 // lines by reason

	text     []byte // all targets
	requests []request
	ticks    time.Duration // resolution of the times; 0 if there are none
}

// A request contains no pointers, so the garbage collector need not scan requests.
type request struct {
	at     int64  // nanoseconds from the first request; 0 if there are no times
	target uint32 // its offset in text
	size   uint16 // of the target
	status uint16
	head   bool
}

// Len returns the number of requests, which is at least 1.
func (f *File) Len() int { return len(f.requests) }

// A Request is one of a File.
type Request struct {
	Head   bool   // the method is HEAD; otherwise GET
	Target []byte // a path, with its query; it must not be changed
	Status int    // from the log; 0 if unknown
}

// Request returns request i, from 0.
func (f *File) Request(i int) Request {
	r := &f.requests[i]
	return Request{r.head, f.text[r.target:][:r.size:r.size], int(r.status)}
}

// Timed reports whether it is known when the requests were sent.
func (f *File) Timed() bool { return f.ticks > 0 }

// Trace returns the times at which the requests of a timed file are to be sent, speed times as fast
// as originally.
func (f *File) Trace(speed float64) Trace { return Trace{f, speed} }

// A Trace holds the times of requests.
type Trace struct {
	file  *File
	speed float64
}

// Len returns the number of requests.
func (t Trace) Len() int { return t.file.Len() }

// At returns when request i is to be sent, relative to the start.
func (t Trace) At(i int) time.Duration {
	return time.Duration(min(float64(t.file.requests[i].at)/t.speed, latest))
}

// latest is later than any time in a run.
const latest = 1 << 62

// arrange sorts the requests by time, and makes the times relative to the first one. Requests with
// the same time are spread evenly until the next tick of the log's clock.
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
