package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// serve does what open does, and starts the stream.
func (s *streamed) serve(resources ...resource.Resource) {
	s.Helper()
	s.open(resources...)
	s.run()
	s.advance()
	s.sink.forget()
}

// open opens other resources in place of that of startStreamed, and installs their triggers.
func (s *streamed) open(resources ...resource.Resource) {
	s.Helper()
	o, err := Open(s.Context(), s.origin.cfg, resources)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = o.Close() })
	s.origin = o
	s.apply()
}

// promiseOf returns why the promise of a resource does not hold, and the reasons for all of its
// losses.
func (s *streamed) promiseOf(i cache.ResourceID) (why string, lost []string) {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	return s.sink.promises[i], slices.Clone(s.sink.lost[i])
}

// tooSlow is why a promise is lost on a machine that is too busy to find the documents in time.
const tooSlow = "statement timeout"

// loses waits until the resource has lost its promise once more than before, for one of the given
// reasons.
func (s *streamed) loses(i cache.ResourceID, before int, because ...string) {
	s.Helper()
	testkit.Eventually(s.T, 20*time.Second, func() error {
		_, lost := s.promiseOf(i)
		if len(lost) <= before || !slices.ContainsFunc(because, func(one string) bool { return strings.Contains(lost[before], one) }) {
			return fmt.Errorf("the promise of resource %d was taken away because of %q, expected one of %q as number %d", i, lost, because, before+1)
		}
		return nil
	})
}

// begin runs a script on a new connection and returns a channel with its result. It ends with the
// test at the latest.
func (s *streamed) begin(script string) (ended <-chan error) {
	s.Helper()
	conn, result, over := s.dial(s.Context()), make(chan error, 1), make(chan struct{})
	go func() { // ends with the script or the context of the test
		defer close(over)
		result <- tryOn(s.T, conn, script)
	}()
	s.Cleanup(func() { <-over }) // before the connection is closed
	return result
}

func (s *streamed) regains(i cache.ResourceID) {
	s.Helper()
	testkit.Eventually(s.T, time.Minute, func() error {
		if why, _ := s.promiseOf(i); why != "" {
			return fmt.Errorf("the promise of resource %d does not hold: %s", i, why)
		}
		return nil
	})
}

// hears waits for the event of a document.
func (s *streamed) hears(i cache.ResourceID, id string) {
	s.Helper()
	s.awaitEvent(cache.Event{Key: cache.Key{Resource: i, ID: id}})
}

// flushes waits for the event of all documents.
func (s *streamed) flushes(i cache.ResourceID) {
	s.Helper()
	s.awaitEvent(cache.Event{Key: cache.Key{Resource: i}, All: true})
}

func (s *streamed) awaitEvent(want cache.Event) {
	s.Helper()
	testkit.Eventually(s.T, 20*time.Second, func() error {
		s.sink.mu.Lock()
		defer s.sink.mu.Unlock()
		if !slices.ContainsFunc(s.sink.events, func(e cache.Event) bool { return e.Key == want.Key && e.All == want.All }) {
			return fmt.Errorf("no event of %q of resource %d, of all documents: %t", want.Key.ID, want.Key.Resource, want.All)
		}
		return nil
	})
}

// keeps fails if the resource has ever lost its promise.
func (s *streamed) keeps(i cache.ResourceID) {
	s.Helper()
	if _, lost := s.promiseOf(i); len(lost) > 0 {
		s.Errorf("the promise of resource %d was taken away because of %q", i, lost)
	}
}

func calmResource() resource.Resource {
	return resource.Resource{Name: "calm", Key: []string{"id"}, Freshness: time.Second, Root: resource.Node{Table: "calm"}}
}

const calmSchema = "CREATE TABLE calm (id int PRIMARY KEY, v int); INSERT INTO calm SELECT i, 0 FROM generate_series(1, 20) AS i"

// An ALTER TABLE that waits for a long SELECT blocks all later readers of the table.
// That affects only the resources whose changes lead through the table.
func TestLockedTableCostsItsResourceOnly(t *testing.T) {
	s := startStreamed(t)
	s.exec(calmSchema)
	s.serve(streamedResource(), calmResource())

	commit := s.locker("SELECT count(*) FROM emp")
	migrated := s.begin("ALTER TABLE emp ADD COLUMN extra int") // ends when the reader does
	testkit.Eventually(t, 20*time.Second, func() error {
		if s.one("SELECT count(*)::text FROM pg_locks WHERE NOT granted AND relation = 'emp'::regclass") == "0" {
			return fmt.Errorf("no ALTER TABLE waits")
		}
		return nil
	})
	s.exec("UPDATE task SET what = 'x' WHERE taskno = 200")
	s.loses(0, 0, "lock timeout", tooSlow)
	s.keepsCalm(1, 2, 3)
	commit()
	if err := <-migrated; err != nil {
		t.Fatal(err)
	}
	s.regains(0)
	s.advance()
	s.exec("UPDATE task SET what = 'y' WHERE taskno = 200")
	s.hears(0, "20")
}

// eventTotals is a resource by a statement whose via is given.
func eventTotals(via string) resource.Resource {
	return resource.Resource{Name: "totals", Key: []string{"id"}, Freshness: time.Second, Query: &resource.Query{
		SQL: "SELECT d.id, json_build_object('n', count(e.id)) FROM doc AS d LEFT JOIN ev AS e ON e.doc = d.id::text WHERE d.id = ANY($1) GROUP BY d.id",
		Key: []resource.QueryKey{{Name: "id", Type: "bigint"}},
		Depends: []resource.Depend{
			{Table: "doc", Columns: []string{"id"}},
			{Table: "ev", Columns: []string{"doc"}, Via: via},
		}}}
}

// startTotals serves totals, resource 0, by that via after setup, and calm, resource 1.
func startTotals(t *testing.T, via string, setup ...string) *streamed {
	t.Helper()
	s := startStreamed(t)
	s.origin.cfg.Freshness = 4 * time.Second // an eighth of a second is short for a slow machine
	for _, sql := range append([]string{calmSchema, totalsSchema}, setup...) {
		s.exec(sql)
	}
	s.serve(eventTotals(via), calmResource())
	return s
}

// keepsCalm changes documents of calm, resource 1, whose changes are observed and whose promise
// holds.
func (s *streamed) keepsCalm(ids ...int) {
	s.Helper()
	for _, id := range ids {
		s.exec("UPDATE calm SET v = v + 1 WHERE id = $1", id)
		s.advance()
		s.hears(1, fmt.Sprint(id))
	}
	s.keeps(1)
}

// locker executes sql in a transaction of another connection, and returns a function that commits
// it.
func (s *streamed) locker(sql string) (commit func()) {
	s.Helper()
	conn := s.dial(s.Context())
	must := func(sql string) {
		s.Helper()
		if err := tryOn(s.T, conn, sql); err != nil {
			s.Fatal(err)
		}
	}
	must("BEGIN; " + sql)
	return func() {
		s.Helper()
		must("COMMIT")
	}
}

const (
	plainVia = "SELECT v.v::bigint FROM unnest($1) AS v(v)"
	slowVia  = "SELECT slow(v.v) FROM unnest($1) AS v(v)"
	// slowSQL creates the function that slowVia calls.
	slowSQL = `CREATE FUNCTION slow(text) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS 'BEGIN IF $1 = ''13'' THEN PERFORM pg_sleep(1.5); END IF; RETURN $1::bigint; END'`
)

const totalsSchema = "CREATE TABLE doc (id bigint PRIMARY KEY); INSERT INTO doc SELECT generate_series(1, 20); CREATE TABLE ev (id int PRIMARY KEY, doc text)"

// A via that fails for one row breaks the promise of its own resource, but not for as
// long as the row exists.
func TestViaThatFailsCostsItsResourceOnly(t *testing.T) {
	s := startTotals(t, plainVia)
	s.exec("INSERT INTO ev VALUES (1, '7')")
	s.hears(0, "7")
	s.exec("INSERT INTO ev VALUES (2, 'x')")
	s.loses(0, 0, "invalid input syntax for type bigint", tooSlow)
	s.keepsCalm(5)
	s.regains(0)
	s.exec("INSERT INTO ev VALUES (3, '8')")
	s.hears(0, "8")
	// Repeated failures lead to longer pauses.
	id := 3
	testkit.Eventually(t, 20*time.Second, func() error {
		id++
		s.exec("INSERT INTO ev VALUES ($1, 'y')", id)
		_, lost := s.promiseOf(0)
		if !strings.HasSuffix(lost[len(lost)-1], "retried after 1s") {
			return fmt.Errorf("the promise was taken away because of %q", lost)
		}
		return nil
	})
	s.keeps(1)
	if _, lost := s.promiseOf(0); s.stream.Stats().DerivationsFailed < int64(len(lost)) {
		t.Errorf("%d derivations failed, want %d at least", s.stream.Stats().DerivationsFailed, len(lost))
	}
}

// A via that takes longer than its share of the promise is cut off.
func TestSlowViaCostsItsResourceOnly(t *testing.T) {
	s := startTotals(t, slowVia, slowSQL)
	s.exec("INSERT INTO ev VALUES (1, '7')")
	s.hears(0, "7")
	s.exec("INSERT INTO ev VALUES (2, '13')")
	s.loses(0, 0, tooSlow)
	s.keepsCalm(5)
	s.regains(0)
}

// halted waits for the event of a change of the last of n resources. If the machine halted for so long that no
// resource was reached, it returns true. That has happened halts times before. The last resource loses its promise for no other reason.
func (s *streamed) halted(n cache.ResourceID, halts int) (halted bool) {
	s.Helper()
	testkit.Eventually(s.T, 20*time.Second, func() error {
		if _, lost := s.promiseOf(n - 1); len(lost) > halts {
			for i := range n {
				if _, lost := s.promiseOf(i); len(lost) == 0 || !strings.Contains(lost[len(lost)-1], "no time left") {
					s.Fatalf("the last resource has lost its promise, while resource %d was reached: %q", i, lost)
				}
			}
			halted = true
			return nil
		}
		s.sink.mu.Lock()
		defer s.sink.mu.Unlock()
		if !slices.ContainsFunc(s.sink.events, func(e cache.Event) bool { return e.Key == cache.Key{Resource: n - 1, ID: "1"} && !e.All }) {
			return errors.New("no event of the last resource")
		}
		return nil
	})
	return halted
}

// Of fifty resources 49 are locked. The last one, which is not, is reached in time.
func TestManyLockedTablesCostNoOtherResource(t *testing.T) {
	const n = 50
	s := startStreamed(t)
	s.origin.cfg.Freshness = 10 * time.Second // slow machines need more than an eighth of a second for this
	var resources []resource.Resource
	var locks, updates []string
	for i := range n {
		s.exec(fmt.Sprintf(`CREATE TABLE a%[1]d (id int PRIMARY KEY); CREATE TABLE b%[1]d (id int PRIMARY KEY, a int); CREATE INDEX ON b%[1]d (a);
			CREATE TABLE c%[1]d (id int PRIMARY KEY, b int, v int); CREATE INDEX ON c%[1]d (b); INSERT INTO a%[1]d VALUES (1); INSERT INTO b%[1]d VALUES (2, 1); INSERT INTO c%[1]d VALUES (3, 2, 0)`, i))
		node := func(table, column, parent string, children ...resource.Child) resource.Child {
			return resource.Child{Name: table, Node: resource.Node{Table: fmt.Sprint(table, i), On: []resource.Join{{Column: column, Parent: parent}}, Children: children}}
		}
		resources = append(resources, resource.Resource{Name: fmt.Sprint("r", i), Key: []string{"id"}, Freshness: time.Second,
			Root: resource.Node{Table: fmt.Sprint("a", i), Children: []resource.Child{node("b", "a", "id", node("c", "b", "id"))}}})
		updates = append(updates, fmt.Sprintf("UPDATE c%d SET v = v + 1", i))
		if i < n-1 {
			locks = append(locks, fmt.Sprintf("b%d", i))
		}
	}
	s.serve(resources...)
	commit := s.locker("LOCK TABLE " + strings.Join(locks, ", "))
	for round, halts := 0, 0; round < 3; {
		s.exec(strings.Join(updates, "; "))
		if s.halted(n, halts) {
			if halts++; halts > 20 {
				t.Fatal("the machine is too slow")
			}
			s.regains(n - 1)
			s.sink.forget()
			continue
		}
		s.advance()
		s.sink.forget()
		for i := range cache.ResourceID(n - 1) {
			if _, lost := s.promiseOf(i); len(lost) == 0 {
				t.Errorf("the promise of resource %d holds, whose changes lead through a locked table", i)
			}
		}
		round++
	}
	commit()
	for i := range cache.ResourceID(n) {
		s.regains(i)
	}
}

// A statement whose tables are locked cannot be parsed. When the catalogs have to be read,
// that breaks only the promise of its resource.
func TestLockedTableDoesNotStopTheSurvey(t *testing.T) {
	s := startTotals(t, plainVia)
	commit := s.locker("LOCK TABLE doc")
	s.exec("ALTER TABLE ev ADD COLUMN extra int")
	s.loses(0, 0, "is locked", tooSlow)
	s.keepsCalm(1, 2, 3)
	commit()
	s.regains(0)
	s.exec("INSERT INTO ev VALUES (1, '7')")
	s.hears(0, "7")
}

// In a database whose encoding is SQL_ASCII a key may have bytes that cannot be sent to
// a client. Which document is meant is unknown, so those of its resource are dropped.
func TestUnreadableKeyFlushesItsResourceOnly(t *testing.T) {
	server := startShared(t)
	s := startStreamed(t)
	server.PSQL(t, "CREATE DATABASE bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'")
	t.Cleanup(func() { server.PSQL(outliving{t}, "DROP DATABASE bytes WITH (FORCE)") })
	s.origin.cfg.URL = strings.Replace(server.URL, "/postgres?", "/bytes?", 1)
	s.url = s.origin.cfg.URL
	s.db = s.dial(t.Context())
	s.exec(calmSchema)
	s.exec("CREATE TABLE named (name text PRIMARY KEY, v int)")
	s.serve(resource.Resource{Name: "named", Key: []string{"name"}, Freshness: time.Second, Root: resource.Node{Table: "named"}}, calmResource())
	s.exec(`BEGIN; INSERT INTO named VALUES ('plain', 1), (convert_from('\xff41', 'SQL_ASCII'), 1); UPDATE calm SET v = v + 1 WHERE id = 5; COMMIT`)
	s.hears(1, "5")
	s.hears(0, "plain")
	s.flushes(0)
	s.advance()
	s.sink.forget()
	s.exec("UPDATE named SET v = 2 WHERE name = 'plain'")
	s.hears(0, "plain")
	s.advance()
	s.keeps(0)
	s.keeps(1)
}

// pollBuffers returns how many buffers the changes statement touches.
func (s *streamed) pollBuffers(last cache.Snapshot, witness cache.Witness) (blocks int) {
	s.Helper()
	var text string
	arguments := append(changesArguments(last, witness), []string{"x"})
	if err := s.db.QueryRow(s.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+changesStatement(false), arguments...).Scan(&text); err != nil {
		s.Fatal(err)
	}
	blocks, _ = explained(s.T, text)
	return blocks
}

// A transaction that changes row after row for hours writes millions of rows that no other
// session can see yet. A poll visits none of them, whether the transaction began before the
// last poll or after it, and whether or not others have ended since.
func TestPollsDoNotVisitRowsOfOpenTransactions(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.exec("INSERT INTO slipstream.change (source, key) SELECT 'x', i::text FROM generate_series(1, 100000) AS i")
	read := func() (last cache.Snapshot, witness cache.Witness) {
		var text, newest string
		if err := s.db.QueryRow(t.Context(), "SELECT "+header(true)).Scan(&text); err != nil {
			t.Fatal(err)
		}
		last, _, err := parseHeader(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.db.QueryRow(t.Context(), newestSQL).Scan(&newest, new(string)); err != nil {
			t.Fatal(err)
		}
		if witness, err = parseWitness(newest); err != nil {
			t.Fatal(err)
		}
		return last, witness
	}
	end := func() { // another transaction
		t.Helper()
		s.exec("CREATE TABLE ended (); DROP TABLE ended")
	}
	before, witness := read()
	s.pollBuffers(before, witness) // the catalogs are read once
	idle := s.pollBuffers(before, witness)
	end()
	busy := s.pollBuffers(before, witness) // others end transactions that concern no source
	before, _ = read()
	commit := s.locker("INSERT INTO slipstream.change (source, key) SELECT 'x', i::text FROM generate_series(1, 100000) AS i")
	check := func(what string, last cache.Snapshot, without int) {
		t.Helper()
		if got := s.pollBuffers(last, witness); float64(got) > 1.2*float64(without) {
			t.Errorf("%s: %d buffers, want at most 1.2 of the %d without the transaction", what, got, without)
		} else {
			t.Logf("%s: %d buffers, %d without the transaction", what, got, without)
		}
	}
	check("began after the last poll", before, idle)
	since, _ := read()
	check("is the newest transaction", since, idle)
	end()
	// Once, the range of numbers has two parts.
	check("another one has ended since", since, 2*busy)
	since, _ = read()
	check("was in progress in the last poll", since, idle)
	end()
	check("was in progress, and another one has ended", since, busy)
	commit()
	if got := s.pollBuffers(since, witness); got < 10*idle {
		t.Errorf("%d buffers after the commit, which the poll reads: %d idle", got, idle)
	}
}
