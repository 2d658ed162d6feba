package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// oneCommit is an Invalidations that fails if the horizon covers an acknowledged
// commit whose event has not arrived.
type oneCommit struct {
	*recorder
	id string // of the document that it changes

	// Guarded by mu.
	mu     sync.Mutex
	acked  time.Duration // if 0, nothing is committed yet
	heard  bool          // the event or a flush arrived after that
	passed time.Duration // the first horizon that covered the commit too early
}

func (c *oneCommit) commit(at time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked, c.heard = at, false
}

func (c *oneCommit) Apply(events []cache.Event) {
	c.recorder.Apply(events)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range events {
		c.heard = c.heard || e.All || e.Key.ID == c.id
	}
}

func (c *oneCommit) Advance(horizon time.Duration, seen cache.Snapshot) {
	c.recorder.Advance(horizon, seen)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.acked > 0 && horizon > c.acked && !c.heard && c.passed == 0 {
		c.passed = horizon
	}
}

// A table that is rewritten or truncated after the snapshot of a poll looks empty to it,
// so a change that reaches its document through that table leads nowhere. The horizon
// must not cover that change.
func TestPollDoesNotMoveTheHorizonPastARewrite(t *testing.T) {
	for name, rewrite := range map[string]string{
		"rewrite":  "ALTER TABLE emp ALTER COLUMN ename TYPE text USING ename || '!'",
		"truncate": "CREATE TEMP TABLE kept ON COMMIT DROP AS SELECT * FROM emp; TRUNCATE emp; INSERT INTO emp SELECT * FROM kept",
	} {
		t.Run(name, func(t *testing.T) {
			s := startStreamed(t)
			s.origin.cfg.Freshness, s.origin.cfg.CheckInterval = 10*time.Minute, time.Nanosecond // each poll moves the horizon
			s.lockPatience = time.Minute
			s.exec("ALTER TABLE task DROP CONSTRAINT task_empno_fkey") // TRUNCATE emp would require task, too
			s.apply()
			began := time.Now()
			clock := func() time.Duration { return time.Since(began) }
			s.sink = &recorder{clock: clock, promises: map[cache.ResourceID]string{}}
			sink := &oneCommit{recorder: s.sink, id: "20"}
			s.runInto(clock, sink)

			migration := s.dial(t.Context())
			if err := tryOn(t, migration, "BEGIN; "+rewrite); err != nil {
				t.Fatal(err)
			}
			s.exec("UPDATE task SET what = 'changed' WHERE taskno = 200")
			sink.commit(clock())
			s.waitsFor("emp")
			if err := tryOn(t, migration, "COMMIT"); err != nil {
				t.Fatal(err)
			}
			s.advance()
			if n := s.stream.Stats().DerivationsFailed; n > 0 {
				t.Errorf("%d derivations failed, expected one that waits", n)
			}
			sink.judge(t)
		})
	}
}

// waitsFor returns when a poll is blocked by a lock on the table.
func (s *streamed) waitsFor(table string) {
	s.Helper()
	testkit.Eventually(s.T, 20*time.Second, func() error {
		if textOn(s.T, s.db, "SELECT pid FROM pg_locks WHERE NOT granted AND relation = '"+table+"'::regclass AND mode = 'AccessShareLock'") == "" {
			return fmt.Errorf("no poll waits for %s", table)
		}
		return nil
	})
}

// judge fails if the horizon covered the commit before its document was dropped.
func (c *oneCommit) judge(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.passed > 0 {
		t.Errorf("a horizon of %v covered the commit acknowledged at %v, whose document had not been dropped", c.passed, c.acked)
	}
	if !c.heard {
		t.Errorf("neither document %s nor the resource was dropped: %q", c.id, strings.TrimSpace(c.ids()))
	}
}

// An employee moves to another department after a poll has read the change of a task of
// hers. That task was in the document of the department that she has left.
func TestDocumentsAreDerivedInTheSnapshotOfTheChange(t *testing.T) {
	s := startStreamed(t)
	s.origin.cfg.Freshness, s.origin.cfg.CheckInterval = 10*time.Minute, time.Nanosecond // each poll moves the horizon
	s.lockPatience = time.Minute
	s.exec("ALTER TABLE emp DROP CONSTRAINT emp_deptno_fkey") // whose check would wait for the lock, too
	s.apply()
	began := time.Now()
	clock := func() time.Duration { return time.Since(began) }
	s.sink = &recorder{clock: clock, promises: map[cache.ResourceID]string{}}
	sink := &oneCommit{recorder: s.sink, id: "1"}
	s.runInto(clock, sink)
	locker := s.dial(t.Context())
	if err := tryOn(t, locker, "BEGIN; LOCK TABLE dept"); err != nil {
		t.Fatal(err)
	}
	s.exec("UPDATE task SET what = 'changed' WHERE taskno = 1")
	sink.commit(clock())
	s.waitsFor("dept")
	s.exec("UPDATE emp SET deptno = 9 WHERE empno = 1")
	if err := tryOn(t, locker, "COMMIT"); err != nil {
		t.Fatal(err)
	}
	s.advance()
	sink.judge(t)
}

// Tables that are truncated faster than the catalogs can be read change the digest
// each time. The horizon, which is that of every resource, moves all the same.
func TestHorizonMovesWhileTablesAreTruncated(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	ctx, cancel := context.WithCancel(t.Context())
	truncating := s.dial(t.Context())
	ended := make(chan error)
	// Ends with cancel; awaited below.
	go func() {
		for ctx.Err() == nil {
			if _, err := truncating.Exec(t.Context(), "TRUNCATE task"); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	s.run()
	for range 3 {
		s.advance()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s.advance()
	if got := s.sink.ids(); !strings.Contains(got, "*") {
		t.Errorf("events %q, want flushes", got)
	}
}
