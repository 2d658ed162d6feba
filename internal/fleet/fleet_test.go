package fleet

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// server is a member of the test's sets.
type server struct {
	name  string
	busy  int
	ready bool // guarded by the lock of the set
}

func (s *server) Outstanding() int { return s.busy }

type (
	testSet    = Set[*server, []*server, string]
	testChange = Change[*server, []*server, string]
)

// ready is the view in these tests: the members that are ready.
func ready(members []*server) []*server {
	return slices.DeleteFunc(slices.Clone(members), func(s *server) bool { return !s.ready })
}

func setReady(set *testSet, s *server, on bool) {
	set.Change(func(c *testChange) {
		s.ready = on
		c.Emit(s.name)
		c.Rebuild()
	})
}

func TestCallersWaitForAMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := New[*server, []*server, string](ready, nil)
		a := &server{name: "a"}
		set.Change(func(c *testChange) { c.Add(a) })
		woken := 0
		anyMember := func(members []*server) bool { return len(members) > 0 }
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := set.Await(short, anyMember, func() { woken++ }); !errors.Is(err, context.DeadlineExceeded) || woken != 1 || set.Waiting() != 0 {
			t.Errorf("%v, woken %d times", err, woken)
		}
		done := make(chan error, 1)
		go func() { done <- set.Await(t.Context(), anyMember, nil) }() // ends with the change
		synctest.Wait()
		if set.Waiting() != 1 {
			t.Errorf("%d callers wait, want 1", set.Waiting())
		}
		setReady(set, a, true)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := set.Await(t.Context(), anyMember, func() { t.Error("woken although there is a member") }); err != nil {
			t.Error(err)
		}
		set.Change(func(c *testChange) { c.Remove(a) })
		if len(set.View().Value) != 0 || len(set.Members()) != 0 {
			t.Errorf("%v after Remove", set.Members())
		}
	})
}

func TestClosedSetHasNoMembersForCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := New[*server, []*server, string](ready, nil)
		a := &server{name: "a", ready: true}
		set.Change(func(c *testChange) { c.Add(a); c.Rebuild() })
		done := make(chan error, 1)
		go func() { // ends with Close
			done <- set.Await(t.Context(), func(members []*server) bool { return len(members) > 1 }, nil)
		}()
		synctest.Wait()
		members, first := set.Close()
		if !first || len(members) != 1 {
			t.Errorf("%v, %v", members, first)
		}
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if v := set.View(); !v.Closed || len(v.Value) != 0 {
			t.Errorf("%+v", v)
		}
		if _, first := set.Close(); first {
			t.Error("closed first twice")
		}
	})
}

// An event that arises while another one is being delivered is delivered after it, and not within
// the same call.
//
// mutant: fleet-events-delivered-twice
func TestEventsAreDeliveredInOrder(t *testing.T) {
	var set *testSet
	var order []string
	a := &server{name: "a"}
	set = New(ready, func(name string) {
		order = append(order, "begin "+name)
		if name == "a" {
			a.name = "b"
			setReady(set, a, false)
		}
		order = append(order, "end "+name)
		if name == "b" {
			panic("contained")
		}
	})
	setReady(set, a, true)
	a.name = "c"
	setReady(set, a, true)
	if want := []string{"begin a", "end a", "begin b", "end b", "begin c", "end c"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
}

// mutant: fleet-check-that-began-before
func TestRecheckWaitsForACheckThatBeginsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewProbe()
		end := p.Begin() // before Recheck
		done := make(chan struct{})
		go func() { // ends with the second check
			Recheck(t.Context(), []string{"member"}, func(string) (*Probe, context.Context) { return p, t.Context() })
			close(done)
		}()
		synctest.Wait()
		end()
		synctest.Wait()
		select {
		case <-done:
			t.Error("Recheck returned after a check that had begun before it")
		default:
		}
		began := time.Now()
		p.Rest(t.Context(), began, 10*time.Millisecond, time.Hour)
		if d := time.Since(began); d != 10*time.Millisecond {
			t.Errorf("the next check comes after %v, want 10ms", d)
		}
		p.Begin()()
		<-done
	})
}

func TestRecheckDoesNotWaitForAMemberThatEnds(t *testing.T) {
	life, cancel := context.WithCancel(t.Context())
	cancel()
	Recheck(t.Context(), []string{"member"}, func(string) (*Probe, context.Context) { return NewProbe(), life })
}

func TestLighterMemberIsChosen(t *testing.T) {
	idle, busy := &server{name: "idle"}, &server{name: "busy", busy: 9}
	for _, c := range []struct {
		members     []*server
		avoid, want *server
	}{
		{nil, nil, nil},
		{[]*server{busy}, nil, busy},
		{[]*server{busy}, busy, nil},
		{[]*server{busy, idle}, nil, idle},
		{[]*server{busy, idle}, idle, busy},
		{[]*server{busy, idle}, busy, idle},
	} {
		for range 20 {
			if got := Lighter(c.members, c.avoid); got != c.want {
				t.Fatalf("%v of %v without %v, want %v", got, c.members, c.avoid, c.want)
			}
		}
	}
}
