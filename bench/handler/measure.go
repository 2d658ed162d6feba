package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
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

// A job is the job of the measuring process.
type job struct {
	Subject string
	Seed    uint64 // of the order in which documents are requested
	WarmUp  time.Duration
	Window  time.Duration
}

// A finding is the result of the measuring process.
type finding struct {
	Requests uint64        `json:"requests"`
	Elapsed  time.Duration `json:"elapsed_ns"`
	CPU      time.Duration `json:"cpu_ns"` // of the process, including the garbage collector
	Objects  uint64        `json:"objects"`
	Bytes    uint64        `json:"bytes"`
	GCs      uint32        `json:"gcs"`
	Error    string        `json:"error,omitempty"`
}

const argument = "-handler-process"

// child measures and exits, if the process was started for that.
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

// measure starts the process for j and waits for it: so that the memory of one subject does not
// affect the garbage collector in another.
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
	// fresh creates a new header map for each answer, and copies it once, as net/http does, because
	// this is most of the cost of a header field.
	fresh  bool
	header http.Header
	copied http.Header
	status int
	bytes  int
}

func newDiscard(fresh bool) *discard { return &discard{fresh: fresh, header: http.Header{}} }

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
	handler, fields, end, err := open(j.Subject)
	if err != nil {
		return f, err
	}
	defer func() {
		if endErr := end(); err == nil {
			err = endErr
		}
	}()
	rounds, err := verified(handler, fields, expected(j.Subject))
	if err != nil {
		return f, err
	}
	rng := rand.New(rand.NewPCG(j.Seed, 3))
	rng.Shuffle(len(rounds), func(a, b int) { rounds[a], rounds[b] = rounds[b], rounds[a] })
	if _, err := repeat(handler, rounds, j.WarmUp, isStep(j.Subject)); err != nil {
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
	if f.Requests, err = repeat(handler, rounds, j.Window, isStep(j.Subject)); err != nil {
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

// verified requests every document, which is in memory afterwards, and compares it. fields are
// blocks of header lines that requests use in turn, and coding is the content coding of the
// answers.
func verified(handler http.Handler, fields []string, coding string) ([]question, error) {
	var all []question
	for n := int64(1); n <= depts.Count; n++ {
		block := ""
		if len(fields) > 0 {
			block = fields[n%int64(len(fields))]
		}
		text := fmt.Sprintf("GET %s%d HTTP/1.1\r\nHost: bench\r\n%s\r\n", prefix, n, block)
		request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return nil, err
		}
		request.RemoteAddr = fmt.Sprintf("127.0.0.%d:1234", 2+n%64)
		w := new(kept)
		for range 2 { // a document that was just loaded may be sent uncompressed
			*w = kept{discard: *newDiscard(false)}
			handler.ServeHTTP(w, request)
		}
		size := w.body.Len()
		if w.status != http.StatusOK || w.header.Get("Content-Type") != "application/json" || w.header.Get("Content-Encoding") != coding {
			return nil, fmt.Errorf("document %d: status %d, type %q, coding %q; want 200, application/json, %q",
				n, w.status, w.header.Get("Content-Type"), w.header.Get("Content-Encoding"), coding)
		}
		body, err := decoded(&w.body, coding)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		d := depts.Make(n)
		if err := sameJSON(body, d.AppendJSON(nil)); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		all = append(all, question{request, size})
	}
	return all, nil
}

func decoded(body *bytes.Buffer, coding string) ([]byte, error) {
	if coding == "" {
		return body.Bytes(), nil
	}
	r, err := gzip.NewReader(body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
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

// looks is the number of requests between two readings of the clock, each of which costs 50 ns.
const looks = 64

// repeat requests the documents in turn for the given time.
func repeat(handler http.Handler, questions []question, d time.Duration, fresh bool) (n uint64, err error) {
	w := newDiscard(fresh)
	for end := time.Now().Add(d); time.Now().Before(end); {
		for range looks {
			if err := w.ask(handler, &questions[n%uint64(len(questions))]); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

// ask makes one request.
func (d *discard) ask(handler http.Handler, q *question) error {
	if d.fresh {
		d.header = http.Header{}
	} else {
		clear(d.header)
	}
	d.status, d.bytes = 0, 0
	handler.ServeHTTP(d, q.request)
	if d.fresh {
		d.copied = d.header.Clone()
	}
	if d.status != http.StatusOK || d.bytes != q.size {
		return fmt.Errorf("%s: status %d with %d bytes, want 200 with %d", q.request.URL.Path, d.status, d.bytes, q.size)
	}
	return nil
}
