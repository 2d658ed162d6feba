package rpcsuite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pages"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

const (
	gatewayName  = "gateway"  // in the catalog
	frontendHits = "frontend" // beginning of the names of scenarios
	redisHits    = "redis-frontend"
)

func isFrontend(scenario string) bool { return strings.HasPrefix(scenario, frontendHits) }

// A hit is a scenario with hits of the gateway's memory.
type hit struct {
	scenario    string
	connections int
	pipelined   int // requests that a connection sends together; if 0, one
}

var hits = []hit{
	{scenario: frontendHits + "/1", connections: 1},
	{scenario: frontendHits + "/64", connections: 64},
	{scenario: frontendHits + "-p16/64", connections: 64, pipelined: 16},
}

// frontendScenarios compare hits of the Thrift frontend with those of the Redis frontend. Each
// window has its own process of the gateway, with both frontends.
func frontendScenarios(h *harness) (all []load.Scenario) {
	for _, one := range hits {
		sc := load.Scenario{Name: one.scenario, Primary: load.ServerUS, Goals: []load.Goal{{Metric: load.ServerUS, Rival: redisHits, Ratio: frontendMost}}}
		for _, name := range []string{load.Ours, load.Control, redisHits} {
			sc.Subjects = append(sc.Subjects, load.Subject{Name: name, Run: func(ctx context.Context, number int) (load.Sample, error) {
				return h.hit(ctx, one, name == redisHits, number)
			}})
		}
		all = append(all, sc)
	}
	return all
}

// gateway builds the gateway over a database of the documents of package pages.
func (h *harness) gateway(ctx context.Context) (subject.Program, error) {
	binary := filepath.Join(h.place.Scratch, "slipstream")
	if err := subject.BuildSlipstream(ctx, filepath.Dir(h.place.Module), binary); err != nil {
		return nil, err
	}
	return subject.OverNumberedPages(ctx, binary, h.place.Scratch)
}

// hit measures one window.
func (h *harness) hit(ctx context.Context, one hit, redis bool, number int) (sample load.Sample, err error) {
	program, err := h.catalog.Program(ctx, gatewayName)
	if err != nil {
		return load.Sample{}, err
	}
	server, err := program.Start(ctx)
	if err != nil {
		return load.Sample{}, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	spec := server.Spec()
	spec.Target, spec.Address = pages.ThriftName, server.Thrift
	if redis {
		spec.Target, spec.Address = pages.PlainName, server.Redis
	}
	spec.Learn, spec.Batch, spec.Callers = true, one.pipelined, one.connections
	spec.WarmUp, spec.Duration, spec.Seed = h.warmUp, h.window, uint64(number)
	limited, cancel := context.WithTimeout(ctx, h.warmUp+h.window+slack)
	defer cancel()
	outcome, err := loadproc.Run(limited, spec)
	if err != nil {
		err = fmt.Errorf("%s: %w", one.scenario, err)
		if !outcome.Partial() {
			return load.Sample{}, err
		}
	}
	return sampleOf(outcome), err
}
