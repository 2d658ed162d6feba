// Package foreign runs load generators as programs and reads what they print. Third-party
// generators check less of the answers than ours. They provide a second opinion on the figures of
// servers, and are compared with slipstream bench.
package foreign

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// A Run is the result of a generator.
type Run struct {
	Completed uint64
	Errors    uint64
	Problem   string        // the text of the first error
	Elapsed   time.Duration // as the generator measured it
	P50, P99  time.Duration // 0 if not reported
	Client    time.Duration // CPU time of the generator
	Server    time.Duration // of the processes metered
}

// A Generator is a program that loads a server. Program and Parse must be set.
type Generator struct {
	Program string
	Args    []string
	Parse   func(output string) (Run, error)
	// Accept is another exit code with which the output is valid. If zero, only success is
	// accepted.
	Accept int
}

// Measure runs the generator and measures the CPU time of the generator and of the processes of a
// server, which must be idle before and after.
func (g Generator) Measure(ctx context.Context, pids []int) (Run, error) {
	var meters []*load.ProcessMeter
	for _, pid := range pids {
		meters = append(meters, load.NewProcessMeter(pid))
	}
	before, err := read(meters)
	if err != nil {
		return Run{}, err
	}
	cmd := exec.CommandContext(ctx, g.Program, g.Args...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil && (g.Accept == 0 || cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != g.Accept) {
		return Run{}, fmt.Errorf("%s: %w: %.400s", g.Program, err, strings.TrimSpace(out.String()+problems.String()))
	}
	after, err := read(meters)
	if err != nil {
		return Run{}, err
	}
	r, err := g.Parse(out.String())
	if err != nil {
		return r, fmt.Errorf("%s: %w", g.Program, err)
	}
	r.Client, r.Server = cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), after-before
	return r, nil
}

func read(meters []*load.ProcessMeter) (sum time.Duration, err error) {
	for _, m := range meters {
		cpu, err := m.CPU()
		if err != nil {
			return 0, err
		}
		sum += cpu
	}
	return sum, nil
}

// Sample converts a run to the figures of a round.
func (r Run) Sample() (load.Sample, error) {
	if r.Completed == 0 || r.Elapsed <= 0 {
		return load.Sample{}, fmt.Errorf("%d requests in %v, want some", r.Completed, r.Elapsed)
	}
	micros := func(d time.Duration) float64 { return float64(d) / 1000 }
	s := load.Sample{Errors: r.Errors, ErrorSample: r.Problem, Details: r, Values: map[load.Metric]float64{
		load.RPS:      float64(r.Completed) / r.Elapsed.Seconds(),
		load.ClientUS: micros(r.Client) / float64(r.Completed),
		load.ServerUS: micros(r.Server) / float64(r.Completed),
	}}
	if r.P50 > 0 {
		s.Values[load.P50US] = micros(r.P50)
	}
	if r.P99 > 0 {
		s.Values[load.P99US] = micros(r.P99)
	}
	return s, nil
}
