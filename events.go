package slipstream

import "time"

// EventKind is what happened to a connection, or to a member of a pool.
type EventKind uint8

const (
	// Connected is reported when a connection is ready for calls.
	Connected EventKind = iota
	// Disconnected is reported when a connection ended; Event.Err says why.
	Disconnected
	// DialFailed is reported when an attempt to connect failed; Event.Err says why.
	DialFailed
	// Ejected is reported when a member of a pool gets no calls for Event.Backoff, because those before failed;
	// Event.Err is the error of the last one.
	Ejected
	// Restored is reported when an ejected member gets calls again.
	Restored
	// ResolveFailed is reported when the members of a pool could not be resolved; Event.Err says why.
	// The pool keeps those that it has.
	ResolveFailed
)

// String returns the kind in words.
func (k EventKind) String() string {
	switch k {
	case Connected:
		return "connected"
	case Disconnected:
		return "disconnected"
	case Ejected:
		return "ejected"
	case Restored:
		return "restored"
	case ResolveFailed:
		return "resolve failed"
	default:
		return "dial failed"
	}
}

// An Event is something that happened to a connection of a client, or to a member of a pool.
type Event struct {
	Kind EventKind
	Addr string
	At   time.Time
	Err  error
	// Stalled says that the connection was closed because the server was silent for longer than
	// Options.StallTimeout.
	Stalled bool
	// Backoff is the pause before the next attempt, if Kind is DialFailed, or the time without calls, if
	// it is Ejected.
	Backoff time.Duration
}
