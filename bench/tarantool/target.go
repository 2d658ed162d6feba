package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/tarantoolserver"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Modes of a work.
const (
	modeNaive    = "naive"    // a new request and a general result each time
	modePrepared = "prepared" // requests built in advance, a typed result
	modeTyped    = "typed"    // one request for all keys, a typed result
	modePairs    = "pairs"    // see pairs.go
)

// A work is the job of the callers of a load process, in addition to a [loadproc.Spec].
type work struct {
	Mode    string
	Sockets int  // if 0, one
	Apart   bool // see setting
	// Deadline gives every caller a cancelable context with a deadline, created once for all of its
	// requests, so that the cost of watching it in each request is measured, not the cost of
	// creating it.
	Deadline bool
}

const (
	// replyLimit is how long a rival waits for a reply: longer than the longest queue of pairs
	// takes. Our client has its own detection of silent servers.
	replyLimit = 30 * time.Second
	// prepared is the number of requests that a caller builds in advance in that mode.
	prepared = 1024
)

// targets are all subjects, each of which runs in the load process.
func targets() loadproc.Targets {
	all := loadproc.Targets{}
	for _, k := range withFloor() {
		all[k.name] = func(ctx context.Context, s loadproc.Spec) (load.Target, error) { return openTarget(ctx, k, s) }
	}
	return all
}

// A target is a subject under load.
type target struct {
	// Immutable after openTarget.
	work   work
	seed   uint64
	client client
	ctx    context.Context
	cancel context.CancelFunc
	pairs  *pairs // nil if callers wait for each reply

	// Owned by the goroutine that reads counters.
	marks int
}

func openTarget(ctx context.Context, k kind, s loadproc.Spec) (load.Target, error) {
	t := &target{seed: s.Seed}
	if err := json.Unmarshal(s.Options, &t.work); err != nil {
		return nil, fmt.Errorf("options of target %s: %w", k.name, err)
	}
	switch t.work.Mode {
	case modePairs:
		t.pairs = newPairs(s.WarmUp, s.Duration)
	case modeNaive, modePrepared, modeTyped:
	default:
		return nil, fmt.Errorf("no mode %q", t.work.Mode)
	}
	var err error
	t.client, err = k.open(ctx, setting{Address: s.Address, Sockets: t.work.Sockets, Apart: t.work.Apart, Ahead: t.pairs != nil})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", k.name, err)
	}
	// Ended by Close.
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t, nil
}

// NewCaller implements [load.Target].
func (t *target) NewCaller(_ context.Context, i int) (load.Caller, error) {
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if t.work.Deadline {
		// Ended by Close of the caller.
		ctx, cancel = context.WithTimeout(t.ctx, time.Hour)
	}
	session := t.client.session(ctx, i)
	rng := rand.New(rand.NewPCG(t.seed, uint64(i)))
	if t.pairs != nil {
		return t.pairs.caller(session, rng, cancel), nil
	}
	c := &caller{mode: t.work.Mode, session: session, cancel: cancel, rng: rng}
	if c.mode == modePrepared {
		for range prepared {
			c.keys = append(c.keys, randomKey(rng))
		}
		session.prepare(c.keys)
	}
	return c, nil
}

// randomKey returns a random key of the server.
func randomKey(rng *rand.Rand) uint64 { return 1 + rng.Uint64N(tarantoolserver.Keys) }

// Counters implements [loadproc.Targets]: the generator reads them before and
// after the window.
func (t *target) Counters() []load.Counter {
	return []load.Counter{{Name: "marks", Read: func(context.Context) (float64, error) {
		t.marks++
		if t.pairs != nil {
			t.pairs.mark()
		}
		return float64(t.marks), nil
	}}}
}

// Amend implements [loadproc.Targets].
func (t *target) Amend(r *load.Result) {
	if t.pairs != nil {
		t.pairs.amend(r)
	}
}

// Close ends the client.
func (t *target) Close() error {
	t.cancel()
	return t.client.close()
}

// A caller is one goroutine with one request in flight.
type caller struct {
	// Immutable after NewCaller.
	mode    string
	session session
	keys    []uint64 // of prepared requests
	cancel  context.CancelFunc

	// Owned by the goroutine that calls Do.
	rng *rand.Rand
}

// Do implements [load.Caller]. The generator's context is ignored: the session's
// own determines what is measured.
func (c *caller) Do(context.Context) error {
	switch c.mode {
	case modeNaive:
		return c.session.naive(randomKey(c.rng))
	case modePrepared:
		i := c.rng.IntN(len(c.keys))
		return c.session.prepared(i, c.keys[i])
	}
	return c.session.typed(randomKey(c.rng))
}

// Close implements [load.Caller]: clients are closed once, by the target.
func (c *caller) Close() error {
	c.cancel()
	return nil
}
