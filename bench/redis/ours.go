package main

import (
	"context"

	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/redis"
)

// ourKinds are ours, with the options a user gets by naming the address alone.
var ourKinds = []kind{{name: load.Ours, open: openOurs, noWait: true, pipelined: true}}

type ourClient struct{ client *redis.Client }

func openOurs(ctx context.Context, s setting) (client, error) {
	o := redis.Options{Addr: s.Address}
	if s.Plain {
		o.Protocol, o.Dialer = 2, dialPlain
	}
	c, err := redis.Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return &ourClient{c}, nil
}

func (c *ourClient) get(ctx context.Context, dst []byte, key string) ([]byte, error) {
	value, found, err := c.client.GetAppend(ctx, dst[:0], key)
	if err == nil && !found {
		return nil, errMissing
	}
	return value, err
}

func (c *ourClient) set(ctx context.Context, key, value string) error {
	return c.client.Set(ctx, key, value)
}

func (c *ourClient) close() error { return c.client.Close() }
