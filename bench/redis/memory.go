package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/redisload"
	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
	"github.com/slipstream-go/slipstream/internal/load"
)

const (
	// idleClients is the number of idle clients, each with one connection.
	idleClients = 1000
	// idleGoal is the maximum memory of one of ours.
	idleGoal = 24 << 10

	burstCallers = 64 // of each client, before it is idle
	burstSize    = 1024
	// settle is how long clients may take to release memory before it is measured.
	settle = 2 * time.Second
)

// memory returns the scenarios for the memory of an idle client.
func (h *harness) memory() []load.Scenario {
	var all []load.Scenario
	for _, burst := range []bool{false, true} {
		name := "memory-idle"
		if burst {
			name = "memory-burst"
		}
		clients := idleClients
		sc := load.Scenario{Name: fmt.Sprintf("%s/%d", name, clients), Primary: load.BytesOp, Rounds: h.options.Fixed(3), Close: h.stage.Close}
		if h.options.Quick {
			clients /= 10
		}
		for _, subject := range redisload.SubjectNames(func(k redisload.Kind) bool { return !k.Variant }) {
			sc.Subjects = append(sc.Subjects, load.Subject{Name: subject, Run: func(ctx context.Context, _ int) (load.Sample, error) {
				st, err := h.open(ctx, sc.Name, burstSize, path{})
				if err != nil {
					return load.Sample{}, err
				}
				return measureMemory(ctx, probeSpec{Probe: "memory", Subject: subject, Address: st.address, Burst: burst, Clients: clients, Size: burstSize})
			}})
		}
		all = append(all, sc)
	}
	return all
}

func measureMemory(ctx context.Context, s probeSpec) (load.Sample, error) {
	p, err := startProbe(ctx, s)
	if err != nil {
		return load.Sample{}, err
	}
	outcome, err := p.wait()
	if err != nil {
		return load.Sample{}, fmt.Errorf("%s: %w", s.Subject, err)
	}
	return load.Sample{
		Values:  map[load.Metric]float64{load.BytesOp: outcome.Values["bytes"]},
		Details: outcome.Values,
	}, nil
}

// inUse returns the memory of live objects and of stacks.
func inUse() (heap, stacks float64) {
	for range 3 { // objects in pools survive one garbage collection
		runtime.GC()
	}
	debug.FreeOSMemory()
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	// Heap in use is the size of its spans: objects and the gaps between them.
	return float64(samples[0].Value.Uint64() + samples[1].Value.Uint64()), float64(samples[2].Value.Uint64())
}

// probeMemory opens clients of one connection each, uses every connection once
// or in a burst, leaves them idle, and returns the increase in memory, by client.
func probeMemory(ctx context.Context, s probeSpec) (probeOutcome, error) {
	// The first client allocates what all clients of a kind share.
	shared, err := openUsed(ctx, s)
	if err != nil {
		return probeOutcome{}, err
	}
	defer shared.Close()
	heapBefore, stacksBefore := inUse()
	goroutines := runtime.NumGoroutine()
	clients := make([]redisload.Client, s.Clients)
	defer func() {
		for _, c := range clients {
			if c != nil {
				c.Close()
			}
		}
	}()
	for i := range clients {
		if clients[i], err = openUsed(ctx, s); err != nil {
			return probeOutcome{}, fmt.Errorf("client %d: %w", i, err)
		}
	}
	time.Sleep(settle)
	heap, stacks := inUse()
	n := float64(s.Clients)
	return probeOutcome{Values: map[string]float64{
		"bytes": (heap - heapBefore + stacks - stacksBefore) / n, "heap": (heap - heapBefore) / n, "stacks": (stacks - stacksBefore) / n,
		"goroutines": float64(runtime.NumGoroutine()-goroutines) / n,
	}}, nil
}

// openUsed opens a client of one connection and uses it.
func openUsed(ctx context.Context, s probeSpec) (redisload.Client, error) {
	c, err := redisload.Open(ctx, s.Subject, redisload.Setting{Address: s.Address, Callers: 1, Single: true})
	if err != nil {
		return nil, err
	}
	callers := 1
	if s.Burst {
		callers = burstCallers
	}
	if err := useOnce(ctx, c, callers, s.Size); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// useOnce makes each caller read one key, all concurrently.
func useOnce(ctx context.Context, c redisload.Client, callers, size int) error {
	var group sync.WaitGroup
	errs := make([]error, callers)
	for i := range callers {
		// Ends with its request; waited for below.
		group.Go(func() {
			key := redisserver.Key(i)
			value, err := c.Get(ctx, make([]byte, 0, size+64), key)
			if err == nil {
				err = redisserver.Check(key, value, size)
			}
			errs[i] = err
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// checkMemory prints the memory of an idle connection.
func checkMemory(w io.Writer, rows []load.Row) {
	for _, row := range rows {
		if row.BytesOp == nil || !strings.HasPrefix(row.Scenario, "memory-idle/") && !strings.HasPrefix(row.Scenario, "memory-burst/") {
			continue
		}
		fmt.Fprintf(w, "%s: an idle connection of %s takes %.0f bytes", row.Scenario, row.Subject, *row.BytesOp)
		if row.Subject == load.Ours {
			fmt.Fprintf(w, ", want < %d: %s", idleGoal, verdict(*row.BytesOp < idleGoal))
		}
		fmt.Fprintln(w)
	}
}
