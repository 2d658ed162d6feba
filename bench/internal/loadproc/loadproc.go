// Package loadproc runs the load of a benchmark in a separate process, so that the
// CPU time, the descriptors and the garbage collector of the generator are separate
// from those of the harness and of the server.
//
// The process is the harness's own program, started again with [Argument], or another
// program that calls [Child]. It reads a [Spec] from standard input and writes an
// [Outcome] to standard output.
package loadproc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/pprof"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/httpget"
	"github.com/slipstream-go/slipstream/bench/internal/pgcluster"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Argument makes a harness the load process.
const Argument = "-load-process"

// A Spec describes a load and the server for it.
type Spec struct {
	// Target names one of the targets given to [Child]; if empty, the target is documents over
	// HTTP, described by the fields up to Keys.
	Target string
	// Database is the URL of the PostgreSQL server that a named target reads, over at most
	// Connections connections.
	Database    string
	Connections int
	// Options are options of the named target, in JSON.
	Options json.RawMessage

	Address string
	Metrics string // address whose /metrics reports allocations; if empty, none
	PID     int    // of the server
	Also    []int  // further processes of the server
	Path    string // of documents, without the key
	Member  string // that bodies begin with
	Keys    int64
	// Fields of [httpget.Target] with the same names.
	Fields      []string
	Traced      bool
	Coding      string
	Series      int
	CacheStatus string
	Strays      bool // the first pass counts answers with another Cache-Status instead of failing
	Learners    int
	Certificate []byte
	Resume      bool
	HTTP2       bool
	Fresh       bool
	Sources     int // if 0, as many as the connections need
	// Array is the number of keys per request. If zero, a request is for one
	// document by its path.
	Array int
	// Depts means that the documents are those of package depts, with which the first pass compares
	// answers.
	Depts bool

	// Program is the program of the load process; if empty, this program.
	Program string `json:"-"`
	// Profile is the file of a CPU profile of the load process in the window; if empty, none.
	Profile string
	// Calls enables counting the system calls that read or write, of the servers and of the load
	// process.
	Calls bool

	// Postmaster is the main process of a PostgreSQL server whose CPU time is measured, too. If
	// zero, there is none.
	Postmaster int
	// Count lists metrics of the page whose increase is recorded.
	Count []string

	Callers  int
	Arrivals load.Arrivals // if zero, a closed loop
	Batch    int           // requests passed to a load.BatchCaller together; if 0, one at a time
	WarmUp   time.Duration
	Duration time.Duration
	Requests int // of each caller; if 0, as many as fit into Duration
	// Learn requests every key once in advance. This warms the server's cache, and a sample of the
	// answers is later compared with those of this pass.
	Learn bool
	Seed  uint64
}

// An Outcome is what the load process reports.
type Outcome struct {
	Result    *load.Result
	MeanBytes float64 // of the bodies of the first pass; 0 without one
	Error     string
}

// Names of the counters in the Result.
const (
	Mallocs        = "server_mallocs"
	AllocatedBytes = "server_bytes"
	PostgresCPU    = "postgres_ns"
	ServerCalls    = "server_calls"
	ClientCalls    = "client_calls"
)

// Targets lists the targets that a load process supports in addition to documents over HTTP. A
// target that is an io.Closer is closed after the load; a method Counters adds counters; a method
// Amend may replace figures of the result.
type Targets map[string]func(context.Context, Spec) (load.Target, error)

// Child runs the load and exits if the program was started as a load process. Call it first in
// main.
func Child(targets ...Targets) {
	if len(os.Args) != 2 || os.Args[1] != Argument {
		return
	}
	// The harness interrupts the process when its own context ends, and so does a
	// Ctrl-C in the terminal: what was measured until then is still reported.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	outcome := child(ctx, os.Stdin, targets)
	if err := json.NewEncoder(os.Stdout).Encode(outcome); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(ctx context.Context, in io.Reader, targets []Targets) Outcome {
	var spec Spec
	if err := json.NewDecoder(in).Decode(&spec); err != nil {
		return Outcome{Error: "specification: " + err.Error()}
	}
	outcome, err := spec.run(ctx, targets)
	if err != nil {
		outcome.Error = err.Error()
	}
	return outcome
}

// oneSource is how many connections may share a source address; more are spread over several
// addresses, 4,096 on each.
const oneSource = 4096

func (s Spec) run(ctx context.Context, targets []Targets) (outcome Outcome, err error) {
	if err := load.NeedDescriptors(uint64(s.Callers) + 100); err != nil {
		return Outcome{}, err
	}
	target, err := s.target(ctx, targets)
	if err != nil {
		return Outcome{}, err
	}
	if closer, ok := target.(io.Closer); ok {
		defer func() {
			if closeErr := closer.Close(); err == nil {
				err = closeErr
			}
		}()
	}
	if learner, ok := target.(*httpget.Target); ok && s.Learn {
		if err := learner.Learn(ctx); err != nil {
			return outcome, err
		}
		outcome.MeanBytes = learner.MeanBytes()
	}
	cfg := load.Config{
		Callers: s.Callers, Arrivals: s.Arrivals, Batch: s.Batch, WarmUp: s.WarmUp, Duration: s.Duration, Requests: s.Requests,
		DrainLimit: 30 * time.Second, Seed: s.Seed,
	}
	if s.PID != 0 {
		cfg.Servers = append([]int{s.PID}, s.Also...)
	}
	if s.Metrics != "" {
		cfg.Counters = append(allocationCounters(s.Metrics), pageCounters(s.Metrics, s.Count)...)
	}
	if s.Postmaster != 0 {
		meter := pgcluster.NewMeter(s.Postmaster)
		cfg.Counters = append(cfg.Counters, load.Counter{Name: PostgresCPU, Read: func(context.Context) (float64, error) {
			cpu, err := meter.CPU()
			return float64(cpu), err
		}})
	}
	if counted, ok := target.(interface{ Counters() []load.Counter }); ok {
		cfg.Counters = append(cfg.Counters, counted.Counters()...)
	}
	if s.Calls {
		cfg.Counters = append(cfg.Counters, callCounter(ServerCalls, cfg.Servers...), callCounter(ClientCalls, 0))
	}
	if s.Profile != "" {
		cfg.Counters = append(cfg.Counters, profileOf(s.Profile))
	}
	outcome.Result, err = load.Run(ctx, cfg, target)
	if amender, ok := target.(interface{ Amend(*load.Result) }); ok && outcome.Result != nil {
		amender.Amend(outcome.Result)
	}
	return outcome, err
}

// callCounter returns the sum of [proc.Calls] over all processes.
func callCounter(name string, pids ...int) load.Counter {
	return load.Counter{Name: name, Read: func(context.Context) (float64, error) {
		var sum int64
		for _, pid := range pids {
			n, err := proc.Calls(pid)
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return float64(sum), nil
	}}
}

// profileOf returns a counter that writes a CPU profile: the first reading, before the window,
// starts the profile, and the second one stops it.
func profileOf(path string) load.Counter {
	var file *os.File
	return load.Counter{Name: "profile", Read: func(context.Context) (float64, error) {
		if file != nil {
			pprof.StopCPUProfile()
			return 1, file.Close()
		}
		var err error
		if file, err = os.Create(path); err != nil {
			return 0, err
		}
		return 0, pprof.StartCPUProfile(file)
	}}
}

func (s Spec) target(ctx context.Context, targets []Targets) (load.Target, error) {
	if s.Target == "" {
		target := &httpget.Target{Address: s.Address, Path: s.Path, Member: s.Member, Keys: s.Keys, Seed: s.Seed,
			Fields: s.Fields, Traced: s.Traced, Coding: s.Coding, Batch: s.Array, Series: s.Series, Sources: s.Sources,
			CacheStatus: s.CacheStatus, Learners: s.Learners,
			Certificate: s.Certificate, Resume: s.Resume, HTTP2: s.HTTP2, Fresh: s.Fresh}
		if s.Depts {
			target.Document = func(key int64) []byte {
				d := depts.Make(key)
				return d.AppendJSON(nil)
			}
		}
		if s.Strays {
			target.Strays = new(atomic.Int64)
		}
		if s.Sources == 0 && s.Callers > oneSource {
			target.Sources = (s.Callers + oneSource - 1) / oneSource
		}
		return target, nil
	}
	for _, known := range targets {
		if open := known[s.Target]; open != nil {
			return open(ctx, s)
		}
	}
	return nil, fmt.Errorf("no target %q", s.Target)
}

// stopLimit is how long a load process may take to report after it was interrupted. Requests in
// flight may take 2 s of that.
const stopLimit = 10 * time.Second

// Run starts the load process for s and waits for it. When ctx ends, it interrupts the process. If
// the load did not finish, Run returns the error together with what was measured until then, if
// anything was.
func Run(ctx context.Context, s Spec) (Outcome, error) {
	program := s.Program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return Outcome{}, err
		}
	}
	in, err := json.Marshal(s)
	if err != nil {
		return Outcome{}, err
	}
	cmd := exec.CommandContext(ctx, program, Argument)
	cmd.Stdin = bytes.NewReader(in)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return proc.Interrupt(cmd.Process) }
	cmd.WaitDelay = stopLimit
	out, err := cmd.Output()
	var outcome Outcome
	if jsonErr := json.Unmarshal(out, &outcome); jsonErr != nil {
		return Outcome{}, fmt.Errorf("load process: %w", cmp.Or(err, jsonErr))
	}
	switch {
	case outcome.Error == "":
		return outcome, nil // complete, even if ctx has ended since
	case ctx.Err() != nil:
		return outcome, fmt.Errorf("load process: %s: %w", outcome.Error, context.Cause(ctx))
	}
	return outcome, fmt.Errorf("load process: %s", outcome.Error)
}

// Partial reports whether the load did not finish and something was measured until its end. An
// outcome with an error may also be complete, but wrong.
func (o Outcome) Partial() bool { return o.Result != nil && o.Result.Partial != "" }

// Part returns the figures of a partial outcome, or the zero Sample for others.
func (o Outcome) Part() load.Sample {
	if !o.Partial() {
		return load.Sample{}
	}
	return o.Sample()
}

// Sample converts an outcome to the figures of a round: those of the generator, and the server's
// allocations per request.
func (o Outcome) Sample() load.Sample {
	s := o.Result.Sample()
	for name, metric := range map[string]load.Metric{Mallocs: load.Allocs, AllocatedBytes: load.BytesOp} {
		if v, ok := o.Result.Cost.Counters[name]; ok && o.Result.Completed > 0 {
			s.Values[metric] = max(v, 0) / float64(o.Result.Completed)
		}
	}
	return s
}
