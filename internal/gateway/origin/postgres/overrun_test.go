package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// slowSources makes the query for changed sources take a minute: from the first large piece of
// events until the following flush, the stream also asks for thousands of other sources, with
// which the server compares each row.
type slowSources struct {
	*recorder
	stream atomic.Pointer[Stream] // on whose goroutine Apply runs
	names  []string               // the sources of its reader; owned by the stream
}

func (s *slowSources) Apply(events []cache.Event) {
	switch stream := s.stream.Load(); {
	case stream == nil:
	case events[0].All && s.names != nil:
		stream.reader.names, s.names = s.names, nil
	case len(events) >= eventsAtOnce && len(stream.reader.names) < 20_000: // a survey makes a new reader
		s.names = stream.reader.names
		others := make([]string, 0, 20_000+len(s.names))
		for i := range cap(others) - len(s.names) {
			others = append(others, fmt.Sprintf("%*d", len(s.names[0]), i))
		}
		stream.reader.names = append(others, s.names...)
	}
	s.recorder.Apply(events)
}

// If there is no time to find out which sources have changed, all resources are flushed, even
// if the statement that ran out of time was part of a transaction. The poll still counts.
func TestNoTimeToTellWhatHasChanged(t *testing.T) {
	for _, derives := range []bool{false, true} {
		t.Run(fmt.Sprintf("derives %t", derives), func(t *testing.T) {
			s := startStreamed(t)
			// A constant array would be searched by its hashes.
			s.exec("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET plan_cache_mode = force_generic_plan', current_database()); END $$")
			s.exec(calmSchema)
			s.origin.cfg.Freshness = 24 * time.Second // the statement may take an eighth of that
			s.open(streamedResource(), calmResource())
			began := time.Now()
			clock := func() time.Duration { return time.Since(began) }
			s.sink = &recorder{clock: clock, promises: map[cache.ResourceID]string{}}
			sink := &slowSources{recorder: s.sink}
			s.runInto(clock, sink)
			s.advance()
			s.sink.forget()
			sink.stream.Store(s.stream)

			sources := s.origin.schema.Load().resources[0].sources
			recorded := func(derived bool) string {
				return sources[slices.IndexFunc(sources, func(x source) bool { return (x.derive != "") == derived })].recorded
			}
			first := recorded(derives) // the first row decides how the poll reads the others
			failed := func() int64 { return s.stream.Stats().PollErrors }
			before := failed()
			s.exec("INSERT INTO slipstream.change(source, key) SELECT CASE i WHEN 0 THEN $1 ELSE $2 END, (i % 20 + 1)::text FROM generate_series(0, $3::int) i",
				first, recorded(false), maxChanges+1)
			for i := range cache.ResourceID(2) {
				s.flushes(i)
			}
			if n := failed() - before; n > 0 { // on a busy machine, before the one that flushed
				t.Logf("%d polls failed before the flush", n)
			}
			before = failed()
			s.advance()
			s.sink.forget()
			s.exec("UPDATE calm SET v = v + 1 WHERE id = 5")
			s.hears(1, "5")
			if got := s.sink.ids(); strings.Contains(got, "*") {
				t.Errorf("events %q after the flush, want no other flush", got)
			}
			if n := failed() - before; n > 0 {
				t.Errorf("%d polls failed after the flush", n)
			}
		})
	}
}

// Derivations that use up the time of a poll also break, for a moment, the promise of
// resources whose derivations are not reached, but not of resources without derivations.
func TestDerivationsThatAreNotReached(t *testing.T) {
	s := startStreamed(t)
	s.exec(calmSchema)
	s.exec(totalsSchema)
	s.exec(slowSQL)
	// Each may use half of the total time, and does, so the third is not reached.
	const slow = 3
	resources := slices.Repeat([]resource.Resource{eventTotals(slowVia)}, slow)
	for i := range resources {
		resources[i].Name = fmt.Sprint("totals", i)
	}
	s.serve(append(resources, calmResource())...)
	s.exec("BEGIN; INSERT INTO ev VALUES (1, '13'); UPDATE calm SET v = v + 1 WHERE id = 5; COMMIT")
	s.hears(slow, "5")
	reasons := map[string]int{}
	for i := range cache.ResourceID(slow) {
		s.loses(i, 0, "")
		_, lost := s.promiseOf(i)
		for _, why := range []string{"statement timeout", "no time left"} {
			if strings.Contains(lost[0], why) {
				reasons[why]++
			}
		}
	}
	if reasons["no time left"] == 0 || reasons["statement timeout"] == 0 || len(reasons) != 2 || reasons["no time left"]+reasons["statement timeout"] != slow {
		t.Errorf("promises were taken away because of %v, want timeouts and at least one that was not reached", reasons)
	}
	for i := range cache.ResourceID(slow) {
		s.regains(i)
	}
	s.advance()
	s.exec("INSERT INTO ev VALUES (2, '7')")
	for i := range cache.ResourceID(slow) {
		s.hears(i, "7")
	}
	s.keeps(slow)
}

// cutter is a connection that ends when a text is sent.
type cutter struct {
	net.Conn
	text  []byte
	armed *atomic.Bool // while it is, and from then on no connection is made
	cut   *atomic.Bool
}

func (c *cutter) Write(b []byte) (int, error) {
	if c.armed.Load() && bytes.Contains(b, c.text) {
		c.cut.Store(true)
		_ = c.Close()
		return 0, errors.New("the connection was cut")
	}
	return c.Conn.Write(b)
}

// A connection that ends while a failed derivation is rolled back breaks no promise: the
// poll is repeated, and the derivation with it.
func TestRollbackOfADerivationFails(t *testing.T) {
	s := startStreamed(t)
	s.exec(calmSchema)
	s.exec(totalsSchema)
	s.open(eventTotals(plainVia), calmResource())
	var armed, cut atomic.Bool
	config := s.origin.streamTo.pool.ConnConfig
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if armed.Load() && cut.Load() {
			return nil, errors.New("no connection")
		}
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &cutter{Conn: conn, text: []byte("ROLLBACK TO SAVEPOINT"), armed: &armed, cut: &cut}, nil
	}
	s.run()
	s.sink.forget()

	before := s.stream.Stats().PollErrors
	armed.Store(true)
	s.exec("BEGIN; INSERT INTO ev VALUES (1, 'x'), (2, '7'); UPDATE calm SET v = v + 1 WHERE id = 5; COMMIT")
	testkit.Eventually(t, 20*time.Second, func() error {
		if n := s.stream.Stats().PollErrors - before; !cut.Load() || n < 2 {
			return fmt.Errorf("the connection was cut: %t; %d polls failed", cut.Load(), n)
		}
		return nil
	})
	s.keeps(0)
	armed.Store(false)
	s.loses(0, 0, "invalid input syntax for type bigint", tooSlow)
	s.hears(1, "5")
	s.regains(0)
	s.advance()
	s.exec("INSERT INTO ev VALUES (3, '8')")
	s.hears(0, "8")
	s.keeps(1)
}
