//go:build unix

package freshness

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
	"github.com/slipstream-go/slipstream/internal/testkit/freshness"
)

// whileDown injects a fault between two processes of the gateway. The writers pause, because a
// document that changes in the meantime is dropped for that reason and proves nothing about the
// fault.
func whileDown(do func(*pgRun)) func(*pgRun) {
	return func(r *pgRun) {
		before := r.pause.Swap(int64(calmly))
		defer r.pause.Store(before)
		time.Sleep(1500 * time.Millisecond) // until a batch is written and the file holds the current state
		r.gateway.Kill()
		do(r)
		r.startGateway()
	}
}

// endGateway shuts the process down gracefully and starts another one.
func (r *pgRun) endGateway() {
	time.Sleep(1500 * time.Millisecond)
	r.signalGateway(syscall.SIGTERM)
	if code := blackbox.ExitCode(r.whole, r.gateway, 20*time.Second); code != blackbox.ExitOK {
		r.t.Errorf("exit code %d after SIGTERM\n%s", code, r.gateway.Log())
	}
	time.Sleep(r.options.bound)
	r.startGateway()
}

// crashWhileDown makes the server lose commits that the previous gateway process has stored.
func (r *pgRun) crashWhileDown() {
	const attempts = 20 // a busy server may have written all commits when it ends
	lost := 0
	for attempt := 0; lost == 0 && attempt < attempts; attempt++ {
		if attempt > 0 {
			r.startGateway()
			r.regained(15 * time.Second)
		}
		w := r.newWriter(r.t.Context(), 60) // a multiple of three, so its commits are asynchronous
		lost = r.crashDown(w)
		w.close()
		// Transaction numbers are assigned for the second time.
		r.query("DO $$ BEGIN FOR i IN 1..100 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$")
	}
	r.t.Logf("%d acknowledged writes were lost", lost)
	if lost == 0 {
		r.t.Error("no commit was lost: nothing was proved")
	}
	r.startGateway()
}

func (r *pgRun) crashDown(w *pgWriter) (lost int) {
	r.world.gate.Lock()
	defer r.world.gate.Unlock()
	r.suspectFromNow()
	if !w.connected(0) {
		r.t.Error("no connection before the crash")
	} else {
		for range 40 {
			w.updateOne()
		}
		time.Sleep(1500 * time.Millisecond) // until a batch is written and the file holds them
		r.gateway.Kill()
		r.killBackend(int(w.conns[0].PgConn().PID()))
	}
	return r.settleAlone(freshness.Now())
}

// dropWhileDown makes changes that are not recorded, and restores everything before the gateway
// restarts.
func (r *pgRun) dropWhileDown(sql string) {
	if sql == "a trigger" {
		table, trigger, _ := strings.Cut(strings.TrimPrefix(r.triggers("DROP")[0], "ALTER TABLE "), " DROP TRIGGER ")
		sql = "DROP TRIGGER " + trigger + " ON " + table
	}
	r.ddl(sql)
	time.Sleep(3 * r.options.bound)
	r.apply()
}

// diskFaults injects one fault after another into a gateway with a disk tier.
func diskFaults(t *testing.T, faults []pgFault) {
	r := newPGRun(t, diskOptions)
	for _, fault := range faults {
		r.run(t, fault.name, fault.do)
	}
	r.cameFromDisk()
	r.finish()
}

var diskOptions = pgOptions{bound: 300 * time.Millisecond, disk: true, sensors: 100, perSensor: 100, writers: 5, readers: 6}

// cameFromDisk restarts the gateway until 200 answers have come from disk, which happens for a
// moment after each start. During the faults, there are fewer on a slow machine.
func (r *pgRun) cameFromDisk() {
	const least = 200
	n := r.reads.disk.Load()
	for i := 0; i < 20 && n < least; i++ {
		r.t.Logf("%d answers from disk", n)
		r.run(r.whole, fmt.Sprint("more-from-disk-", i), whileDown(func(*pgRun) {}))
		n = r.reads.disk.Load()
	}
	r.t.Logf("%d answers from disk", n)
	if n < least {
		r.t.Errorf("%d answers from disk: nothing was proved", n)
	}
}

// TestPGFreshnessDisk injects faults into a gateway with a disk tier, between its processes and
// while it runs.
func TestPGFreshnessDisk(t *testing.T) {
	diskFaults(t, pgDiskFaults)
}

var pgDiskFaults = []pgFault{
	{"calm", (*pgRun).calm},
	{"killed", whileDown(func(r *pgRun) { time.Sleep(r.options.bound) })},
	{"ended", (*pgRun).endGateway},
	{"backend-terminated", (*pgRun).terminateBackends},
	{"tcp-cut", (*pgRun).cutConnections},
	{"gateway-stopped", (*pgRun).stopGateway},
	{"changes-trimmed-while-down", whileDown((*pgRun).trimWhileDown)},
	{"restart-while-down", whileDown((*pgRun).restartServer)},
	{"crash-while-down", (*pgRun).crashWhileDown},
	{"crash", (*pgRun).crashServer},
	{"killed-again", whileDown(func(r *pgRun) { time.Sleep(r.options.bound) })},
}

// TestPGFreshnessDiskSchema changes tables and triggers between two processes.
func TestPGFreshnessDiskSchema(t *testing.T) {
	diskFaults(t, pgDiskSchemaFaults)
}

var pgDiskSchemaFaults = []pgFault{
	{"triggers-off-while-down", whileDown((*pgRun).disableTriggers)},
	{"trigger-dropped-while-down", whileDown(func(r *pgRun) { r.dropWhileDown("a trigger") })},
	{"objects-dropped-while-down", whileDown(func(r *pgRun) { r.dropWhileDown("DROP SCHEMA slipstream CASCADE") })},
	{"truncate-while-down", whileDown((*pgRun).truncateParents)},
	{"alter-type-while-down", whileDown((*pgRun).alterType)},
	{"column-added-while-down", whileDown((*pgRun).addColumn)},
}

// trimWhileDown deletes rows from the change table before they are read.
func (r *pgRun) trimWhileDown() {
	time.Sleep(r.options.bound)
	r.trim()
}

// TestPGFreshnessDiskPromotion: when a gateway restarts, the server is another one, which never had
// the last commits that the file contains.
func TestPGFreshnessDiskPromotion(t *testing.T) {
	r := newPGRun(t, pgOptions{bound: time.Second, disk: true, standby: true, sensors: 10, perSensor: 10, writers: 4, readers: 6})
	r.run(t, "promotion-while-down", func(r *pgRun) {
		primary := r.servers[r.primary]
		r.promote(func() {
			r.gateway.Kill()
			primary.Crash(r.t)
		}, r.startGateway)
	})
	r.finish()
}

// TestPostgresCopyInItsPlace: a copy of the database replaces it under the same name, while the
// gateway is down and while it runs. The copy lacks the last changes and has the same record of the
// others.
func TestPostgresCopyInItsPlace(t *testing.T) {
	pg := testkit.StartPostgres(t)
	url := strings.Replace(pg.URL, "/postgres?", "/app?", 1)
	in := func(sql string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	pg.PSQL(t, "CREATE DATABASE app")
	in(shop)
	g := shopConfig(t, url)
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	blackbox.Write(t, g.file, string(text)+diskTiers)
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", g.file)
	in("UPDATE dept SET dname = 'before' WHERE deptno = 42")
	end := func() {
		t.Helper()
		if err := g.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := blackbox.ExitCode(t, g.Process, 20*time.Second); code != blackbox.ExitOK {
			t.Errorf("exit code %d\n%s", code, g.Log())
		}
	}
	swap := func() {
		pg.PSQL(t, "DROP DATABASE app WITH (FORCE)")
		pg.PSQL(t, "ALTER DATABASE copy RENAME TO app")
	}
	g.serve() // the first gateway that follows the record gives it a number, which a copy shares
	g.await(g.admin+"/ready", 200, "")
	end()
	for _, down := range []bool{true, false} {
		pg.PSQL(t, "CREATE DATABASE copy TEMPLATE app")
		g.serve()
		g.await(g.admin+"/ready", 200, "")
		in("UPDATE dept SET dname = 'after' WHERE deptno = 42")
		g.await(g.http+"/depts/42", 200, "after")
		time.Sleep(2 * time.Second) // until a batch is written
		if down {
			end()
			swap()
			g.serve()
		} else {
			swap()
		}
		g.await(g.admin+"/ready", 200, "")
		time.Sleep(2 * time.Second) // longer than the promise and the old horizon
		g.await(g.admin+"/ready", 200, "")
		if status, _, body, err := blackbox.Get(t.Context(), g.http+"/depts/42"); err != nil || status != 200 || !strings.Contains(body, "before") {
			t.Errorf("while it was down %v: %d %s, %v; want what the copy has", down, status, body, err)
		}
		if log := g.Log(); !down && !strings.Contains(log, "another database has its name now") {
			t.Errorf("the log does not say what happened:\n%s", log)
		}
		end()
	}
}
