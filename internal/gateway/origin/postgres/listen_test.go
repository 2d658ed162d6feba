package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Any role may notify, at any rate and with any payload. That makes the stream poll
// sooner, though never more often than its limit, and has no other effect.
func TestForgedNotificationsOnlyHastenPolls(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.origin.cfg.Notify = true
	s.origin.cfg.PollInterval = time.Second // so that most polls are those of notifications
	s.exec("CREATE ROLE notifier LOGIN")
	s.run()
	s.expect("*")
	notifier := (&database{url: s.url}).connect(t, "notifier")
	// The stream may not listen yet, so until it has heard, nothing is counted.
	testkit.Eventually(t, 20*time.Second, func() error {
		before := s.stream.Stats().Wakes
		execOn(t, notifier, "NOTIFY slipstream, 'depts'")
		if s.stream.Stats().Wakes == before {
			return fmt.Errorf("no poll after a notification")
		}
		return nil
	})
	began, before := time.Now(), s.stream.Stats()
	for i := range 300 {
		execOn(t, notifier, fmt.Sprintf("NOTIFY slipstream, 'depts %d'", i))
	}
	testkit.Eventually(t, 30*time.Second, func() error {
		if s.stream.Stats().Wakes == before.Wakes {
			return fmt.Errorf("300 notifications woke nothing: nothing was proved")
		}
		return nil
	})
	after := s.stream.Stats()
	if polls, most := after.Polls-before.Polls, int64(time.Since(began)/shortestPause)+2; polls > most {
		t.Errorf("%d polls in %v, want at most %d", polls, time.Since(began), most)
	}
	s.expect() // neither an event nor a flush
}
