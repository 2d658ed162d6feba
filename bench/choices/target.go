package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/buf"
	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/internal/pipe"
)

// Which goroutine converts a reply to a value.
const (
	onCaller    = ""          // the caller, after it has waited
	onReader    = "reader"    // a Completer, which then wakes the caller through a channel
	byCompleter = "completer" // the caller, woken by a Completer that does nothing else
)

// A setting is one variant of a decision of the engine.
type setting struct {
	FlushFactor int          `json:"flush_factor,omitempty"` // k; if 0, derived from the round trip
	Sockets     int          `json:"sockets,omitempty"`      // one if 0
	Choices     pipe.Choices `json:"choices,omitzero"`
	// Deadline gives every caller a cancelable context with a deadline, created once for all of its
	// requests.
	Deadline bool   `json:"deadline,omitempty"`
	Decode   string `json:"decode,omitempty"`
}

// A work is the job of the load process of a round, in addition to a
// [loadproc.Spec].
type work struct {
	Setting setting
	Store   bool // SET instead of GET
	Size    int  // of values
	Clients int  // engines that share the callers; one if 0
}

const targetName = "engine"

// targets are the targets that the load process can open.
func targets() loadproc.Targets {
	return loadproc.Targets{targetName: openTarget}
}

// A target is one or more engines with one setting.
type target struct {
	// Immutable after openTarget.
	work    work
	seed    uint64
	engines []*pipe.Engine
	keys    []string
	values  []string // of the keys; nil unless they are stored
	ctx     context.Context
	cancel  context.CancelFunc // nil without a deadline
}

// farAway is a deadline that never comes.
const farAway = time.Hour

func openTarget(ctx context.Context, s loadproc.Spec) (load.Target, error) {
	t := &target{seed: s.Seed, ctx: context.Background()}
	if err := json.Unmarshal(s.Options, &t.work); err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	if t.work.Size < minValue {
		return nil, fmt.Errorf("options: values of %d bytes, want at least %d", t.work.Size, minValue)
	}
	for i := range keysOf(t.work.Size) {
		key := keyName(t.work.Size, i)
		t.keys = append(t.keys, key)
		if t.work.Store {
			t.values = append(t.values, valueOf(key, t.work.Size))
		}
	}
	if t.work.Setting.Deadline {
		// Ended by Close, which calls cancel.
		t.ctx, t.cancel = context.WithTimeout(t.ctx, farAway)
	}
	for range max(t.work.Clients, 1) {
		e, err := t.work.Setting.open(ctx, s.Address)
		if err != nil {
			return nil, errors.Join(err, t.Close())
		}
		t.engines = append(t.engines, e)
	}
	return t, nil
}

// open returns an engine that is connected.
func (s setting) open(ctx context.Context, address string) (*pipe.Engine, error) {
	cfg := pipe.Config{
		Protocol: protocol{}, Addr: address, Sockets: s.Sockets, FlushFactor: s.FlushFactor,
		Dial: func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", address) },
	}
	e := pipe.New(cfg.WithChoices(s.Choices))
	if err := connectAll(ctx, e, max(s.Sockets, 1)); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// connectLimit bounds the opening of all sockets.
const connectLimit = 20 * time.Second

// connectAll waits until n sockets are up.
func connectAll(ctx context.Context, e *pipe.Engine, n int) error {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	if err := e.Connect(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for e.Snapshot().Connected < n {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d sockets are up: %w", e.Snapshot().Connected, n, ctx.Err())
		}
	}
	return nil
}

// NewCaller implements [load.Target].
func (t *target) NewCaller(_ context.Context, i int) (load.Caller, error) {
	c := &caller{
		target: t, engine: t.engines[i%len(t.engines)], rng: rand.New(rand.NewPCG(t.seed, uint64(i))),
		ctx: t.ctx, dst: make([]byte, 0, cmp.Or(t.copied(), 1)), woken: make(chan struct{}, 1),
	}
	if t.work.Setting.Deadline {
		// Ended by Close of the caller.
		c.ctx, c.cancel = context.WithTimeout(t.ctx, farAway)
	}
	return c, nil
}

// copyLimit is the size up to which callers copy values into their own memory. Larger ones are
// checked in place, because the engine's handling of them is what is measured.
const copyLimit = 4 << 10

// copied returns how many bytes of a value a caller copies.
func (t *target) copied() int {
	if t.work.Store || t.work.Size > copyLimit {
		return 0
	}
	return t.work.Size
}

// Names of the engines' counters in the raw results.
const (
	countWrites     = "writes"
	countYields     = "yields"
	countDeliveries = "deliveries"
	countSolo       = "solo_replies"
	countBackstop   = "backstop"
)

// Counters implements [loadproc.Targets].
func (t *target) Counters() []load.Counter {
	counter := func(name string, of func(pipe.Snapshot) uint64) load.Counter {
		return load.Counter{Name: name, Read: func(context.Context) (float64, error) {
			sum := uint64(0)
			for _, e := range t.engines {
				sum += of(e.Snapshot())
			}
			return float64(sum), nil
		}}
	}
	return []load.Counter{
		counter(countWrites, func(s pipe.Snapshot) uint64 { return s.Writes }),
		counter(countYields, func(s pipe.Snapshot) uint64 { return s.Yields }),
		counter(countDeliveries, func(s pipe.Snapshot) uint64 { return s.Deliveries }),
		counter(countSolo, func(s pipe.Snapshot) uint64 { return s.SoloReplies }),
		counter(countBackstop, func(s pipe.Snapshot) uint64 { return s.Backstop }),
	}
}

// verified is the number of keys that are read again after stores.
const verified = 64

// Close ends the engines, after checking what was stored.
func (t *target) Close() error {
	var errs []error
	if t.work.Store && len(t.engines) > 0 {
		rng := rand.New(rand.NewPCG(t.seed, 0))
		ctx, cancel := context.WithTimeout(context.Background(), connectLimit)
		defer cancel()
		for range verified {
			i := rng.IntN(len(t.keys))
			errs = append(errs, readBack(ctx, t.engines[0], t.keys[i], t.work.Size))
		}
	}
	if t.cancel != nil {
		t.cancel()
	}
	for _, e := range t.engines {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}

func readBack(ctx context.Context, e *pipe.Engine, key string, size int) error {
	c := e.Acquire()
	defer c.Release()
	c.Frame = appendGet(c.Frame[:0], key)
	if err := e.Do(ctx, c); err != nil {
		return err
	}
	value, err := bulk(c.Reply())
	if err != nil {
		return err
	}
	return checkValue(key, value, size)
}

// A caller is one goroutine with one request in flight.
type caller struct {
	// Immutable after NewCaller.
	*target
	engine *pipe.Engine
	ctx    context.Context
	cancel context.CancelFunc // nil without a deadline
	woken  chan struct{}      // capacity 1: by Complete

	// Owned by the goroutine that calls Do, and between StartFunc and woken by
	// the Completer.
	rng *rand.Rand
	dst []byte
	key string
	err error
	got *pipe.Call // byCompleter: the call that ended
}

// Do implements [load.Caller]. The generator's context is ignored: the caller's
// own determines what is measured.
func (c *caller) Do(context.Context) error {
	i := c.rng.IntN(len(c.keys))
	c.key = c.keys[i]
	switch {
	case c.work.Store:
		return c.set(c.values[i])
	case c.work.Setting.Decode != onCaller:
		return c.getFunc()
	}
	call := c.engine.Acquire()
	call.Frame = appendGet(call.Frame[:0], c.key)
	err := c.engine.Do(c.ctx, call)
	if err == nil {
		err = c.decode(call.Reply())
	}
	call.Release()
	return err
}

// decode extracts the value of a reply.
func (c *caller) decode(reply []byte) error {
	value, err := bulk(reply)
	if err != nil {
		return err
	}
	if c.copied() > 0 {
		c.dst = append(c.dst[:0], value...)
		value = c.dst
	}
	return checkValue(c.key, value, c.work.Size)
}

// getFunc waits for a Completer instead of for the engine.
func (c *caller) getFunc() error {
	call := c.engine.Acquire()
	call.Frame = appendGet(call.Frame[:0], c.key)
	if err := c.engine.StartFunc(c.ctx, call, c); err != nil {
		call.Release()
		return err
	}
	<-c.woken
	if c.work.Setting.Decode == onReader {
		return c.err
	}
	err := c.got.Err()
	if err == nil {
		err = c.decode(c.got.Reply())
	}
	c.got.Release()
	return err
}

// Complete implements [pipe.Completer].
func (c *caller) Complete(call *pipe.Call) {
	if c.work.Setting.Decode == onReader {
		if c.err = call.Err(); c.err == nil {
			c.err = c.decode(call.Reply())
		}
		call.Release()
	} else {
		c.got = call
	}
	c.woken <- struct{}{}
}

// pooledFrame is the size from which a request is encoded into pooled memory, which is returned to
// the pool, because a call keeps no large frames.
const pooledFrame = 1 << 10

func (c *caller) set(value string) error {
	call := c.engine.Acquire()
	pooled := len(value) >= pooledFrame-100
	if pooled {
		call.Frame = buf.Get(len(value) + 100)
	}
	call.Frame = appendSet(call.Frame[:0], c.key, value)
	err := c.engine.Do(c.ctx, call)
	if err == nil && !bytes.Equal(call.Reply(), okReply) {
		err = fmt.Errorf("SET %s answered by %.60q, want %q", c.key, call.Reply(), okReply)
	}
	if pooled {
		// After an error the engine may still use the frame, so it is left to the garbage
		// collector.
		if err == nil {
			buf.Put(call.Frame)
		}
		call.Frame = nil
	}
	call.Release()
	return err
}

// Close implements [load.Caller]: engines are closed once, by the target.
func (c *caller) Close() error {
	if c.cancel != nil {
		c.cancel()
	}
	return nil
}
