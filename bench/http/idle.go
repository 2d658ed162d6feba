package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/httpget"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

const (
	// idleGoal is how much memory an idle connection may use.
	idleGoal = 1024
	// settle is how long connections are idle before memory is read, because engines release
	// buffers only after a moment.
	settle = 3 * time.Second
)

// A memory is what a Go process holds after a garbage collection.
type memory struct {
	Heap   float64 `json:"heap_inuse_bytes"`
	Stacks float64 `json:"stack_inuse_bytes"`
	RSS    int64   `json:"rss_anon_bytes"`
}

// idleDetails are stored in the raw results.
type idleDetails struct {
	Connections int    `json:"connections"`
	Before      memory `json:"before"`
	After       memory `json:"after"`
}

// idle opens connections, makes one request over each, and measures how much the server's memory
// has grown once they are idle.
func (h *harness) idle(connections int) load.Scenario {
	name := fmt.Sprintf("idle-%d/%d", connections, connections)
	names := []string{load.Ours, load.Control, onNetHTTP, floorName, "net/http", "fasthttp", "netpoll"}
	sc := h.scenario(name, load.BytesOp, nil, names, func(ctx context.Context, name string, round int) (load.Sample, error) {
		server, err := h.start(ctx, name)
		if err != nil {
			return load.Sample{}, err
		}
		sample, err := holdIdle(ctx, server, connections, uint64(round))
		if stopErr := server.Stop(); err == nil {
			err = stopErr
		}
		return sample, err
	})
	if !h.options.Quick {
		sc.Rounds = 3 // it hardly varies
	}
	return sc
}

func holdIdle(ctx context.Context, server *subject.Server, connections int, seed uint64) (load.Sample, error) {
	spec := server.Spec()
	target := &httpget.Target{Address: server.Address, Path: spec.Path, Member: spec.Member, Keys: depts.Count, Seed: seed, Sources: 4}
	if err := target.Learn(ctx); err != nil {
		return load.Sample{}, err
	}
	// Memory that a server keeps after its first burst must not be attributed to connections.
	if err := hold(ctx, target, 100, func() error { return nil }); err != nil {
		return load.Sample{}, err
	}
	time.Sleep(settle)
	d := idleDetails{Connections: connections}
	var err error
	if d.Before, err = readMemory(ctx, server); err != nil {
		return load.Sample{}, err
	}
	err = hold(ctx, target, connections, func() error {
		time.Sleep(settle)
		var err error
		d.After, err = readMemory(ctx, server)
		return err
	})
	return load.Sample{Values: map[load.Metric]float64{load.BytesOp: d.growth()}, Details: d}, err
}

// growth returns how much heap and stacks have grown for each connection.
func (d idleDetails) growth() float64 {
	return (d.After.Heap + d.After.Stacks - d.Before.Heap - d.Before.Stacks) / float64(d.Connections)
}

// hold opens connections, makes a request over each, calls idle and closes them.
func hold(ctx context.Context, target *httpget.Target, connections int, idle func() error) error {
	callers := make([]load.Caller, connections)
	failures := make([]error, 32)
	var next atomic.Int64
	var openers sync.WaitGroup
	for worker := range failures {
		// Ends when no connection is left or one failed; waited for below.
		openers.Go(func() {
			for i := int(next.Add(1)) - 1; i < connections && failures[worker] == nil; i = int(next.Add(1)) - 1 {
				caller, err := target.NewCaller(ctx, i)
				if err == nil {
					callers[i] = caller
					err = caller.Do(ctx)
				}
				failures[worker] = err
			}
		})
	}
	openers.Wait()
	defer func() {
		for _, c := range callers {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	for _, err := range failures {
		if err != nil {
			return fmt.Errorf("%d connections: %w", connections, err)
		}
	}
	return idle()
}

// readMemory makes the server collect garbage twice, because the second collection frees what the
// first one has left in pools, and reads its figures.
func readMemory(ctx context.Context, server *subject.Server) (m memory, err error) {
	for range 2 {
		if err := fetch(ctx, "http://"+server.Metrics+"/debug/pprof/heap?gc=1"); err != nil {
			return m, err
		}
	}
	page, err := loadproc.Scrape(ctx, server.Metrics)
	if err != nil {
		return m, err
	}
	if m.Heap, err = figure(page, "go_memstats_heap_inuse_bytes"); err != nil {
		return m, err
	}
	if m.Stacks, err = figure(page, "go_memstats_stack_inuse_bytes"); err != nil {
		return m, err
	}
	m.RSS, err = proc.RSSAnon(server.PID())
	return m, err
}

// figure reads one metric from a metrics page.
func figure(page map[string]float64, name string) (float64, error) {
	v, ok := page[name]
	if !ok {
		return 0, fmt.Errorf("metrics: no %s", name)
	}
	return v, nil
}

func fetch(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer rsp.Body.Close()
	if rsp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, rsp.Status)
	}
	_, err = io.Copy(io.Discard, rsp.Body)
	return err
}

// checkIdle prints the memory of a connection, and compares ours with the goal.
func checkIdle(w io.Writer, rows []load.Row) {
	for _, row := range rows {
		if row.BytesOp == nil || row.Scenario != "idle-10000/10000" {
			continue
		}
		fmt.Fprintf(w, "%s: %s: %.0f bytes a connection", row.Scenario, row.Subject, *row.BytesOp)
		if row.Subject == load.Ours {
			fmt.Fprintf(w, ", goal <= %d: %s", idleGoal, command.Verdict(*row.BytesOp <= idleGoal))
		}
		fmt.Fprintln(w)
	}
}
