package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// Pairs are the asynchronous mode of the article about the connector: one goroutine sends without
// waiting and passes each future through a channel to another, which waits for the result.
const (
	// pairDepth is the capacity of the channel of a pair.
	pairDepth = 1024
	// sampleEvery is the number of requests per latency sample and reading of the
	// clock: one reading per request would cost as much as some clients.
	sampleEvery = 64
)

// pairs holds all pairs of a load process. For the generator, one phase of a pair, warm-up or
// window, is one request; amend replaces it with the real requests.
type pairs struct {
	// Immutable after newPairs.
	warmUp, window time.Duration
	epoch          time.Time

	mu     sync.Mutex
	all    []*pair // guarded by mu
	marked bool    // guarded by mu: set when the warm-up is over
}

func newPairs(warmUp, window time.Duration) *pairs {
	return &pairs{warmUp: warmUp, window: window, epoch: time.Now(), marked: warmUp == 0}
}

// A pair is one sender with its receiver.
type pair struct {
	// Immutable after pairs.caller.
	pairs   *pairs
	session session
	cancel  context.CancelFunc

	// Owned by the sender.
	rng *rand.Rand

	// Owned by the receiver, between phases by mark and amend.
	channel           any // a chan flight[F], for all phases; nil before the first
	latency           load.Histogram
	completed, failed uint64
	first             error // of the phase

	// Set by Do before the sender starts.
	end time.Time // of sending
}

func (p *pairs) caller(s session, rng *rand.Rand, cancel context.CancelFunc) *pair {
	one := &pair{pairs: p, session: s, rng: rng, cancel: cancel}
	p.mu.Lock()
	p.all = append(p.all, one)
	p.mu.Unlock()
	return one
}

// mark is called before and after the window, while no pair runs. The first call
// discards the records of the warm-up.
func (p *pairs) mark() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.marked {
		return
	}
	p.marked = true
	for _, one := range p.all {
		one.latency.Reset()
		one.completed, one.failed = 0, 0
	}
}

// phase returns how long pairs send in the current phase.
func (p *pairs) phase() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.marked {
		return p.window
	}
	return p.warmUp
}

// amend counts requests instead of phases, with the sampled latencies: from before
// a request is sent until its result is received.
func (p *pairs) amend(r *load.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Service, r.Completed, r.Errors = new(load.Histogram), 0, 0
	for _, one := range p.all {
		r.Service.Merge(&one.latency)
		r.Completed += one.completed
		r.Errors += one.failed
	}
}

// Do implements [load.Caller]: it runs a whole phase. It ends after the phase of the generator, so
// that no second Do follows. All results are received before it returns.
func (p *pair) Do(context.Context) error {
	p.end, p.first = time.Now().Add(p.pairs.phase()), nil
	p.session.flow(p)
	return p.first
}

// Close implements [load.Caller]: clients are closed once, by the target.
func (p *pair) Close() error {
	p.cancel()
	return nil
}

// An asynchronous session sends and receives separately: send is called by one goroutine and take,
// in the same order, by another.
type asynchronous[F any] interface {
	send(key uint64) F
	take(f F, key uint64) error
}

// A flight is a request in flight.
type flight[F any] struct {
	future F
	key    uint64        // 0 for the end of the phase
	sent   time.Duration // since the epoch; 0 if its latency is not measured
}

// drive runs one phase of a pair; the calling goroutine is the receiver.
func drive[F any](p *pair, s asynchronous[F]) {
	under, ok := p.channel.(chan flight[F])
	if !ok {
		under = make(chan flight[F], pairDepth)
		p.channel = under
	}
	// Ends at the end of the phase; the loop below waits for its last flight.
	go launch(p, s, under)
	for f := range under {
		if f.key == 0 {
			return
		}
		err := s.take(f.future, f.key)
		if err != nil {
			p.failed++
			if p.first == nil {
				p.first = err
			}
			continue
		}
		p.completed++
		if f.sent != 0 {
			p.latency.Record(time.Since(p.pairs.epoch) - f.sent)
		}
	}
}

// launch is the sender of a phase.
func launch[F any](p *pair, s asynchronous[F], under chan<- flight[F]) {
	for {
		now := time.Now()
		if !now.Before(p.end) {
			under <- flight[F]{}
			return
		}
		sent := now.Sub(p.pairs.epoch)
		for range sampleEvery {
			key := randomKey(p.rng)
			under <- flight[F]{s.send(key), key, sent}
			sent = 0
		}
	}
}
