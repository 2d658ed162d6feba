package loop_test

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// politeSession says goodbye when the server drains.
type politeSession struct {
	*toySession
	told atomic.Int32
	end  bool
}

func (s *politeSession) Drain(c *loop.Conn) {
	defer s.enter()()
	s.told.Add(1)
	o := c.Output()
	o.B = append(o.B, "goodbye\n"...)
	if s.end {
		c.End()
	}
}

// Every connection is notified of a drain, once and in its turn: idle ones, those that owe an
// answer, after which the goodbye is sent, and those that arrive during the grace. The goodbye does
// not keep a connection open beyond the grace period.
func TestDrainIsTold(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		sessions := make(chan *politeSession, 10)
		var end atomic.Bool
		y := startToy(t, m, func(config *loop.Config) {
			config.DrainGrace = time.Second
			inner := config.New
			config.New = func(c *loop.Conn) loop.Session {
				s := &politeSession{toySession: inner(c).(*toySession), end: end.Load()}
				sessions <- s
				return s
			}
		})
		idle, busy := y.dial(), y.dial()
		idle.send("a\n")
		idle.want("a\n")
		busy.send("a\nhold b\n")
		busy.want("a\n")
		h := y.hold()
		end.Store(true)
		ending := y.dial()
		ending.send("a\n")
		ending.want("a\n")
		result := y.shutdown(10 * time.Second)
		idle.want("goodbye\n")
		ending.want("goodbye\n")
		ending.wantEnd()
		ending.Close()
		idle.send("one more\n")
		idle.want("one more\n")
		idle.wantEnd()
		idle.Close()
		h.finish()
		busy.want("b\ngoodbye\n")
		busy.wantEnd()
		busy.Close()
		wantResult(t, result, nil)
		for range 3 {
			if n := (<-sessions).told.Load(); n != 1 {
				t.Errorf("Drain was called %d times, want once", n)
			}
		}
	})
}

// Without a grace period, the goodbye is still sent before the connection ends.
func TestDrainIsToldWithoutGrace(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(config *loop.Config) {
			inner := config.New
			config.New = func(c *loop.Conn) loop.Session { return &politeSession{toySession: inner(c).(*toySession)} }
		})
		c := y.dial()
		c.send("a\n")
		c.want("a\n")
		result := y.shutdown(10 * time.Second)
		c.want("goodbye\n")
		c.wantEnd()
		c.Close()
		wantResult(t, result, nil)
	})
}

// A connection that is in use after the grace period ends with its next answer: no request goes
// unanswered. A request that is held is answered first.
func TestDrainEndsWithAnAnswer(t *testing.T) {
	const grace, attempts = 200 * time.Millisecond, 20
	eachMode(t, func(t *testing.T, m mode) {
		for i := range attempts {
			y := startToy(t, m, func(config *loop.Config) { config.DrainGrace = grace })
			c := y.dial()
			c.send("a\n")
			c.want("a\n")
			result := y.shutdown(time.Hour)
			start := time.Now()
			longest, last := time.Duration(0), start // the longest time between two requests, and the time of the last
			ended := false
			for !ended && longest < grace/2 {
				c.send("a\n")
				longest = max(longest, time.Since(last))
				last = time.Now()
				c.SetReadDeadline(time.Time{})
				c.want("a\n")
				c.SetReadDeadline(time.Now().Add(grace / 20))
				_, err := c.r.ReadByte()
				ended = !errors.Is(err, os.ErrDeadlineExceeded)
			}
			c.Close()
			wantResult(t, result, nil)
			if took := time.Since(start); ended && took < grace {
				t.Errorf("the connection ended after %v, before the grace period of %v", took, grace)
			}
			if longest < grace/2 {
				if took := time.Since(start); took > 8*grace {
					t.Errorf("the connection ended after %v, want soon after the grace period of %v", took, grace)
				}
				return
			}
			if i == attempts-1 {
				t.Error("the machine is too slow for the test")
			}
		}
	})
}

// A connection whose requests have no answers ends after a multiple of the grace period, or after
// half of the time that Shutdown has.
func TestDrainEndsWithoutAnswers(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		for _, row := range []struct{ grace, limit time.Duration }{{50 * time.Millisecond, time.Hour}, {time.Minute, 4 * time.Second}} {
			y := startToy(t, m, func(config *loop.Config) {
				config.DrainGrace = row.grace
				config.New = func(*loop.Conn) loop.Session { return silent{} }
			})
			c := y.dial()
			result := y.shutdown(row.limit)
			for {
				if _, err := io.WriteString(c, "a\n"); err != nil {
					break
				}
			}
			c.Close()
			wantResult(t, result, nil)
		}
	})
}

// silent is a session whose requests have no answers.
type silent struct{}

func (silent) Data(_ *loop.Conn, in []byte) int { return len(in) }

func (silent) Closed(*loop.Conn, error) {}
