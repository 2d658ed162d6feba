package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A bench measures questions, one after another.
type bench struct {
	// Immutable.
	options     options
	path        string // of the raw results
	environment load.Environment
	progress    io.Writer

	// Owned by the goroutine that runs the questions.
	stage *stage
}

// A row is one line of the raw results: a variant under a load in one round.
type row struct {
	Suite    string                  `json:"suite"`
	Question string                  `json:"question"`
	Load     string                  `json:"load"`
	Variant  string                  `json:"variant"`
	Round    int                     `json:"round"`
	Values   map[load.Metric]float64 `json:"values"`
	Errors   uint64                  `json:"errors"`
	Error    string                  `json:"error_sample,omitempty"`
	Doubts   []string                `json:"doubts,omitempty"`
	// Partial says why the question did not finish, and is empty if it did.
	Partial string `json:"partial,omitempty"`
	Details any    `json:"details,omitempty"`
	Seed    uint64 `json:"seed"`
	load.Environment
}

// ask measures all variants of a question and stores the rows. Wrong replies are reported in the
// rows and in the error.
func (b *bench) ask(ctx context.Context, q question) (rows []row, err error) {
	defer func() { err = errors.Join(err, b.stage.endDelays()) }()
	rng := rand.New(rand.NewPCG(b.options.Seed, uint64(len(q.name))))
	began := time.Now()
	for round := 1; round <= b.options.Rounds; round++ {
		fmt.Fprintf(b.progress, "%s: round %d of %d, %v so far\n", q.name, round, b.options.Rounds, time.Since(began).Round(time.Second))
		for _, l := range q.loads {
			// The variants of a load are measured in quick succession, so a disturbance that lasts
			// for seconds affects all of them.
			for _, i := range rng.Perm(len(q.variants)) {
				sample, err := b.measure(ctx, q, q.variants[i], l, round)
				if err == nil || sample.Values != nil {
					rows = append(rows, row{
						Suite: suiteName, Question: q.name, Load: l.name, Variant: q.variants[i].name, Round: round,
						Values: finite(sample.Values), Errors: sample.Errors, Error: sample.ErrorSample,
						Doubts: sample.Doubts, Details: sample.Details, Seed: b.options.Seed, Environment: b.environment,
					})
				}
				if err != nil {
					err = fmt.Errorf("%s, %s, %s: %w", q.name, q.variants[i].name, l.name, err)
					return nil, errors.Join(err, b.storePartial(q, rows, err))
				}
			}
		}
	}
	return rows, errors.Join(storeRows(b.path, q.name, rows), wrongReplies(rows))
}

// storePartial stores the rows of a question that did not finish, marked, and separate from those
// that are compared.
func (b *bench) storePartial(q question, rows []row, why error) error {
	if len(rows) == 0 {
		return nil
	}
	for i := range rows {
		rows[i].Partial = why.Error()
	}
	raw, name := filepath.Split(b.path)
	path := filepath.Join(filepath.Dir(filepath.Clean(raw)), load.PartialDirectory, "raw", name)
	fmt.Fprintf(b.progress, "%s: what was measured until then is in %s, marked as partial\n", q.name, path)
	return storeRows(path, q.name, rows)
}

// wrongReplies returns an error if a row has wrong replies.
func wrongReplies(rows []row) error {
	var errs []error
	for _, r := range rows {
		if r.Errors > 0 {
			errs = append(errs, fmt.Errorf("%s, %s, %s, round %d: %d wrong or missing replies: %s", r.Question, r.Variant, r.Load, r.Round, r.Errors, r.Error))
		}
	}
	return errors.Join(errs...)
}

// measure runs one variant under one load in a separate process.
func (b *bench) measure(ctx context.Context, q question, v variant, l shape, round int) (load.Sample, error) {
	window, warmUp := b.options.times()
	if q.micro != nil {
		return runMicroProcess(ctx, micro{
			Question: q.name, Kind: v.kind, Count: v.count, Setting: v.setting,
			Callers: l.callers, Free: l.free, WarmUp: warmUp, Window: window,
		})
	}
	w := work{Setting: v.setting, Store: l.store, Size: l.size, Clients: l.clients}
	if w.Size == 0 {
		w.Size = smallValue
	}
	address, err := b.stage.open(ctx, w.Size, l.delay)
	if err != nil {
		return load.Sample{}, err
	}
	text, err := json.Marshal(w)
	if err != nil {
		return load.Sample{}, err
	}
	spec := loadproc.Spec{
		Target: targetName, Options: text, Address: address, PID: b.stage.server.PID(),
		Callers: l.callers, WarmUp: warmUp, Duration: window, Seed: uint64(round),
	}
	if l.rate > 0 {
		spec.Arrivals = load.Arrivals{Process: load.Bursts, Rate: l.rate}
	}
	outcome, err := loadproc.Run(ctx, spec)
	if err != nil {
		if !outcome.Partial() {
			return load.Sample{}, err
		}
		return sampleOf(outcome.Result), err
	}
	if outcome.Result.Completed+outcome.Result.Errors == 0 {
		return load.Sample{}, fmt.Errorf("no request was sent within %v", window)
	}
	return sampleOf(outcome.Result), nil
}

// details are stored in the raw results.
type details struct {
	Load any `json:"load"`
	// CallsPerWrite is the mean number of requests per write.
	CallsPerWrite float64 `json:"calls_per_write,omitempty"`
	// IntendedP99 is measured from the planned instant of each burst.
	IntendedP99 float64 `json:"intended_p99_us,omitempty"`
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// sampleOf turns the result of a load process into the figures of a row.
// Latency is measured from the sending of a request, not from the planned time of
// its burst.
func sampleOf(r *load.Result) load.Sample {
	sample := r.Sample()
	d := details{Load: sample.Details}
	if r.Completed > 0 {
		sample.Values[load.P50US] = micros(r.Service.Quantile(0.50))
		sample.Values[load.P99US] = micros(r.Service.Quantile(0.99))
		sample.Values[load.P999US] = micros(r.Service.Quantile(0.999))
		sample.Values[load.Allocs] = r.PerRequest(float64(r.Cost.Mallocs))
		if writes := r.Cost.Counters[countWrites]; writes > 0 {
			d.CallsPerWrite = float64(r.Completed) / writes
		}
		if r.Intended != nil {
			d.IntendedP99 = micros(r.Intended.Quantile(0.99))
		}
	}
	if n := r.Cost.Counters[countBackstop]; n > 0 {
		sample.Doubts = append(sample.Doubts, fmt.Sprintf("the backstop made %.0f writes that should have been made earlier", n))
	}
	sample.Details = d
	return sample
}
