package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/redis"
)

// valueSize is the size of all values.
const valueSize = 16

// A redisTarget is one client that all callers share.
type redisTarget struct {
	// Immutable after newRedisTarget.
	client *redis.Client
	seed   uint64
	keys   []string
	values []string
	call   func(*redisCaller, context.Context) error
}

func newRedisTarget(ctx context.Context, s loadproc.Spec, o redis.Options, call func(*redisCaller, context.Context) error) (*redisTarget, error) {
	o.Addr = s.Address
	c, err := redis.Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	t := &redisTarget{client: c, seed: s.Seed, call: call}
	for i := range redisserver.Keys(valueSize) {
		key := redisserver.Key(i)
		t.keys, t.values = append(t.keys, key), append(t.values, redisserver.Value(key, valueSize))
	}
	return t, nil
}

// openRedis opens a client with default options, whose callers make the given call.
func openRedis(call func(*redisCaller, context.Context) error) opener {
	return func(ctx context.Context, s loadproc.Spec) (load.Target, error) {
		return newRedisTarget(ctx, s, redis.Options{}, call)
	}
}

// openCached opens a client with client-side caching, whose cache holds all keys.
func openCached(ctx context.Context, s loadproc.Spec) (load.Target, error) {
	t, err := newRedisTarget(ctx, s, redis.Options{Cache: &redis.CacheOptions{}}, (*redisCaller).cached)
	if err != nil {
		return nil, err
	}
	for i := range t.keys {
		if err := t.cached(ctx, i); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	return t, nil
}

// cached reads one key through the cache.
func (t *redisTarget) cached(ctx context.Context, i int) error {
	value, found, err := t.client.GetCached(ctx, t.keys[i])
	return t.check(i, value, found, err)
}

func (t *redisTarget) check(i int, value string, found bool, err error) error {
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("%w: %s", errMissing, t.keys[i])
	case value != t.values[i]:
		return fmt.Errorf("the value of %s is %.40q, want %q", t.keys[i], value, t.values[i])
	}
	return nil
}

// NewCaller implements [load.Target].
func (t *redisTarget) NewCaller(_ context.Context, i int) (load.Caller, error) {
	return &redisCaller{redisTarget: t, rng: rand.New(rand.NewPCG(t.seed, uint64(i))), replies: make([]string, batchSize)}, nil
}

// Close ends the client.
func (t *redisTarget) Close() error { return t.client.Close() }

// A redisCaller is one goroutine with one call in flight.
type redisCaller struct {
	*redisTarget

	// Owned by the goroutine that calls Do.
	rng     *rand.Rand
	batch   redis.Batch
	asked   []int // the keys of the batch
	replies []string
}

// Do implements [load.Caller].
func (c *redisCaller) Do(ctx context.Context) error { return c.call(c, ctx) }

// Close implements [load.Caller]: the client is closed once, by the target.
func (c *redisCaller) Close() error { return nil }

func (c *redisCaller) random() int { return c.rng.IntN(len(c.keys)) }

func (c *redisCaller) get(ctx context.Context) error {
	i := c.random()
	value, found, err := c.client.Get(ctx, c.keys[i])
	return c.check(i, value, found, err)
}

func (c *redisCaller) cached(ctx context.Context) error { return c.redisTarget.cached(ctx, c.random()) }

func (c *redisCaller) set(ctx context.Context) error {
	i := c.random()
	return c.client.Set(ctx, c.keys[i], c.values[i])
}

func (c *redisCaller) do(ctx context.Context) error {
	i := c.random()
	value := ""
	err := c.client.Do(ctx, &value, redis.Cmd("GET", c.keys[i]))
	return c.check(i, value, true, err)
}

func (c *redisCaller) sendBatch(ctx context.Context) error {
	c.batch.Reset()
	c.asked = c.asked[:0]
	for n := range batchSize {
		i := c.random()
		c.asked = append(c.asked, i)
		c.batch.Add(&c.replies[n], redis.Cmd("GET", c.keys[i]))
	}
	if err := c.client.DoBatch(ctx, &c.batch); err != nil {
		return err
	}
	for n, i := range c.asked {
		if err := c.check(i, c.replies[n], true, nil); err != nil {
			return err
		}
	}
	return nil
}
