package sentinel

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream/redis/internal/cluster"
)

// TestReplicasComeAndGo: the current replicas are those that can be read. While one cannot be read,
// Sentinels are queried more often. If replicas are not to be read, they are not queried.
//
// mutant: sentinel-replicas-of-a-confirmed-master-are-old, sentinel-unwell-replica-waits-for-the-interval
func TestReplicasComeAndGo(t *testing.T) {
	f := newFake()
	f.trio("1", 5)
	f.roles["1"] = "master"
	say := func(replicas map[string]string) {
		f.set(func() {
			for port, s := range f.sentinels {
				s.replicas = replicas
				f.sentinels[port] = s
			}
		})
	}
	has := func(t *testing.T, when, ports string) {
		t.Helper()
		synctest.Wait()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.replicas != ports {
			t.Errorf("%s: the replicas are at the ports %q, want %q", when, f.replicas, ports)
		}
	}
	say(map[string]string{"2": "slave", "3": "no link"})
	inBubble(t, f, Config{Replicas: true}, func(t *testing.T, r *Refresher) {
		if err := r.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		has(t, "at the start", "2")
		say(map[string]string{"2": "slave", "3": "slave"})
		time.Sleep(2 * time.Second)
		has(t, "when both are well", "23")
		before := r.Refreshes()
		time.Sleep(30 * time.Second)
		if n := r.Refreshes(); n != before {
			t.Errorf("%d refreshes while all replicas can be read", n-before)
		}
		say(map[string]string{"2": "slave,s_down", "3": "slave"})
		r.Request()
		time.Sleep(2 * time.Second)
		has(t, "when one is down", "3")
		before = r.Refreshes()
		time.Sleep(time.Hour)
		if n := r.Refreshes() - before; n < 200 || n > 300 {
			t.Errorf("%d refreshes in an hour in which a replica was down", n)
		}
		say(map[string]string{"2": "slave", "3": "slave"})
		time.Sleep(20 * time.Second)
		has(t, "when it is up again", "23")
	})
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		if err := r.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		has(t, "if they are not to be read", "")
	})
}

// TestReplicasOfANewMasterComeLater: when a replica becomes the master, all other servers leave before the old master
// can come back as a replica.
//
// mutant: sentinel-old-master-stays-as-a-replica
func TestReplicasOfANewMasterComeLater(t *testing.T) {
	f := newFake()
	f.trio("1", 5)
	f.roles["1"], f.roles["2"] = "master", "master"
	var alone atomic.Bool // the new master was applied without replicas
	inBubble(t, f, Config{Replicas: true}, func(t *testing.T, r *Refresher) {
		apply := r.config.Apply
		time.Sleep(10 * time.Second)
		synctest.Wait() // no refresh is in progress
		r.config.Apply = func(topology *cluster.Topology) {
			if len(topology.Nodes) == 1 {
				alone.Store(true)
			}
			apply(topology)
		}
		f.trio("2", 6)
		f.set(func() {
			for port, s := range f.sentinels {
				s.replicas = map[string]string{"1": "slave", "3": "slave"}
				f.sentinels[port] = s
			}
		})
		f.publish(f.listened()[0], "+switch-master", "m 10.0.0.1 1 10.0.0.1 2")
		time.Sleep(2 * time.Second)
		f.wants(t, "1", "2")
		f.mu.Lock()
		defer f.mu.Unlock()
		if !alone.Load() || f.replicas != "13" {
			t.Errorf("without replicas first: %t; then replicas at the ports %q, want 13", alone.Load(), f.replicas)
		}
	})
}
