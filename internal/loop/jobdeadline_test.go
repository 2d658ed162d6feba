package loop

import (
	"context"
	"errors"
	"testing"
	"time"
)

// The context ends with its parent and at its deadline, whether or not Done was called, and creates
// no timer before Done is called.
func TestJobDeadline(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	c := &Deadline{Context: parent, At: time.Now().Add(time.Hour)}
	if at, ok := c.Deadline(); !ok || at != c.At || c.Err() != nil || c.timed != nil {
		t.Errorf("%v %v %v", at, ok, c.Err())
	}
	cancel()
	if !errors.Is(c.Err(), context.Canceled) {
		t.Errorf("the parent has ended: %v", c.Err())
	}
	<-c.Done()
	c.End()

	c = &Deadline{Context: t.Context(), At: time.Now().Add(-time.Second)}
	if !errors.Is(c.Err(), context.DeadlineExceeded) || c.timed != nil {
		t.Errorf("the deadline has passed: %v", c.Err())
	}
	<-c.Done()
	if !errors.Is(c.Err(), context.DeadlineExceeded) {
		t.Error(c.Err())
	}
	c.End()

	c = &Deadline{Context: t.Context(), At: time.Now().Add(20 * time.Millisecond)}
	select {
	case <-c.Done():
	case <-time.After(patience):
		t.Error("Done did not close")
	}
	child, stop := context.WithCancel(c)
	defer stop()
	<-child.Done()
	if !errors.Is(child.Err(), context.DeadlineExceeded) {
		t.Errorf("a child: %v", child.Err())
	}
	c.End()

	limited, stop := context.WithDeadline(t.Context(), time.Now().Add(time.Minute))
	defer stop()
	c = &Deadline{Context: limited, At: time.Now().Add(time.Hour)}
	if at, _ := c.Deadline(); time.Until(at) > time.Minute {
		t.Errorf("the parent's deadline is earlier: %v", at)
	}
}
