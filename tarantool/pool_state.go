package tarantool

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream"
)

// InstanceState is what an instance of a [Pool] is good for.
type InstanceState uint8

// The states.
const (
	// InstanceDown: there is no connection.
	InstanceDown InstanceState = iota
	// InstanceChecking: it is connected and has not said yet what it is.
	InstanceChecking
	// InstanceStalled: it did not answer PoolOptions.CheckTimeout long.
	InstanceStalled
	// InstanceLoading: it is loading its data, or not configured yet.
	InstanceLoading
	// InstanceUnknown: it answers, but the user may not ask for its role.
	InstanceUnknown
	// InstanceReadOnly: it answers and takes no writes.
	InstanceReadOnly
	// InstanceReadWrite: it answers and takes writes.
	InstanceReadWrite
	// InstanceRemoved: it is no longer one of the pool's.
	InstanceRemoved
)

// String returns the state in words.
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

// InstanceInfo is what a [Pool] knows of an instance.
type InstanceInfo struct {
	Addr  string
	State InstanceState
	// Since is when it came into that state.
	Since time.Time
	// Version is the server's; empty: there was no connection yet.
	Version string
	// Outstanding are the requests queued and under way.
	Outstanding int
	// Err says why the instance is in that state; nil if it is well.
	Err error
}

// String returns address, state and what is wrong.
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
	Err      error // why, if something is wrong
	At       time.Time
}

// A NoInstanceError says that a pool has no instance of the kind that a request asked for.
type NoInstanceError struct {
	Mode Mode
	// Instances are all that the pool has.
	Instances []InstanceInfo
	// Cause is why nobody waited longer, such as the error of a context, or the error of
	// an earlier attempt. It may be nil.
	Cause error
}

// Error lists the instances.
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

// become notes a state, what is wrong, and the event if it is a change.
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

// set is become for one that has nothing else to change.
func (i *instance) set(to InstanceState, err error) {
	i.pool.set.Change(func(c *poolChange) { i.become(c, to, err) })
}

// errNoRole: the user may neither evaluate nor call.
var errNoRole = errors.New("the user may not ask for the role; box.schema.func.create('box.info') and the right to execute it would do")
