package redisload

import (
	"context"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/redis"
)

// ourKinds are the kinds of our client, with the options that a user gets by setting only the
// address.
var ourKinds = []Kind{{Name: load.Ours, open: openOurs, openCluster: openOurCluster, NoWait: true, Pipelined: true}}

type ourClient struct {
	client *redis.Client
	cached bool
	free   func() // ends the waiting calls
}

func openOurs(ctx context.Context, s Setting) (Client, error) {
	o := redis.Options{Addr: s.Address}
	if s.Plain {
		o.Protocol, o.Dialer = 2, dialPlain
	}
	if s.Cached {
		o.Cache = &redis.CacheOptions{}
	}
	c, err := redis.Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return &ourClient{c, s.Cached, block(c, s.Blocked)}, nil
}

func openOurCluster(ctx context.Context, s Setting) (Client, error) {
	c, err := redis.ConnectCluster(ctx, redis.ClusterOptions{Seeds: s.Cluster})
	if err != nil {
		return nil, err
	}
	return &ourClient{client: c, free: func() {}}, nil
}

// block makes n calls wait at the server until free is called.
func block(c *redis.Client, n int) (free func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	for range n {
		// Stopped and waited for by free.
		waiting.Go(func() { _, _, _, _ = c.BLPop(ctx, 0, "always empty") })
	}
	for c.Stats().Exclusive.Lent < n {
		time.Sleep(time.Millisecond)
	}
	return func() {
		cancel()
		waiting.Wait()
	}
}

func (c *ourClient) Get(ctx context.Context, dst []byte, key string) ([]byte, error) {
	if c.cached {
		value, found, err := c.client.GetCached(ctx, key)
		if err == nil && !found {
			return nil, errMissing
		}
		return append(dst[:0], value...), err
	}
	value, found, err := c.client.GetAppend(ctx, dst[:0], key)
	if err == nil && !found {
		return nil, errMissing
	}
	return value, err
}

func (c *ourClient) Set(ctx context.Context, key, value string) error {
	return c.client.Set(ctx, key, value)
}

func (c *ourClient) Close() error {
	c.free()
	return c.client.Close()
}
