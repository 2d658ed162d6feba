//go:build unix

package freshness

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
	"github.com/slipstream-go/slipstream/internal/testkit/freshness"
)

// pgFault is a fault of the gateway, the server or the connections between them.
type pgFault struct {
	name string
	do   func(*pgRun)
}

// pgFaults are faults of connections, processes and transactions.
var pgFaults = []pgFault{
	{"calm", (*pgRun).calm},
	{"long-transaction", (*pgRun).longTransaction},
	{"moves", (*pgRun).onlyMoves},
	{"backend-terminated", (*pgRun).terminateBackends},
	{"tcp-stall", (*pgRun).stallConnections},
	{"tcp-cut", (*pgRun).cutConnections},
	{"tcp-delay", (*pgRun).delayConnections},
	{"tcp-slow", (*pgRun).slowConnections},
	{"gateway-stopped", (*pgRun).stopGateway},
	{"gateway-killed", (*pgRun).killGateway},
	{"bulk-update", (*pgRun).bulkUpdate},
	{"out-of-connections", (*pgRun).outOfConnections},
	{"restart", (*pgRun).restartServer},
	{"crash", (*pgRun).crashServer},
}

// calm makes few writes: nearly everything comes from the cache, and a commit is visible
// immediately.
func (r *pgRun) calm() {
	r.pause.Store(int64(calmly))
	defer r.pause.Store(int64(briskly))
	time.Sleep(300 * time.Millisecond) // until the faster writes have ended
	// Usually, ten times as many documents come from the cache as are loaded; while the machine is
	// busy, fewer are read.
	var hits, others int64
	for attempt := 0; attempt == 0 || attempt < 5 && hits < others/2; attempt++ {
		hits, others = r.reads.hits.Load(), r.reads.others.Load()
		ages := r.commitToFresh(40)
		hits, others = r.reads.hits.Load()-hits, r.reads.others.Load()-others
		r.t.Logf("time from commit to fresh answer, %d times: p50 %v, p99 %v, max %v", len(ages), ages[len(ages)/2], ages[len(ages)*99/100], ages[len(ages)-1])
		r.t.Logf("%d answers from the cache, %d loaded", hits, others)
	}
	if hits < others/2 {
		r.t.Errorf("%d answers from the cache and %d loaded while little was written: nothing is cached", hits, others)
	}
}

// longTransaction writes first and commits late, while the snapshots of many polls
// count it as running.
func (r *pgRun) longTransaction() {
	ctx := r.t.Context()
	w := r.newWriter(ctx, 50)
	defer w.close()
	for range blackbox.Rounds(1, 3) {
		w.attempt(func(w *pgWriter) bool { return w.holdOpen(10 * time.Millisecond) }) // opens the connection
		w.attempt(func(w *pgWriter) bool {
			p := w.plan()
			var sql []string
			for range 6 {
				if one := w.update(p, w.anyTable()); one != "" {
					sql = append(sql, one)
				}
			}
			p.begin()
			err := w.exec(0, append([]string{"BEGIN"}, sql...)...)
			if err == nil {
				time.Sleep(3*r.options.bound + 200*time.Millisecond)
				err = w.exec(0, "COMMIT")
			}
			w.idle(0)
			return p.end(err)
		})
	}
}

// onlyMoves only moves rows, and at the same time adds rows below them.
func (r *pgRun) onlyMoves() {
	r.pause.Store(int64(calmly))
	defer r.pause.Store(int64(briskly))
	w := r.newWriter(r.t.Context(), 51)
	defer w.close()
	committed := 0
	for began := time.Now(); time.Since(began) < 2*time.Second || committed < 10 && time.Since(began) < 2*time.Minute; {
		for _, level := range []string{"READ COMMITTED", "REPEATABLE READ"} {
			if w.attempt(func(w *pgWriter) bool { return w.race(level) }) {
				committed++
			}
		}
		w.attempt((*pgWriter).insert)
	}
	r.t.Logf("%d races", committed)
	if committed < 5 {
		r.t.Errorf("only %d races were committed: nothing was proved", committed)
	}
}

func (r *pgRun) terminateBackends() {
	for range blackbox.Rounds(2, 4) {
		r.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'slipstream%' AND pid <> pg_backend_pid()")
		r.lull()
	}
}

func (r *pgRun) proxy() *faultproxy.Proxy { return r.proxies[r.primary] }

func (r *pgRun) stallConnections() {
	for _, length := range []time.Duration{r.options.bound / 2, 2 * r.options.bound, 4 * r.options.bound} {
		r.proxy().Stall()
		time.Sleep(length)
		r.proxy().Resume()
		time.Sleep(r.options.bound / 2)
	}
}

// cutConnections cuts and resets; for a while no connection is accepted, and the gateway misses
// what is written in that time.
func (r *pgRun) cutConnections() {
	for i := range blackbox.Rounds(2, 4) {
		if i%2 == 0 {
			r.proxy().Cut()
		} else {
			r.proxy().Refuse(true)
			r.proxy().Reset()
			time.Sleep(2 * r.options.bound)
			r.proxy().Refuse(false)
		}
		r.lull()
	}
}

// delayConnections gives every connection a different delay: data on one may be much older than
// data on another.
func (r *pgRun) delayConnections() {
	r.proxy().SetPlan(func(_ int, random *rand.Rand) faultproxy.Plan {
		delay := time.Duration(random.Int64N(int64(r.options.bound / 3)))
		return faultproxy.Plan{
			Up:   faultproxy.Link{Delay: delay / 16},
			Down: faultproxy.Link{Delay: delay, Jitter: delay / 2, Chop: 1 + random.IntN(4000)},
		}
	})
	for range blackbox.Rounds(1, 2) {
		r.proxy().Cut()
		time.Sleep(8 * r.options.bound)
	}
	r.proxy().SetPlan(nil)
	r.proxy().Cut()
}

// slowConnections makes answers trickle in: the first rows of a poll arrive long before the last
// ones.
func (r *pgRun) slowConnections() {
	r.proxy().SetPlan(faultproxy.Always(faultproxy.Plan{Down: faultproxy.Link{BytesPerSecond: 40_000, Chop: 500}}))
	r.proxy().Cut()
	for range blackbox.Rounds(2, 3) {
		time.Sleep(3 * r.options.bound)
		r.updateAllReadings()
	}
	time.Sleep(3 * r.options.bound)
	r.proxy().SetPlan(nil)
	r.proxy().Cut()
}

func (r *pgRun) stopGateway() {
	r.signalGateway(syscall.SIGSTOP)
	time.Sleep(3 * time.Second)
	r.signalGateway(syscall.SIGCONT)
}

func (r *pgRun) signalGateway(s os.Signal) {
	if err := r.gateway.Signal(s); err != nil {
		r.t.Error(err)
	}
}

func (r *pgRun) killGateway() {
	r.gateway.Kill()
	time.Sleep(r.options.bound)
	r.startGateway()
}

func (r *pgRun) bulkUpdate() {
	began := time.Now()
	for range 2 {
		r.updateAllReadings()
	}
	r.t.Logf("%d rows twice in %v", len(r.world.readings)*r.world.perSensor, time.Since(began).Round(time.Millisecond))
}

// updateAllReadings writes all children of all sensors in one statement.
func (r *pgRun) updateAllReadings() {
	w := r.newWriter(r.t.Context(), 52)
	defer w.close()
	w.attempt(func(w *pgWriter) bool {
		p, version := w.plan(), w.world.next()
		for i := range w.world.readings {
			p.change(w.world.readings[i], version, w.world.sensors[i])
		}
		p.begin()
		return p.end(w.one(0, int64(len(w.world.readings)*w.world.perSensor), "UPDATE reading SET v = %d", version))
	})
}

// trimChanges empties the change table while the gateway cannot see it. Nothing writes at that
// moment, because rows newer than the oldest running transaction are kept.
func (r *pgRun) trimChanges() {
	r.signalGateway(syscall.SIGSTOP)
	defer r.signalGateway(syscall.SIGCONT)
	time.Sleep(r.options.bound)
	counts := r.trim()
	r.t.Logf("rows trimmed and left: %q", strings.Fields(counts))
	r.pause.Store(int64(calmly))
}

// trim deletes all rows of the change table except those of the newest transaction, as if they were
// a day old, and returns how many it deleted and how many are left.
func (r *pgRun) trim() string {
	function := strings.TrimSpace(r.aloneQuery(`SELECT oid::regproc FROM pg_proc WHERE pronamespace = 'slipstream'::regnamespace AND proname LIKE 'trim@%'`))
	return r.aloneQuery(`UPDATE slipstream.change SET at = at - interval '1 day' WHERE xid < (SELECT max(xid::text::bigint)::text::xid8 FROM slipstream.change);
		SELECT ` + function + `('1 hour', 1000000000000, 1000000); SELECT count(*) FROM slipstream.change`)
}

// outOfConnections uses up all connections of the server, and then terminates those of the gateway.
func (r *pgRun) outOfConnections() {
	var taken []*pgx.Conn
	defer func() {
		for _, c := range taken {
			_ = c.Close(r.t.Context())
		}
	}()
	for range 2 {
		for range 60 {
			c, err := r.dial(r.t.Context())
			if err != nil {
				break
			}
			taken = append(taken, c)
		}
		if _, err := taken[0].Exec(r.t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'slipstream%'"); err != nil {
			r.t.Error(err)
		}
		time.Sleep(r.options.bound)
	}
	r.t.Logf("%d connections were in use", len(taken))
	time.Sleep(2 * r.options.bound)
}

// restartServer shuts the server down gracefully: open transactions fail.
func (r *pgRun) restartServer() {
	server := r.servers[r.primary]
	server.Stop(r.t)
	r.world.gate.Lock() // nothing writes before the remaining rows are known
	defer r.world.gate.Unlock()
	time.Sleep(r.options.bound)
	server.Restart(r.whole)
	if lost := r.settleAlone(freshness.Now()); lost > 0 {
		r.t.Errorf("a server that was shut down gracefully lost %d writes", lost)
	}
}

// crashServer makes the server lose what was acknowledged, seen and cached: commits with
// synchronous_commit off, whose WAL records were not written.
func (r *pgRun) crashServer() {
	lost := r.crash(false)
	// If transaction numbers have been assigned for the second time when a gateway wakes up, it
	// cannot notice from them that commits were lost. Any commit by the server itself writes the
	// WAL up to this point, so several attempts may be necessary to lose some.
	for attempt := 0; attempt == 0 || lost == 0 && attempt < 5; attempt++ {
		lost += r.crash(true)
	}
	// Vacuuming a million rows, as in a soak, writes the WAL continuously.
	if lost == 0 && len(r.world.readings)*r.world.perSensor < 100_000 {
		r.t.Error("no commit was lost: nothing was proved")
	}
}

// crash kills a session's process, optionally while the gateway is stopped.
func (r *pgRun) crash(stopped bool) (lost int) {
	w := r.newWriter(r.t.Context(), 60) // a multiple of three: asynchronous
	defer w.close()
	// Nothing else writes, because any other commit would write the WAL up to this point. Gateways
	// only read.
	lost = r.crashAlone(w, stopped)
	r.t.Logf("%d acknowledged writes were lost", lost)
	if stopped {
		r.query("DO $$ BEGIN FOR i IN 1..100 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$")
		r.signalGateway(syscall.SIGCONT)
	}
	r.lull()
	return lost
}

func (r *pgRun) crashAlone(w *pgWriter, stopped bool) (lost int) {
	r.world.gate.Lock()
	defer r.world.gate.Unlock()
	r.suspectFromNow()
	if !w.connected(0) {
		r.t.Error("no connection before the crash")
	} else {
		for range 40 {
			w.updateOne()
		}
		time.Sleep(r.options.bound) // until the cache holds them
		if stopped {
			r.signalGateway(syscall.SIGSTOP)
		}
		r.killBackend(int(w.conns[0].PgConn().PID()))
	}
	return r.settleAlone(freshness.Now())
}

// suspectFromNow makes everything durable that was acknowledged; later commits may be lost. The
// caller holds the gate, so that nothing is written in the meantime. Without the flush, a crash
// could also lose earlier commits of writers with synchronous_commit off: their WAL pages are not
// necessarily written in order, and PostgreSQL 17 and later keep complete WAL pages in memory until
// the WAL writer wakes up.
func (r *pgRun) suspectFromNow() {
	r.t.Helper()
	r.servers[r.primary].Flush(r.t)
	r.model.Suspect(r.world.version.Load() + 1)
}

// killBackend kills the process of one session. It returns when the server has noticed this, has
// ended all other sessions, and accepts clients again.
func (r *pgRun) killBackend(pid int) {
	r.t.Helper()
	witness, err := r.dial(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	defer witness.Close(context.Background())
	r.servers[r.primary].KillBackend(r.t, pid)
	testkit.Eventually(r.t, time.Minute, func() error {
		if err := witness.Ping(r.t.Context()); err == nil {
			return errors.New("the server has not noticed that one of its processes was killed")
		}
		return nil
	})
	testkit.Eventually(r.t, 2*time.Minute, func() error {
		c, err := r.dial(r.t.Context())
		if err != nil {
			return err
		}
		return c.Close(r.t.Context())
	})
}
