package faultproxy

import (
	"math/rand/v2"
	"time"
)

// Plan describes what happens to one connection. The zero value forwards
// everything unchanged.
type Plan struct {
	// Refuse resets the connection as soon as it is accepted.
	Refuse bool
	// Up is the direction from the client to the server, Down the reverse direction.
	Up, Down Link
}

// Link is one direction of a connection.
type Link struct {
	// Delay is the time from reading a piece to forwarding it. It adds latency and takes no
	// bandwidth, like a longer cable.
	Delay time.Duration
	// Jitter is the upper limit of a random time added to Delay. Bytes never
	// overtake each other.
	Jitter time.Duration
	// Chop is the maximum number of bytes in a forwarded segment; 0 means as read.
	Chop int
	// BytesPerSecond limits the rate; 0 means no limit.
	BytesPerSecond int
	// Faults happen at fixed positions in the stream, in ascending order of After.
	Faults []Fault
}

// Fault is one event on a link.
type Fault struct {
	// After is how many bytes are forwarded before it happens; 0 means
	// before the first one, as soon as the connection is made.
	After int64
	Do    Action
	// For is the length of a Stall; 0 means until the connection ends.
	For time.Duration
}

// Action is what a [Fault] does.
type Action uint8

// The actions. All but Stall end their link: later faults of that link never
// occur.
const (
	// Cut closes both directions gracefully: each side reads EOF after the bytes that were
	// forwarded.
	Cut Action = iota + 1
	// Reset closes both directions with RST. The bytes before it were handed
	// to the kernel; over loopback the peer can still read them.
	Reset
	// HalfClose ends this direction with EOF and leaves the other one open.
	HalfClose
	// Stall stops forwarding, and soon reading, so that the sender's buffers fill.
	Stall
	// Blackhole reads and discards everything that follows: the sender notices nothing, and the
	// receiver gets no more data.
	Blackhole
)

var actionNames = [...]string{Cut: "cut", Reset: "reset", HalfClose: "half-close", Stall: "stall", Blackhole: "blackhole"}

func (a Action) String() string {
	if int(a) < len(actionNames) && a > 0 {
		return actionNames[a]
	}
	return "unknown"
}

// Planner chooses the plan of the conn-th connection, counted from 0. Its
// generator depends only on the proxy's seed and conn, so the plans of a run
// are the same in every run with that seed, however connections interleave.
type Planner func(conn int, r *rand.Rand) Plan

// Always returns a [Planner] that gives every connection the same plan.
func Always(p Plan) Planner { return func(int, *rand.Rand) Plan { return p } }

// Sequence returns a [Planner] that gives the first connections the plans in order, and all later
// ones the last plan.
func Sequence(plans ...Plan) Planner {
	return func(conn int, _ *rand.Rand) Plan { return plans[min(conn, len(plans)-1)] }
}

// RandomPlan is a [Planner] that breaks a connection in one of many ways, or not at all.
func RandomPlan(_ int, r *rand.Rand) Plan {
	link := func() (l Link) {
		if r.IntN(3) == 0 {
			l.Chop = 1 + r.IntN(40)
		}
		if r.IntN(3) == 0 {
			l.Delay, l.Jitter = time.Duration(r.IntN(3))*time.Millisecond, time.Millisecond
		}
		if r.IntN(2) == 0 {
			do := []Action{Reset, Cut, HalfClose, Stall, Blackhole}[r.IntN(5)]
			l.Faults = []Fault{{After: r.Int64N(1 << (5 + r.IntN(14))), Do: do}}
		}
		return l
	}
	return Plan{Refuse: r.IntN(10) == 0, Up: link(), Down: link()}
}
