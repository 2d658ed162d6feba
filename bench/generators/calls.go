package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// countCalls runs each generator once while strace counts the system calls of the server, and
// prints the calls per request.
func (h *harness) countCalls(ctx context.Context, w io.Writer) error {
	strace, err := subject.Find("strace")
	if err != nil {
		return err
	}
	for i := range h.settings {
		s := &h.settings[i]
		if !h.chosen(s) {
			continue
		}
		for _, g := range s.generators {
			if g.name == load.Control {
				continue
			}
			if err := h.traced(ctx, w, strace, s, g); err != nil {
				return fmt.Errorf("%s, %s: %w", s.name, g.name, err)
			}
		}
	}
	return nil
}

// traced runs one generator once.
func (h *harness) traced(ctx context.Context, w io.Writer, strace string, s *setting, g generator) (err error) {
	at, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Stop()) }()
	program, err := g.command(ctx, s, at) // may run the generator to measure its speed
	if err != nil {
		return err
	}
	out := filepath.Join(h.place.Scratch, "calls")
	args := []string{"-c", "-f", "-o", out}
	for _, pid := range at.pids {
		args = append(args, "-p", strconv.Itoa(pid))
	}
	tracer, err := proc.Command{Path: strace, Args: args, Ask: os.Interrupt}.Start()
	if err != nil {
		return err
	}
	attach, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := tracer.Await(attach, func(context.Context) error { return attached(at.pids) }); err != nil {
		return errors.Join(err, tracer.Stop())
	}
	r, err := program.Measure(ctx, at.pids)
	if err := errors.Join(err, tracer.Stop()); err != nil {
		return err
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	counts, err := parseCalls(text)
	if err != nil {
		return err
	}
	return writeCalls(w, s.name, g.name, r.Completed, counts)
}

// attached returns an error unless all processes are traced.
func attached(pids []int) error {
	for _, pid := range pids {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return err
		}
		if bytes.Contains(status, []byte("TracerPid:\t0\n")) {
			return fmt.Errorf("process %d is not traced", pid)
		}
	}
	return nil
}

// A callCount is the number of times a system call was made.
type callCount struct {
	name  string
	count uint64
}

// parseCalls reads the table of strace -c: share, seconds, microseconds, calls, errors if
// there were any, and the name. It returns the most frequent first.
func parseCalls(text []byte) ([]callCount, error) {
	var all []callCount
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 5 || fields[len(fields)-1] == "total" {
			continue
		}
		if _, err := strconv.ParseFloat(fields[0], 64); err != nil {
			continue // the header and separator lines
		}
		n, err := strconv.ParseUint(fields[3], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("line %q of strace; expected a number of calls: %w", strings.TrimSpace(line), err)
		}
		all = append(all, callCount{fields[len(fields)-1], n})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the output of strace contains no calls: %.200q", text)
	}
	slices.SortFunc(all, func(a, b callCount) int { return cmp.Or(-cmp.Compare(a.count, b.count), cmp.Compare(a.name, b.name)) })
	return all, nil
}

// writeCalls prints one line: all calls per request, and the most frequent ones.
func writeCalls(w io.Writer, scenario, generator string, requests uint64, counts []callCount) error {
	if requests == 0 {
		return errors.New("no requests")
	}
	sum := uint64(0)
	var parts []string
	for i, c := range counts {
		sum += c.count
		if i < 6 {
			parts = append(parts, fmt.Sprintf("%s %.3f", c.name, float64(c.count)/float64(requests)))
		}
	}
	_, err := fmt.Fprintf(w, "%-16s %-20s %9d requests, %.3f calls each: %s\n", scenario, generator, requests, float64(sum)/float64(requests), strings.Join(parts, ", "))
	return err
}

// startLimit is how long a server may take until it answers, or strace until it traces the server.
const startLimit = 30 * time.Second
