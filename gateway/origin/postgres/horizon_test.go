package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A poll that takes long on the server vouches for the time at which it was sent,
// not for that of its answer.
func TestHorizonIsTheTimeOfSending(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	s.expect("*")
	// One poll in four moves the horizon: of so many that had to wait, one has.
	random := testkit.Rand(t)
	for range 40 {
		time.Sleep(time.Duration(random.Int64N(int64(100 * time.Millisecond))))
		waiting := s.delayPoll()
		advanced := s.sink.advances()
		s.exec("COMMIT")
		testkit.Eventually(t, 10*time.Second, func() error {
			if s.sink.advances() == advanced {
				return errors.New("the horizon has not moved")
			}
			return nil
		})
		if s.sink.latest() < waiting {
			return
		}
	}
	t.Error("the horizon was always later than the moment at which the poll was waiting already")
}

// delayPoll opens a transaction that a poll waits for, and returns a time after
// that poll was sent.
func (s *streamed) delayPoll() time.Duration {
	s.Helper()
	// The statement of changes reads emp, to find the departments of tasks.
	s.exec("BEGIN; LOCK TABLE emp IN ACCESS EXCLUSIVE MODE")
	testkit.Eventually(s, 10*time.Second, func() error {
		if n := s.one("SELECT count(*)::text FROM pg_stat_activity WHERE application_name LIKE 'slipstream%' AND wait_event_type = 'Lock'"); n == "0" {
			return errors.New("no poll waits for the lock")
		}
		return nil
	})
	return s.sink.clock()
}

func (r *recorder) advances() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.advanced
}

func (r *recorder) latest() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.horizon
}
