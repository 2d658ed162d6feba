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
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/slipstream-go/slipstream/bench/internal/cpushare"
	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

const module = "github.com/slipstream-go/slipstream/"

// parts are the parts of the hit path.
var parts = slices.Concat(cpushare.Runtime, cpushare.Parts{
	{Name: "ours: frontend", Prefixes: []string{module + "internal/gateway/frontend"}},
	{Name: "ours: cache and memory tier", Prefixes: []string{module + "cache", module + "internal/gateway/tier", "github.com/maypok86/otter"}},
	{Name: "ours: invalidation stream", Prefixes: []string{module + "internal/gateway/origin", "github.com/ncruces"}},
	{Name: "ours: the rest", Prefixes: []string{module}},
	{Name: "net/http: read a request", Prefixes: []string{
		"net/http.readRequest", "net/http.(*conn).readRequest", "net/http.ReadRequest", "net/textproto", "net/url",
		"net/http.(*connReader)", "net/http.parse", "net/http.fixLength", "net/http.readTransfer",
	}},
	{Name: "net/http: write an answer", Prefixes: []string{
		"net/http.(*response)", "net/http.(*chunkWriter)", "net/http.Header", "net/http.checkConnErrorWriter", "net/http.writeStatusLine",
		"net/http.extraHeader", "net/http.(*extraHeader)", "net/http.bufferPool",
	}},
	{Name: "net/http: the rest", Prefixes: []string{"net/http", "net.", "bufio", "context", "internal/poll", "time."}},
})

// A profiled is a subject whose CPU time is profiled.
type profiled struct {
	name    string
	program subject.Program
	ask     func(*loadproc.Spec) // as in memory-hit if nil
}

// toProfile returns the subjects to profile in a scenario of hits: ours, and in memory-hit-full
// also ours with all features disabled.
func (h *harness) toProfile(ctx context.Context, scenario string) ([]profiled, error) {
	for _, v := range variants {
		if name, _, _ := strings.Cut(scenario, "/"); name == "memory-hit-full"+v.name {
			f, err := h.full(ctx)
			if err != nil {
				return nil, err
			}
			ask := func(s *loadproc.Spec) { f.ask(v, s) }
			return []profiled{{load.Ours, f.on, ask}, {off, f.off, ask}}, nil
		}
	}
	program, err := h.program(ctx, load.Ours)
	return []profiled{{load.Ours, program, nil}}, err
}

// profile runs memory hits of ours under load and prints where the CPU time goes, with a table for
// each subject.
func (h *harness) profile(ctx context.Context, callers int, stdout io.Writer) error {
	subjects, err := h.toProfile(ctx, h.options.Scenario)
	if err != nil {
		return err
	}
	for _, s := range subjects {
		raw, err := h.record(ctx, s, callers)
		if err != nil {
			return err
		}
		if h.options.profiles != "" {
			if err := os.WriteFile(filepath.Join(h.options.profiles, s.name+".pprof"), raw, 0o644); err != nil {
				return err
			}
		}
		parsed, err := profile.Parse(bytes.NewReader(raw))
		if err != nil {
			return err
		}
		of, err := parts.Shares(parsed)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "**%s**\n\n", s.name)
		if err := cpushare.Write(stdout, of); err != nil {
			return err
		}
		fmt.Fprintln(stdout)
	}
	return nil
}

// record takes a profile of a subject inside the measured window.
func (h *harness) record(ctx context.Context, s profiled, callers int) ([]byte, error) {
	server, err := s.program.Start(ctx)
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	seconds := max(int(2*h.window/time.Second), 1)
	spec := server.Spec()
	spec.Keys, spec.Learn, spec.Callers, spec.WarmUp = depts.Count, true, callers, h.warmUp
	// Time for the first pass, connecting, and the start and the end of the profile.
	spec.Duration = time.Duration(seconds+4) * time.Second
	if s.ask != nil {
		s.ask(&spec)
	}
	loaded := make(chan error, 1)
	// Ends with the load process; the receive below waits for it.
	go func() {
		outcome, err := loadproc.Run(ctx, spec)
		if err == nil && outcome.Result.Errors > 0 {
			err = fmt.Errorf("%d requests failed, for example: %s", outcome.Result.Errors, outcome.Result.ErrorSample)
		}
		loaded <- err
	}()
	wait := time.NewTimer(h.warmUp + 2*time.Second)
	defer wait.Stop()
	select {
	case <-wait.C:
	case err := <-loaded:
		return nil, cmp.Or(err, errors.New("the load ended before the profile began"))
	}
	raw, err := get(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", server.Metrics, seconds))
	if loadErr := <-loaded; err == nil {
		err = loadErr
	}
	return raw, err
}
