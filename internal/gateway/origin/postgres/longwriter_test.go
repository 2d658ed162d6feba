package postgres

import (
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// follower is the state of a gateway between two polls.
type follower struct {
	conn    *pgx.Conn
	last    cache.Snapshot
	witness cache.Witness
}

// follows returns a gateway that has read all there is.
func (s *streamed) follows() *follower {
	s.Helper()
	f := &follower{conn: s.dial(s.Context())}
	var newest string
	err := f.conn.QueryRow(s.Context(), newestSQL).Scan(&newest, new(string))
	if err == nil {
		f.witness, err = parseWitness(newest)
	}
	if err != nil {
		s.Fatal(err)
	}
	f.polls(s.T)
	return f
}

// polls makes the gateway poll once and returns how many buffers that touched.
func (f *follower) polls(t *testing.T) (buffers int) {
	t.Helper()
	tx, err := f.conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) // it has read
	var plan, text string
	statement := "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) " + changesStatement(false)
	if err := tx.QueryRow(t.Context(), statement, append(changesArguments(f.last, f.witness), []string{"x"})...).Scan(&plan); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow(t.Context(), "SELECT "+header(true)).Scan(&text); err != nil {
		t.Fatal(err)
	}
	if f.last, _, err = parseHeader(text); err != nil {
		t.Fatal(err)
	}
	buffers, _ = explained(t, plan)
	return buffers
}

// A transaction updates row after row, a million of them under make soak, while ten gateways
// poll. A poll touches at most 1.2 of the buffers that it touches without the transaction, on
// average while it writes and after that, whether or not other transactions end between two
// polls. A million rows make the index of a table that was empty one level higher, whether or
// not their transaction is open: one page more for each of the two descents of a poll.
func TestPollsBesideALongWriterSoak(t *testing.T) {
	t.Run("table with as many rows", func(t *testing.T) {
		pollBesideALongWriter(t, true, func(without float64) float64 { return 1.2 * without })
	})
	t.Run("table without rows", func(t *testing.T) {
		pollBesideALongWriter(t, false, func(without float64) float64 { return without + 2 })
	})
}

func pollBesideALongWriter(t *testing.T, filled bool, bound func(without float64) float64) {
	const gateways = 10
	rounds, updates := 2, 5_000
	if os.Getenv(testkit.SoakEnv) != "" {
		rounds, updates = 20, 1_000_000
	}
	s := startStreamed(t)
	s.apply()
	// A vacuum makes each connection read the catalogs again, which touches some buffers
	// once.
	s.exec("ALTER TABLE slipstream.change SET (autovacuum_enabled = off)")
	s.exec("INSERT INTO dept SELECT i, '' FROM generate_series(1001, 1000 + $1::int) AS i", updates)
	if filled {
		s.exec("INSERT INTO slipstream.change (source, key) SELECT 'x', i::text FROM generate_series(1, $1::int) AS i", updates)
	}
	all := make([]*follower, gateways)
	for i := range all {
		all[i] = s.follows()
		all[i].polls(t) // the catalogs are read once
	}
	// mean returns how many buffers a poll touches on average. before is called before each round.
	mean := func(before func(round int)) float64 {
		t.Helper()
		sum := 0
		for round := range rounds {
			before(round)
			for _, f := range all {
				sum += f.polls(t)
			}
		}
		return float64(sum) / float64(rounds*gateways)
	}
	quiet := func(int) {}
	end := func(int) { s.exec("CREATE TABLE ended (); DROP TABLE ended") } // of no source
	idle, busy := mean(quiet), mean(end)

	writer := s.dial(t.Context())
	execOn(t, writer, "BEGIN")
	// Each chunk of updates is a separate statement, and so is each update in it.
	write := func(chunk, chunks int) {
		t.Helper()
		n := updates / chunks
		execOn(t, writer, fmt.Sprintf("DO $$ BEGIN FOR i IN %d..%d LOOP UPDATE dept SET dname = 'x' WHERE deptno = i; END LOOP; END $$", 1001+chunk*n, 1000+(chunk+1)*n))
	}
	for _, test := range []struct {
		name    string
		without float64
		before  func(round int)
	}{
		{"while it writes", idle, func(round int) { write(round, 2*rounds) }},
		{"while it writes and others end", busy, func(round int) { end(round); write(rounds+round, 2*rounds) }},
		{"after that", idle, quiet},
		{"after that, and others end", busy, end},
	} {
		got := mean(test.before)
		t.Logf("%s: %.1f buffers a poll, %.1f without the transaction, %.2f of it", test.name, got, test.without, got/test.without)
		if most := bound(test.without); got > most {
			t.Errorf("%s: %.1f buffers a poll, want at most %.1f", test.name, got, most)
		}
	}
	if got := textOn(t, writer, "SELECT count(*) FROM slipstream.change WHERE xid = pg_current_xact_id()"); got != fmt.Sprint(updates) {
		t.Fatalf("%s changes are recorded, want %d", got, updates)
	}
	execOn(t, writer, "COMMIT")
	if got := all[0].polls(t); float64(got) < 5*idle {
		t.Errorf("%d buffers after the commit, which the poll reads: %.1f idle", got, idle)
	}
}
