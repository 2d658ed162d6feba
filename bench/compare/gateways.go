package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pages"
	"github.com/slipstream-go/slipstream/bench/internal/pgcluster"
	"github.com/slipstream-go/slipstream/bench/internal/pgdepts"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// programs returns the gateway of each side, with a separate directory for the kind.
func (c *comparison) programs(ctx context.Context, k *kind, open func(s *side, binary, dir string) (*subject.Slipstream, error)) (map[*side]subject.Program, error) {
	all := make(map[*side]subject.Program)
	for _, s := range c.sides() {
		binary, err := c.buildGateway(ctx, s)
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(s.dir, k.name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		if all[s], err = open(s, binary, dir); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return all, nil
}

// with starts a server, measures it and stops it, so that the heap of an earlier round does not
// influence a later one.
func with(ctx context.Context, program subject.Program, measure func(*subject.Server) (load.Sample, error)) (load.Sample, error) {
	server, err := program.Start(ctx)
	if err != nil {
		return load.Sample{}, err
	}
	sample, err := measure(server)
	return sample, errors.Join(err, server.Stop())
}

// memoryHit reads documents from memory over HTTP.
func memoryHit(ctx context.Context, c *comparison, k *kind) (measurement, error) {
	programs, err := c.programs(ctx, k, func(_ *side, binary, dir string) (*subject.Slipstream, error) {
		return subject.NewSlipstream(ctx, binary, dir, depts.Count, "512MiB")
	})
	return func(ctx context.Context, s *side, callers, round int) (load.Sample, error) {
		return with(ctx, programs[s], func(server *subject.Server) (load.Sample, error) {
			spec := server.Spec()
			spec.Keys, spec.Learn, spec.Depts, spec.Batch = depts.Count, true, true, k.batch
			return c.load(ctx, k, spec, callers, round)
		})
	}, err
}

// missDepartments is a number of departments far larger than the smallest memory tier holds.
const missDepartments = 200_000

// miss reads documents over HTTP that have to be loaded from PostgreSQL. Each side has its
// own cluster, because the triggers of two commits may differ.
func miss(ctx context.Context, c *comparison, k *kind) (measurement, error) {
	clusters := make(map[*side]*pgcluster.Cluster)
	programs, err := c.programs(ctx, k, func(s *side, binary, dir string) (*subject.Slipstream, error) {
		cluster, err := pgdepts.New(ctx, missDepartments, true, func(format string, args ...any) {
			fmt.Fprintf(c.progress, "compare: "+format+"\n", args...)
		})
		if err != nil {
			return nil, err
		}
		c.closers = append(c.closers, cluster.Close)
		clusters[s] = cluster
		p := subject.OverPostgres(binary, dir, subject.Postgres{URL: cluster.URL(), Memory: "1MiB", Concurrency: 16})
		return p, p.DB(ctx, "apply")
	})
	return func(ctx context.Context, s *side, callers, round int) (load.Sample, error) {
		return with(ctx, programs[s], func(server *subject.Server) (load.Sample, error) {
			if err := pgdepts.Verify(ctx, clusters[s].URL(), missDepartments, pgdepts.OverHTTP(server.Address), uint64(round)); err != nil {
				return load.Sample{}, err
			}
			spec := server.Spec()
			spec.Keys = missDepartments
			return c.load(ctx, k, spec, callers, round)
		})
	}, err
}

// redisHit reads documents from memory over the Redis protocol. The callers share one connection of
// package redis, which is that of the working tree for both sides.
func redisHit(ctx context.Context, c *comparison, k *kind) (measurement, error) {
	return overPages(ctx, c, k, loadproc.Spec{Target: pages.TargetName})
}

// plain reads the same over a connection for each caller, without package redis.
func plain(ctx context.Context, c *comparison, k *kind) (measurement, error) {
	return overPages(ctx, c, k, loadproc.Spec{Target: pages.PlainName, Array: k.many, Batch: k.batch})
}

func overPages(ctx context.Context, c *comparison, k *kind, spec loadproc.Spec) (measurement, error) {
	programs, err := c.programs(ctx, k, func(_ *side, binary, dir string) (*subject.Slipstream, error) {
		return subject.OverPages(ctx, binary, dir)
	})
	return func(ctx context.Context, s *side, callers, round int) (load.Sample, error) {
		return with(ctx, programs[s], func(server *subject.Server) (load.Sample, error) {
			if err := pages.Verify(ctx, server.Redis, 1); err != nil {
				return load.Sample{}, err
			}
			spec := spec
			spec.Address, spec.PID, spec.Metrics = server.Redis, server.PID(), server.Metrics
			return c.load(ctx, k, spec, callers, round)
		})
	}, err
}
