//go:build unix

package freshness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
	"github.com/slipstream-go/slipstream/internal/testkit/freshness"
)

// TestPGFreshness injects one fault after another into one gateway and one server.
func TestPGFreshness(t *testing.T) {
	oneByOne(t, pgFaults)
}

// TestPGFreshnessSchema does the same with faults that change tables and triggers.
func TestPGFreshnessSchema(t *testing.T) {
	oneByOne(t, pgSchemaFaults)
}

func oneByOne(t *testing.T, faults []pgFault) {
	r := newPGRun(t, pgOptions{bound: 300 * time.Millisecond, sensors: 200, perSensor: 250, writers: 6, readers: 6})
	for _, fault := range faults {
		r.run(t, fault.name, fault.do)
	}
	r.finish()
}

// TestPGFreshnessWrites makes every kind of write, without any fault.
func TestPGFreshnessWrites(t *testing.T) {
	r := newPGRun(t, pgOptions{bound: 300 * time.Millisecond, sensors: 10, perSensor: 10, writers: 6, readers: 6})
	time.Sleep(testkit.SoakTime(t, 6*time.Second))
	r.awaitEveryOperation()
	testkit.Eventually(t, time.Minute, func() error {
		if r.model.Report().Outdated == 0 {
			return errors.New("no answer was outdated even for a moment: nothing came from the cache")
		}
		return nil
	})
	r.lull()
	r.regained(30 * time.Second)
	r.finish()
	if r.reads.failed.Load() > 0 {
		t.Errorf("%d requests failed, expected none without a fault", r.reads.failed.Load())
	}
}

// TestPGFreshnessNotify uses triggers that send notifications, and a stream that listens for them.
func TestPGFreshnessNotify(t *testing.T) {
	r := newPGRun(t, pgOptions{bound: time.Second, notify: true, sensors: 10, perSensor: 10, writers: 4, readers: 4})
	r.run(t, "calm", (*pgRun).calm)
	r.run(t, "backend-terminated", (*pgRun).terminateBackends)
	r.run(t, "notify-flood", (*pgRun).floodNotifications)
	r.finish()
}

// floodNotifications sends notifications that the triggers would never send, and far too many of
// them, for seconds.
func (r *pgRun) floodNotifications() {
	ctx, cancel := context.WithTimeout(r.t.Context(), 3*time.Second)
	defer cancel()
	c, err := r.dial(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close(context.Background())
	sent := 0
	for n := 0; ctx.Err() == nil; n++ {
		// Equal payloads of one transaction are sent only once, so each is different.
		_, err := c.Exec(ctx, `SELECT pg_notify('slipstream', repeat($1, $2) || i) FROM generate_series(1, 1000) i`,
			[]string{"", "x", "{", "\\", "customers/1 ", "\x01\u00fc"}[n%6], []int{0, 1, 900}[n%3])
		if err == nil {
			sent += 1000
		} else if ctx.Err() == nil {
			r.t.Error(err)
		}
	}
	r.t.Logf("%d notifications", sent)
}

// TestPGFreshnessFailover promotes a standby that lacks the last commits.
func TestPGFreshnessFailover(t *testing.T) {
	r := newPGRun(t, pgOptions{bound: time.Second, standby: true, sensors: 10, perSensor: 10, writers: 4, readers: 6})
	r.run(t, "promotion-unnoticed", (*pgRun).promoteUnnoticed) // promotes the standby of the first host
	r.newStandby()
	r.run(t, "promotion", (*pgRun).promoteStandby)
	r.run(t, "calm", (*pgRun).calm)
	r.finish()
}

// promoteStandby kills the primary and promotes the standby.
func (r *pgRun) promoteStandby() {
	primary := r.servers[r.primary]
	r.promote(func() { primary.Crash(r.t) }, func() {})
}

// promoteUnnoticed leaves the primary running, but it does not respond to new connections. The
// gateway's existing connections stay open, and would report forever that nothing has changed.
func (r *pgRun) promoteUnnoticed() {
	primary, proxy := r.servers[r.primary], r.proxy()
	// New connections are blocked from the moment when there is a new primary, so that the
	// gateway's last connection to the old one is as recent as possible.
	r.promote(func() {}, func() {
		proxy.SetPlan(faultproxy.Always(faultproxy.Plan{Up: faultproxy.Link{Faults: []faultproxy.Fault{{Do: faultproxy.Blackhole}}}}))
	})
	r.lull()
	r.regained(20 * time.Second) // although one of its two hosts is silent
	primary.Crash(r.t)
	proxy.SetPlan(nil)
	proxy.Cut()
}

// promote cuts the standby off, lets the primary acknowledge more commits, and promotes the
// standby. The gateway's URL contains both hosts, and it has served data that is then lost.
func (r *pgRun) promote(before, after func()) {
	r.t.Helper()
	primary, standby := r.servers[r.primary], r.servers[1-r.primary]
	func() {
		r.world.gate.Lock()
		defer r.world.gate.Unlock()
		standby.CatchUp(r.t, primary)
		standby.CutOff(r.t)
		r.model.Suspect(r.world.version.Load() + 1)
	}()
	time.Sleep(2 * time.Second)
	before()
	r.world.gate.Lock() // no writes until the remaining rows are known
	defer r.world.gate.Unlock()
	standby.Promote(r.t)
	// Not earlier: as long as the old primary accepts new connections, the gateway may trust it.
	// Reading the remaining rows takes a long time on a busy machine.
	after()
	back := freshness.Now()
	r.primary = 1 - r.primary
	r.direct.Store(&standby.URL)
	lost := r.settleAlone(back)
	r.t.Logf("%d acknowledged writes are lost", lost)
	if lost == 0 {
		r.t.Error("no commit was lost: nothing was proved")
	}
}

// newStandby turns the killed server into a standby of the other one.
func (r *pgRun) newStandby() {
	old := r.servers[1-r.primary]
	r.servers[1-r.primary] = r.servers[r.primary].StartStandby(r.whole, old.Port, pgSettings...)
}

// TestPGFreshnessSoak injects random faults for the configured time. Half of the time is spent on a
// single server, half on one with a standby; a long soak takes the same time again for a gateway
// with a disk tier.
func TestPGFreshnessSoak(t *testing.T) {
	length := testkit.SoakTime(t, 8*time.Second) / 2
	t.Run("one-server", func(t *testing.T) {
		o := pgOptions{bound: 300 * time.Millisecond, sensors: 200, perSensor: 250, writers: 6, readers: 8}
		if blackbox.Long() {
			o.sensors, o.perSensor = 2000, 500
		}
		r := newPGRun(t, o)
		r.soak(length, slices.Concat(pgFaults, pgSchemaFaults))
	})
	t.Run("two-servers", func(t *testing.T) {
		r := newPGRun(t, pgOptions{bound: time.Second, standby: true, sensors: 50, perSensor: 50, writers: 6, readers: 8})
		r.soak(length, []pgFault{
			{"promotion", func(r *pgRun) { r.promoteStandby(); r.regained(15 * time.Second); r.newStandby() }},
			{"promotion-unnoticed", func(r *pgRun) { r.promoteUnnoticed(); r.regained(15 * time.Second); r.newStandby() }},
			{"backend-terminated", (*pgRun).terminateBackends},
			{"tcp-stall", (*pgRun).stallConnections},
			{"gateway-stopped", (*pgRun).stopGateway},
			{"crash", (*pgRun).crashServer},
		})
	})
	if blackbox.Long() {
		t.Run("disk", func(t *testing.T) { soakDisk(t, length) })
	}
}

// soakDisk is the part of TestPGFreshnessSoak that has a disk tier. In an ordinary run,
// TestPGFreshnessDisk and TestPGFreshnessDiskSchema inject each of its faults once.
func soakDisk(t *testing.T, length time.Duration) {
	r := newPGRun(t, diskOptions)
	r.soak(length, slices.Concat(pgDiskFaults, pgDiskSchemaFaults))
}

// soak injects faults chosen by the seed, with pauses between them.
func (r *pgRun) soak(length time.Duration, faults []pgFault) {
	random := testkit.Fork(r.seed, 3)
	began := time.Now()
	for n := 1; time.Since(began) < length; n++ {
		fault := faults[random.IntN(len(faults))]
		time.Sleep(between(random, time.Second))
		if !r.run(r.whole, fmt.Sprintf("%03d-%s", n, fault.name), fault.do) {
			break // its effects would be attributed to the next fault
		}
	}
	r.run(r.whole, "end", (*pgRun).calm)
	if r.options.disk {
		r.cameFromDisk()
	}
	testkit.Eventually(r.t, 2*time.Minute, func() error {
		if n := r.reads.hits.Load() + r.reads.others.Load(); n < 1000 {
			return fmt.Errorf("%d answers: too few to prove anything", n)
		}
		return nil
	})
	report := r.finish()
	minutes := time.Since(began).Minutes()
	r.t.Logf("%.1f minutes, %.0f answers a second", minutes, float64(report.Answers)/minutes/60)
}

func between(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}
