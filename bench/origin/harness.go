package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/pgcluster"
	"github.com/slipstream-go/slipstream/bench/internal/pgdepts"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A harness holds what the scenarios share: the database and the programs. They are created on
// first use. Subjects run one at a time.
type harness struct {
	// Immutable after newHarness.
	place    command.Place
	options  command.Flags
	progress io.Writer
	depts    int64
	warmUp   time.Duration

	// Owned by the goroutine that runs the suite.
	cluster  *pgcluster.Cluster
	version  string // of PostgreSQL
	binary   string // of Slipstream, once it is built
	article  *subject.Rival
	triggers triggers
	best     map[string]choice // connections, by subject
	inserts  int64             // runs of the inserting script so far
	worst    map[string]time.Duration
	warmed   map[string]bool // scripts of writers that have already run
}

// databaseDetails are stored in the raw results of every round.
type databaseDetails struct {
	Departments int64    `json:"departments"`
	Settings    []string `json:"postgres_settings"`
	Version     string   `json:"postgres_version"`
}

func (h *harness) describeDatabase() databaseDetails {
	return databaseDetails{Departments: h.depts, Settings: pgdepts.Settings(h.options.Quick), Version: h.version}
}

// triggers says which of our triggers the database has.
type triggers string

const (
	unknown   triggers = ""
	none      triggers = "none"
	table     triggers = "change table"
	andNotify triggers = "change table and NOTIFY"
)

func newHarness(place command.Place, o command.Flags, progress io.Writer) *harness {
	h := &harness{
		place: place, options: o, progress: progress,
		depts: 1_000_000, warmUp: time.Second,
		best: map[string]choice{}, worst: map[string]time.Duration{}, warmed: map[string]bool{},
	}
	if o.Quick {
		h.depts, h.warmUp = 100_000, 200*time.Millisecond
	}
	return h
}

// Close implements [command.Harness].
func (h *harness) Close() error {
	if h.cluster == nil {
		return nil
	}
	return h.cluster.Close()
}

func (h *harness) printf(format string, args ...any) {
	fmt.Fprintf(h.progress, suiteName+": "+format+"\n", args...)
}

// window returns the measured time of a scenario whose default is normal.
func (h *harness) window(normal time.Duration) time.Duration {
	return h.options.Window(normal, 500*time.Millisecond)
}

// Scenarios implements [command.Harness]. Readers run before the writers, which cause bloat.
func (h *harness) Scenarios() []load.Scenario {
	all := []load.Scenario{h.miss(1024), h.bareMiss(1024)}
	for _, callers := range []int{1, 4, 16, 64, 256, 1024, 2048} {
		all = append(all, h.direct(callers))
	}
	all = append(all, h.freshIdle(), h.freshLoaded())
	for _, kind := range []string{"update", "insert"} {
		for _, commit := range []string{"sync", "async"} {
			for _, writers := range []int{1, 16} {
				all = append(all, h.writers(kind, commit, writers))
			}
		}
	}
	return append(all, h.bulk())
}

// database creates the database and the program if they do not exist yet, and
// installs the required triggers.
func (h *harness) database(ctx context.Context, want triggers) error {
	if h.cluster == nil {
		h.printf("building slipstream")
		h.binary = filepath.Join(h.place.Scratch, "slipstream")
		if err := subject.BuildSlipstream(ctx, filepath.Dir(h.place.Module), h.binary); err != nil {
			return err
		}
		var err error
		if h.cluster, err = pgdepts.New(ctx, h.depts, h.options.Quick, h.printf); err != nil {
			return err
		}
		err = pgdepts.WithConn(ctx, h.cluster.URL(), func(conn *pgx.Conn) error {
			return conn.QueryRow(ctx, "SHOW server_version").Scan(&h.version)
		})
		if err != nil {
			return err
		}
	}
	if h.triggers == want {
		return nil
	}
	verb := []string{"apply"}
	if want == none {
		verb = []string{"drop", "--yes"}
	}
	if want == none && h.triggers == unknown {
		h.triggers = none // a new database has none
		return nil
	}
	h.triggers = unknown
	program := h.gateway(subject.Postgres{Notify: want == andNotify})
	if err := program.DB(ctx, verb[0], verb[1:]...); err != nil {
		return err
	}
	h.triggers = want
	return nil
}

// smallMemory is the minimum budget of the memory tier: it has room for some 500 documents, so that
// keys chosen uniformly from 1,000,000 are almost never in memory.
const smallMemory = "1MiB"

// gateway returns our program over the database.
func (h *harness) gateway(p subject.Postgres) *subject.Slipstream {
	p.URL = h.cluster.URL()
	if p.Memory == "" {
		p.Memory = smallMemory
	}
	return subject.OverPostgres(h.binary, h.place.Scratch, p)
}

// articleProgram returns the article's direct mode over the database.
func (h *harness) articleProgram(ctx context.Context, connections int) (*subject.Rival, error) {
	if h.article == nil {
		var err error
		h.article, err = subject.BuildRival(ctx, h.place.Module, h.place.Scratch, suiteName, "article")
		if err != nil {
			return nil, err
		}
	}
	return h.article.With("-url", h.cluster.URL(), "-connections", fmt.Sprint(connections)), nil
}

// Check implements [command.Harness].
func (h *harness) Check(w io.Writer, rows []load.Row) error {
	var failed uint64
	for _, row := range rows {
		failed += row.Errors
		if row.NsOp != nil && row.ServerUS != nil {
			fmt.Fprintf(w, "%s: %s: CPU per request: PostgreSQL %.1f us, the program in front of it %.1f us\n", row.Scenario, row.Subject, *row.ServerUS, *row.NsOp/1000)
		}
		goal, found := freshGoals[row.Scenario]
		if !found || row.P99US == nil {
			continue
		}
		outcome := load.Missed
		if *row.P99US <= float64(goal.Microseconds()) {
			outcome = load.Met
		}
		fmt.Fprintf(w, "%s: p99 <= %v: %s (%.1f ms; the worst of all rounds %.1f ms)\n", row.Scenario, goal, outcome,
			*row.P99US/1000, float64(h.worst[row.Scenario].Microseconds())/1000)
	}
	writeOverheads(w, rows)
	if failed > 0 {
		return fmt.Errorf("%d requests failed, want none", failed)
	}
	return nil
}
