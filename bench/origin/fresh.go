package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pgdepts"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

const (
	probers = 4 // each writes and then polls

	// The additional load, if there is one: as many readers and writers of the same documents as
	// the machine can run.
	loadedReaders = 64
	loadedWriters = 16
	loadedDepts   = writtenEmps / pgdepts.EmpsPerDept

	pollPause = time.Millisecond // between two GETs of a prober: the resolution
	hopeless  = 10 * time.Second // after this time, the commit will never be visible
)

var freshGoals = map[string]time.Duration{
	fmt.Sprintf("fresh-idle/%d", probers):   50 * time.Millisecond,
	fmt.Sprintf("fresh-loaded/%d", probers): 250 * time.Millisecond,
}

func (h *harness) freshIdle() load.Scenario   { return h.fresh("fresh-idle", false) }
func (h *harness) freshLoaded() load.Scenario { return h.fresh("fresh-loaded", true) }

// fresh measures the time from the acknowledgement of a COMMIT to the response of the first GET
// that shows it.
func (h *harness) fresh(name string, loaded bool) load.Scenario {
	sc := load.Scenario{Name: fmt.Sprintf("%s/%d", name, probers), Primary: load.P99US, Rounds: h.options.Fixed(3)}
	sc.Subjects = []load.Subject{{Name: load.Ours, Run: func(ctx context.Context, round int) (load.Sample, error) {
		return h.follow(ctx, sc.Name, loaded, uint64(round))
	}}}
	return sc
}

// freshDetails are stored in the raw results.
type freshDetails struct {
	databaseDetails
	Commits int64   `json:"commits"`
	Max     float64 `json:"max_us"`
	// FromCache is the share of GETs, of probers and readers, that were answered from the cache:
	// otherwise there would be nothing to invalidate.
	FromCache    float64 `json:"from_cache"`
	ReadersRate  float64 `json:"readers_per_second,omitempty"`
	WritersRate  float64 `json:"writers_per_second,omitempty"`
	ReaderErrors uint64  `json:"reader_errors,omitempty"`
}

func (h *harness) follow(ctx context.Context, scenario string, loaded bool, seed uint64) (sample load.Sample, err error) {
	if err := h.database(ctx, table); err != nil {
		return sample, err
	}
	server, err := h.gateway(subject.Postgres{Memory: "256MiB"}).Start(ctx)
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if err := pgdepts.Verify(ctx, h.cluster.URL(), h.depts, pgdepts.OverHTTP(server.Address), seed); err != nil {
		return sample, err
	}
	window := h.window(10 * time.Second)
	details := freshDetails{databaseDetails: h.describeDatabase()}
	finish := func() error { return nil }
	if loaded {
		if finish, err = h.loadBeside(ctx, server, window, seed, &details); err != nil {
			return sample, err
		}
		time.Sleep(h.warmUp)
	}
	all, err := h.probeCommits(ctx, server, window, seed)
	if err = errors.Join(err, finish()); err != nil {
		return sample, err
	}
	page, err := loadproc.Scrape(ctx, server.Metrics)
	if err != nil {
		return sample, err
	}
	details.Commits, details.Max = all.Count(), float64(all.Max().Microseconds())
	details.FromCache = page[hits] / max(1, page[hits]+page[misses])
	h.worst[scenario] = max(h.worst[scenario], all.Max())
	if all.Count() == 0 || details.FromCache == 0 {
		return sample, fmt.Errorf("%d commits were followed, and a share of %.2f of the answers came from the cache: nothing was measured", all.Count(), details.FromCache)
	}
	micros := func(q float64) float64 { return float64(all.Quantile(q)) / float64(time.Microsecond) }
	return load.Sample{
		Values: map[load.Metric]float64{load.P50US: micros(0.5), load.P99US: micros(0.99), load.P999US: micros(0.999)},
		Errors: details.ReaderErrors, Details: details,
	}, nil
}

// loadBeside starts additional readers and writers; the returned function waits for them.
func (h *harness) loadBeside(ctx context.Context, server *subject.Server, window time.Duration, seed uint64, d *freshDetails) (func() error, error) {
	seconds := int((window + h.warmUp).Seconds()) + 1
	writers, err := h.pgbench(writing{script: updateScript, writers: loadedWriters}, seconds)
	if err != nil {
		return nil, err
	}
	spec := server.Spec()
	spec.PID, spec.Metrics = 0, ""
	spec.Keys, spec.Callers, spec.Duration, spec.Seed = loadedDepts, loadedReaders, time.Duration(seconds)*time.Second, seed
	readers := make(chan error, 1)
	// Ends when its duration is over; the function returned waits for it.
	go func() {
		outcome, err := loadproc.Run(ctx, spec)
		if err == nil {
			s := outcome.Sample()
			d.ReadersRate, d.ReaderErrors = s.Values[load.RPS], s.Errors
			if s.Errors > 0 {
				err = fmt.Errorf("%d readers' requests failed, for example: %s", s.Errors, s.ErrorSample)
			}
		}
		readers <- err
	}()
	return func() error {
		result, err := writers.wait(ctx)
		d.WritersRate = result.rate
		return errors.Join(err, <-readers)
	}, nil
}

// probeCommits runs the probers for a while.
func (h *harness) probeCommits(ctx context.Context, server *subject.Server, window time.Duration, seed uint64) (*load.Histogram, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	histograms := make([]load.Histogram, probers)
	until := time.Now().Add(window)
	var wg sync.WaitGroup
	for i := range probers {
		// Ends at until or with the first error; the wait below is for it.
		wg.Go(func() {
			// Departments that the additional writers do not change.
			p := prober{dept: loadedDepts + 1 + int64(i), get: pgdepts.OverHTTP(server.Address), rng: rand.New(rand.NewPCG(seed, uint64(i)))}
			err := pgdepts.WithConn(ctx, h.cluster.URL(), func(conn *pgx.Conn) error {
				return p.run(ctx, conn, until, &histograms[i])
			})
			if err != nil {
				cancel(fmt.Errorf("commit to fresh, department %d: %w", p.dept, err))
			}
		})
	}
	wg.Wait()
	all := new(load.Histogram)
	for i := range histograms {
		all.Merge(&histograms[i])
	}
	return all, context.Cause(ctx)
}

// A prober writes versions of one document and waits until each is served.
type prober struct {
	dept int64
	get  func(context.Context, int64) ([]byte, error)
	rng  *rand.Rand
}

func (p *prober) run(ctx context.Context, conn *pgx.Conn, until time.Time, into *load.Histogram) error {
	emp := (p.dept-1)*pgdepts.EmpsPerDept + 1
	version := time.Now().UnixMicro() // above those of earlier rounds
	for time.Now().Before(until) {
		// Make sure that the document is cached, and wait until a random phase of the gateway's
		// polls.
		if _, err := p.get(ctx, p.dept); err != nil {
			return err
		}
		time.Sleep(time.Duration(p.rng.Int64N(int64(50 * time.Millisecond))))
		version++
		if _, err := conn.Exec(ctx, "UPDATE emp SET sal = $1 WHERE empno = $2", version, emp); err != nil {
			return err
		}
		committed := time.Now()
		for {
			body, err := p.get(ctx, p.dept)
			if err != nil {
				return err
			}
			took := time.Since(committed)
			shown, err := firstSal(body)
			if err != nil {
				return err
			}
			if shown == version {
				into.Record(took)
				break
			}
			if shown > version {
				return fmt.Errorf("version %d is served, but the last one is %d", shown, version)
			}
			if took > hopeless {
				return fmt.Errorf("version %d is still served %v after version %d was committed", shown, took, version)
			}
			time.Sleep(pollPause)
		}
	}
	return nil
}

// firstSal returns the first "sal" of a document.
func firstSal(body []byte) (int64, error) {
	_, rest, ok := bytes.Cut(body, []byte(`"sal":`))
	end := bytes.IndexAny(rest, ",}")
	if !ok || end < 0 {
		return 0, fmt.Errorf("no member sal in %.200s", body)
	}
	v, err := strconv.ParseFloat(string(bytes.TrimSpace(rest[:end])), 64)
	return int64(v), err
}
