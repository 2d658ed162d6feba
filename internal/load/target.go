package load

import "context"

// A Target is a system under load as one client program sees it.
type Target interface {
	// NewCaller prepares caller i, for example by opening a connection. It is
	// called concurrently from several goroutines, once for each i in [0,
	// callers).
	NewCaller(ctx context.Context, i int) (Caller, error)
}

// A Caller issues one request at a time. Its methods are called from one goroutine at a time,
// except for Close, which may be called during a Do that has exceeded the drain limit and must then
// make that Do return.
type Caller interface {
	// Do performs one request and returns after its answer has been read and checked. A wrong
	// answer is an error. Do must not allocate; otherwise its own allocations are attributed to the
	// client.
	Do(ctx context.Context) error
	Close() error
}

// A BatchCaller can have several requests in flight.
type BatchCaller interface {
	Caller
	// DoBatch performs len(outcomes) requests and stores the outcome of each, nil for success. All
	// requests of a batch have the same latency, that of the whole batch. To measure the latency of
	// each request, use Do.
	DoBatch(ctx context.Context, outcomes []error)
}

// A Counter is a figure of the system under load that only grows, such as the
// number of allocations a server has made. It is read before and after the
// measured window, while no request is in flight.
type Counter struct {
	Name string
	Read func(ctx context.Context) (float64, error)
	// Live means that Read may also be called during the window, each second, for the time line.
	// Calls never overlap.
	Live bool
}
