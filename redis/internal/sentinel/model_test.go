package sentinel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream/redis/internal/cluster"
)

// A world is the actual state of a Sentinel setup, for the model test: three servers and three
// Sentinels, some of which learn late what has happened.
type world struct {
	*fake
	rand   *rand.Rand
	master string
	epoch  int
	behind map[string]time.Time // Sentinels that have not learned of the latest failover, and since when
}

var ports = []string{"1", "2", "3"}

func (w *world) some() string { return ports[w.rand.IntN(len(ports))] }

func (w *world) ms(most int) time.Duration {
	return time.Duration(w.rand.IntN(most)) * time.Millisecond
}

// catchUp lets Sentinels learn of a failover after some time.
func (w *world) catchUp() {
	for port, since := range w.behind {
		if time.Since(since) > 3*time.Second {
			w.adopt(port)
		}
	}
}

// adopt lets a Sentinel learn which server is the master, and notify its listeners.
func (w *world) adopt(port string) {
	delete(w.behind, port)
	w.set(func() {
		s := w.sentinels[port]
		s.master, s.epoch = w.master, w.epoch
		w.sentinels[port] = s
	})
	w.publish(port, "+switch-master", "m 10.0.0.1 8 10.0.0.1 9")
}

// failover makes another server the master. The old one considers itself the master for a while,
// and so do some Sentinels.
func (w *world) failover() {
	old := w.master
	for w.master == old {
		w.master = w.some()
	}
	w.epoch++
	w.set(func() { w.roles[w.master] = "master" })
	leader := w.some()
	w.adopt(leader)
	for _, port := range ports {
		if port != leader && w.behind[port].IsZero() {
			w.behind[port] = time.Now()
		}
		if port != leader && w.rand.IntN(3) > 0 {
			time.Sleep(w.ms(300))
			w.adopt(port)
		}
	}
	if w.rand.IntN(2) == 0 {
		w.set(func() { w.roles[old] = "slave" })
	}
}

// trouble injects a fault.
func (w *world) trouble() {
	port := w.some()
	w.set(func() {
		s := w.sentinels[port]
		switch w.rand.IntN(6) {
		case 0:
			s.err = errRefused
		case 1:
			s.hangs = true
		case 2:
			s.err, s.hangs = nil, false
		case 3:
			if port != w.master {
				w.roles[port] = []string{"hangs", "", "slave", "master"}[w.rand.IntN(4)]
			}
		}
		w.sentinels[port] = s
	})
	if w.rand.IntN(4) == 0 {
		w.publish(port, "", "")
	}
}

// heal brings all views up to date.
func (w *world) heal() {
	for _, port := range ports {
		w.set(func() {
			s := w.sentinels[port]
			s.err, s.hangs = nil, false
			w.sentinels[port] = s
			w.roles[port] = "slave"
			w.roles[w.master] = "master"
		})
		w.adopt(port)
	}
}

// Whatever goes wrong, the client never returns to a lower epoch. Once everything works, it finds
// the master, and does so immediately if it listens to a Sentinel.
func TestModel(t *testing.T) {
	for seed := range 300 {
		synctest.Test(t, func(t *testing.T) {
			w := &world{fake: newFake(), rand: rand.New(rand.NewPCG(uint64(seed), 1)), master: "1", epoch: 1, behind: make(map[string]time.Time)}
			w.trio("1", 1)
			w.roles["1"], w.roles["2"], w.roles["3"] = "master", "slave", "slave"
			var r *Refresher
			var epochs []string
			last := uint64(0)
			r = New(Config{
				Name: "m", Asker: w, Addresses: &cluster.Addresses{Seeds: []string{"10.0.0.2:1", "10.0.0.2:2"}},
				Apply: func(topology *cluster.Topology) {
					v := r.InForce()
					if v.Epoch < last || v.Master != topology.Nodes[0].Addr {
						t.Errorf("seed %d: epoch %d after %d", seed, v.Epoch, last)
					}
					last = v.Epoch
					epochs = append(epochs, fmt.Sprint(v.Epoch, " at ", v.Master))
				},
			})
			r.Start()
			defer r.Close()
			for range 30 {
				time.Sleep(w.ms(2000))
				w.catchUp()
				switch w.rand.IntN(4) {
				case 0:
					w.failover()
				case 1:
					r.Request()
				default:
					w.trouble()
				}
			}
			w.heal()
			time.Sleep(2 * mostListenPause) // it listens to a Sentinel again
			for range 3 {
				w.failover()
				w.heal()
				time.Sleep(leastPushed)
				synctest.Wait()
				if v := r.InForce(); v == nil || v.Master != "10.0.0.1:"+w.master || v.Epoch != uint64(w.epoch) {
					t.Errorf("seed %d: the current view is %+v, want epoch %d at port %s; so far %v", seed, v, w.epoch, w.master, slices.Compact(epochs))
				}
				time.Sleep(2 * leastInterrupt)
			}
			if n := r.Refreshes(); n > 2000 {
				t.Errorf("seed %d: %s refreshes", seed, strconv.FormatUint(n, 10))
			}
		})
	}
}
