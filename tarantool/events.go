package tarantool

import (
	"time"

	"github.com/slipstream-go/slipstream/internal/pipe"
)

// EventKind says what happened to a connection.
type EventKind uint8

// The kinds of events.
const (
	Connected    EventKind = iota // a connection is greeted and takes requests
	Disconnected                  // a connection ended; Err says why
	DialFailed                    // an attempt to connect failed; Err says why
)

// String returns the kind in words.
func (k EventKind) String() string { return pipe.EventKind(k).String() }

// An Event is something that happened to a connection.
type Event struct {
	Kind EventKind
	Addr string
	At   time.Time
	Err  error
	// Stalled: the connection was given up because the server was silent for longer than
	// Options.StallTimeout.
	Stalled bool
	// Backoff is the pause before the next attempt, of DialFailed.
	Backoff time.Duration
}

// event passes an event of the engine on to the user, if anybody wants it.
func (o *Options) event(e pipe.Event) {
	if o.OnEvent != nil {
		o.OnEvent(Event{Kind: EventKind(e.Kind), Addr: e.Addr, At: e.At, Err: e.Err, Stalled: e.Stalled, Backoff: e.Backoff})
	}
}
