package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pgcluster"
	"github.com/slipstream-go/slipstream/bench/internal/pgdepts"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Subjects of the writers' scenarios. Ours and the control have triggers and a gateway that follows
// them, like those of users.
const (
	plain      = "plain"           // no triggers
	alone      = "triggers"        // triggers, and no gateway
	withNotify = "triggers+notify" // triggers that send NOTIFY, and no gateway
)

// overheadGoal is the maximum increase, caused by the triggers, of the duration of a transaction
// that updates one row.
const overheadGoal = 1.25

// writtenEmps is the number of employees that are updated, the first ones in the table: few enough
// that after some seconds no update is the first one of its page since the last checkpoint, which
// would log the whole page.
const writtenEmps = 100_000

// Scripts of pgbench. For inserts, each client counts its own keys, because a sequence would be
// part of the measurement.
const (
	updateScript = `\set empno random(1, 100000)
UPDATE emp SET sal = sal + 1 WHERE empno = :empno;
`
	insertScript = `\set n :n + 1
\set empno :first + :client_id * 100000000 + :n
\set deptno random(1, 10000)
INSERT INTO emp VALUES (:empno, :deptno, 'Newcomer', 'CLERK', NULL, '2020-02-02', 1000.5, NULL);
`
	bulkScript = `\set first random(1, 90000)
UPDATE emp SET sal = sal + 1 WHERE empno BETWEEN :first AND :first + 9999;
`
	bulkRows = 10_000
)

// writers measures transactions of one row each by pgbench.
func (h *harness) writers(kind, commit string, writers int) load.Scenario {
	w := writing{script: updateScript, writers: writers, async: commit == "async", rows: 1, window: time.Second}
	sc := load.Scenario{Name: fmt.Sprintf("writers-%s-%s/%d", commit, kind, writers), Primary: load.RPS, Rounds: h.options.Fixed(6), Close: h.tidy}
	if kind == "insert" {
		w.script = insertScript
	} else {
		sc.Goals = []load.Goal{{Metric: load.RPS, Rival: plain, Ratio: 1 / overheadGoal}}
	}
	sc.Subjects = h.writing(w, load.Ours, load.Control, plain, alone, withNotify)
	return sc
}

// bulk measures statements of many rows.
func (h *harness) bulk() load.Scenario {
	return load.Scenario{
		Name: fmt.Sprintf("bulk-%d/1", bulkRows), Primary: load.RPS, Rounds: h.options.Fixed(6), Close: h.tidy,
		Subjects: h.writing(writing{script: bulkScript, writers: 1, rows: bulkRows, window: 3 * time.Second}, load.Ours, load.Control, plain, alone),
	}
}

// writing is one run of pgbench.
type writing struct {
	script  string
	writers int
	async   bool // synchronous_commit off
	rows    int  // per transaction
	window  time.Duration
}

func (h *harness) writing(w writing, names ...string) []load.Subject {
	var subjects []load.Subject
	for _, name := range names {
		subjects = append(subjects, load.Subject{
			Name: name, Variant: name == alone || name == withNotify,
			Run: func(ctx context.Context, _ int) (load.Sample, error) { return h.write(ctx, name, w) },
		})
	}
	return subjects
}

// write runs pgbench against a subject's triggers and checks that these recorded
// every transaction.
func (h *harness) write(ctx context.Context, name string, w writing) (sample load.Sample, err error) {
	if err := h.warmWriters(ctx, w); err != nil {
		return sample, err
	}
	want := table
	switch name {
	case plain:
		want = none
	case withNotify:
		want = andNotify
	}
	if err := h.database(ctx, want); err != nil {
		return sample, err
	}
	details := writeDetails{databaseDetails: h.describeDatabase()}
	meters := []cpuMeter{pgcluster.NewMeter(h.cluster.Postmaster())}
	var server *subject.Server
	if name == load.Ours || name == load.Control {
		if server, err = h.gateway(subject.Postgres{}).Start(ctx); err != nil {
			return sample, err
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		meters = append(meters, load.NewProcessMeter(server.PID()))
	}
	before, err := h.recorded(ctx, want)
	if err != nil {
		return sample, err
	}
	result, used, err := h.metered(ctx, w, meters)
	if err != nil {
		return sample, err
	}
	perTransaction := func(d time.Duration) float64 { return float64(d) / float64(result.transactions) }
	sample.Values = map[load.Metric]float64{
		load.RPS:      result.rate,
		load.ClientUS: perTransaction(result.cpu) / 1000,
		load.ServerUS: perTransaction(used[0]) / 1000,
	}
	if server != nil {
		sample.Values[load.NsOp] = perTransaction(used[1])
	}
	sample.Errors = uint64(result.failed)
	now, err := h.recorded(ctx, want)
	if err != nil {
		return sample, err
	}
	details.Transactions, details.AverageLatency = result.transactions, result.latency.Seconds()*1e6
	details.Recorded = now - before
	if err := details.check(want, w); err != nil {
		return sample, fmt.Errorf("%s: %w", name, err)
	}
	if server != nil {
		page, err := loadproc.Scrape(ctx, server.Metrics)
		if err != nil {
			return sample, err
		}
		details.Events, details.Horizon = page["slipstream_origin_events_total"], page["slipstream_horizon_age_seconds"]
		if details.Events == 0 {
			return sample, errors.New("the gateway has seen no change")
		}
	}
	sample.Details = details
	return sample, nil
}

type cpuMeter interface{ CPU() (time.Duration, error) }

// metered runs pgbench and returns the increase of each meter.
func (h *harness) metered(ctx context.Context, w writing, meters []cpuMeter) (benchResult, []time.Duration, error) {
	used := make([]time.Duration, len(meters))
	for i, m := range meters {
		cpu, err := m.CPU()
		if err != nil {
			return benchResult{}, nil, err
		}
		used[i] = -cpu
	}
	run, err := h.pgbench(w, max(1, int(math.Round(h.window(w.window).Seconds()))))
	if err != nil {
		return benchResult{}, nil, err
	}
	result, err := run.wait(ctx)
	if err != nil {
		return result, nil, err
	}
	for i, m := range meters {
		cpu, err := m.CPU()
		if err != nil {
			return result, nil, err
		}
		used[i] += cpu
	}
	return result, used, nil
}

// warmWriters runs a script once without triggers before it is measured, because the first write to
// a page since the last checkpoint logs the whole page, and the first updates of full pages move
// rows.
func (h *harness) warmWriters(ctx context.Context, w writing) error {
	key := fmt.Sprintf("%s %d %v", w.script, w.writers, w.async)
	if h.warmed[key] {
		return nil
	}
	h.warmed[key] = true
	if err := h.database(ctx, none); err != nil {
		return err
	}
	run, err := h.pgbench(w, 2)
	if err != nil {
		return err
	}
	_, err = run.wait(ctx)
	return err
}

// writeDetails are stored in the raw results.
type writeDetails struct {
	databaseDetails
	Transactions   int     `json:"transactions"`
	AverageLatency float64 `json:"average_latency_us"`
	Recorded       int64   `json:"recorded_changes"`
	Events         float64 `json:"gateway_events,omitempty"`
	Horizon        float64 `json:"gateway_horizon_age_s,omitempty"` // just after the window
}

// check compares the recorded changes with what was written: a statement records one for each
// document that it changed.
func (d writeDetails) check(have triggers, w writing) error {
	ok := d.Recorded == 0
	if have != none {
		ok = d.Recorded > 0 && (w.rows > 1 || d.Recorded >= int64(d.Transactions))
	}
	if !ok {
		return fmt.Errorf("%d changes were recorded for %d transactions, triggers: %s", d.Recorded, d.Transactions, have)
	}
	return nil
}

// recorded returns the number of changes in the change table.
func (h *harness) recorded(ctx context.Context, have triggers) (n int64, err error) {
	if have == none {
		return 0, nil
	}
	return n, pgdepts.WithConn(ctx, h.cluster.URL(), func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT count(*) FROM slipstream.change").Scan(&n)
	})
}

// tidy restores the table, except for updates.
func (h *harness) tidy() error {
	ctx := context.Background()
	if h.cluster == nil {
		return nil
	}
	if err := h.database(ctx, none); err != nil {
		return err
	}
	return pgdepts.WithConn(ctx, h.cluster.URL(), func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "DELETE FROM emp WHERE empno > $1", h.depts*pgdepts.EmpsPerDept); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "VACUUM emp")
		return err
	})
}

// A benchRun is a running pgbench.
type benchRun struct {
	cmd    *exec.Cmd
	out    *strings.Builder
	script string
}

// pgbench starts the program with prepared statements.
func (h *harness) pgbench(w writing, seconds int) (*benchRun, error) {
	script := filepath.Join(h.place.Scratch, "pgbench.sql")
	if err := os.WriteFile(script, []byte(w.script), 0o644); err != nil {
		return nil, err
	}
	h.inserts++
	run := &benchRun{out: new(strings.Builder)}
	run.cmd = exec.Command(h.cluster.Program("pgbench"), "-n", "-M", "prepared", "-f", script,
		"-c", strconv.Itoa(w.writers), "-j", strconv.Itoa(min(w.writers, 2)), "-T", strconv.Itoa(seconds),
		"-D", "n=0", "-D", fmt.Sprintf("first=%d", 1_000_000_000+h.inserts*10_000_000_000))
	run.cmd.Env = append(os.Environ(), h.cluster.Environment()...)
	if w.async {
		run.cmd.Env = append(run.cmd.Env, "PGOPTIONS=-c synchronous_commit=off")
	}
	run.cmd.Stdout, run.cmd.Stderr = run.out, run.out
	return run, run.cmd.Start()
}

// wait returns when pgbench has ended, and kills it when ctx ends.
func (r *benchRun) wait(ctx context.Context) (benchResult, error) {
	stop := context.AfterFunc(ctx, func() { _ = r.cmd.Process.Kill() })
	defer stop()
	if err := r.cmd.Wait(); err != nil {
		return benchResult{}, fmt.Errorf("pgbench: %w\n%s", err, r.out)
	}
	result, err := parsePgbench(r.out.String())
	result.cpu = r.cmd.ProcessState.UserTime() + r.cmd.ProcessState.SystemTime()
	return result, err
}

// benchResult is the summary that pgbench prints.
type benchResult struct {
	transactions, failed int
	rate                 float64 // transactions per second, without the time to connect
	latency              time.Duration
	cpu                  time.Duration // of pgbench
}

func parsePgbench(out string) (r benchResult, err error) {
	number := func(prefix string) float64 {
		for line := range strings.Lines(out) {
			rest, ok := strings.CutPrefix(line, prefix)
			if !ok {
				continue
			}
			text, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			text, _, _ = strings.Cut(text, "/") // "123/500" when the number was fixed
			v, numberErr := strconv.ParseFloat(text, 64)
			if numberErr == nil {
				return v
			}
		}
		err = fmt.Errorf("pgbench printed no line that begins with %q:\n%s", prefix, out)
		return 0
	}
	r.transactions = int(number("number of transactions actually processed: "))
	r.failed = int(number("number of failed transactions: "))
	r.rate = number("tps = ")
	r.latency = time.Duration(number("latency average = ") * float64(time.Millisecond))
	if err == nil && r.transactions == 0 {
		err = fmt.Errorf("pgbench made no transaction:\n%s", out)
	}
	return r, err
}

// writeOverheads prints for each subject how much longer a transaction takes than without triggers.
func writeOverheads(w io.Writer, rows []load.Row) {
	without := map[string]float64{}
	for _, row := range rows {
		if row.Subject == plain && row.RPS != nil {
			without[row.Scenario] = *row.RPS
		}
	}
	for _, row := range rows {
		of, ok := without[row.Scenario]
		if !ok || row.Subject == plain || row.RPS == nil || *row.RPS == 0 {
			continue
		}
		fmt.Fprintf(w, "%s: %s: %.0f transactions/s of %.0f, %+.1f %% time a transaction\n", row.Scenario, row.Subject, *row.RPS, of, 100*(of / *row.RPS - 1))
	}
}
