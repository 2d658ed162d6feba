package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

const (
	// dataShare is the ratio of the data to the budget.
	dataShare = 3
	// rssLimit is the maximum memory of the process, relative to the budget.
	rssLimit = 1.4
	// overheadGoal is the maximum number of bytes that a document should take in addition to its
	// body.
	overheadGoal = 200
	// bodyBytes is the size of a document for the estimate of their number.
	bodyBytes = 1840

	fillStep  = 10 * time.Second // between two checks of how full the tier is
	fillLimit = 10 * time.Minute
)

// budget reads uniformly from data three times as large as the memory tier may
// become, until the tier is full, and then watches the memory of the process
// while it continues.
func (h *harness) budget(mebibytes, callers int) load.Scenario {
	name := fmt.Sprintf("budget-%dMiB/%d", mebibytes, callers)
	if h.options.Quick {
		mebibytes /= 16
	}
	dir := filepath.Join(h.scratch, "budget")
	return load.Scenario{
		Name: name, Primary: load.ServerUS, Rounds: 1,
		Subjects: []load.Subject{{Name: load.Ours, Run: func(ctx context.Context, _ int) (load.Sample, error) {
			return h.fill(ctx, dir, int64(mebibytes)<<20, callers)
		}}},
		Close: func() error { return os.RemoveAll(dir) },
	}
}

// budgetDetails are stored in the raw results.
type budgetDetails struct {
	BudgetBytes int64   `json:"budget_bytes"`
	DataBytes   int64   `json:"data_bytes"`           // estimated, of all bodies
	RSSEmpty    int64   `json:"rss_anon_empty_bytes"` // before the first request
	RSSAnonMax  int64   `json:"rss_anon_max_bytes"`
	RSSShare    float64 `json:"rss_share_of_budget"`
	Documents   float64 `json:"documents"`
	Charged     float64 `json:"charged_bytes"`
	BodyMean    float64 `json:"body_mean_bytes"`
	// ChargedOverhead is what the tier charges for a document in addition to its body, and
	// HeapOverhead is what it really takes: live heap after a garbage collection.
	ChargedOverhead float64 `json:"charged_overhead_bytes"`
	HeapOverhead    float64 `json:"heap_overhead_bytes"`
	Run             any     `json:"run"`
}

func (h *harness) fill(ctx context.Context, dir string, budget int64, callers int) (load.Sample, error) {
	h.mu.Lock()
	binary, err := h.slipstream(ctx)
	h.mu.Unlock()
	if err != nil {
		return load.Sample{}, err
	}
	if err := os.RemoveAll(dir); err != nil { // of an earlier round
		return load.Sample{}, err
	}
	documents := dataShare * budget / bodyBytes
	fmt.Fprintf(h.progress, "budget: writing %d departments\n", documents)
	program, err := subject.NewSlipstream(ctx, binary, dir, documents, fmt.Sprintf("%dMiB", budget>>20))
	if err != nil {
		return load.Sample{}, err
	}
	server, err := program.Start(ctx)
	if err != nil {
		return load.Sample{}, err
	}
	defer server.Stop()
	d := budgetDetails{BudgetBytes: budget, DataBytes: documents * bodyBytes}
	empty, err := liveHeap(ctx, server.Metrics)
	if err != nil {
		return load.Sample{}, err
	}
	if d.RSSEmpty, err = proc.RSSAnon(server.PID()); err != nil {
		return load.Sample{}, err
	}
	spec := server.Spec()
	spec.Keys, spec.Callers, spec.Duration = documents, callers, fillStep
	for started := time.Now(); ; spec.Seed++ {
		if _, err := loadproc.Run(ctx, spec); err != nil {
			return load.Sample{}, err
		}
		page, err := loadproc.Scrape(ctx, server.Metrics)
		if err != nil {
			return load.Sample{}, err
		}
		full := page["slipstream_tier_bytes"] / float64(budget)
		fmt.Fprintf(h.progress, "budget: tier %.0f %% full, %.0f evicted, %v elapsed\n",
			100*full, page["slipstream_tier_evicted_total"], time.Since(started).Round(time.Second))
		if page["slipstream_tier_evicted_total"] > 0 && full > 0.9 {
			break
		}
		if time.Since(started) > fillLimit {
			return load.Sample{}, fmt.Errorf("tier only %.0f %% full after %v", 100*full, fillLimit)
		}
	}
	spec.Seed++
	spec.Duration = max(5*h.window, fillStep)
	watch := watchRSS(server.PID())
	outcome, err := loadproc.Run(ctx, spec)
	largest, watchErr := watch()
	if err != nil {
		return outcome.Part(), err
	}
	if watchErr != nil {
		return load.Sample{}, watchErr
	}
	full, err := liveHeap(ctx, server.Metrics)
	if err != nil {
		return load.Sample{}, err
	}
	d.RSSAnonMax, d.RSSShare = largest, float64(largest)/float64(budget)
	return h.budgetSample(ctx, server, outcome, d, documents, full-empty)
}

// budgetSample completes d, which contains the memory of the process. heap is how much the live
// heap has grown since the tier was empty.
func (h *harness) budgetSample(ctx context.Context, server *subject.Server, outcome loadproc.Outcome, d budgetDetails, documents int64, heap float64) (load.Sample, error) {
	page, err := loadproc.Scrape(ctx, server.Metrics)
	if err != nil {
		return load.Sample{}, err
	}
	mean, err := meanBody(ctx, server.Address, documents)
	if err != nil {
		return load.Sample{}, err
	}
	held := page["slipstream_tier_documents"]
	if held == 0 {
		return load.Sample{}, fmt.Errorf("metrics of the gateway: no slipstream_tier_documents")
	}
	sample := outcome.Sample()
	d.Documents, d.Charged, d.BodyMean, d.Run = held, page["slipstream_tier_bytes"], mean, sample.Details
	d.ChargedOverhead, d.HeapOverhead = d.Charged/held-mean, heap/held-mean
	sample.Details = d
	outcomeOf := func(ok bool) load.Outcome {
		if ok {
			return load.Met
		}
		return load.Missed
	}
	fmt.Fprintf(h.progress, "budget: RssAnon %d MiB when empty, at most %d MiB, %.2f of the budget: < %.1f %s\n", d.RSSEmpty>>20, d.RSSAnonMax>>20, d.RSSShare, rssLimit, outcomeOf(d.RSSShare < rssLimit))
	fmt.Fprintf(h.progress, "budget: %.0f documents of %.0f bytes; in addition to its body, a document is charged %.0f bytes and takes %.0f on the heap: <= %d %s\n",
		held, mean, d.ChargedOverhead, d.HeapOverhead, overheadGoal, outcomeOf(d.HeapOverhead <= overheadGoal))
	return sample, nil
}

// liveHeap collects the garbage of the gateway and returns what is left.
func liveHeap(ctx context.Context, admin string) (float64, error) {
	for range 2 { // the second collects what finalizers and pools kept after the first
		if _, err := get(ctx, "http://"+admin+"/debug/pprof/heap?gc=1"); err != nil {
			return 0, err
		}
	}
	page, err := loadproc.Scrape(ctx, admin)
	return page["go_memstats_heap_alloc_bytes"], err
}

// meanBody returns the mean size of some documents.
func meanBody(ctx context.Context, address string, documents int64) (float64, error) {
	const probes = 200
	sum := 0
	for i := range int64(probes) {
		body, err := get(ctx, fmt.Sprintf("http://%s/depts/%d", address, 1+i*(documents-1)/probes))
		if err != nil {
			return 0, err
		}
		sum += len(body)
	}
	return float64(sum) / probes, nil
}

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	return io.ReadAll(resp.Body)
}

// watchRSS samples the anonymous memory of a process four times a second until the
// returned function is called, which returns the maximum.
func watchRSS(pid int) func() (int64, error) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var largest int64
	var failed error
	// Ends when stop is closed; the returned function waits for it.
	wg.Go(func() {
		ticker := time.NewTicker(250 * time.Millisecond)
		defer ticker.Stop()
		for {
			rss, err := proc.RSSAnon(pid)
			if err != nil {
				failed = err
				return
			}
			largest = max(largest, rss)
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
		}
	})
	return func() (int64, error) {
		close(stop)
		wg.Wait()
		return largest, failed
	}
}
