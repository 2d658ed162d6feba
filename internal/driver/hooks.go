package driver

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
)

// Hooks are the user's functions that are notified of calls and connections. A panic of such a
// function is recovered and counted: an observer must not end the call that it observes. All
// methods are safe for concurrent use.
type Hooks struct {
	// Immutable after the first call.
	System, Namespace, Addr string // of observations
	Observer                slipstream.Observer
	SlowThreshold           time.Duration
	OnSlow                  func(slipstream.Observation)
	OnEvent                 func(slipstream.Event)

	// Atomics, written by any goroutine.
	panics atomic.Uint64
}

// Slow checks that SlowThreshold and OnSlow are set together.
func (c Check) Slow(threshold time.Duration, onSlow func(slipstream.Observation)) error {
	if (threshold > 0) != (onSlow != nil) {
		return errors.New(string(c) + ": SlowThreshold and OnSlow are set only together")
	}
	return nil
}

// Panics returns the number of recovered panics.
func (h *Hooks) Panics() uint64 { return h.panics.Load() }

// Observing reports whether calls are observed.
func (h *Hooks) Observing() bool { return h.Observer != nil || h.OnSlow != nil }

// Observe notifies the observer and the slow log of a call that ends now. It fills in the fields
// that are the same for all calls; an address that o already has is kept.
func (h *Hooks) Observe(ctx context.Context, o slipstream.Observation) {
	o.Context, o.System, o.Namespace, o.Addr, o.End = ctx, h.System, h.Namespace, cmp.Or(o.Addr, h.Addr), time.Now()
	if h.Observer != nil {
		h.Call(func() { h.Observer.Observe(o) })
	}
	if h.OnSlow != nil && o.Duration() >= h.SlowThreshold {
		h.Call(func() { h.OnSlow(o) })
	}
}

// Event notifies the user of a change to a connection.
func (h *Hooks) Event(e slipstream.Event) {
	if h.OnEvent != nil {
		h.Call(func() { h.OnEvent(e) })
	}
}

// Call calls a user-supplied function and recovers its panic.
func (h *Hooks) Call(f func()) {
	defer func() {
		if recover() != nil {
			h.panics.Add(1)
		}
	}()
	f()
}
