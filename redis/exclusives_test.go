package redis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// TestIdleConnectionsEnd: idle connections are closed in time even without calls, the server
// notices, and no timer is left. Connections that are used in the meantime stay open.
func TestIdleConnectionsEnd(t *testing.T) {
	const idle = 200 * time.Millisecond
	c := start(t)
	redis.ShortenIdle(c, idle)
	connections := func() (n int) {
		var list string
		must(t, c.Do(t.Context(), &list, redis.Cmd("CLIENT", "LIST")))
		for _, b := range list {
			if b == '\n' {
				n++
			}
		}
		return n
	}
	before := connections()
	for range 3 {
		var sessions []*redis.Session
		for range 5 {
			s, err := c.Session(t.Context())
			must(t, err)
			sessions = append(sessions, s)
		}
		if redis.TrimsIdle(c) {
			t.Error("a timer is set, but no connection is idle")
		}
		for _, s := range sessions {
			s.Close()
		}
		if s := c.Stats().Exclusive; s.Idle != 5 || !redis.TrimsIdle(c) {
			t.Errorf("a timer: %t; %+v", redis.TrimsIdle(c), s)
		}
		testkit.Eventually(t, 10*time.Second, func() error {
			if s := c.Stats().Exclusive; s.Idle > 0 {
				return fmt.Errorf("%+v", s)
			}
			return nil
		})
		if redis.TrimsIdle(c) {
			t.Error("a timer is still set")
		}
		testkit.Eventually(t, 10*time.Second, func() error {
			if n := connections(); n != before {
				return fmt.Errorf("%d connections, %d before", n, before)
			}
			return nil
		})
	}
	// A connection that is used repeatedly is kept, while others are closed.
	other, err := c.Session(t.Context())
	must(t, err)
	opened := c.Stats().Exclusive.Opened
	still := uint64(0) // how often the machine stalled for so long that closing the connection was correct
	last := time.Now()
	for began := last; ; {
		if time.Since(last) > idle/2 {
			still++
		}
		must(t, c.Do(t.Context(), nil, redis.Cmd("BLPOP", "none", 0.02)))
		last = time.Now()
		if other != nil {
			other.Close()
			other = nil
		}
		if took := last.Sub(began); took > 3*idle && c.Stats().Exclusive.Idle == 1 || took > 30*time.Second {
			break
		}
	}
	if s := c.Stats().Exclusive; s.Opened > opened+1+still || s.Idle != 1 {
		t.Errorf("connections: %+v, %d were opened before", s, opened)
	}
}
