package slipstream

import (
	"context"
	"time"
)

// An Observer is notified of every call of a client. The adapters for tracing and metrics are
// observers.
type Observer interface {
	// Observe is called once for each call, when its result is known, on the goroutine of the
	// caller or, if the call has a completion function, on the goroutine that reads the
	// connection, which it must not block. It must be safe for concurrent use.
	Observe(Observation)
}

// Observers returns an observer that notifies all of these, in this order. If one panics, the others
// are notified nevertheless, and the client contains and counts the panic. Nil observers are ignored;
// if all are nil, so is the result.
func Observers(all ...Observer) Observer {
	set := make(observers, 0, len(all))
	for _, one := range all {
		if one != nil {
			set = append(set, one)
		}
	}
	switch len(set) {
	case 0:
		return nil
	case 1:
		return set[0]
	}
	return set
}

type observers []Observer

// Observe implements Observer.
func (all observers) Observe(o Observation) {
	if len(all) > 1 {
		defer all[1:].Observe(o)
	}
	all[0].Observe(o)
}

// An Observation is a call that has ended. It has neither keys nor values.
type Observation struct {
	// Context is the caller's, so that a span can be a child of the caller's span. It may have
	// ended.
	Context context.Context
	// System is the kind of server, "redis" or "tarantool".
	System string
	// Namespace is Options.DB for Redis, as a decimal number. It is empty for Tarantool.
	Namespace string
	// Op is the name of the command or request, or "BATCH" for several that were sent together.
	Op   string
	Addr string
	// Start and End are when the call began and ended, including repetitions and the pauses
	// between them.
	Start, End time.Time
	// Requests is 1, or the number of commands of a batch.
	Requests int
	// Attempts is how often the call was sent; it is at least 1.
	Attempts int
	// RequestBytes is the size of the request as it was sent, ReplyBytes that of the reply, or 0 if
	// there was none.
	RequestBytes, ReplyBytes int
	// Err is the error that the caller gets. It is nil if only decoding the reply failed.
	Err error
}

// Duration returns the time from Start to End.
func (o *Observation) Duration() time.Duration { return o.End.Sub(o.Start) }
