package postgres

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
)

// ledgerOfCommits is an Invalidations that compares the horizon, at every
// Advance, with commits that were acknowledged before it.
type ledgerOfCommits struct {
	*recorder

	// Guarded by mu.
	mu     sync.Mutex
	acked  map[string][]time.Duration // per key, when its commits were acknowledged
	heard  map[string]int             // per key, the events since
	broken string
}

func (l *ledgerOfCommits) commit(id string, at time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[id] = append(l.acked[id], at)
}

func (l *ledgerOfCommits) Apply(events []cache.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		if !e.All {
			l.heard[e.Key.ID]++
		}
	}
}

func (l *ledgerOfCommits) Advance(horizon time.Duration, seen cache.Snapshot) {
	l.recorder.Advance(horizon, seen)
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, acked := range l.acked {
		due := 0
		for due < len(acked) && acked[due] < horizon {
			due++
		}
		if l.heard[id] < due && l.broken == "" {
			l.broken = fmt.Sprintf("horizon %v covers %d commits of key %s, the last acknowledged at %v; %d were seen",
				horizon, due, id, acked[due-1], l.heard[id])
		}
	}
}

// Each commit makes one event, so counting is enough to detect that a horizon was
// moved before the changes it covers were applied, or further than the poll had
// read.
func TestHorizonCoversOnlyWhatWasApplied(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	began := time.Now()
	clock := func() time.Duration { return time.Since(began) }
	ledger := &ledgerOfCommits{recorder: &recorder{clock: clock, promises: map[cache.ResourceID]string{}},
		acked: map[string][]time.Duration{}, heard: map[string]int{}}
	s.sink = ledger.recorder
	s.runInto(clock, ledger)

	// Every poll moves the horizon, because the stream is woken all the time.
	const commits = 400
	var writers sync.WaitGroup
	for i := 1; i <= 3; i++ {
		conn := s.dial(t.Context())
		writers.Go(func() {
			for range commits {
				if _, err := conn.Exec(t.Context(), "UPDATE dept SET dname = dname WHERE deptno = $1", i); err != nil {
					t.Error(err)
					return
				}
				ledger.commit(strconv.Itoa(i), clock())
				s.stream.Wake()
			}
		})
	}
	writers.Wait()
	s.advance()
	ledger.mu.Lock()
	defer ledger.mu.Unlock()
	if ledger.broken != "" {
		t.Error(ledger.broken)
	}
	for id, acked := range ledger.acked {
		if ledger.heard[id] != len(acked) {
			t.Errorf("key %s: %d commits, %d events", id, len(acked), ledger.heard[id])
		}
	}
}
