package main

import (
	"context"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/credentials"
	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

const suiteName = "http"

// Names of subjects other than ours and the control.
const (
	onNetHTTP = "slipstream-nethttp" // ours with the engine net/http
	floorName = "floor-epoll"
	off       = "off"                  // ours with all features of hit-full disabled
	clearText = "slipstream-cleartext" // ours without TLS, for comparison with those that use it
)

// rivals are the third-party servers, in the order of the tables.
var rivals = []string{floorName, "net/http", "fasthttp", "fasthttp-64k", "netpoll", "nginx", "varnish", "article"}

// A harness builds the subjects and measures them.
type harness struct {
	// Immutable after newHarness.
	options     *command.Flags
	place       command.Place
	progress    io.Writer
	window      time.Duration
	warmUp      time.Duration
	catalog     *subject.Catalog
	missing     []error         // programs that are not installed
	absent      map[string]bool // the subjects that need them
	credentials *credentials.Set
	slipstream  func() (string, error)               // builds our command on first use
	certificate func() (*subject.Certificate, error) // creates one on first use

	// Owned by the goroutine that runs the suite.
	rates map[string]float64 // maximum requests per second, by subject
}

func newHarness(s *command.Flags, p command.Place, progress io.Writer) *harness {
	h := &harness{
		options: s, place: p, progress: progress, window: s.Window(2*time.Second, 500*time.Millisecond), warmUp: time.Second,
		absent: map[string]bool{}, rates: map[string]float64{},
	}
	if s.Quick {
		h.warmUp = 200 * time.Millisecond
	}
	for name, needs := range map[string]string{"nginx": "nginx", "varnish": "varnishd"} {
		if _, err := subject.Find(needs); err != nil {
			h.missing, h.absent[name] = append(h.missing, err), true
		}
	}
	h.slipstream = sync.OnceValues(func() (string, error) {
		binary := filepath.Join(p.Scratch, "slipstream")
		return binary, subject.BuildSlipstream(context.Background(), filepath.Dir(p.Module), binary)
	})
	h.certificate = sync.OnceValues(func() (*subject.Certificate, error) {
		return subject.NewCertificate(filepath.Join(p.Scratch, "certificate"))
	})
	h.catalog = subject.NewCatalog(suiteName, progress, h.builds())
	return h
}

// builds says how each program is built.
func (h *harness) builds() map[string]func(context.Context) (subject.Program, error) {
	rival := func(suite, directory string, args ...string) func(context.Context) (subject.Program, error) {
		return func(ctx context.Context) (subject.Program, error) {
			r, err := subject.BuildRival(ctx, h.place.Module, h.place.Scratch, suite, directory)
			if err != nil {
				return nil, err
			}
			return r.With(args...), nil
		}
	}
	all := map[string]func(context.Context) (subject.Program, error){
		floorName:      rival(suiteName, "floor"),
		"net/http":     rival("gateway", "nethttp"),
		"fasthttp":     rival("gateway", "fasthttp"),
		"fasthttp-64k": rival("gateway", "fasthttp", "-buffers", "65536"),
		"netpoll":      rival(suiteName, "netpoll"),
		"article":      rival("gateway", "article"),
		"nginx": func(context.Context) (subject.Program, error) {
			return subject.NewNginx(filepath.Join(h.place.Scratch, "nginx"))
		},
		"varnish": func(ctx context.Context) (subject.Program, error) {
			origin, err := subject.BuildRival(ctx, h.place.Module, h.place.Scratch, "gateway", "nethttp")
			if err != nil {
				return nil, err
			}
			return subject.NewVarnish(filepath.Join(h.place.Scratch, "varnish"), origin)
		},
	}
	for name, engine := range map[string]string{load.Ours: "loop", onNetHTTP: "net/http"} {
		all[name] = func(ctx context.Context) (subject.Program, error) {
			return h.gateway(ctx, name, subject.Extra{Sections: "http: { engine: " + engine + " }\n"})
		}
		all[fullOf(name)] = func(ctx context.Context) (subject.Program, error) { return h.fullGateway(ctx, name, engine) }
		all[tlsOf(name)] = func(ctx context.Context) (subject.Program, error) { return h.tlsGateway(ctx, name, engine) }
	}
	all[off] = func(ctx context.Context) (subject.Program, error) {
		return h.gateway(ctx, off, subject.Extra{Sections: "http: { engine: loop }\nlog: { slow: 0s }\n"})
	}
	maps.Copy(all, h.tlsBuilds())
	return all
}

// gateway returns ours over its own database in a directory of that name.
func (h *harness) gateway(ctx context.Context, name string, extra subject.Extra) (subject.Program, error) {
	binary, err := h.slipstream()
	if err != nil {
		return nil, err
	}
	bare, err := subject.NewSlipstream(ctx, binary, filepath.Join(h.place.Scratch, "gateway-"+name), depts.Count, "512MiB")
	if err != nil {
		return nil, err
	}
	return bare.With(extra)
}

// start starts a fresh server of a subject; the control is the same program as ours.
func (h *harness) start(ctx context.Context, name string) (*subject.Server, error) {
	p, err := h.program(ctx, name)
	if err != nil {
		return nil, err
	}
	return p.Start(ctx)
}

func (h *harness) program(ctx context.Context, name string) (subject.Program, error) {
	switch name {
	case load.Control:
		name = load.Ours
	case fullOf(load.Control):
		name = fullOf(load.Ours)
	case tlsOf(load.Control):
		name = tlsOf(load.Ours)
	}
	return h.catalog.Program(ctx, name)
}

// present omits subjects whose program is not installed.
func (h *harness) present(names ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return h.absent[name] })
}

// Close implements [command.Harness].
func (h *harness) Close() error { return nil }

// Check implements [command.Harness].
func (h *harness) Check(w io.Writer, rows []load.Row) error {
	command.ReportMissing(w, h.missing)
	checkStretch(w, rows)
	checkMany(w, rows)
	checkIdle(w, rows)
	return command.Failures(rows)
}
