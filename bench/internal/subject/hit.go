package subject

import (
	"context"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A Hit is one round of one subject over documents that are all in memory:
// keep-alive connections in a closed loop, keys chosen uniformly.
type Hit struct {
	Callers int
	WarmUp  time.Duration
	Window  time.Duration
	Seed    uint64
	Env     []string // of the server

	// Ask, if set, changes the requests and the expected answers of [Server.Spec].
	Ask func(*loadproc.Spec)
	// Prove, if set, is called before the load and after it, and checks that the
	// server does what is to be measured.
	Prove func(ctx context.Context, server *Server) error
}

// connectionsPerSecond is the number of connections for each second of a warm-up. The first request
// of a connection costs more than the others, so every connection must have made it before the
// window begins.
const connectionsPerSecond = 5000

// Run starts a fresh server, warms every key and measures, so that the heap of an earlier round
// does not influence a later one.
func (h Hit) Run(ctx context.Context, program Program) (load.Sample, error) {
	server, err := program.Start(ctx, h.Env...)
	if err != nil {
		return load.Sample{}, err
	}
	outcome, err := h.measure(ctx, server)
	if stopErr := server.Stop(); err == nil {
		err = stopErr
	}
	if err != nil {
		return outcome.Part(), err
	}
	return outcome.Sample(), nil
}

func (h Hit) measure(ctx context.Context, server *Server) (loadproc.Outcome, error) {
	spec := server.Spec()
	spec.Keys, spec.Learn = depts.Count, true
	spec.Callers, spec.Duration, spec.Seed = h.Callers, h.Window, h.Seed
	spec.WarmUp = max(h.WarmUp, time.Duration(h.Callers)*time.Second/connectionsPerSecond)
	if h.Ask != nil {
		h.Ask(&spec)
	}
	prove := func() error {
		if h.Prove == nil {
			return nil
		}
		return h.Prove(ctx, server)
	}
	if err := prove(); err != nil {
		return loadproc.Outcome{}, err
	}
	outcome, err := loadproc.Run(ctx, spec)
	if err != nil {
		return outcome, err
	}
	return outcome, prove()
}
