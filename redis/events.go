package redis

import "github.com/slipstream-go/slipstream"

// Types that the clients of this module share for reporting.
type (
	// An Event is something that happened to a connection.
	Event = slipstream.Event
	// EventKind is what happened to a connection.
	EventKind = slipstream.EventKind
	// An Observer is notified of every call.
	Observer = slipstream.Observer
	// An Observation is a call that has ended.
	Observation = slipstream.Observation
)

// The kinds of events.
const (
	Connected    = slipstream.Connected
	Disconnected = slipstream.Disconnected
	DialFailed   = slipstream.DialFailed
)
