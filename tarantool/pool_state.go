package tarantool

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream"
)

// InstanceState is the state of an instance of a [Pool].
type InstanceState uint8

// The states.
const (
	// InstanceDown means that there is no connection.
	InstanceDown InstanceState = iota
	// InstanceChecking means that the instance is connected and its role is not known yet.
	InstanceChecking
	// InstanceStalled means that the instance did not answer within PoolOptions.CheckTimeout.
	InstanceStalled
	// InstanceLoading means that the instance is loading its data, or is not configured yet.
	InstanceLoading
	// InstanceUnknown means that the instance answers, but the user may not query its role.
	InstanceUnknown
	// InstanceReadOnly means that the instance answers and accepts no writes.
	InstanceReadOnly
	// InstanceReadWrite means that the instance answers and accepts writes.
	InstanceReadWrite
	// InstanceRemoved means that the instance was removed from the pool.
	InstanceRemoved
)

// String returns the state as text.
func (s InstanceState) String() string {
	switch s {
	case InstanceDown:
		return "down"
	case InstanceChecking:
		return "role not known yet"
	case InstanceStalled:
		return "stalled"
	case InstanceLoading:
		return "loading"
	case InstanceUnknown:
		return "role unknown"
	case InstanceReadOnly:
		return "read-only"
	case InstanceReadWrite:
		return "read-write"
	case InstanceRemoved:
		return "removed"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// InstanceInfo describes an instance of a [Pool].
type InstanceInfo struct {
	Addr  string
	State InstanceState
	// Since is the time at which that state began.
	Since time.Time
	// Version is the version of the server. It is empty if there was no connection yet.
	Version string
	// Outstanding is the number of requests queued and in flight.
	Outstanding int
	// Err says why the instance is in that state. It is nil if nothing is wrong.
	Err error
}

// String returns the address, the state, and the error if there is one.
func (i InstanceInfo) String() string {
	if i.Err == nil {
		return i.Addr + " is " + i.State.String()
	}
	return i.Addr + " is " + i.State.String() + " (" + i.Err.Error() + ")"
}

// PoolEvent is a change of an instance's state.
type PoolEvent struct {
	Addr     string
	From, To InstanceState
	Err      error // the reason, if something is wrong
	At       time.Time
}

// A NoInstanceError is returned if a pool has no instance for the mode of a request.
type NoInstanceError struct {
	Mode Mode
	// Instances are all instances of the pool.
	Instances []InstanceInfo
	// Cause says why the request did not wait longer: it is the error of a context or of an earlier
	// attempt. It may be nil.
	Cause error
}

// Error describes the instances.
func (e *NoInstanceError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no instance for the mode %s: ", e.Mode)
	if len(e.Instances) == 0 {
		b.WriteString("the pool is empty")
	}
	for n, i := range e.Instances {
		if n > 0 {
			b.WriteString("; ")
		}
		b.WriteString(i.String())
	}
	if e.Cause != nil {
		b.WriteString(": " + e.Cause.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *NoInstanceError) Unwrap() error { return e.Cause }

func (p *Pool) noInstance(mode Mode, cause error) *slipstream.Error {
	return &slipstream.Error{Op: "pool", Outcome: slipstream.NotSent, Err: &NoInstanceError{mode, p.Instances(), cause}}
}

// become sets the state and the error, and emits an event if the state changes.
func (i *instance) become(c *poolChange, to InstanceState, err error) {
	if c.Closed() || i.state == InstanceRemoved {
		return
	}
	i.err = err
	if i.state == to {
		return
	}
	now := time.Now()
	c.Emit(PoolEvent{Addr: i.addr, From: i.state, To: to, Err: err, At: now})
	i.state, i.since = to, now
	c.Rebuild()
}

// set calls become in a change of the set.
func (i *instance) set(to InstanceState, err error) {
	i.pool.set.Change(func(c *poolChange) { i.become(c, to, err) })
}

// errNoRole is the error if the user may neither evaluate expressions nor call box.info.
var errNoRole = errors.New("the user may not query the role; call box.schema.func.create('box.info') and grant the user the right to execute the function")
