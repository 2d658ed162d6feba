package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/slipstream-go/slipstream/bench/internal/foreign"
	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
	"github.com/slipstream-go/slipstream/internal/load"
)

const (
	// redisName is the rival in the goals for Redis.
	redisName = "redis-benchmark"
	// valueSize is the size of the values in redis-server.
	valueSize = 64
)

// redisSettings are GETs of a value of 64 bytes.
func (h *harness) redisSettings() []setting {
	paths, ok := h.find("redis-server", redisName)
	if !ok {
		return nil
	}
	ours := func(what ...string) func(context.Context, *setting, *server) (foreign.Generator, error) {
		return func(ctx context.Context, s *setting, at *server) (foreign.Generator, error) {
			args := append([]string{"redis", "-P", strconv.Itoa(s.depth)}, what...)
			return h.ours(ctx, s, args, at.address, "--", "GET", redisserver.Key(0))
		}
	}
	generators := []generator{
		{name: load.Ours, command: ours()},
		{name: load.Control, command: ours()},
		{name: redisName, command: func(ctx context.Context, s *setting, at *server) (foreign.Generator, error) {
			return h.redisBenchmark(ctx, paths[1], s, at)
		}},
		// As many connections as redis-benchmark has, instead of one that all callers share.
		{name: "slipstream-sockets", variant: true, command: func(ctx context.Context, s *setting, at *server) (foreign.Generator, error) {
			return ours("--sockets", strconv.Itoa(s.connections))(ctx, s, at)
		}},
		// Random keys, and every value is checked.
		{name: "slipstream-checked", variant: true, command: func(ctx context.Context, s *setting, at *server) (foreign.Generator, error) {
			return h.ours(ctx, s, []string{"redis", "-P", strconv.Itoa(s.depth), "--ratio", "0:1", "--fill", "--keys", "10000", "-d", strconv.Itoa(valueSize)}, at.address)
		}},
	}
	var all []setting
	for _, of := range []struct{ connections, depth int }{{50, 1}, {50, 16}, {512, 1}} {
		all = append(all, setting{
			name:        fmt.Sprintf("redis/c%d-p%d", of.connections, of.depth),
			connections: of.connections, depth: of.depth, generators: generators, goal: redisGoal,
			start: func(ctx context.Context) (*server, error) { return startRedis(ctx, h.place.Scratch) },
		})
	}
	return all
}

// redisGoal requires as many requests per CPU second as redis-benchmark.
var redisGoal = load.Goal{Metric: load.ClientUS, Rival: redisName, Ratio: 1}

// startRedis starts redis-server with its values.
func startRedis(ctx context.Context, scratch string) (*server, error) {
	s, err := redisserver.Start(ctx, scratch, valueSize)
	if err != nil {
		return nil, err
	}
	return &server{Process: s.Process, address: s.Address, pids: []int{s.PID()}}, nil
}

// redisBenchmark returns redis-benchmark with its arguments. It needs a number of requests instead
// of a time, so a short run in the first round determines how many fit into a window.
func (h *harness) redisBenchmark(ctx context.Context, path string, s *setting, at *server) (foreign.Generator, error) {
	host, port, err := net.SplitHostPort(at.address)
	if err != nil {
		return foreign.Generator{}, err
	}
	generator := func(requests uint64) foreign.Generator {
		return foreign.Generator{Program: path, Parse: foreign.ParseRedisBenchmark(requests), Args: []string{
			"-h", host, "-p", port, "-c", strconv.Itoa(s.connections), "-P", strconv.Itoa(s.depth), "-n", strconv.FormatUint(requests, 10),
			"--csv", "--precision", "3", "GET", redisserver.Key(0)}}
	}
	atOnce := uint64(s.connections * s.depth)
	if h.most[s.name] == 0 {
		r, err := generator(max(20_000/atOnce, 1)*atOnce).Measure(ctx, at.pids)
		if err != nil {
			return foreign.Generator{}, err
		}
		if r.Elapsed <= 0 {
			return foreign.Generator{}, errors.New("redis-benchmark took no time")
		}
		rate := float64(r.Completed) / r.Elapsed.Seconds()
		h.most[s.name] = max(uint64(rate*h.window.Seconds())/atOnce, 1) * atOnce
	}
	return generator(h.most[s.name]), nil
}
