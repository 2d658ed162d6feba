package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pages"
	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/redis"
)

// targetName names our client in a [loadproc.Spec].
const targetName = "pages"

func targets() loadproc.Targets {
	return loadproc.Targets{targetName: func(ctx context.Context, s loadproc.Spec) (load.Target, error) {
		return openTarget(ctx, s.Address, s.Seed)
	}}
}

// A target is one client that all callers share.
type target struct {
	// Immutable after openTarget.
	client *redis.Client
	seed   uint64
	keys   []string
	values [][]byte
}

func openTarget(ctx context.Context, address string, seed uint64) (*target, error) {
	c, err := redis.Connect(ctx, redis.Options{Addr: address})
	if err != nil {
		return nil, err
	}
	t := &target{client: c, seed: seed}
	for n := range pages.Count {
		t.keys, t.values = append(t.keys, pages.Key(n)), append(t.values, pages.Document(n))
	}
	return t, nil
}

// NewCaller implements [load.Target].
func (t *target) NewCaller(_ context.Context, i int) (load.Caller, error) {
	return &caller{target: t, rng: rand.New(rand.NewPCG(t.seed, uint64(i))), buffer: make([]byte, 0, 4096)}, nil
}

// Close ends the client.
func (t *target) Close() error { return t.client.Close() }

// A caller asks for random documents.
type caller struct {
	target *target

	// Owned by the goroutine that calls Do.
	rng    *rand.Rand
	buffer []byte
}

// Do implements [load.Caller].
func (c *caller) Do(ctx context.Context) error { return c.get(ctx, c.rng.IntN(len(c.target.keys))) }

// get asks for one document and compares it.
func (c *caller) get(ctx context.Context, n int) error {
	value, found, err := c.target.client.GetAppend(ctx, c.buffer[:0], c.target.keys[n])
	if err != nil {
		return err
	}
	if !found || !bytes.Equal(value, c.target.values[n]) {
		return fmt.Errorf("%s is %.60q (found: %v), want %.60q", c.target.keys[n], value, found, c.target.values[n])
	}
	return nil
}

// Close implements [load.Caller]: the client is closed once, by the target.
func (c *caller) Close() error { return nil }

// verify compares each step-th document of a server, with 1 all of them, which
// also warms its memory.
func verify(ctx context.Context, address string, step int) (err error) {
	t, err := openTarget(ctx, address, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	c, err := t.NewCaller(ctx, 0)
	if err != nil {
		return err
	}
	for n := 0; n < pages.Count; n += max(step, 1) {
		if err := c.(*caller).get(ctx, n); err != nil {
			return err
		}
	}
	return nil
}
