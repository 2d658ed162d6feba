package main

import (
	"context"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
	"github.com/slipstream-go/slipstream/bench/internal/tarantoolserver"
	"github.com/slipstream-go/slipstream/internal/load"
)

// redisClient loads a redis-server with package redis of either side.
func redisClient(ctx context.Context, c *comparison, k *kind) (measurement, error) {
	const valueSize = 16 // that of the load program
	server, err := redisserver.Start(ctx, c.scratch, valueSize)
	if err != nil {
		return nil, err
	}
	c.closers = append(c.closers, server.Stop)
	return c.byClient(ctx, k, server.Address, server.PID())
}

// tarantoolClient loads a tarantool with package tarantool of either side.
func tarantoolClient(ctx context.Context, c *comparison, k *kind) (measurement, error) {
	server, err := tarantoolserver.Start(ctx, c.scratch, tarantoolserver.Tuned)
	if err != nil {
		return nil, err
	}
	c.closers = append(c.closers, server.Stop)
	return c.byClient(ctx, k, server.Address, server.PID())
}

// byClient runs the load program of each side against one server.
func (c *comparison) byClient(ctx context.Context, k *kind, address string, pid int) (measurement, error) {
	for _, s := range c.sides() {
		if _, err := c.buildClient(ctx, s); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, s *side, callers, round int) (load.Sample, error) {
		return c.load(ctx, k, loadproc.Spec{Program: s.client, Target: k.name, Address: address, PID: pid}, callers, round)
	}, nil
}
