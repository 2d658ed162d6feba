package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/httpget"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

const (
	// fillPasses is the maximum number of passes over all documents until all are on disk: one to
	// load them, one to check that they are there, and two more, because a tier that cannot keep up
	// may drop writes.
	fillPasses = 4
	// A process has written everything when it has written less than writeStep during writeRest,
	// because batches wait for at most a second.
	writeStep  = 64 << 10
	writeRest  = 3 * time.Second
	writeLimit = 2 * time.Minute
)

// filledOurs returns ours over a disk tier that has all documents.
func (h *harness) filledOurs(ctx context.Context) (subject.Program, error) {
	p, err := h.onDisk(ctx, "disk", filepath.Join(h.place.Scratch, "disk", "tier"))
	if err != nil {
		return nil, err
	}
	for pass := range fillPasses {
		strays, err := h.restart(ctx, p)
		if err != nil {
			return nil, err
		}
		if strays == 0 {
			return p, nil
		}
		if pass > 0 {
			h.printf("%d of %d documents were not on disk after %d passes", strays, h.options.documents, pass)
		}
	}
	return nil, fmt.Errorf("after %d passes over %d documents some are not on disk", fillPasses, h.options.documents)
}

// filledArticle returns the article's service over a file with all documents.
func (h *harness) filledArticle(ctx context.Context) (subject.Program, error) {
	r, err := h.buildArticle(ctx, suiteName, "article-bbolt")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(h.place.Scratch, "article.bbolt")
	server, err := r.With("-path", path, "-fill", fmt.Sprint(h.options.documents)).Start(ctx)
	if err != nil {
		return nil, err
	}
	return r.With("-path", path), server.Stop()
}

// restart starts ours, requests every document, stops it, and returns how many did
// not come from disk.
func (h *harness) restart(ctx context.Context, p subject.Program) (strays int64, err error) {
	server, err := p.Start(ctx)
	if err != nil {
		return 0, err
	}
	defer stopping(server, &err)
	return h.pass(ctx, server)
}

// pass requests every document once, in random order, compares each with package
// depts, and returns how many did not come from disk.
func (h *harness) pass(ctx context.Context, server *subject.Server) (strays int64, err error) {
	spec := server.Spec()
	target := &httpget.Target{
		Address: spec.Address, Path: spec.Path, Member: spec.Member, Keys: h.options.documents, Seed: 1,
		CacheStatus: diskStatus, Strays: new(atomic.Int64), Learners: learners, Document: document,
	}
	err = target.Learn(ctx)
	return target.Strays.Load(), err
}

func document(key int64) []byte {
	d := depts.Make(key)
	return d.AppendJSON(nil)
}

// fillDetails are stored in the raw results.
type fillDetails struct {
	Documents     int64   `json:"documents"`
	DocumentBytes int64   `json:"document_bytes"`
	Seconds       float64 `json:"seconds"` // from the first document to the last write
	WriteBytes    int64   `json:"write_bytes"`
	FileBytes     int64   `json:"file_bytes"`
	Amplification float64 `json:"write_amplification"`
	RSSAnon       int64   `json:"rss_anon_bytes"`
	RSSFile       int64   `json:"rss_file_bytes"` // pages of mapped files, which belong to the page cache
	HeapInUse     float64 `json:"heap_in_use_bytes"`
	// NotOnDisk is the number of documents that a restarted gateway did not have.
	NotOnDisk int64 `json:"not_on_disk"`
}

// fillScenario writes all documents to an empty disk.
func (h *harness) fillScenario() load.Scenario {
	sc := load.Scenario{Name: fmt.Sprintf("fill/%d", learners), Primary: load.RPS, Rounds: h.options.Fixed(3)}
	for _, s := range []struct {
		name string
		run  func(context.Context, string) (load.Sample, fillDetails, error)
	}{{load.Ours, h.fillOurs}, {articleBBolt, h.fillArticle}} {
		sc.Subjects = append(sc.Subjects, load.Subject{Name: s.name, Run: func(ctx context.Context, _ int) (sample load.Sample, err error) {
			dir := filepath.Join(h.place.Scratch, "fill")
			if err := os.RemoveAll(dir); err != nil { // of an earlier round
				return sample, err
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return sample, err
			}
			sample, d, err := s.run(ctx, dir)
			if err != nil {
				return sample, err
			}
			h.describeFill(&sample, s.name, d)
			return sample, nil
		}})
	}
	return sc
}

// describeFill derives figures from the results of a fill.
func (h *harness) describeFill(sample *load.Sample, name string, d fillDetails) {
	d.Documents = h.options.documents - d.NotOnDisk
	for n := int64(1); n <= h.options.documents; n++ {
		d.DocumentBytes += int64(len(document(n)))
	}
	d.Amplification = float64(d.WriteBytes) / float64(d.DocumentBytes)
	sample.Values[load.RPS] = float64(d.Documents) / d.Seconds
	sample.Values[load.BytesOp] = float64(d.WriteBytes) / float64(h.options.documents)
	sample.Values[load.ServerUS] /= float64(h.options.documents)
	sample.Details = d
	h.fills[name] = append(h.fills[name], d)
}

// fillOurs requests every document from a gateway over an empty tier, waits until it stops writing,
// and checks with another gateway which documents are on disk.
func (h *harness) fillOurs(ctx context.Context, dir string) (load.Sample, fillDetails, error) {
	p, err := h.onDisk(ctx, "fill", filepath.Join(dir, "tier"))
	if err != nil {
		return load.Sample{}, fillDetails{}, err
	}
	sample, d, err := h.fillOnce(ctx, p)
	if err != nil {
		return sample, d, err
	}
	if d.FileBytes, err = sizeOf(filepath.Join(dir, "tier")); err != nil {
		return sample, d, err
	}
	d.NotOnDisk, err = h.restart(ctx, p)
	return sample, d, err
}

func (h *harness) fillOnce(ctx context.Context, p subject.Program) (sample load.Sample, d fillDetails, err error) {
	server, err := p.Start(ctx)
	if err != nil {
		return sample, d, err
	}
	defer stopping(server, &err)
	before, err := proc.WriteBytes(server.PID())
	if err != nil {
		return sample, d, err
	}
	meter := load.NewProcessMeter(server.PID())
	idle, err := meter.CPU()
	if err != nil {
		return sample, d, err
	}
	began := time.Now()
	strays, err := h.pass(ctx, server)
	if err != nil {
		return sample, d, err
	}
	if strays != h.options.documents {
		return sample, d, fmt.Errorf("%d of %d documents came from an empty disk", h.options.documents-strays, h.options.documents)
	}
	last, written, err := awaitWrites(ctx, server.PID())
	if err != nil {
		return sample, d, err
	}
	busy, err := meter.CPU()
	if err != nil {
		return sample, d, err
	}
	d.Seconds, d.WriteBytes = last.Sub(began).Seconds(), written-before
	sample.Values = map[load.Metric]float64{load.ServerUS: float64((busy - idle).Microseconds())}
	return sample, d, d.readMemory(ctx, server)
}

// fillArticle makes the article's service write all documents, which it generates itself.
func (h *harness) fillArticle(ctx context.Context, dir string) (sample load.Sample, d fillDetails, err error) {
	r, err := h.buildArticle(ctx, suiteName, "article-bbolt")
	if err != nil {
		return sample, d, err
	}
	path := filepath.Join(dir, "article.bbolt")
	began := time.Now()
	server, err := r.With("-path", path, "-fill", fmt.Sprint(h.options.documents)).Start(ctx)
	if err != nil {
		return sample, d, err
	}
	defer stopping(server, &err)
	d.Seconds = time.Since(began).Seconds()
	busy, err := load.NewProcessMeter(server.PID()).CPU()
	if err != nil {
		return sample, d, err
	}
	if d.WriteBytes, err = proc.WriteBytes(server.PID()); err != nil {
		return sample, d, err
	}
	if d.FileBytes, err = sizeOf(path); err != nil {
		return sample, d, err
	}
	sample.Values = map[load.Metric]float64{load.ServerUS: float64(busy.Microseconds())}
	return sample, d, d.readMemory(ctx, server)
}

// readMemory reads the memory of the process without running a garbage collection first.
func (d *fillDetails) readMemory(ctx context.Context, server *subject.Server) (err error) {
	if d.RSSAnon, err = proc.RSSAnon(server.PID()); err != nil {
		return err
	}
	if d.RSSFile, err = proc.RSSFile(server.PID()); err != nil {
		return err
	}
	page, err := loadproc.Scrape(ctx, server.Metrics)
	d.HeapInUse = page["go_memstats_heap_inuse_bytes"]
	return err
}

// awaitWrites waits until a process has finished writing, and returns when it did and how much it
// has written since its start.
func awaitWrites(ctx context.Context, pid int) (last time.Time, total int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	last = time.Now()
	for marked := int64(0); ; {
		if total, err = proc.WriteBytes(pid); err != nil {
			return last, total, err
		}
		switch {
		case marked == 0:
			marked = total
		case total-marked >= writeStep:
			last, marked = time.Now(), total
		}
		if time.Since(last) > writeRest {
			return last, total, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return last, total, fmt.Errorf("the process is still writing after %v: %w", writeLimit, ctx.Err())
		}
	}
}

// sizeOf returns the bytes of a file, or of all files below a directory.
func sizeOf(path string) (total int64, err error) {
	err = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	if err == nil && total == 0 {
		err = errors.New(path + " is empty")
	}
	return total, err
}

// checkFills prints the medians that are not in the columns of the rows.
func checkFills(w io.Writer, fills map[string][]fillDetails) {
	for _, name := range []string{load.Ours, articleBBolt} {
		rounds := fills[name]
		if len(rounds) == 0 {
			continue
		}
		median := func(of func(fillDetails) float64) float64 {
			var values []float64
			for _, d := range rounds {
				values = append(values, of(d))
			}
			return load.Median(values)
		}
		const mebi = 1 << 20
		fmt.Fprintf(w, "fill: %s: %.0f documents/s; %.2f bytes written to the device for one of a document (file %.0f MiB, documents %.0f MiB); anonymous memory at the end %.0f MiB, heap in use %.0f MiB; %.0f documents not on disk\n",
			name, median(func(d fillDetails) float64 { return float64(d.Documents) / d.Seconds }),
			median(func(d fillDetails) float64 { return d.Amplification }),
			median(func(d fillDetails) float64 { return float64(d.FileBytes) / mebi }),
			median(func(d fillDetails) float64 { return float64(d.DocumentBytes) / mebi }),
			median(func(d fillDetails) float64 { return float64(d.RSSAnon) / mebi }),
			median(func(d fillDetails) float64 { return d.HeapInUse / mebi }),
			median(func(d fillDetails) float64 { return float64(d.NotOnDisk) }))
		if rounds[0].WriteBytes == 0 {
			fmt.Fprintf(w, "fill: %s: nothing was written to a device: the directory for temporary files is in memory; set TMPDIR\n", name)
		}
	}
}
