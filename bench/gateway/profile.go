package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A part of the hit path, known by the functions that belong to it.
type part struct {
	name     string
	prefixes []string
}

const module = "github.com/slipstream-go/slipstream/"

// parts are tried from the innermost function of a stack outwards; the first
// function that belongs to a part gives it the sample. So a system call counts
// as that and not as the parser that made it, and a copy of memory counts for
// the part that copies.
var parts = []part{
	{"kernel: read from a socket", []string{"syscall.read", "syscall.Read", "syscall.recv"}},
	{"kernel: write to a socket", []string{"syscall.write", "syscall.Write", "syscall.send"}},
	{"garbage collector", []string{"runtime.gcBgMarkWorker", "runtime.gcAssist", "runtime.bgsweep", "runtime.gcDrain", "runtime.bgscavenge"}},
	{"allocation", []string{"runtime.mallocgc", "runtime.newobject", "runtime.makeslice", "runtime.growslice", "runtime.makemap"}},
	{"scheduler and poller", []string{
		"runtime.schedule", "runtime.findRunnable", "runtime.mcall", "runtime.park_m", "runtime.netpoll", "runtime.gopark",
		"runtime.goready", "runtime.ready", "runtime.wakep", "runtime.mstart", "runtime.exitsyscall", "runtime.entersyscall",
		"runtime.reentersyscall", "runtime.goexit0", "runtime.newproc", "runtime.sysmon",
	}},
	{"ours: frontend", []string{module + "internal/gateway/frontend"}},
	{"ours: cache and memory tier", []string{module + "cache", module + "internal/gateway/tier", "github.com/maypok86/otter"}},
	{"ours: invalidation stream", []string{module + "internal/gateway/origin", "github.com/ncruces"}},
	{"ours: the rest", []string{module}},
	{"net/http: read a request", []string{
		"net/http.readRequest", "net/http.(*conn).readRequest", "net/http.ReadRequest", "net/textproto", "net/url",
		"net/http.(*connReader)", "net/http.parse", "net/http.fixLength", "net/http.readTransfer",
	}},
	{"net/http: write an answer", []string{
		"net/http.(*response)", "net/http.(*chunkWriter)", "net/http.Header", "net/http.checkConnErrorWriter", "net/http.writeStatusLine",
		"net/http.extraHeader", "net/http.(*extraHeader)", "net/http.bufferPool",
	}},
	{"net/http: the rest", []string{"net/http", "net.", "bufio", "context", "internal/poll", "time."}},
}

const otherPart = "other"

// partOf returns the part of a stack whose innermost function comes first.
func partOf(stack []string) string {
	for _, function := range stack {
		for _, p := range parts {
			for _, prefix := range p.prefixes {
				if strings.HasPrefix(function, prefix) {
					return p.name
				}
			}
		}
	}
	return otherPart
}

// shares returns the share of each part in the CPU time of a profile.
func shares(p *profile.Profile) (map[string]float64, error) {
	value := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == "cpu" })
	if value < 0 {
		return nil, errors.New("profile without cpu time")
	}
	out := map[string]float64{}
	var total float64
	for _, s := range p.Sample {
		var stack []string
		for _, location := range s.Location {
			for _, line := range location.Line {
				if line.Function != nil {
					stack = append(stack, line.Function.Name)
				}
			}
		}
		v := float64(s.Value[value])
		out[partOf(stack)] += v
		total += v
	}
	if total == 0 {
		return nil, errors.New("profile without samples")
	}
	for name := range out {
		out[name] /= total
	}
	return out, nil
}

// A profiled is a subject whose CPU time is looked at.
type profiled struct {
	name    string
	program subject.Program
	ask     func(*loadproc.Spec) // nil: as in memory-hit
}

// toProfile are the subjects of a scenario of hits: ours, and in memory-hit-full also
// ours with everything switched off.
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

// profile runs memory hits of ours under load and prints where the CPU time goes, a
// table a subject.
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
		of, err := shares(parsed)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "**%s**\n\n", s.name)
		if err := writeShares(stdout, of); err != nil {
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
	// Room for the first pass, connecting and the profile's own start and end.
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

// writeShares prints a table, the largest share first.
func writeShares(w io.Writer, of map[string]float64) error {
	var b strings.Builder
	b.WriteString("| part | share of CPU time |\n|---|---:|\n")
	names := slices.SortedFunc(maps.Keys(of), func(x, y string) int { return cmp.Compare(of[y], of[x]) })
	for _, name := range names {
		fmt.Fprintf(&b, "| %s | %.1f %% |\n", name, 100*of[name])
	}
	_, err := io.WriteString(w, b.String())
	return err
}
