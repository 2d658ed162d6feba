package tarantool

import "github.com/slipstream-go/slipstream"

// Types for reporting that the clients of this module share.
type (
	// An Event reports something that happened to a connection.
	Event = slipstream.Event
	// EventKind says what happened to a connection.
	EventKind = slipstream.EventKind
	// An Observer is notified of every request.
	Observer = slipstream.Observer
	// An Observation describes a request that has ended.
	Observation = slipstream.Observation
)

// The kinds of events.
const (
	Connected    = slipstream.Connected
	Disconnected = slipstream.Disconnected
	DialFailed   = slipstream.DialFailed
)
