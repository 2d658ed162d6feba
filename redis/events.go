package redis

import (
	"time"

	"github.com/slipstream-go/slipstream/internal/pipe"
)

// EventKind says what happened to a connection.
type EventKind uint8

const (
	// Connected: a connection is greeted and takes calls.
	Connected EventKind = iota
	// Disconnected: a connection ended; Err says why.
	Disconnected
	// DialFailed: an attempt to connect failed; Err says why.
	DialFailed
)

// String returns the kind in words.
func (k EventKind) String() string {
	switch k {
	case Connected:
		return "connected"
	case Disconnected:
		return "disconnected"
	default:
		return "dial failed"
	}
}

// An Event is something that happened to a connection.
type Event struct {
	Kind EventKind
	Addr string
	At   time.Time
	Err  error
	// Stalled: the connection was given up because the server was silent for
	// longer than Options.StallTimeout.
	Stalled bool
	// Backoff is the pause before the next attempt, of DialFailed.
	Backoff time.Duration
}

// event passes an event on to the user.
func (c *Client) event(e pipe.Event) {
	kind := DialFailed
	switch e.Kind {
	case pipe.Connected:
		kind = Connected
	case pipe.Disconnected:
		kind = Disconnected
	}
	c.hook(func() {
		c.opts.OnEvent(Event{Kind: kind, Addr: e.Addr, At: e.At, Err: e.Err, Stalled: e.Stalled, Backoff: e.Backoff})
	})
}

// hook calls the user's code. A panic of it is counted and goes no further: an
// observer must not end the call that it observes.
func (c *Client) hook(f func()) {
	defer func() {
		if recover() != nil {
			c.hookPanics.Add(1)
		}
	}()
	f()
}

// An Observer is told of every call.
type Observer interface {
	// Observe is called once a call, when its result is known, on the caller's
	// goroutine; of [Client.DoFunc] on the reader's, which it must not hold up.
	// It must be safe for concurrent use.
	Observe(Observation)
}

// An Observation is what an [Observer] is told of a call. It holds neither keys
// nor values.
type Observation struct {
	// Op is the name of the command, of a batch "BATCH".
	Op   string
	Addr string
	// Start is when the call began, Duration how long it took, repetitions and
	// pauses between them included.
	Start    time.Time
	Duration time.Duration
	// Commands is 1, and of a batch the number of its commands.
	Commands int
	// Attempts is how often the call was made, at least 1.
	Attempts int
	// RequestBytes is the size of the request as it was sent, ReplyBytes that of
	// the reply, 0 if there was none.
	RequestBytes, ReplyBytes int
	// Err is the error that the caller gets, but for one of decoding.
	Err error
}

// observe tells the observer and the slow log.
func (c *Client) observe(o Observation) {
	o.Addr = c.addr
	o.Duration = time.Since(o.Start)
	if c.opts.Observer != nil {
		c.hook(func() { c.opts.Observer.Observe(o) })
	}
	if c.opts.OnSlow != nil && o.Duration >= c.opts.SlowThreshold {
		c.hook(func() { c.opts.OnSlow(o) })
	}
}
