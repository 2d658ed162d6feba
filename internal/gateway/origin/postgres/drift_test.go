package postgres

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

func TestDrift(t *testing.T) {
	const ms = time.Millisecond
	type poll struct{ sent, received, server time.Duration }
	for name, c := range map[string]struct {
		polls []poll
		apart []time.Duration // after each poll
	}{
		"in step":                     {[]poll{{0, 2 * ms, 1 * ms}, {25 * ms, 27 * ms, 26 * ms}}, []time.Duration{0, 0}},
		"constant offset":             {[]poll{{0, 2 * ms, time.Hour}, {25 * ms, 27 * ms, time.Hour + 25*ms}}, []time.Duration{0, 0}},
		"a slow answer":               {[]poll{{0, 2 * ms, 1 * ms}, {25 * ms, 525 * ms, 26 * ms}, {550 * ms, 552 * ms, 551 * ms}}, []time.Duration{0, 0, 0}},
		"an answer read late":         {[]poll{{0, 2 * ms, 1 * ms}, {25 * ms, 525 * ms, 524 * ms}, {550 * ms, 552 * ms, 551 * ms}}, []time.Duration{0, 0, 0}},
		"within the tolerance":        {[]poll{{0, 2 * ms, 1 * ms}, {25 * ms, 27 * ms, 270 * ms}}, []time.Duration{0, 0}},
		"the gateway was paused":      {[]poll{{0, 2 * ms, 1 * ms}, {25 * ms, 27 * ms, 3600_000 * ms}, {50 * ms, 52 * ms, 3600_025 * ms}}, []time.Duration{0, 3599_972 * ms, 0}},
		"the server was paused":       {[]poll{{0, 2 * ms, 1 * ms}, {1000 * ms, 1002 * ms, 26 * ms}, {1025 * ms, 1027 * ms, 51 * ms}}, []time.Duration{0, -973 * ms, 0}},
		"the server's clock set back": {[]poll{{0, 2 * ms, 5000 * ms}, {25 * ms, 27 * ms, 25 * ms}}, []time.Duration{0, -4998 * ms}},
		"slewed through an outage":    {[]poll{{0, 2 * ms, 0}, {3600_000 * ms, 3600_002 * ms, 3601_800 * ms}}, []time.Duration{0, 0}}, // 500 ppm of an hour
		"a jump after an outage":      {[]poll{{0, 2 * ms, 0}, {60_000 * ms, 60_002 * ms, 61_000 * ms}}, []time.Duration{0, 998 * ms}},
	} {
		var d drift
		for i, p := range c.polls {
			if got := d.observe(p.sent, p.received, p.server, 250*ms); got != c.apart[i] || d.jumped != (got != 0) {
				t.Errorf("%s: poll %d: apart %v, jumped %v; want %v", name, i, got, d.jumped, c.apart[i])
			}
		}
	}
}

// pausedClock is a clock that stops while the machine is paused.
type pausedClock struct {
	// Guarded by mu.
	mu     sync.Mutex
	began  time.Time
	lost   time.Duration // in earlier pauses
	paused time.Time     // since when, zero if it runs
}

func (c *pausedClock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.Now()
	if !c.paused.IsZero() {
		at = c.paused
	}
	return at.Sub(c.began) - c.lost
}

func (c *pausedClock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = time.Now()
}

func (c *pausedClock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost += time.Since(c.paused)
	c.paused = time.Time{}
}

// A gateway whose clock did not count a pause of its machine has no horizon until it
// has polled; an answer that takes just as long proves nothing.
func TestHorizonIsRetractedWhenClocksRunApart(t *testing.T) {
	for _, paused := range []bool{true, false} {
		t.Run(fmt.Sprintf("paused=%t", paused), func(t *testing.T) {
			s := startStreamed(t)
			s.apply()
			clock := &pausedClock{began: time.Now()}
			s.sink = &recorder{clock: clock.now, promises: map[cache.ResourceID]string{}}
			s.runInto(clock.now, s.sink)
			before := s.stream.Stats().ClockJumps
			// The next poll is held up for the length of the pause.
			locker := s.dial(t.Context())
			execOn(t, locker, "BEGIN; LOCK TABLE slipstream.meta")
			testkit.Eventually(t, 10*time.Second, func() error {
				if textOn(t, s.db, "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'slipstream.meta'::regclass") == "0" {
					return fmt.Errorf("no poll waits for the lock")
				}
				return nil
			})
			if paused {
				clock.pause()
			}
			s.exec("SELECT pg_sleep(0.6)")
			if paused {
				clock.resume()
			}
			execOn(t, locker, "COMMIT")
			s.advance()
			jumps := s.stream.Stats().ClockJumps - before
			s.sink.mu.Lock()
			defer s.sink.mu.Unlock()
			if (jumps > 0) != paused || (s.sink.retracted > 0) != paused {
				t.Errorf("%d jumps counted, the horizon retracted %d times", jumps, s.sink.retracted)
			}
		})
	}
}
