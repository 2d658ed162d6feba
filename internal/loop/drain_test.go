package loop_test

import (
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

// Every connection is told of a drain, once and in its turn: idle ones, those that owe an answer,
// after which the goodbye goes, and those that come during the grace. It does not keep a
// connection open for longer than its grace.
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
				t.Errorf("a session was told %d times, want once", n)
			}
		}
	})
}

// Without grace the goodbye still goes before the end.
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
