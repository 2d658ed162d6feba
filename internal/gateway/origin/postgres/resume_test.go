package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// storing is a recorder with a store of an earlier run.
type storing struct {
	*recorder

	// Guarded by mu of the recorder.
	position  cache.Position // of the store
	waits     bool           // it was not vouched for yet
	discarded bool
	told      cache.Position // by the last checkpoint
}

func (s *storing) Waiting() (cache.Position, uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.position, 1, s.waits
}

func (s *storing) Checkpoint(p cache.Position, store uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits && store == 0 {
		return
	}
	s.waits, s.told = false, p
}

func (s *storing) HasStore() bool { return true }

func (s *storing) Discard(uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.discarded, s.position = true, cache.Position{}
}

// wait attaches a store with this position.
func (s *storing) wait(p cache.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.position, s.waits, s.discarded = p, true, false
}

// vouched waits until the store is vouched for, and returns the position of the stream and
// whether the store was discarded.
func (s *storing) vouched(t *testing.T) (told cache.Position, discarded bool) {
	t.Helper()
	testkit.Eventually(t, 10*time.Second, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waits {
			return fmt.Errorf("the store waits for the changes since %+v", s.position)
		}
		told, discarded = s.told, s.discarded
		return nil
	})
	return told, discarded
}

// life is one run of a gateway over a database, with a store that has a position.
type life struct {
	*streamed
	storing *storing
}

func (d *database) live(t *testing.T, p cache.Position) *life {
	t.Helper()
	began := time.Now()
	clock := func() time.Duration { return time.Since(began) }
	cfg := Config{URL: d.url, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	l := &life{streamed: &streamed{T: t, sink: &recorder{clock: clock, promises: map[cache.ResourceID]string{}}}}
	l.origin = openOrigin(t, cfg, streamedResource())
	l.storing = &storing{recorder: l.sink}
	l.storing.wait(p)
	l.runInto(clock, l.storing)
	return l
}

// end stops the stream and returns its position.
func (l *life) end() cache.Position {
	l.Helper()
	l.stop()
	p, _ := l.storing.vouched(l.T)
	if err := l.origin.Close(); err != nil {
		l.Error(err)
	}
	return p
}

// triggersOf returns the statements that switch the triggers of a table off and on.
func (d *database) triggersOf(t *testing.T, table string) (off, on string) {
	t.Helper()
	const which = " FROM pg_trigger WHERE tgrelid = '%[1]s'::regclass AND NOT tgisinternal AND tgname LIKE 'slipstream%%'"
	off = d.text(t, fmt.Sprintf("SELECT string_agg(format('ALTER TABLE %[1]s DISABLE TRIGGER %%I', tgname), '; ')"+which, table))
	on = d.text(t, fmt.Sprintf("SELECT string_agg(format('ALTER TABLE %[1]s ENABLE ALWAYS TRIGGER %%I', tgname), '; ')"+which, table))
	return off, on
}

// madeAgain drops the triggers of a table, runs SQL, and recreates them.
func (d *database) madeAgain(t *testing.T, table, sql string) {
	t.Helper()
	const which = " FROM pg_trigger WHERE tgrelid = '%[1]s'::regclass AND NOT tgisinternal AND tgname LIKE 'slipstream%%'"
	drop := d.text(t, fmt.Sprintf("SELECT string_agg(format('DROP TRIGGER %%I ON %[1]s', tgname), '; ')"+which, table))
	again := d.text(t, fmt.Sprintf("SELECT string_agg(pg_get_triggerdef(oid) || format('; ALTER TABLE %[1]s ENABLE ALWAYS TRIGGER %%I', tgname), '; ')"+which, table))
	d.exec(t, drop, sql, again)
}

// A stream goes back to the position of a store, and finds what happened since: which
// documents changed, that all may have changed, or that they are of another history.
func TestResume(t *testing.T) {
	testkit.NoLeaks(t)
	server := startServer(t)
	const unheard = "UPDATE emp SET ename = 'unheard' WHERE empno = 11"
	for _, c := range []struct {
		name    string
		happens func(t *testing.T, d *database, p *cache.Position)
		want    string // the documents that are dropped, in order
		discard bool
	}{
		{name: "nothing"},
		{name: "changes", want: "20 3", happens: func(t *testing.T, d *database, _ *cache.Position) {
			d.exec(t, "UPDATE emp SET ename = 'x' WHERE empno = 11", "INSERT INTO task VALUES (1000, 100, 'new')")
		}},
		{name: "a change that was in flight", want: "3", happens: func(t *testing.T, d *database, p *cache.Position) {
			d.exec(t, "UPDATE emp SET ename = 'x' WHERE empno = 11", "UPDATE dept SET dname = 'x' WHERE deptno = 4")
			// The later change was seen, the earlier one was not.
			last := d.text(t, "SELECT string_agg(xid::text, ' ' ORDER BY xid) FROM (SELECT xid FROM slipstream.change ORDER BY xid DESC LIMIT 2) AS c")
			if _, err := fmt.Sscan(last, &p.Seen.XMin, &p.Seen.XMax); err != nil {
				t.Fatal(err)
			}
			p.Seen.InProgress = []cache.Tx{p.Seen.XMin}
			p.Seen.XMax++
		}},
		{name: "unread changes were trimmed", want: "*", happens: func(t *testing.T, d *database, _ *cache.Position) {
			d.exec(t, unheard, "UPDATE slipstream.change SET at = at - interval '1 day'", "INSERT INTO slipstream.change (source) VALUES ('another')", "SELECT "+trimCall+"('1 hour', 1073741824, 1000)")
		}},
		{name: "triggers were off, in one transaction", want: "*", happens: func(t *testing.T, d *database, _ *cache.Position) {
			off, on := d.triggersOf(t, "emp")
			d.exec(t, "BEGIN; "+off+"; "+unheard+"; "+on+"; COMMIT")
		}},
		{name: "triggers were off, in several", want: "*", happens: func(t *testing.T, d *database, _ *cache.Position) {
			off, on := d.triggersOf(t, "emp")
			d.exec(t, off, unheard, on)
		}},
		{name: "triggers were dropped and made again by hand", want: "*", happens: func(t *testing.T, d *database, _ *cache.Position) {
			d.madeAgain(t, "emp", unheard)
		}},
		{name: "a type with USING", want: "*", happens: func(t *testing.T, d *database, _ *cache.Position) {
			d.exec(t, "ALTER TABLE task ALTER COLUMN what TYPE text USING what || '!'")
		}},
		{name: "a column", want: "*", happens: func(t *testing.T, d *database, _ *cache.Position) {
			d.exec(t, "ALTER TABLE emp ADD COLUMN extra int DEFAULT 7")
		}},
		{name: "a table of another resource", happens: func(t *testing.T, d *database, _ *cache.Position) {
			d.exec(t, "CREATE TABLE other (id int)")
		}},
		{name: "a resource that the store has never seen", want: "*", happens: func(_ *testing.T, _ *database, p *cache.Position) {
			p.Digests = nil
		}},
		{name: "a recovery", want: "*", discard: true, happens: func(t *testing.T, d *database, _ *cache.Position) {
			d.exec(t, "DELETE FROM slipstream.incarnation") // as a recovery does
		}},
		{name: "numbers of transactions that are yet to come", want: "*", discard: true, happens: func(_ *testing.T, _ *database, p *cache.Position) {
			p.Seen.XMax += 1_000_000
		}},
		{name: "a copy in its place", want: "*", discard: true, happens: func(t *testing.T, d *database, _ *cache.Position) {
			server.PSQL(t, fmt.Sprintf("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '%s'", d.name))
			server.PSQL(t, fmt.Sprintf("CREATE DATABASE copy TEMPLATE %s", d.name))
			server.PSQL(t, fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", d.name))
			server.PSQL(t, fmt.Sprintf("ALTER DATABASE copy RENAME TO %s", d.name))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := server.database(t, streamedSchema)
			d.apply(t, Config{}, streamedResource())
			first := d.live(t, cache.Position{})
			if got := first.sink.ids(); got != "*" {
				t.Errorf("without a position: events %q, want a flush", got)
			}
			p := first.end()
			if c.happens != nil {
				c.happens(t, d, &p)
			}
			second := d.live(t, p)
			_, discarded := second.storing.vouched(t)
			if got := second.dropped(); got != c.want || discarded != c.discard {
				t.Errorf("dropped %q, the store given up: %v; want %q, %v", got, discarded, c.want, c.discard)
			}
			second.end()
		})
	}
}

// dropped returns the IDs of the events in order, each once; a flush represents all.
func (l *life) dropped() string {
	ids := strings.Fields(l.sink.ids())
	slices.Sort(ids)
	if len(ids) > 0 && ids[0] == "*" {
		return "*"
	}
	return strings.Join(slices.Compact(ids), " ")
}

// A store may be attached while the stream runs, with an older position.
func TestResumeOfAStoreThatComesLater(t *testing.T) {
	testkit.NoLeaks(t)
	d := startServer(t).database(t, streamedSchema)
	d.apply(t, Config{}, streamedResource())
	p := d.live(t, cache.Position{}).end()
	l := d.live(t, cache.Position{})
	d.exec(t, "UPDATE dept SET dname = 'x' WHERE deptno = 3")
	l.advance()
	var missed cache.Tx
	if _, err := fmt.Sscan(d.text(t, "SELECT max(xid::text::bigint) FROM slipstream.change"), &missed); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		change  func(p *cache.Position)
		want    string
		discard bool
	}{
		{"behind", func(*cache.Position) {}, "3", false},
		{"behind by one that was in flight", func(p *cache.Position) {
			p.Seen = cache.Snapshot{XMin: missed, XMax: missed + 1, InProgress: []cache.Tx{missed}}
		}, "3", false},
		{"of other triggers", func(p *cache.Position) { p.Digests = map[string]string{"depts": "others"} }, "*", false},
		{"of another history", func(p *cache.Position) { p.History = "another" }, "3", true}, // the same change twice does no harm
	} {
		l.sink.forget()
		at := p
		c.change(&at)
		l.storing.wait(at)
		told, discarded := l.storing.vouched(t)
		if got := l.dropped(); got != c.want || discarded != c.discard {
			t.Errorf("%s: dropped %q, the store given up: %v; want %q, %v", c.name, got, discarded, c.want, c.discard)
		}
		if told.Seen.XMax <= p.Seen.XMax || told.History != p.History {
			t.Errorf("%s: the position is %+v, it was %+v before", c.name, told, p)
		}
	}
	if got := l.sink.voided(); len(got) > 0 {
		t.Errorf("voided: %q", got)
	}
	l.end()
}

// A survey that fails while going back leaves the stream where it was: without its own position it
// does not adopt the store's.
func TestResumeAfterASurveyThatFailed(t *testing.T) {
	testkit.NoLeaks(t)
	d := startServer(t).database(t, streamedSchema)
	d.apply(t, Config{}, streamedResource())
	p := d.live(t, cache.Position{}).end()
	d.exec(t, "UPDATE dept SET dname = 'x' WHERE deptno = 3")
	// The first survey waits for the lock and gives up.
	locked := d.connect(t, "")
	execOn(t, locked, "BEGIN; LOCK TABLE slipstream.meta")
	released := make(chan struct{})
	// Ends with the stream; the test waits for it.
	go func() {
		defer close(released)
		testkit.Eventually(t, 10*time.Second, func() error {
			if d.text(t, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == "0" {
				return fmt.Errorf("no session waits for the lock")
			}
			return nil
		})
		time.Sleep(800 * time.Millisecond) // lock_timeout is 200 ms
		_ = locked.Close(context.Background())
	}()
	l := d.live(t, p)
	<-released
	_, discarded := l.storing.vouched(t)
	if got := l.dropped(); got != "3" || discarded {
		t.Errorf("dropped %q, the store given up: %v; want 3, false", got, discarded)
	}
	if l.stream.Stats().PollErrors == 0 {
		t.Error("no survey failed: nothing was proved")
	}
	l.end()
}
