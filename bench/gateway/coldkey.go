package main

import (
	"context"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// statements is the counter of statements that the gateway has sent to its origin to load
// documents.
const statements = "slipstream_load_statements_total"

// coldKey makes many clients request one key that no tier holds at the same moment. The origin must
// get one statement.
func (h *harness) coldKey(callers int) load.Scenario {
	return load.Scenario{
		Name: fmt.Sprintf("cold-key/%d", callers), Primary: load.RPS,
		Subjects: []load.Subject{{Name: load.Ours, Run: func(ctx context.Context, _ int) (load.Sample, error) {
			return h.cold(ctx, callers)
		}}},
	}
}

func (h *harness) cold(ctx context.Context, callers int) (load.Sample, error) {
	program, err := h.program(ctx, load.Ours)
	if err != nil {
		return load.Sample{}, err
	}
	server, err := program.Start(ctx)
	if err != nil {
		return load.Sample{}, err
	}
	defer server.Stop()
	before, err := loadproc.Scrape(ctx, server.Metrics)
	if err != nil {
		return load.Sample{}, err
	}
	spec := server.Spec()
	spec.Keys, spec.Callers, spec.Requests, spec.Duration = 1, callers, 1, time.Minute
	outcome, err := loadproc.Run(ctx, spec)
	if err != nil {
		return outcome.Part(), err
	}
	after, err := loadproc.Scrape(ctx, server.Metrics)
	if err != nil {
		return load.Sample{}, err
	}
	sample := outcome.Sample()
	if _, ok := after[statements]; !ok {
		return sample, fmt.Errorf("metrics of the gateway: no %s", statements)
	}
	sent := after[statements] - before[statements]
	sample.Details = struct {
		Statements float64 `json:"statements"`
		Run        any     `json:"run"`
	}{sent, sample.Details}
	if sent != 1 {
		sample.Errors++
		sample.ErrorSample = fmt.Sprintf("%v statements for one key, want 1", sent)
	}
	fmt.Fprintf(h.progress, "cold-key: %d answers, %v statements\n", outcome.Result.Completed, sent)
	return sample, nil
}
