package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pgdepts"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Programs read the names of scenarios, which end with the number of callers.
func TestScenarioNames(t *testing.T) {
	h := newHarness(command.Place{}, command.Flags{}, io.Discard)
	seen := map[string]load.Scenario{}
	for _, sc := range h.Scenarios() {
		var callers int
		slash := strings.LastIndexByte(sc.Name, '/')
		if _, err := fmt.Sscanf(sc.Name[slash+1:], "%d", &callers); err != nil || callers < 1 {
			t.Errorf("scenario %q does not end in a number of callers", sc.Name)
		}
		if _, twice := seen[sc.Name]; twice {
			t.Errorf("two scenarios are named %q", sc.Name)
		}
		seen[sc.Name] = sc
	}
	for _, name := range []string{"miss/1024", "bare-miss/1024", "direct/1", "direct/2048", "fresh-idle/4", "fresh-loaded/4",
		"writers-sync-update/1", "writers-async-update/16", "writers-sync-insert/16", "bulk-10000/1"} {
		if _, ok := seen[name]; !ok {
			t.Errorf("no scenario %s", name)
		}
	}
	for name := range freshGoals {
		if _, ok := seen[name]; !ok {
			t.Errorf("a goal for %s, which is not a scenario", name)
		}
	}
	if got := seen["writers-sync-update/16"].Subjects; len(got) != 5 {
		t.Errorf("%d subjects of the writers, want 5", len(got))
	}
}

func TestCheckKey(t *testing.T) {
	for body, key := range map[string]int64{`{"deptno":17,"dname":"x"}`: 17, `{"deptno" : 17, "dname" : "x"}`: 17} {
		if err := checkKey([]byte(body), key); err != nil {
			t.Error(err)
		}
		if checkKey([]byte(body), 1) == nil || checkKey([]byte(body), 171) == nil {
			t.Errorf("%s was accepted for another key", body)
		}
	}
	if checkKey(nil, 1) == nil {
		t.Error("an empty text was accepted as a document")
	}
}

func TestFirstSal(t *testing.T) {
	for body, want := range map[string]int64{`{"emps":[{"sal":1700000000000001,"comm":null},{"sal":3}]}`: 1700000000000001, `{"sal":1000.50}`: 1000} {
		if got, err := firstSal([]byte(body)); err != nil || got != want {
			t.Errorf("%s: %d, %v", body, got, err)
		}
	}
	if _, err := firstSal([]byte(`{"emps":[]}`)); err == nil {
		t.Error("a missing sal is not an error")
	}
}

func TestParsePgbench(t *testing.T) {
	const out = `pgbench (15.8)
scaling factor: 1
number of transactions actually processed: 4836
number of failed transactions: 2 (0.041%)
latency average = 0.207 ms
initial connection time = 1.2 ms
tps = 4830.271 (without initial connection time)
`
	got, err := parsePgbench(out)
	if err != nil || got.transactions != 4836 || got.failed != 2 || got.rate != 4830.271 || got.latency != 207*time.Microsecond {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", strings.Replace(out, "tps", "", 1), strings.Replace(out, "4836", "0", 1)} {
		if _, err := parsePgbench(bad); err == nil {
			t.Errorf("accepted:\n%s", bad)
		}
	}
}

func TestCheck(t *testing.T) {
	value := func(v float64) *float64 { return &v }
	rows := []load.Row{
		{Scenario: "fresh-idle/4", Subject: load.Ours, P99US: value(49_000)},
		{Scenario: "fresh-loaded/4", Subject: load.Ours, P99US: value(251_000)},
		{Scenario: "writers-sync-update/1", Subject: plain, RPS: value(5000)},
		{Scenario: "writers-sync-update/1", Subject: alone, RPS: value(4000)},
	}
	h := newHarness(command.Place{}, command.Flags{}, io.Discard)
	var out bytes.Buffer
	if err := h.Check(&out, rows); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"fresh-idle/4: p99 <= 50ms: met", "fresh-loaded/4: p99 <= 250ms: missed", "triggers: 4000 transactions/s of 5000, +25.0 %"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	rows[0].Errors = 1
	if err := h.Check(io.Discard, rows); err == nil {
		t.Error("a failed request is not an error")
	}
}

// Every subject serves the documents of the database, of the same size as in the article, and
// triggers are installed and removed.
func TestSubjectsServeTheDatabase(t *testing.T) {
	module, err := proc.BenchModule(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(command.Place{Module: module, Scratch: t.TempDir()}, command.Flags{Quick: true}, io.Discard)
	h.depts = 20_000
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := h.database(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{load.Ours, ungathered, article} {
		t.Run(name, func(t *testing.T) {
			program, err := h.program(t.Context(), name, 4)
			if err != nil {
				t.Fatal(err)
			}
			server, err := program.Start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := server.Stop(); err != nil {
					t.Error(err)
				}
			}()
			get := pgdepts.OverHTTP(server.Address)
			if err := pgdepts.Verify(t.Context(), h.cluster.URL(), h.depts, get, 1); err != nil {
				t.Error(err)
			}
			body, err := get(t.Context(), h.depts)
			if err != nil || len(body) < 1600 || len(body) > 2000 {
				t.Errorf("%d bytes, want about 1,800; %v", len(body), err)
			}
		})
	}
	for name := range bareTargets {
		t.Run("bare "+name, func(t *testing.T) {
			err := h.verifyBare(t.Context(), loadproc.Spec{Target: name, Database: h.cluster.URL(), Connections: 4, Keys: h.depts})
			if err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("triggers", func(t *testing.T) {
		for have, want := range map[triggers]bool{table: true, none: false, andNotify: true} {
			if err := h.database(t.Context(), have); err != nil {
				t.Fatal(err)
			}
			var found bool
			err := pgdepts.WithConn(t.Context(), h.cluster.URL(), func(conn *pgx.Conn) error {
				const query = "SELECT exists (SELECT FROM pg_trigger WHERE tgrelid = 'emp'::regclass AND NOT tgisinternal)"
				return conn.QueryRow(t.Context(), query).Scan(&found)
			})
			if err != nil || found != want {
				t.Errorf("%s: triggers %v, %v", have, found, err)
			}
		}
	})
}

func TestRecordedChangesAreChecked(t *testing.T) {
	for _, test := range []struct {
		have     triggers
		rows     int
		recorded int64
		ok       bool
	}{
		{none, 1, 0, true}, {none, 1, 1, false},
		{table, 1, 100, true}, {table, 1, 99, false}, {andNotify, 1, 0, false},
		{table, 10_000, 7, true}, {table, 10_000, 0, false},
	} {
		d := writeDetails{Transactions: 100, Recorded: test.recorded}
		if err := d.check(test.have, writing{rows: test.rows}); (err == nil) != test.ok {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
