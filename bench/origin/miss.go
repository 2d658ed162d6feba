package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pgdepts"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

const (
	ungathered = "ungathered" // ours with one key per statement
	article    = "article"
)

// Figures of the gateway's metrics page.
const (
	hits   = "slipstream_hits_total"
	misses = "slipstream_misses_total"
	sent   = "slipstream_load_statements_total"
)

// hitLimit is the share of answers from the memory tier above which a scenario does not count as
// one that measures misses.
const hitLimit = 0.01

// miss reads random keys over HTTP while almost nothing is cached.
func (h *harness) miss(callers int) load.Scenario {
	return load.Scenario{
		Name: fmt.Sprintf("miss/%d", callers), Primary: load.RPS,
		Goals: []load.Goal{
			{Metric: load.RPS, Rival: ungathered, Ratio: 1.6},
			{Metric: load.ServerUS, Rival: ungathered, Ratio: 0.55},
		},
		Subjects: h.reading(callers, 2*time.Second, load.Ours, load.Control, ungathered),
	}
}

// direct measures the article's mode without a cache.
func (h *harness) direct(callers int) load.Scenario {
	return load.Scenario{
		Name: fmt.Sprintf("direct/%d", callers), Primary: load.RPS, Rounds: h.options.Fixed(6),
		Subjects: h.reading(callers, time.Second, load.Ours, load.Control, article),
	}
}

func (h *harness) reading(callers int, normal time.Duration, names ...string) []load.Subject {
	var subjects []load.Subject
	for _, name := range names {
		subjects = append(subjects, load.Subject{Name: name, Run: func(ctx context.Context, round int) (load.Sample, error) {
			if err := h.database(ctx, table); err != nil {
				return load.Sample{}, err
			}
			best, err := h.bestConnections(ctx, name)
			if err != nil {
				return load.Sample{}, err
			}
			return h.read(ctx, name, reading{
				callers: callers, connections: best.Connections,
				window: h.window(normal), warmUp: min(h.warmUp, normal/2), seed: uint64(round), choice: &best,
			})
		}})
	}
	return subjects
}

// choice records how the number of connections of a side to the database was determined.
type choice struct {
	Connections int             `json:"connections"`
	Probed      map[int]float64 `json:"probed_documents_per_second"`
}

// bestConnections probes a subject that serves HTTP, with 1,024 callers.
func (h *harness) bestConnections(ctx context.Context, name string) (choice, error) {
	if name == load.Control {
		name = load.Ours
	}
	return h.probe(ctx, name, func(ctx context.Context, connections int, seed uint64) (load.Sample, error) {
		return h.read(ctx, name, reading{callers: 1024, connections: connections, window: h.window(time.Second), warmUp: h.warmUp / 2, seed: seed})
	})
}

// probe tries 4, 16 and 64 connections, each twice, and selects the number with the most documents
// per second, so that each side is measured at its best.
func (h *harness) probe(ctx context.Context, name string, try func(ctx context.Context, connections int, seed uint64) (load.Sample, error)) (choice, error) {
	if c, ok := h.best[name]; ok {
		return c, nil
	}
	c := choice{Probed: map[int]float64{}}
	for seed := range uint64(2) {
		for _, connections := range []int{4, 16, 64} {
			sample, err := try(ctx, connections, 1000+seed)
			if err != nil {
				return c, fmt.Errorf("%d connections: %w", connections, err)
			}
			c.Probed[connections] += sample.Values[load.RPS] / 2
		}
	}
	for connections, rate := range c.Probed {
		if rate > c.Probed[c.Connections] {
			c.Connections = connections
		}
	}
	h.printf("%s: %d connections to the database are best (documents/s: 4: %.0f, 16: %.0f, 64: %.0f)",
		name, c.Connections, c.Probed[4], c.Probed[16], c.Probed[64])
	h.best[name] = c
	return c, nil
}

// reading is one window of reads.
type reading struct {
	callers, connections int
	window, warmUp       time.Duration
	seed                 uint64
	choice               *choice
}

// readDetails are stored in the raw results.
type readDetails struct {
	databaseDetails
	Connections int     `json:"connections"` // to the database, for loads
	Choice      *choice `json:"choice,omitempty"`
	HitShare    float64 `json:"hit_share"`
	// KeysAStatement is the mean number of keys gathered in a statement.
	KeysAStatement float64 `json:"keys_a_statement,omitempty"`
	Run            any     `json:"run"`
}

// read starts a fresh server, compares some of its documents with the database
// and measures.
func (h *harness) read(ctx context.Context, name string, r reading) (sample load.Sample, err error) {
	program, err := h.program(ctx, name, r.connections)
	if err != nil {
		return sample, err
	}
	server, err := program.Start(ctx)
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if err := pgdepts.Verify(ctx, h.cluster.URL(), h.depts, pgdepts.OverHTTP(server.Address), r.seed); err != nil {
		return sample, fmt.Errorf("%s: %w", name, err)
	}
	spec := server.Spec()
	spec.Keys, spec.Callers, spec.WarmUp, spec.Duration, spec.Seed = h.depts, r.callers, r.warmUp, r.window, r.seed
	spec.Postmaster = h.cluster.Postmaster()
	if name != article {
		spec.Count = []string{hits, misses, sent}
	}
	outcome, err := loadproc.Run(ctx, spec)
	if err != nil {
		return outcome.Part(), err
	}
	sample = documents(outcome)
	return sample, r.describe(h, &sample, outcome)
}

// describe adds the details for the raw results, and returns an error if too many answers were
// hits.
func (r reading) describe(h *harness, sample *load.Sample, outcome loadproc.Outcome) error {
	d := readDetails{databaseDetails: h.describeDatabase(), Connections: r.connections, Choice: r.choice, Run: sample.Details}
	n := outcome.Result.Cost.Counters
	if answers := n[hits] + n[misses]; answers > 0 {
		d.HitShare, d.KeysAStatement = n[hits]/answers, n[misses]/max(1, n[sent])
	}
	sample.Details = d
	if d.HitShare > hitLimit {
		return fmt.Errorf("%.1f %% of the answers came from the cache, want at most %.0f %%", 100*d.HitShare, 100*hitLimit)
	}
	return nil
}

func (h *harness) program(ctx context.Context, name string, connections int) (subject.Program, error) {
	switch name {
	case article:
		return h.articleProgram(ctx, connections)
	case ungathered:
		return h.gateway(subject.Postgres{Batch: 1, Concurrency: connections}), nil
	case load.Ours, load.Control:
		return h.gateway(subject.Postgres{Concurrency: connections}), nil
	}
	return nil, fmt.Errorf("no subject %q", name)
}

// documents converts an outcome to figures per document: server_us is the CPU time of PostgreSQL,
// ns_op, bytes_op and allocs are those of the program between it and the client.
func documents(o loadproc.Outcome) load.Sample {
	s := o.Sample()
	delete(s.Values, load.ServerUS)
	if o.Result.Completed == 0 {
		return s
	}
	if o.Result.Cost.Server > 0 {
		s.Values[load.NsOp] = o.Result.PerRequest(float64(o.Result.Cost.Server))
	}
	s.Values[load.ServerUS] = o.Result.PerRequest(o.Result.Cost.Counters[loadproc.PostgresCPU] / 1000)
	return s
}
