package trace

import "time"

// Span is what is told of one answered request.
type Span struct {
	Context Context
	Parent  [8]byte // the span of the client; zero: none

	RequestID string
	Method    string // as it was sent: bytes of the client
	Route     string // "/depts/{deptno}"; "" if the path led nowhere
	Resource  string // its name; "" if none
	Caller    string // "key:web"; "" for nobody
	Source    string // how the answer was come by: "hit", "load", ...
	Status    int    // of the answer

	Start    time.Time
	Duration time.Duration

	Bytes int // of the answer's body
	Keys  int // documents that were asked for; 0 if it was no document
}
