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
}

// connectionsPerSecond is how many connections a warm-up must have room for. The
// first request of a connection is dearer than the others, so every connection
// has to have made it before the window begins.
const connectionsPerSecond = 5000

// Run starts a fresh server, warms every key and measures. What an earlier round
// left in a heap must not decide a later one.
func (h Hit) Run(ctx context.Context, program Program) (load.Sample, error) {
	server, err := program.Start(ctx, h.Env...)
	if err != nil {
		return load.Sample{}, err
	}
	spec := server.Spec()
	spec.Keys, spec.Learn = depts.Count, true
	spec.Callers, spec.Duration, spec.Seed = h.Callers, h.Window, h.Seed
	spec.WarmUp = max(h.WarmUp, time.Duration(h.Callers)*time.Second/connectionsPerSecond)
	outcome, err := loadproc.Run(ctx, spec)
	if stopErr := server.Stop(); err == nil {
		err = stopErr
	}
	if err != nil {
		return load.Sample{}, err
	}
	return outcome.Sample(), nil
}
