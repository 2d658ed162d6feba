// Package fleet maintains the endpoints of a client that has several servers: its members, an
// immutable view of them that callers read without a lock, a way to wait for a member that a call
// needs, events in the order in which they happened, and the checks of members. The driver decides
// what the members are used for.
package fleet

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrClosed is returned by [Set.Await] if the set was closed.
var ErrClosed = errors.New("the set of endpoints is closed")

// A Set contains members of type M, a view V of them, and events E about them. All methods are safe
// for concurrent use.
type Set[M comparable, V, E any] struct {
	// Immutable.
	build  func(members []M) V
	notify func(E) // if nil, events are dropped

	mu sync.Mutex
	// Guarded by mu, which is never held while a goroutine waits.
	members   []M // replaced, never changed in place except for appending
	closed    bool
	events    []E
	notifying bool // a goroutine is delivering events

	// Atomics.
	view    atomic.Pointer[View[V]] // written under mu, read by callers
	waiting atomic.Int32            // calls in Await; written by them
}

// A View is what callers know about the members at one moment. It is immutable.
type View[V any] struct {
	Value   V
	Closed  bool          // the set is closed
	changed chan struct{} // closed when there is a newer view
}

// New returns a set without members. Build makes the view of the members, and is called with the
// set locked. Notify, if set, is called with each event, in order, by one goroutine at a time; its
// panics are contained.
func New[M comparable, V, E any](build func(members []M) V, notify func(E)) *Set[M, V, E] {
	s := &Set[M, V, E]{build: build, notify: notify}
	s.view.Store(&View[V]{Value: build(nil), changed: make(chan struct{})})
	return s
}

// View returns the newest view.
func (s *Set[M, V, E]) View() *View[V] { return s.view.Load() }

// Waiting returns the number of calls that wait for a member.
func (s *Set[M, V, E]) Waiting() int { return int(s.waiting.Load()) }

// Members returns the members in the order in which they were added. The slice must not be changed.
func (s *Set[M, V, E]) Members() []M {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members
}

// A Change is a locked set, so that data of members can be changed along with it.
type Change[M comparable, V, E any] struct {
	set     *Set[M, V, E]
	rebuild bool
	emitted bool
}

// Change calls f with the set locked, replaces the view if f requests that, and delivers the
// events.
func (s *Set[M, V, E]) Change(f func(c *Change[M, V, E])) {
	c := Change[M, V, E]{set: s}
	s.mu.Lock()
	f(&c)
	if c.rebuild {
		s.rebuild()
	}
	s.mu.Unlock()
	if c.emitted {
		s.deliver()
	}
}

// Closed reports whether the set is closed.
func (c *Change[M, V, E]) Closed() bool { return c.set.closed }

// Members returns the members. The slice must not be changed.
func (c *Change[M, V, E]) Members() []M { return c.set.members }

// Add adds a member.
func (c *Change[M, V, E]) Add(m M) { c.set.members = append(c.set.members, m) }

// Remove removes a member.
func (c *Change[M, V, E]) Remove(m M) {
	c.set.members = slices.DeleteFunc(slices.Clone(c.set.members), func(other M) bool { return other == m })
	c.rebuild = true
}

// Rebuild makes Change replace the view when f returns.
func (c *Change[M, V, E]) Rebuild() { c.rebuild = true }

// Emit makes Change deliver an event when f returns.
func (c *Change[M, V, E]) Emit(e E) {
	if c.set.notify != nil {
		c.set.events, c.emitted = append(c.set.events, e), true
	}
}

// Close closes the set; from then on, its view has no members. Close returns the members. If the
// set was closed before, first is false.
func (s *Set[M, V, E]) Close() (members []M, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = !s.closed
	s.closed = true
	if first {
		s.rebuild()
	}
	return slices.Clone(s.members), first
}

// rebuild replaces the view. The caller holds mu.
func (s *Set[M, V, E]) rebuild() {
	members := s.members
	if s.closed {
		members = nil
	}
	close(s.view.Swap(&View[V]{Value: s.build(members), Closed: s.closed, changed: make(chan struct{})}).changed)
}

// Await waits until pick reports that the view has what the caller needs. It returns nil,
// [ErrClosed], or the error of ctx. Wake, if set, is called once if Await has to wait.
func (s *Set[M, V, E]) Await(ctx context.Context, pick func(V) bool, wake func()) error {
	if pick(s.view.Load().Value) {
		return nil
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	if wake != nil {
		wake()
	}
	for {
		v := s.view.Load()
		if pick(v.Value) {
			return nil
		}
		if v.Closed {
			return ErrClosed
		}
		select {
		case <-v.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// deliver delivers events, unless another goroutine is doing so and will deliver these, too.
func (s *Set[M, V, E]) deliver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notifying {
		return
	}
	s.notifying = true
	for len(s.events) > 0 {
		e := s.events[0]
		s.events = s.events[1:]
		s.mu.Unlock()
		s.deliverOne(e)
		s.mu.Lock()
	}
	s.notifying = false
}

func (s *Set[M, V, E]) deliverOne(e E) {
	defer func() { _ = recover() }()
	s.notify(e)
}
