package sentinel

import (
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// mostListened is the maximum number of Sentinels to listen to. Only the leader of a failover
	// announces it immediately; the others learn of it up to 2 s later.
	mostListened = 5
	// Bounds of the pause between subscriptions to one Sentinel.
	firstListenPause = 50 * time.Millisecond
	mostListenPause  = 5 * time.Second
)

// ending reports the end of a subscription.
type ending struct {
	addr   string
	worked bool // the subscription was confirmed
}

// listen listens to Sentinels until the refresher is closed.
func (r *Refresher) listen() {
	active, failures := make(map[string]bool), make(map[string]int)
	ended := make(chan ending)
	for {
		known := r.sentinels()
		for _, addr := range known {
			if len(active) == mostListened {
				break
			}
			if active[addr] {
				continue
			}
			active[addr] = true
			n := failures[addr]
			// Ends with the connection, and with Close, which waits for it.
			r.running.Go(func() {
				select {
				case ended <- r.listenTo(addr, n):
				case <-r.ctx.Done():
				}
			})
		}
		select {
		case e := <-ended:
			delete(active, e.addr)
			failures[e.addr]++
			if e.worked {
				failures[e.addr] = 1
			}
			for addr := range failures {
				if !slices.Contains(known, addr) {
					delete(failures, addr)
				}
			}
		case <-r.others:
		case <-r.ctx.Done():
			return
		}
	}
}

// listenTo listens to a Sentinel until the connection ends. It pauses first if the previous connection
// to the Sentinel failed.
func (r *Refresher) listenTo(addr string, failures int) ending {
	e := ending{addr: addr}
	if failures > 0 {
		d := min(firstListenPause<<min(failures-1, 16), mostListenPause)
		timer := time.NewTimer(d - rand.N(d/4+1))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.ctx.Done():
			return e
		}
	}
	_ = r.config.Asker.Listen(r.ctx, addr, Channels, func() {
		e.worked = true
		r.Request() // messages before that were not received
	}, r.heard)
	if e.worked {
		r.Request()
	}
	return e
}

// heard is called with each message that a Sentinel publishes.
func (r *Refresher) heard(channel, payload string) {
	relevant, switched := Relevant(r.config.Name, channel, payload)
	if !relevant {
		return
	}
	signal(r.pushed)
	if !switched {
		return
	}
	// A refresh that waits for an unresponsive server would be waiting for the old master.
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.interrupt != nil && time.Since(r.interrupted) >= leastInterrupt {
		r.interrupted = time.Now()
		r.interrupt()
	}
}
