package redisload

import (
	"context"
	"errors"
	"fmt"
	"sync"

	redigo "github.com/gomodule/redigo/redis"
	redispipe "github.com/joomcode/redispipe/redis"
	"github.com/mediocregopher/radix/v4"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
	"github.com/slipstream-go/slipstream/redis"
)

// batchSize is the number of commands in an explicit batch.
const batchSize = 1000

// A batcher is a client that can send many commands together explicitly. Each batch is built again,
// as in a program whose keys vary.
type batcher interface {
	// getAll calls each with each of the values, in order.
	getAll(ctx context.Context, keys []string, each func(i int, value []byte) error) error
}

// batch is one operation of OpBatch: a batch of GETs, of which every value is checked.
func (c *caller) batch() error {
	b, ok := c.client.(batcher)
	if !ok {
		return fmt.Errorf("%T does not support batches", c.client)
	}
	c.batched = c.batched[:0]
	for range batchSize {
		c.batched = append(c.batched, c.keys[c.rng.IntN(len(c.keys))])
	}
	seen := 0
	err := b.getAll(c.ctx, c.batched, func(i int, value []byte) error {
		seen++
		return redisserver.Check(c.batched[i], value, c.work.Size)
	})
	if err == nil && seen != batchSize {
		err = fmt.Errorf("%d values of %d", seen, batchSize)
	}
	return err
}

// ourBatch holds what batches of our client reuse.
type ourBatch struct {
	batch  redis.Batch
	values [][]byte
}

var ourBatches = sync.Pool{New: func() any { return &ourBatch{values: make([][]byte, batchSize)} }}

func (c *ourClient) getAll(ctx context.Context, keys []string, each func(int, []byte) error) error {
	b := ourBatches.Get().(*ourBatch)
	defer ourBatches.Put(b)
	b.batch.Reset()
	for i, key := range keys {
		b.batch.AddStrings(&b.values[i], "GET", key)
	}
	if err := c.client.DoBatch(ctx, &b.batch); err != nil {
		return err
	}
	for i := range keys {
		if err := each(i, b.values[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *rueidisClient) getAll(ctx context.Context, keys []string, each func(int, []byte) error) error {
	commands := make(rueidis.Commands, 0, len(keys))
	for _, key := range keys {
		commands = append(commands, c.client.B().Get().Key(key).Build())
	}
	for i, result := range c.client.DoMulti(ctx, commands...) {
		value, err := result.AsBytes()
		if err == nil {
			err = each(i, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *goRedisClient) getAll(ctx context.Context, keys []string, each func(int, []byte) error) error {
	commands := make([]*goredis.StringCmd, len(keys))
	if _, err := c.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, key := range keys {
			commands[i] = p.Get(ctx, key)
		}
		return nil
	}); err != nil {
		return err
	}
	for i, command := range commands {
		if err := each(i, bytesOf(command.Val())); err != nil {
			return err
		}
	}
	return nil
}

func (c *redigoClient) getAll(_ context.Context, keys []string, each func(int, []byte) error) (err error) {
	conn := c.pool.Get()
	defer func() { err = errors.Join(err, conn.Close()) }()
	for _, key := range keys {
		if err := conn.Send("GET", key); err != nil {
			return err
		}
	}
	if err := conn.Flush(); err != nil {
		return err
	}
	for i := range keys {
		value, err := redigo.Bytes(conn.Receive())
		if err == nil {
			err = each(i, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *redispipeClient) getAll(_ context.Context, keys []string, each func(int, []byte) error) error {
	requests := make([]redispipe.Request, len(keys))
	for i, key := range keys {
		requests[i] = redispipe.Req("GET", key)
	}
	for i, reply := range c.plain.SendMany(requests) {
		value, ok := reply.([]byte)
		if !ok {
			return fmt.Errorf("redispipe: a reply of type %T, want bytes", reply)
		}
		if err := each(i, value); err != nil {
			return err
		}
	}
	return nil
}

func (c *radixClient) getAll(ctx context.Context, keys []string, each func(int, []byte) error) error {
	values := make([][]byte, len(keys))
	p := radix.NewPipeline()
	for i, key := range keys {
		p.Append(radix.Cmd(&values[i], "GET", key))
	}
	if err := c.client.Do(ctx, p); err != nil {
		return err
	}
	for i, value := range values {
		if err := each(i, value); err != nil {
			return err
		}
	}
	return nil
}
