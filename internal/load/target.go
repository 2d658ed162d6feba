package load

import "context"

// A Target is a system under load as one client program sees it.
type Target interface {
	// NewCaller prepares caller i, for example by opening a connection. It is
	// called concurrently from several goroutines, once for each i in [0,
	// callers).
	NewCaller(ctx context.Context, i int) (Caller, error)
}

// A Caller issues one request at a time. Its methods are called from one
// goroutine at a time, except Close, which may be called during a Do that
// outlived the drain limit and must then make that Do return.
type Caller interface {
	// Do performs one request and returns after its answer has been read and
	// checked. A wrong answer is an error. Do must not allocate if the
	// allocations of the client are to mean anything.
	Do(ctx context.Context) error
	Close() error
}

// A BatchCaller can have several requests in flight.
type BatchCaller interface {
	Caller
	// DoBatch performs len(outcomes) requests and stores the outcome of each,
	// nil for success. The requests of a batch share their latency, that of
	// the whole batch: a caller that wants to know each one's uses Do.
	DoBatch(ctx context.Context, outcomes []error)
}

// A Counter is a figure of the system under load that only grows, such as the
// number of allocations a server has made. It is read before and after the
// measured window, while no request is in flight.
type Counter struct {
	Name string
	Read func(ctx context.Context) (float64, error)
	// Live says that Read may be called during the window also, each second, for
	// the time line. Calls never overlap.
	Live bool
}
