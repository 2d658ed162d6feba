package loop_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// The limits that a session sets apply to its connection only; other connections keep those of the
// server.
func TestSetLimits(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		conns := make(chan *loop.Conn, 1)
		y := startToy(t, m, func(c *loop.Config) {
			published(conns)(c)
			c.MaxInput, c.MaxDeferred = 10_000, 100
			c.IdleTimeout, c.PartialTimeout = time.Minute, time.Minute
		})
		limited := func(l loop.Limits) *client {
			c := y.dial()
			c.send("a\n") // over TLS there is no turn before the handshake
			c.want("a\n")
			set := &toyTask{do: func(c *loop.Conn) {
				c.SetLimits(loop.Limits{MaxInput: 1, MaxDeferred: 1, IdleTimeout: 1, PartialTimeout: 1}) // the last call counts
				c.SetLimits(l)
				o := c.Output()
				o.B = append(o.B, "set\n"...)
			}}
			if err := (<-conns).Post(set, 0); err != nil {
				t.Fatal(err)
			}
			c.want("set\n")
			return c
		}
		wantEnd := func(what string, want error) {
			t.Helper()
			if err := y.ended(); !errors.Is(err, want) {
				t.Errorf("%s: closed with %v, want %v", what, err, want)
			}
		}
		const soon = 200 * time.Millisecond
		other := limited(loop.Limits{})
		long := strings.Repeat("x", 20_000)
		_, _ = io.WriteString(other, long) // the server may cut it off
		wantEnd("a long request, the limit of the server", loop.ErrTooLarge)

		c := limited(loop.Limits{MaxInput: 100_000, MaxDeferred: 2})
		c.send(long + "\n")
		c.want(long + "\n")
		c.send("hold a\nhold b\nhold c\n")
		first, second := y.hold(), y.hold()
		time.Sleep(50 * time.Millisecond)
		if n := len(y.held); n > 0 {
			t.Errorf("%d more answers are deferred, want 2", n+2)
		}
		first.finish()
		second.finish()
		c.want("a\nb\n")
		y.hold().finish()
		c.want("c\n")

		c = limited(loop.Limits{PartialTimeout: soon})
		c.send("incomplete")
		wantEnd("a request that is not completed", loop.ErrPartial)
		c = limited(loop.Limits{PartialTimeout: soon})
		c.send("put 100000\nincomplete")
		wantEnd("an input that is not completed", loop.ErrPartial)
		limited(loop.Limits{IdleTimeout: soon}).wantEnd()
		wantEnd("an idle connection", loop.ErrIdle)
	})
}
