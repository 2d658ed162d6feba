package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/tarantoolserver"
	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/tarantool"
)

// A tarantoolTarget is one client that all callers share.
type tarantoolTarget struct {
	// Immutable after it was opened.
	client *tarantool.Client
	space  *tarantool.Space[tarantoolserver.Tuple]
	start  startGet
	seed   uint64
	call   func(*tarantoolCaller, context.Context) error
}

// startGet is the method StartGet of a space.
type startGet func(context.Context, ...tarantool.Part) tarantool.TupleFuture[tarantoolserver.Tuple]

// startGetOf returns the method of a space. This program is built with older commits, too, in which
// StartGet is called DoGet.
func startGetOf(space any) startGet {
	switch s := space.(type) {
	case interface {
		StartGet(context.Context, ...tarantool.Part) tarantool.TupleFuture[tarantoolserver.Tuple]
	}:
		return s.StartGet
	case interface {
		DoGet(context.Context, ...tarantool.Part) tarantool.TupleFuture[tarantoolserver.Tuple]
	}:
		return s.DoGet
	}
	return nil
}

// openTarantool opens a client with default options, whose callers make the given call.
func openTarantool(call func(*tarantoolCaller, context.Context) error) opener {
	return func(ctx context.Context, s loadproc.Spec) (load.Target, error) {
		c, err := tarantool.Connect(ctx, tarantool.Options{Addr: s.Address})
		if err != nil {
			return nil, err
		}
		space := tarantool.SpaceOf[tarantoolserver.Tuple](c, tarantoolserver.SpaceName)
		return &tarantoolTarget{client: c, space: space, start: startGetOf(space), seed: s.Seed, call: call}, nil
	}
}

// NewCaller implements [load.Target].
func (t *tarantoolTarget) NewCaller(_ context.Context, i int) (load.Caller, error) {
	return &tarantoolCaller{
		tarantoolTarget: t, rng: rand.New(rand.NewPCG(t.seed, uint64(i))),
		key:     make([]tarantool.Part, 1),
		futures: make([]tarantool.TupleFuture[tarantoolserver.Tuple], batchSize), asked: make([]uint64, batchSize),
	}, nil
}

// Close ends the client.
func (t *tarantoolTarget) Close() error { return t.client.Close() }

// A tarantoolCaller is one goroutine with one call, or one batch of calls, in flight.
type tarantoolCaller struct {
	*tarantoolTarget

	// Owned by the goroutine that calls Do.
	rng     *rand.Rand
	tuple   tarantoolserver.Tuple
	key     []tarantool.Part // of the call that is being started
	futures []tarantool.TupleFuture[tarantoolserver.Tuple]
	asked   []uint64 // the keys of the batch
}

// Do implements [load.Caller].
func (c *tarantoolCaller) Do(ctx context.Context) error { return c.call(c, ctx) }

// Close implements [load.Caller]: the client is closed once, by the target.
func (c *tarantoolCaller) Close() error { return nil }

func (c *tarantoolCaller) random() uint64 { return 1 + c.rng.Uint64N(tarantoolserver.Keys) }

func (c *tarantoolCaller) get(ctx context.Context) error {
	key := c.random()
	found, err := c.space.Get(ctx, &c.tuple, tarantool.Int(key))
	return c.check(key, found, err)
}

// batch sends all requests before it reads the first reply.
func (c *tarantoolCaller) batch(ctx context.Context) error {
	for i := range c.futures {
		c.asked[i] = c.random()
		c.key[0] = tarantool.Int(c.asked[i])
		c.futures[i] = c.start(ctx, c.key...)
	}
	var failure error
	for i, f := range c.futures { // all are read, even after an error
		found, err := f.Get(&c.tuple)
		if err := c.check(c.asked[i], found, err); err != nil {
			failure = err
		}
	}
	return failure
}

func (c *tarantoolCaller) check(key uint64, found bool, err error) error {
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("%w: %d", errMissing, key)
	}
	return c.tuple.Check(key)
}
