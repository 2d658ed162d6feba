package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pages"
	"github.com/slipstream-go/slipstream/bench/internal/pgcluster"
	"github.com/slipstream-go/slipstream/bench/internal/pgdepts"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A comparison has what the scenarios of a run share.
type comparison struct {
	// Immutable once the programs are built.
	ref, scratch string
	window       time.Duration
	progress     io.Writer
	binaries     map[string]string // by subject

	clusters []*pgcluster.Cluster
}

// A measurement is one round of one subject.
type measurement func(ctx context.Context, name string, callers, round int) (load.Sample, error)

// kinds prepare the databases of a kind of scenario.
var kinds = map[string]func(context.Context, *comparison) (measurement, error){
	"memory-hit": memoryHit, "redis-hit": redisHit, "miss": miss,
}

// programs returns a program for each subject, in a directory of its own.
func (c *comparison) programs(open func(binary, dir string) (*subject.Slipstream, error)) (map[string]subject.Program, error) {
	all := make(map[string]subject.Program)
	for name, binary := range c.binaries {
		dir := filepath.Join(filepath.Dir(binary), "data")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		p, err := open(binary, dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = p
	}
	all[load.Control] = all[load.Ours]
	return all, nil
}

func (c *comparison) scenario(name string, callers int, measure measurement) load.Scenario {
	sc := load.Scenario{Name: name, Primary: load.ServerUS}
	for _, s := range []string{load.Ours, load.Control, c.ref} {
		sc.Subjects = append(sc.Subjects, load.Subject{Name: s, Run: func(ctx context.Context, round int) (load.Sample, error) {
			return measure(ctx, s, callers, round)
		}})
	}
	return sc
}

// memoryHit reads documents that are in memory over HTTP.
func memoryHit(ctx context.Context, c *comparison) (measurement, error) {
	programs, err := c.programs(func(binary, dir string) (*subject.Slipstream, error) {
		return subject.NewSlipstream(ctx, binary, dir, depts.Count, "512MiB")
	})
	return func(ctx context.Context, name string, callers, round int) (load.Sample, error) {
		return subject.Hit{Callers: callers, WarmUp: c.window / 4, Window: c.window, Seed: uint64(round)}.Run(ctx, programs[name])
	}, err
}

// redisHit reads documents that are in memory over the Redis protocol. The callers share one
// connection of package redis.
func redisHit(ctx context.Context, c *comparison) (measurement, error) {
	programs, err := c.programs(func(binary, dir string) (*subject.Slipstream, error) {
		return subject.OverPages(ctx, binary, dir)
	})
	return func(ctx context.Context, name string, callers, round int) (sample load.Sample, err error) {
		server, err := programs[name].Start(ctx)
		if err != nil {
			return sample, err
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		if err := pages.Verify(ctx, server.Redis, 1); err != nil {
			return sample, err
		}
		outcome, err := loadproc.Run(ctx, loadproc.Spec{
			Target: pages.TargetName, Address: server.Redis, PID: server.PID(), Metrics: server.Metrics,
			Callers: callers, WarmUp: c.window / 4, Duration: c.window, Seed: uint64(round),
		})
		if err != nil {
			return sample, err
		}
		return outcome.Sample(), nil
	}, err
}

// missDepartments are far more than the smallest memory tier holds.
const missDepartments = 200_000

// miss reads documents over HTTP that have to be loaded from PostgreSQL. Each side has a
// cluster of its own, because the triggers of two commits may differ.
func miss(ctx context.Context, c *comparison) (measurement, error) {
	clusters := make(map[string]*pgcluster.Cluster)
	programs, err := c.programs(func(binary, dir string) (*subject.Slipstream, error) {
		cluster, err := pgdepts.New(ctx, missDepartments, true, func(format string, args ...any) {
			fmt.Fprintf(c.progress, "compare: "+format+"\n", args...)
		})
		if err != nil {
			return nil, err
		}
		c.clusters = append(c.clusters, cluster)
		clusters[binary] = cluster
		p := subject.OverPostgres(binary, dir, subject.Postgres{URL: cluster.URL(), Memory: "1MiB", Concurrency: 16})
		return p, p.DB(ctx, "apply")
	})
	return func(ctx context.Context, name string, callers, round int) (sample load.Sample, err error) {
		binary, ok := c.binaries[name]
		if !ok { // the control
			binary = c.binaries[load.Ours]
		}
		server, err := programs[name].Start(ctx)
		if err != nil {
			return sample, err
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		cluster := clusters[binary]
		if err := pgdepts.Verify(ctx, cluster.URL(), missDepartments, pgdepts.OverHTTP(server.Address), uint64(round)); err != nil {
			return sample, err
		}
		spec := server.Spec()
		spec.Keys, spec.Callers, spec.WarmUp, spec.Duration, spec.Seed = missDepartments, callers, c.window/4, c.window, uint64(round)
		outcome, err := loadproc.Run(ctx, spec)
		if err != nil {
			return sample, err
		}
		return outcome.Sample(), nil
	}, err
}

// close ends the databases.
func (c *comparison) close() error {
	var errs []error
	for _, cluster := range c.clusters {
		errs = append(errs, cluster.Close())
	}
	return errors.Join(errs...)
}
