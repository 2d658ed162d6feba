package slipstream

import "time"

// EventKind is what happened to a connection.
type EventKind uint8

const (
	// Connected is reported when a connection is ready for calls.
	Connected EventKind = iota
	// Disconnected is reported when a connection ended; Event.Err says why.
	Disconnected
	// DialFailed is reported when an attempt to connect failed; Event.Err says why.
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

// An Event is something that happened to a connection of a client.
type Event struct {
	Kind EventKind
	Addr string
	At   time.Time
	Err  error
	// Stalled says that the connection was closed because the server was silent for longer than
	// Options.StallTimeout.
	Stalled bool
	// Backoff is the pause before the next attempt, if Kind is DialFailed.
	Backoff time.Duration
}
