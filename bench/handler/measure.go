package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A job is what the process that measures is told.
type job struct {
	Subject string
	Seed    uint64 // of the order in which documents are asked for
	WarmUp  time.Duration
	Window  time.Duration
}

// A finding is what it answers.
type finding struct {
	Requests uint64        `json:"requests"`
	Elapsed  time.Duration `json:"elapsed_ns"`
	CPU      time.Duration `json:"cpu_ns"` // of the process, the collector's included
	Objects  uint64        `json:"objects"`
	Bytes    uint64        `json:"bytes"`
	GCs      uint32        `json:"gcs"`
	Error    string        `json:"error,omitempty"`
}

const argument = "-handler-process"

// child measures and ends the process, if the program was started for that.
func child() {
	if len(os.Args) != 2 || os.Args[1] != argument {
		return
	}
	f, err := perform(os.Stdin)
	if err != nil {
		f.Error = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// measure starts the process for j and waits for it: what one subject keeps in memory
// must not burden the collector of another.
func measure(ctx context.Context, j job) (load.Sample, error) {
	self, err := os.Executable()
	if err != nil {
		return load.Sample{}, err
	}
	in, err := json.Marshal(j)
	if err != nil {
		return load.Sample{}, err
	}
	cmd := exec.CommandContext(ctx, self, argument)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return load.Sample{}, fmt.Errorf("measuring process: %w", err)
	}
	var f finding
	if err := json.Unmarshal(out, &f); err != nil {
		return load.Sample{}, fmt.Errorf("measuring process: %w", err)
	}
	if f.Error != "" {
		return load.Sample{}, fmt.Errorf("measuring process: %s", f.Error)
	}
	each := func(total float64) float64 { return total / float64(f.Requests) }
	return load.Sample{
		Values: map[load.Metric]float64{
			load.NsOp: each(float64(f.Elapsed)), load.ServerUS: each(float64(f.CPU) / 1000),
			load.Allocs: each(float64(f.Objects)), load.BytesOp: each(float64(f.Bytes)),
		},
		Details: f,
	}, nil
}

// A discard is a ResponseWriter that counts.
type discard struct {
	header http.Header
	status int
	bytes  int
}

func (d *discard) Header() http.Header { return d.header }

func (d *discard) WriteHeader(status int) { d.status = status }

func (d *discard) Write(p []byte) (int, error) {
	if d.status == 0 {
		d.status = http.StatusOK
	}
	d.bytes += len(p)
	return len(p), nil
}

// perform does a job.
func perform(in io.Reader) (f finding, err error) {
	var j job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return f, fmt.Errorf("specification: %w", err)
	}
	handler, end, err := open(j.Subject)
	if err != nil {
		return f, err
	}
	defer func() {
		if endErr := end(); err == nil {
			err = endErr
		}
	}()
	rounds, err := verified(handler)
	if err != nil {
		return f, err
	}
	rng := rand.New(rand.NewPCG(j.Seed, 3))
	rng.Shuffle(len(rounds), func(a, b int) { rounds[a], rounds[b] = rounds[b], rounds[a] })
	if _, err := repeat(handler, rounds, j.WarmUp); err != nil {
		return f, err
	}
	runtime.GC()
	meter := load.NewProcessMeter(os.Getpid())
	cpu, err := meter.CPU()
	if err != nil {
		return f, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	started := time.Now()
	if f.Requests, err = repeat(handler, rounds, j.Window); err != nil {
		return f, err
	}
	f.Elapsed = time.Since(started)
	runtime.ReadMemStats(&after)
	used, err := meter.CPU()
	f.CPU = used - cpu
	f.Objects, f.Bytes, f.GCs = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc, after.NumGC-before.NumGC
	return f, err
}

// A question is a request whose answer is known.
type question struct {
	request *http.Request
	size    int // of the answer's body
}

// verified asks for every document, in memory afterwards, and compares it.
func verified(handler http.Handler) ([]question, error) {
	var all []question
	for n := int64(1); n <= depts.Count; n++ {
		text := fmt.Sprintf("GET %s%d HTTP/1.1\r\nHost: bench\r\n\r\n", prefix, n)
		request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return nil, err
		}
		request.RemoteAddr = "192.0.2.1:1234"
		w := &kept{discard: discard{header: http.Header{}}}
		handler.ServeHTTP(w, request)
		d := depts.Make(n)
		if w.status != http.StatusOK || w.header.Get("Content-Type") != "application/json" {
			return nil, fmt.Errorf("document %d: status %d, type %q", n, w.status, w.header.Get("Content-Type"))
		}
		if err := sameJSON(w.body.Bytes(), d.AppendJSON(nil)); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		all = append(all, question{request, w.body.Len()})
	}
	return all, nil
}

// kept is a discard that keeps the body.
type kept struct {
	discard
	body bytes.Buffer
}

func (k *kept) Write(p []byte) (int, error) {
	k.body.Write(p)
	return k.discard.Write(p)
}

// sameJSON compares two texts as values.
func sameJSON(got, want []byte) error {
	var values [2]any
	for i, text := range [][]byte{got, want} {
		if err := json.Unmarshal(text, &values[i]); err != nil {
			return fmt.Errorf("%.200s: %w", text, err)
		}
	}
	if !reflect.DeepEqual(values[0], values[1]) {
		return fmt.Errorf("%.200s, want %.200s", got, want)
	}
	return nil
}

// looks is how many requests pass between two looks at the clock: it costs 50 ns.
const looks = 64

// repeat asks for the documents in turn for the time given.
func repeat(handler http.Handler, questions []question, d time.Duration) (n uint64, err error) {
	w := &discard{header: http.Header{}}
	for end := time.Now().Add(d); time.Now().Before(end); {
		for range looks {
			q := questions[n%uint64(len(questions))]
			clear(w.header)
			w.status, w.bytes = 0, 0
			handler.ServeHTTP(w, q.request)
			if w.status != http.StatusOK || w.bytes != q.size {
				return n, fmt.Errorf("%s: status %d with %d bytes, want 200 with %d", q.request.URL.Path, w.status, w.bytes, q.size)
			}
			n++
		}
	}
	return n, nil
}
