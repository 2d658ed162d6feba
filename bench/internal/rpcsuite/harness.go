// Package rpcsuite contains the suites thrift-rpc, thrift-views and thrift-services, which build the
// same programs.
package rpcsuite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/rpcload"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/bench/internal/workshop"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A plan is what a suite measures.
type plan struct {
	name     string
	rounds   func() []round
	pairings []pairing
	goals    func(subject string, r round) []load.Goal
	// more returns further scenarios. If nil, there are none.
	more func(h *harness) []load.Scenario
	// check checks targets that are not ratios, and prints the results. If nil, there are none.
	check func(w io.Writer, raw command.RawRounds, rows []load.Row)
}

// suite returns the suite of a plan. A round of twelve subjects takes about 30 s.
func (p *plan) suite() command.Suite {
	return command.Suite{
		Name: p.name, Window: "1s, or 150ms with -quick", Descriptors: 3000, MaxRounds: 16,
		Open: func(f *command.Flags, place command.Place, progress io.Writer) command.Harness {
			return newHarness(p, f, place, progress)
		},
		Markdown: p.writeMarkdown,
	}
}

// RPC returns the suite thrift-rpc.
func RPC() command.Suite { return calls.suite() }

// Views returns the suite thrift-views.
func Views() command.Suite { return messages.suite() }

// A harness provides the scenarios and builds the programs that they start.
type harness struct {
	// Immutable after newHarness.
	plan           *plan
	window, warmUp time.Duration
	place          command.Place
	shop           workshop.Workshop
	catalog        *subject.Catalog
	missing        map[string]error // programs that cannot be built, and why

	// Owned by the goroutine that runs the suite.
	begun       bool                 // the module in the workshop exists
	certificate *subject.Certificate // nil before it is created
}

func newHarness(plan *plan, f *command.Flags, p command.Place, progress io.Writer) *harness {
	h := &harness{plan: plan, window: f.Window(time.Second, 150*time.Millisecond), warmUp: time.Second, place: p, missing: missing()}
	if f.Quick {
		h.warmUp = 200 * time.Millisecond
	}
	h.shop = workshop.Workshop{Dir: filepath.Join(p.Scratch, "programs"), Source: source}
	builds := map[string]func(context.Context) (subject.Program, error){}
	for name := range generators {
		builds[name] = func(ctx context.Context) (subject.Program, error) { return h.build(ctx, name) }
	}
	builds[gatewayName] = h.gateway
	h.catalog = subject.NewCatalog(plan.name, progress, builds)
	return h
}

// Close implements [command.Harness].
func (*harness) Close() error { return nil }

// Check implements [command.Harness]: it prints the columns that only this suite has, and checks
// the targets that are not ratios.
func (h *harness) Check(w io.Writer, rows []load.Row) error {
	for _, name := range programs {
		if err := h.missing[name]; err != nil {
			command.ReportMissing(w, []error{err})
		}
	}
	raw, err := h.place.ReadRaw(h.plan.name)
	if err != nil {
		return err
	}
	if err := writeTable(w, raw, rows); err != nil {
		return err
	}
	if h.plan.check != nil {
		h.plan.check(w, raw, rows)
	}
	return command.Failures(rows)
}

// program returns a program, built on first use.
func (h *harness) program(ctx context.Context, name string) (*subject.Rival, error) {
	p, err := h.catalog.Program(ctx, name)
	if err != nil {
		return nil, err
	}
	return p.(*subject.Rival), nil
}

// slack is the time that a load process may take in addition to the warm-up and the window. Both
// end with waiting for the last answer, for which the generator has a limit.
const slack = 90 * time.Second

// run runs the server and the load process of one subject for one window.
func (h *harness) run(ctx context.Context, s pairing, r round, number int) (sample load.Sample, err error) {
	server, err := h.program(ctx, s.server.program)
	if err != nil {
		return load.Sample{}, err
	}
	client, err := h.program(ctx, s.client.program)
	if err != nil {
		return load.Sample{}, err
	}
	server = server.With("-server", s.server.name)
	if r.tls {
		if h.certificate == nil {
			if h.certificate, err = subject.NewCertificate(filepath.Join(h.place.Scratch, "certificate")); err != nil {
				return load.Sample{}, err
			}
		}
		server = server.WithTLS(h.certificate)
	}
	running, err := server.Start(ctx)
	if err != nil {
		return load.Sample{}, err
	}
	defer func() { err = errors.Join(err, running.Stop()) }()
	spec := running.Spec()
	if spec.Options, err = json.Marshal(r.work); err != nil {
		return load.Sample{}, err
	}
	spec.Program, spec.Target = client.Binary(), s.client.name
	spec.Batch = r.batch
	if r.profile {
		spec.Profile = filepath.Join(h.place.Scratch, "client.pprof")
	}
	window := h.window * time.Duration(max(r.windows, 1))
	spec.Callers, spec.Arrivals, spec.WarmUp, spec.Duration, spec.Seed = r.callers, r.arrivals, h.warmUp, window, uint64(number)
	limited, cancel := context.WithTimeout(ctx, h.warmUp+window+slack)
	defer cancel()
	outcome, err := loadproc.Run(limited, spec)
	if err != nil {
		err = fmt.Errorf("%s: %w", s.name, err)
		if !outcome.Partial() {
			return load.Sample{}, err
		}
	}
	sample = sampleOf(outcome)
	if r.profile && err == nil {
		err = addShares(spec.Profile, sample.Values)
	}
	return sample, err
}

// Metrics of this suite in raw results, per call.
const (
	bothUS       load.Metric = "both_us"       // CPU of client and server together
	p90US        load.Metric = "p90_us"        // latency
	clientAllocs load.Metric = "client_allocs" // objects
	serverAllocs load.Metric = "server_allocs"
	reads        load.Metric = "reads"  // system calls that read, of both
	sleeps       load.Metric = "sleeps" // how often a thread went to sleep, of both
)

// sampleOf converts an outcome to the figures of a round. The columns allocs and bytes_op cover
// both processes together.
func sampleOf(o loadproc.Outcome) load.Sample {
	s := o.Sample()
	r := o.Result
	if r.Completed == 0 {
		return s
	}
	if server, ok := s.Values[load.ServerUS]; ok {
		s.Values[bothUS] = s.Values[load.ClientUS] + server
	}
	s.Values[p90US] = float64(r.Latency().Quantile(0.9)) / float64(time.Microsecond)
	s.Values[clientAllocs] = r.PerRequest(float64(r.Cost.Mallocs))
	if allocs, ok := s.Values[load.Allocs]; ok {
		s.Values[serverAllocs] = allocs
		s.Values[load.Allocs] += s.Values[clientAllocs]
		s.Values[load.BytesOp] += r.PerRequest(float64(r.Cost.Bytes))
	}
	for metric, names := range map[load.Metric][2]string{
		reads:  {rpcload.ClientReads, rpcload.ServerReads},
		sleeps: {rpcload.ClientSleeps, rpcload.ServerSleeps},
	} {
		client, ok := r.Cost.Counters[names[0]]
		server, also := r.Cost.Counters[names[1]]
		if ok && also {
			s.Values[metric] = r.PerRequest(client + server)
		}
	}
	return s
}
