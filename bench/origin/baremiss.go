package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pgdepts"
	"github.com/slipstream-go/slipstream/internal/load"
)

// bareMiss is like miss, but without HTTP: callers are goroutines of the process that contains our
// cache and origin, or pgx.
func (h *harness) bareMiss(callers int) load.Scenario {
	sc := load.Scenario{Name: fmt.Sprintf("bare-miss/%d", callers), Primary: load.RPS}
	for _, name := range []string{load.Ours, load.Control, oneKey, batch} {
		target := name
		if name == load.Control {
			target = load.Ours
		}
		sc.Subjects = append(sc.Subjects, load.Subject{Name: name, Run: func(ctx context.Context, round int) (load.Sample, error) {
			if err := h.database(ctx, table); err != nil {
				return load.Sample{}, err
			}
			best, err := h.probe(ctx, "bare "+target, func(ctx context.Context, connections int, seed uint64) (load.Sample, error) {
				return h.bare(ctx, target, reading{callers: callers, connections: connections, window: h.window(time.Second), warmUp: h.warmUp / 2, seed: seed})
			})
			if err != nil {
				return load.Sample{}, err
			}
			return h.bare(ctx, target, reading{
				callers: callers, connections: best.Connections, window: h.window(2 * time.Second), warmUp: h.warmUp, seed: uint64(round), choice: &best,
			})
		}})
	}
	return sc
}

func (h *harness) bare(ctx context.Context, target string, r reading) (load.Sample, error) {
	spec := loadproc.Spec{
		Target: target, Database: h.cluster.URL(), Connections: r.connections, Postmaster: h.cluster.Postmaster(),
		Keys: h.depts, Callers: r.callers, WarmUp: r.warmUp, Duration: r.window, Seed: r.seed,
	}
	if err := h.verifyBare(ctx, spec); err != nil {
		return load.Sample{}, err
	}
	outcome, err := loadproc.Run(ctx, spec)
	if err != nil {
		return outcome.Part(), err
	}
	sample := documents(outcome)
	// The program under test is the load process itself.
	if n := outcome.Result; n.Completed > 0 {
		sample.Values[load.NsOp] = n.PerRequest(float64(n.Cost.Client))
		sample.Values[load.Allocs] = n.PerRequest(float64(n.Cost.Mallocs))
		sample.Values[load.BytesOp] = n.PerRequest(float64(n.Cost.Bytes))
	}
	return sample, r.describe(h, &sample, outcome)
}

// verifyBare compares documents of the target with the database, in this
// process.
func (h *harness) verifyBare(ctx context.Context, spec loadproc.Spec) (err error) {
	target, err := bareTargets[spec.Target](ctx, spec)
	if err != nil {
		return err
	}
	src := target.(*bare).source
	defer func() { err = errors.Join(err, src.Close()) }()
	if err := pgdepts.Verify(ctx, h.cluster.URL(), h.depts, src.get, spec.Seed); err != nil {
		return fmt.Errorf("%s: %w", spec.Target, err)
	}
	return nil
}
