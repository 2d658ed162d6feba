package redisload

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Operations of a work.
const (
	OpGet = "get"
	OpSet = "set"
	// OpBatch is an explicit batch of GETs.
	OpBatch = "batch"
	// OpPair is a SET and then a GET of the same key, each as a separate operation.
	OpPair = "pair"
)

// A Work is the job of the callers of a load process, in addition to a [loadproc.Spec].
type Work struct {
	Operation string
	Size      int      // of values
	Cluster   []string // see [Setting]
	// Counted lists the addresses of servers whose statistics are read.
	Counted []string
	// Clients is the number of clients that share the callers. If zero, it is one.
	Clients int
	Plain   bool // see [Setting]
	// Deadline gives every caller a cancelable context with a deadline, created once for all of its
	// requests, so that the cost of waiting with it is measured, not the cost of creating it.
	Deadline bool
	// Design and Rate select a design of the rate-limited experiment; see designs.go. If empty, the
	// load comes from the generator.
	Design  string
	Rate    float64
	Burst   bool // the requests of a series of a design are sent together
	Cached  bool // see [Setting]
	Blocked int  // see [Setting]
	// Proxy is the process of a proxy between client and server whose CPU time is also measured. If
	// zero, there is none.
	Proxy int
}

// ProxyCPU names the counter of a proxy's CPU time in nanoseconds.
const ProxyCPU = "proxy_ns"

// Targets returns all subjects, each of which runs in the load process.
func Targets() loadproc.Targets {
	all := loadproc.Targets{}
	for _, k := range Kinds() {
		all[k.Name] = func(ctx context.Context, s loadproc.Spec) (load.Target, error) { return openTarget(ctx, k.Name, s) }
	}
	return all
}

// A target is a subject under load: its clients and their work.
type target struct {
	// Immutable after openTarget.
	work    Work
	seed    uint64
	clients []Client
	keys    []string
	values  []string // of the keys; nil unless they are stored
	ctx     context.Context
	cancel  context.CancelFunc
	designs *experiment // nil for the generator's own arrivals
}

func openTarget(ctx context.Context, subject string, s loadproc.Spec) (load.Target, error) {
	t := &target{seed: s.Seed, ctx: context.Background()}
	if err := json.Unmarshal(s.Options, &t.work); err != nil {
		return nil, fmt.Errorf("options of target %s: %w", subject, err)
	}
	if t.work.Deadline {
		// Ended by Close, which calls cancel.
		t.ctx, t.cancel = context.WithTimeout(t.ctx, time.Hour)
	}
	n := cmp.Or(t.work.Clients, 1)
	for range n {
		// A series in flight needs as many callers as it has requests.
		callers := s.Callers * max(s.Batch, 1)
		if t.work.Burst {
			callers *= SeriesMax
		}
		callers = (callers + n - 1) / n
		c, err := Open(ctx, subject, Setting{Address: s.Address, Cluster: t.work.Cluster, Callers: callers, Plain: t.work.Plain, Cached: t.work.Cached, Blocked: t.work.Blocked})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open %s: %w", subject, err), t.Close())
		}
		t.clients = append(t.clients, c)
	}
	for i := range redisserver.Keys(t.work.Size) {
		t.keys = append(t.keys, redisserver.Key(i))
	}
	if t.work.Operation == OpSet || t.work.Operation == OpPair {
		for _, key := range t.keys {
			t.values = append(t.values, redisserver.Value(key, t.work.Size))
		}
	}
	if t.work.Design != "" {
		var err error
		if t.designs, err = newExperiment(t.work, n, s.Callers, s.Seed); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	return t, nil
}

// NewCaller implements [load.Target].
func (t *target) NewCaller(_ context.Context, i int) (load.Caller, error) {
	c := &caller{target: t, client: t.clients[i%len(t.clients)], rng: rand.New(rand.NewPCG(t.seed, uint64(i))), dst: t.buffer()}
	if t.work.Deadline {
		// Ended by Close of the caller.
		c.ctx, c.cancel = context.WithTimeout(t.ctx, time.Hour)
	} else {
		c.ctx = t.ctx
	}
	if t.designs == nil {
		return burster{c}, nil
	}
	// Open connections before the window, because there may be no warm-up.
	if err := c.Do(c.ctx); err != nil {
		return nil, err
	}
	return t.designs.caller(i, c), nil
}

// buffer has room for a value and for the line end that some clients read with
// it.
func (t *target) buffer() []byte { return make([]byte, 0, t.work.Size+64) }

// Counters implements [loadproc.Targets].
func (t *target) Counters() []load.Counter {
	var counters []load.Counter
	if t.designs != nil {
		counters = append(counters, load.Counter{Name: "mark", Read: t.designs.mark})
	}
	if t.work.Counted != nil {
		counters = append(counters, redisserver.Counters(t.work.Counted)...)
	}
	if t.work.Proxy != 0 {
		meter := load.NewProcessMeter(t.work.Proxy)
		counters = append(counters, load.Counter{Name: ProxyCPU, Read: func(context.Context) (float64, error) {
			cpu, err := meter.CPU()
			return float64(cpu), err
		}})
	}
	return counters
}

// Amend implements [loadproc.Targets]: the latencies of an experiment do not include the wait for
// the limiter.
func (t *target) Amend(r *load.Result) {
	if t.designs != nil {
		t.designs.amend(r)
	}
}

// verified is the number of keys that are read again after stores.
const verified = 64

// Close ends the clients, after checking what was stored.
func (t *target) Close() error {
	var errs []error
	if t.work.Operation == OpSet && len(t.clients) > 0 && t.values != nil {
		rng := rand.New(rand.NewPCG(t.seed, 0))
		c := &caller{target: t, client: t.clients[0], rng: rng, dst: t.buffer(), ctx: context.Background()}
		for range verified {
			errs = append(errs, c.get(c.ctx, rng.IntN(len(t.keys))))
		}
	}
	if t.cancel != nil {
		t.cancel()
	}
	for _, c := range t.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// A caller is one goroutine with one request in flight.
type caller struct {
	// Immutable after NewCaller.
	*target
	client Client
	ctx    context.Context
	cancel context.CancelFunc // nil without a deadline

	// Owned by the goroutine that calls Do.
	rng   *rand.Rand
	dst   []byte
	slots []slot
	wait  sync.WaitGroup

	batched []string // keys of OpBatch
	stored  bool     // for OpPair, the next operation is the GET
	pair    int      // for OpPair, the index of the key
	digit   byte     // of the key
}

// Do implements [load.Caller]. The generator's context is ignored: the caller's
// own determines what is measured.
func (c *caller) Do(context.Context) error {
	switch c.work.Operation {
	case OpBatch:
		return c.batch()
	case OpPair:
		if c.stored {
			c.stored = false
			return c.get(c.ctx, c.pair)
		}
		c.pair = c.rng.IntN(len(c.keys))
		// In a program, the key has just been created. Here it comes from memory, whose cost a
		// profile would attribute to whichever function reads it first.
		c.digit = c.keys[c.pair][redisserver.KeyDigits-1]
		err := c.client.Set(c.ctx, c.keys[c.pair], c.values[c.pair])
		c.stored = err == nil
		return err
	}
	i := c.rng.IntN(len(c.keys))
	if c.work.Operation == OpSet {
		return c.client.Set(c.ctx, c.keys[i], c.values[i])
	}
	return c.get(c.ctx, i)
}

func (c *caller) get(ctx context.Context, i int) error {
	value, err := c.client.Get(ctx, c.dst[:0], c.keys[i])
	if err != nil {
		return err
	}
	return redisserver.Check(c.keys[i], value, c.work.Size)
}

// Close implements [load.Caller]: clients are closed once, by the target.
func (c *caller) Close() error {
	if c.cancel != nil {
		c.cancel()
	}
	return nil
}

// A slot is one request of a burst.
type slot struct {
	caller *caller
	index  int // of the key
	dst    []byte
	err    error
	done   time.Time
}

func (s *slot) run() {
	value, err := s.caller.client.Get(s.caller.ctx, s.dst[:0], s.caller.keys[s.index])
	if err == nil {
		err = redisserver.Check(s.caller.keys[s.index], value, s.caller.work.Size)
	}
	s.err, s.done = err, time.Now()
	s.caller.wait.Done()
}

// atOnce issues n concurrent requests, each from its own goroutine, in the same way for every
// subject, and stores their outcomes in the first n slots.
func (c *caller) atOnce(n int) {
	for len(c.slots) < n {
		c.slots = append(c.slots, slot{caller: c, dst: c.buffer()})
	}
	c.wait.Add(n)
	for i := range n {
		s := &c.slots[i]
		s.index = c.rng.IntN(len(c.keys))
		// Ends with its request; waited for below.
		go s.run()
	}
	c.wait.Wait()
}

// A burster can issue all requests of a burst together. The generator uses it only
// if the specification has a batch.
type burster struct{ *caller }

// DoBatch implements [load.BatchCaller].
func (b burster) DoBatch(_ context.Context, outcomes []error) {
	b.atOnce(len(outcomes))
	for i := range outcomes {
		outcomes[i] = b.slots[i].err
	}
}
