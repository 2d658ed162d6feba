package loop_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// watchingSession gives up its answers when the peer sends nothing more.
type watchingSession struct {
	*toySession
	told atomic.Int32
	end  chan struct{} // gets a value for each call
}

func (s *watchingSession) PeerEnded(c *loop.Conn) {
	defer s.enter()()
	s.told.Add(1)
	o := c.Output()
	o.B = append(o.B, "you have ended\n"...)
	s.end <- struct{}{}
}

// A session learns once, after all input, that the peer sends nothing more while it owes answers; also if the input
// ends inside of a request. Then the connection ends with the answers.
func TestPeerEndsWhileAnswersAreOwed(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		for _, rest := range []string{"", "a part of a requ"} {
			sessions := make(chan *watchingSession, 1)
			y := startToy(t, m, func(config *loop.Config) {
				inner := config.New
				config.PartialTimeout = time.Minute
				config.New = func(c *loop.Conn) loop.Session {
					s := &watchingSession{toySession: inner(c).(*toySession), end: make(chan struct{}, 10)}
					sessions <- s
					return s
				}
			})
			c := y.dial()
			c.send("idhold a\nidhold b\nc\n" + rest)
			c.want("c\n")
			first, second := y.hold(), y.hold()
			c.closeWrite()
			s := <-sessions
			select {
			case <-s.end:
			case <-time.After(patience):
				t.Fatal("the session was not told")
			}
			c.want("you have ended\n")
			first.finish()
			c.want("a\n")
			second.finish()
			c.want("b\n")
			c.wantEnd()
			if n := s.told.Load(); n != 1 {
				t.Errorf("%q: the session was told %d times", rest, n)
			}
			c.Close()
			_ = y.ended()
		}
	})
}

// A session that owes nothing is not told.
func TestPeerEndsWithoutAnswersOwed(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		sessions := make(chan *watchingSession, 1)
		y := startToy(t, m, func(config *loop.Config) {
			inner := config.New
			config.New = func(c *loop.Conn) loop.Session {
				s := &watchingSession{toySession: inner(c).(*toySession), end: make(chan struct{}, 10)}
				sessions <- s
				return s
			}
		})
		c := y.dial()
		c.send("a\n")
		c.want("a\n")
		c.closeWrite()
		c.wantEnd()
		_ = y.ended()
		if n := (<-sessions).told.Load(); n != 0 {
			t.Errorf("the session was told %d times", n)
		}
	})
}
