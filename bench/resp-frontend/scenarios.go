package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/foreign"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pages"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

const (
	suiteName = "resp-frontend"
	floorName = "floor-epoll"
	redisName = "redis-server"
	// connections is the number of concurrent clients, and of callers of our own
	// client.
	connections = 64
	depth       = 16 // of a pipeline
)

// A harness builds the subjects and measures them.
type harness struct {
	// Immutable after newHarness.
	window    time.Duration
	warmUp    time.Duration
	catalog   *subject.Catalog
	benchmark string  // path of redis-benchmark; if empty, it is missing
	missing   []error // programs that are not installed
	noRedis   bool
}

func newHarness(s *command.Flags, p command.Place, progress io.Writer) *harness {
	h := &harness{window: s.Window(2*time.Second, 500*time.Millisecond), warmUp: 500 * time.Millisecond}
	if s.Quick {
		h.warmUp = 100 * time.Millisecond
	}
	var err error
	if h.benchmark, err = subject.Find("redis-benchmark"); err != nil {
		h.missing = append(h.missing, err)
	}
	if _, err := subject.Find(redisName); err != nil {
		h.missing, h.noRedis = append(h.missing, err), true
	}
	h.catalog = subject.NewCatalog(suiteName, progress, map[string]func(context.Context) (subject.Program, error){
		load.Ours: func(ctx context.Context) (subject.Program, error) { return gateway(ctx, p) },
		floorName: func(ctx context.Context) (subject.Program, error) {
			return subject.BuildRival(ctx, p.Module, p.Scratch, suiteName, "floor")
		},
		redisName: func(context.Context) (subject.Program, error) {
			return newRedisServer(filepath.Join(p.Scratch, "redis"))
		},
	})
	return h
}

// gateway is ours over a database of the documents, with its Redis frontend.
func gateway(ctx context.Context, p command.Place) (subject.Program, error) {
	binary := filepath.Join(p.Scratch, "slipstream")
	if err := subject.BuildSlipstream(ctx, filepath.Dir(p.Module), binary); err != nil {
		return nil, err
	}
	return subject.OverPages(ctx, binary, p.Scratch)
}

// Scenarios implements [command.Harness].
func (h *harness) Scenarios() []load.Scenario {
	var all []load.Scenario
	if h.benchmark != "" {
		all = append(all,
			h.scenario("get-1k6", 1.15, func(ctx context.Context, s *subject.Server, _ int) (load.Sample, error) {
				return h.byRedisBenchmark(ctx, s, 1)
			}),
			h.scenario(fmt.Sprintf("get-1k6-p%d", depth), 0.85, func(ctx context.Context, s *subject.Server, _ int) (load.Sample, error) {
				return h.byRedisBenchmark(ctx, s, depth)
			}))
	}
	return append(all, h.scenario("client-1k6", 0, h.byOurClient))
}

// scenario compares all subjects; ratio is the goal against redis-server, or 0 for none.
func (h *harness) scenario(name string, ratio float64, measure func(context.Context, *subject.Server, int) (load.Sample, error)) load.Scenario {
	sc := load.Scenario{Name: fmt.Sprintf("%s/%d", name, connections), Primary: load.ServerUS}
	if ratio > 0 {
		sc.Goals = []load.Goal{{Metric: load.ServerUS, Rival: redisName, Ratio: ratio}}
	}
	for _, name := range []string{load.Ours, load.Control, redisName, floorName} {
		if name == redisName && h.noRedis {
			continue
		}
		sc.Subjects = append(sc.Subjects, load.Subject{Name: name, Run: func(ctx context.Context, round int) (load.Sample, error) {
			server, err := h.start(ctx, name)
			if err != nil {
				return load.Sample{}, err
			}
			sample, err := measure(ctx, server, round)
			return sample, errors.Join(err, server.Stop())
		}})
	}
	return sc
}

// start starts a subject and checks that it has every document.
func (h *harness) start(ctx context.Context, name string) (*subject.Server, error) {
	if name == load.Control {
		name = load.Ours
	}
	program, err := h.catalog.Program(ctx, name)
	if err != nil {
		return nil, err
	}
	server, err := program.Start(ctx)
	if err != nil {
		return nil, err
	}
	if server.Redis == "" { // the server itself uses the Redis protocol
		server.Redis = server.Address
	}
	if err := pages.Verify(ctx, server.Redis, 1); err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return server, nil
}

// byRedisBenchmark loads a server with the program of that name. Documents are
// compared before and after, because the program accepts any reply that is not an
// error.
func (h *harness) byRedisBenchmark(ctx context.Context, server *subject.Server, depth int) (load.Sample, error) {
	host, port, err := net.SplitHostPort(server.Redis)
	if err != nil {
		return load.Sample{}, err
	}
	run := func(requests uint64) (foreign.Run, error) {
		g := foreign.Generator{Program: h.benchmark, Parse: foreign.ParseRedisBenchmark(requests), Args: []string{
			"-h", host, "-p", port, "-c", strconv.Itoa(connections), "-P", strconv.Itoa(depth), "-n", strconv.FormatUint(requests, 10),
			"-r", strconv.Itoa(pages.Count), "--csv", "--precision", "3", "GET", pages.Resource + ":__rand_int__"}}
		return g.Measure(ctx, server.Processes())
	}
	// It needs a number of requests instead of a time, so the warm-up determines how many fit into
	// a window.
	calm, err := run(calibration(20_000, depth, h.warmUp))
	if err != nil {
		return load.Sample{}, err
	}
	r, err := run(calibration(float64(calm.Completed)/calm.Elapsed.Seconds(), depth, h.window))
	if err != nil {
		return load.Sample{}, err
	}
	if err := pages.Verify(ctx, server.Redis, pages.Count/64); err != nil {
		return load.Sample{}, err
	}
	return r.Sample()
}

// calibration returns the number of requests at a rate in a time, rounded to a multiple of the
// number in flight.
func calibration(rate float64, depth int, d time.Duration) uint64 {
	atOnce := uint64(connections * depth)
	return max(uint64(rate*d.Seconds())/atOnce, 1) * atOnce
}

// byOurClient loads a server with package redis, whose callers share one
// connection, and checks every value.
func (h *harness) byOurClient(ctx context.Context, server *subject.Server, round int) (load.Sample, error) {
	spec := loadproc.Spec{
		Target: pages.TargetName, Address: server.Redis, PID: server.PID(), Also: server.Also, Metrics: server.Metrics,
		Callers: connections, WarmUp: h.warmUp, Duration: h.window, Seed: uint64(round),
	}
	outcome, err := loadproc.Run(ctx, spec)
	if err != nil {
		return outcome.Part(), err
	}
	return outcome.Sample(), nil
}

// Check implements [command.Harness].
func (h *harness) Check(w io.Writer, rows []load.Row) error {
	command.ReportMissing(w, h.missing)
	return command.Failures(rows)
}

// Close implements [command.Harness].
func (h *harness) Close() error { return nil }
