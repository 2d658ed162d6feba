package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// A micro is the job of a child process that runs a micro-benchmark.
type micro struct {
	Question string
	Kind     string  `json:",omitempty"`
	Count    int     `json:",omitempty"`
	Setting  setting `json:",omitzero"`
	Callers  int
	Free     bool `json:",omitempty"`
	WarmUp   time.Duration
	Window   time.Duration
}

// A microResult is the result of a micro.
type microResult struct {
	Ops     uint64        `json:"ops"`
	Elapsed time.Duration `json:"elapsed_ns"`
	CPU     time.Duration `json:"cpu_ns"` // of the process
	// ByCPU means that the time of an op is CPU time, not elapsed time.
	ByCPU bool   `json:"by_cpu,omitempty"`
	Error string `json:"error,omitempty"`
}

// microFunc measures one variant under one load.
type microFunc func(context.Context, micro) (microResult, error)

func (r microResult) sample() load.Sample {
	ops := float64(max(r.Ops, 1))
	ns := float64(r.Elapsed)
	if r.ByCPU {
		ns = float64(r.CPU)
	}
	return load.Sample{
		Values:  map[load.Metric]float64{load.NsOp: ns / ops, load.ClientUS: float64(r.CPU) / ops / 1000},
		Details: r,
	}
}

const microArgument = "-micro-process"

// microChild runs a micro-benchmark and exits if the process was started for one.
func microChild() {
	if len(os.Args) != 2 || os.Args[1] != microArgument {
		return
	}
	r, err := runMicro(os.Stdin)
	if err != nil {
		r.Error = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runMicro(in io.Reader) (microResult, error) {
	var m micro
	if err := json.NewDecoder(in).Decode(&m); err != nil {
		return microResult{}, fmt.Errorf("specification: %w", err)
	}
	for _, q := range questions() {
		if q.name == m.Question && q.micro != nil {
			return q.micro(context.Background(), m)
		}
	}
	return microResult{}, fmt.Errorf("question %q, want a micro-benchmark", m.Question)
}

// runMicroProcess measures in a separate process.
func runMicroProcess(ctx context.Context, m micro) (load.Sample, error) {
	self, err := os.Executable()
	if err != nil {
		return load.Sample{}, err
	}
	in, err := json.Marshal(m)
	if err != nil {
		return load.Sample{}, err
	}
	cmd := exec.CommandContext(ctx, self, microArgument)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return load.Sample{}, fmt.Errorf("micro process: %w", err)
	}
	var r microResult
	if err := json.Unmarshal(out, &r); err != nil {
		return load.Sample{}, fmt.Errorf("micro process: %w", err)
	}
	if r.Error != "" {
		return load.Sample{}, fmt.Errorf("micro process: %s", r.Error)
	}
	return r.sample(), nil
}

// A meter measures the time and the CPU time of a window.
type meter struct {
	begun time.Time
	cpu   time.Duration
}

func startMeter() meter { return meter{cpu: ownCPU(), begun: time.Now()} }

func (m meter) result(ops uint64) microResult {
	return microResult{Ops: ops, Elapsed: time.Since(m.begun), CPU: ownCPU() - m.cpu}
}

// finite omits what JSON cannot represent.
func finite(values map[load.Metric]float64) map[load.Metric]float64 {
	out := make(map[load.Metric]float64, len(values))
	for name, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out[name] = math.Round(v*1e4) / 1e4
		}
	}
	return out
}
