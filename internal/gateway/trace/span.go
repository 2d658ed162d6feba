package trace

import "time"

// Span describes one answered request.
type Span struct {
	Context Context
	Parent  [8]byte // the span of the client; zero: none

	RequestID string
	Method    string // as it was sent: bytes of the client
	Route     string // "/depts/{deptno}"; "" if the path led nowhere
	Resource  string // its name; "" if none
	Caller    string // "key:web"; "" if unknown
	Source    string // where the answer came from: "hit", "load", ...
	Status    int    // of the answer

	Start    time.Time
	Duration time.Duration

	Bytes int // of the answer's body
	Keys  int // requested documents; 0 if it was not for documents
}
