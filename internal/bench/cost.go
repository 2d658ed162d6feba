package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/promtext"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A CostError reports why the CPU time of a server cannot be read.
type CostError struct {
	Of  string // "process 12" or a URL
	Err error
}

// Error returns which cost is missing, and why.
func (e *CostError) Error() string { return e.Of + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *CostError) Unwrap() error { return e.Err }

// meters returns counters of the CPU time that the servers of a plan have used, in nanoseconds. It
// has read each of them once.
func (p *Plan) meters(ctx context.Context) ([]load.Counter, error) {
	var all []load.Counter
	for _, pid := range p.PIDs {
		all = append(all, processMeter(pid))
	}
	for _, page := range p.Metrics {
		m, err := metricsMeter(page)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	for _, m := range all {
		if _, err := m.Read(ctx); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// processMeter reads the CPU time of a process from /proc.
func processMeter(pid int) load.Counter {
	name := fmt.Sprintf("process %d", pid)
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil {
		name += " (" + strings.TrimSpace(string(text)) + ")"
	}
	cpu := load.NewProcessMeter(pid)
	return load.Counter{Name: name, Read: func(context.Context) (float64, error) {
		t, err := cpu.CPU()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = errors.New("there is no such process, or none that this user may see")
		case errors.Is(err, fs.ErrPermission):
			err = errors.New("this user may not read its CPU time")
		}
		if err != nil {
			return 0, &CostError{name, err}
		}
		return float64(t), nil
	}}
}

// cpuSeconds is the name of the metric with which Prometheus client libraries report the CPU time
// of their process.
const cpuSeconds = "process_cpu_seconds_total"

// metricsMeter reads the CPU time of a process from its Prometheus page. The figure includes the
// cost of the page itself.
func metricsMeter(page string) (load.Counter, error) {
	u, err := url.Parse(page)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return load.Counter{}, &CostError{"the URL of the metrics", errors.New("expected one such as http://host:port/metrics")}
	}
	name := u.Scheme + "://" + u.Host + u.EscapedPath() // without the user and the query
	return load.Counter{Name: name, Read: func(ctx context.Context) (float64, error) {
		values, err := promtext.Scrape(ctx, page)
		if err != nil {
			return 0, &CostError{name, err}
		}
		seconds, ok := values[cpuSeconds]
		if !ok {
			return 0, &CostError{name, errors.New("the page has no " + cpuSeconds)}
		}
		return seconds * float64(time.Second), nil
	}}, nil
}
