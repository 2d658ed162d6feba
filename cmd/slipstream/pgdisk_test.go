//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit/freshness"
)

// whileDown is a fault that happens between two processes of the gateway.
func whileDown(do func(*pgRun)) func(*pgRun) {
	return func(r *pgRun) {
		time.Sleep(1500 * time.Millisecond) // a batch: the file holds what is right now
		r.gateway.Kill()
		do(r)
		r.startGateway()
	}
}

// endGateway ends the process in good order and starts another.
func (r *pgRun) endGateway() {
	time.Sleep(1500 * time.Millisecond)
	r.signalGateway(syscall.SIGTERM)
	if code := exitCode(r.whole, r.gateway, 20*time.Second); code != exitOK {
		r.t.Errorf("exit code %d after SIGTERM\n%s", code, r.gateway.Log())
	}
	time.Sleep(r.options.bound)
	r.startGateway()
}

// crashWhileDown has the server lose what a gateway of before has kept.
func (r *pgRun) crashWhileDown() {
	lost := 0
	for attempt := 0; lost == 0 && attempt < 5; attempt++ {
		if attempt > 0 {
			r.startGateway()
			r.regained(15 * time.Second)
		}
		w := r.newWriter(r.t.Context(), 60) // a multiple of three: asynchronous
		lost = r.crashDown(w)
		w.close()
		// Numbers of transactions are given out for the second time.
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
	r.model.Suspect(r.world.version.Load() + 1)
	if !w.connected(0) {
		r.t.Error("no connection before the crash")
	} else {
		for range 40 {
			w.updateOne()
		}
		time.Sleep(1500 * time.Millisecond) // a batch: the file holds them
		r.gateway.Kill()
		r.servers[r.primary].KillBackend(r.t, int(w.conns[0].PgConn().PID()))
		r.comesBack()
	}
	return r.settleAlone(freshness.Now())
}

// dropWhileDown has changes that nobody records, and everything as it was when the gateway comes
// back.
func (r *pgRun) dropWhileDown(sql string) {
	if sql == "a trigger" {
		table, trigger, _ := strings.Cut(strings.TrimPrefix(r.triggers("DROP")[0], "ALTER TABLE "), " DROP TRIGGER ")
		sql = "DROP TRIGGER " + trigger + " ON " + table
	}
	r.ddl(sql)
	time.Sleep(3 * r.options.bound)
	r.apply()
}

// TestPGFreshnessDisk has a gateway with a disk tier, and faults of all kinds between its
// processes and while it runs.
func TestPGFreshnessDisk(t *testing.T) {
	r := newPGRun(t, pgOptions{bound: 300 * time.Millisecond, disk: true, sensors: 100, perSensor: 100, writers: 5, readers: 6})
	for _, fault := range []pgFault{
		{"calm", (*pgRun).calm},
		{"killed", whileDown(func(r *pgRun) { time.Sleep(r.options.bound) })},
		{"ended", (*pgRun).endGateway},
		{"backend-terminated", (*pgRun).terminateBackends},
		{"tcp-cut", (*pgRun).cutConnections},
		{"gateway-stopped", (*pgRun).stopGateway},
		{"triggers-off-while-down", whileDown((*pgRun).disableTriggers)},
		{"trigger-dropped-while-down", whileDown(func(r *pgRun) { r.dropWhileDown("a trigger") })},
		{"objects-dropped-while-down", whileDown(func(r *pgRun) { r.dropWhileDown("DROP SCHEMA slipstream CASCADE") })},
		{"truncate-while-down", whileDown((*pgRun).truncateParents)},
		{"alter-type-while-down", whileDown((*pgRun).alterType)},
		{"column-added-while-down", whileDown((*pgRun).addColumn)},
		{"changes-trimmed-while-down", whileDown((*pgRun).trimWhileDown)},
		{"restart-while-down", whileDown((*pgRun).restartServer)},
		{"crash-while-down", (*pgRun).crashWhileDown},
		{"crash", (*pgRun).crashServer},
		{"killed-again", whileDown(func(r *pgRun) { time.Sleep(r.options.bound) })},
	} {
		r.run(t, fault.name, fault.do)
	}
	r.finish()
	t.Logf("%d answers from disk", r.reads.disk.Load())
	if n := r.reads.disk.Load(); n < 200 {
		t.Errorf("%d answers from disk: nothing was proved", n)
	}
}

// trimWhileDown empties the change table of rows that nobody has read.
func (r *pgRun) trimWhileDown() {
	time.Sleep(r.options.bound)
	r.aloneQuery(`UPDATE slipstream.change SET at = at - interval '1 day'; SELECT slipstream.trim('1 hour', 1000000)`)
}

// TestPGFreshnessDiskPromotion: the server that a gateway comes back to is another one, which
// never had the last commits that the file knows of.
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
