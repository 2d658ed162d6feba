package loop

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Events of a round that may have waited for more than a millisecond are counted if another loop sleeps.
func TestLateEventsAreCounted(t *testing.T) {
	l, other := twoLoops(t)
	for _, c := range []struct {
		name          string
		since, now    time.Duration
		self, another bool // which of the two sleeps
		want          uint64
	}{
		{"in time", time.Second, time.Second + time.Millisecond, false, true, 0},
		{"late, another loop sleeps", time.Second, time.Second + time.Millisecond + 1, false, true, 3},
		{"late, all loops work", time.Second, 2 * time.Second, false, false, 0},
		{"late, this loop is about to sleep", time.Second, 2 * time.Second, true, false, 0},
	} {
		l.counts.late = 0
		l.round = round{since: c.since, events: 3}
		l.waiting.Store(c.self)
		other.waiting.Store(c.another)
		if l.noteLate(c.now); l.counts.late != c.want {
			t.Errorf("%s: %d late events, want %d", c.name, l.counts.late, c.want)
		}
	}
}

// Events that a poll returns may have been ready since the previous poll; those that end a sleep,
// since the sleep ended.
func TestEventsAreReadySinceThePollBefore(t *testing.T) {
	l, _ := twoLoops(t)
	l.now = 5 // an earlier poll
	wakeEventfd(l.wakefd)
	if n := l.wait(); n != 1 || l.round != (round{since: 5, events: 1}) {
		t.Errorf("a poll returned %d events of the round %+v, want 1 event, ready since 5", n, l.round)
	}
	drainEventfd(l.wakefd)
	l.acceptAt = l.server.now() + 2*time.Millisecond // ends the sleep
	if n := l.wait(); n != 0 || l.round.since != l.now {
		t.Errorf("a sleep ended with %d events at %v, ready since %v, want none, ready since then", n, l.now, l.round.since)
	}
	l.yields = true
	l.acceptAt = l.server.now() + 2*time.Millisecond
	if l.wait(); l.round.since >= l.now {
		t.Errorf("a sleep after a yield ended at %v, events are ready since %v, want an earlier time", l.now, l.round.since)
	}
}

// If a loop is busy for a long time while another one sleeps, the server's metrics show it.
func TestLateEventsShowInStats(t *testing.T) {
	for _, loops := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d loops", loops), func(t *testing.T) {
			s, err := New(Config{Backend: Epoll, Loops: loops, New: func(*Conn) Session { return dawdler{} }})
			if err != nil {
				t.Fatal(err)
			}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Serve(listener); err != nil {
				t.Fatal(err)
			}
			defer s.Shutdown(t.Context())
			c, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			testkit.Eventually(t, 10*time.Second, func() error {
				if _, err := c.Write([]byte("x")); err != nil {
					return err
				}
				st := s.Stats()
				switch {
				case st.Reads < 10:
					return fmt.Errorf("%d reads, want 10", st.Reads)
				case loops == 1 && st.Late > 0:
					t.Fatalf("%d late events although there is no other loop", st.Late)
				case loops > 1 && st.Late == 0:
					return fmt.Errorf("no late events of %d", st.Events)
				}
				return nil
			})
		})
	}
}

// dawdler is a session that takes longer than lateAfter.
type dawdler struct{}

func (dawdler) Data(_ *Conn, in []byte) int {
	time.Sleep(2 * lateAfter)
	return len(in)
}

func (dawdler) Closed(*Conn, error) {}

// twoLoops returns the loops of a server that does not run.
func twoLoops(t *testing.T) (l, other *eventLoop) {
	s, err := New(Config{Backend: Epoll, Loops: 2, New: func(*Conn) Session { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	loops := s.engine.(*epollEngine).loops
	return loops[0], loops[1]
}
