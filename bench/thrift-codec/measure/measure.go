// Package measure implements the process that measures one subject of the suite thrift-codec. The
// harness starts it with a [Job] and reads a [Finding].
package measure

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// A Job describes a measurement.
type Job struct {
	Operation string // what is done, such as encode
	Subject   string
	Shape     string // of the message, or a number of elements
	GOGC      int
	Live      int // MiB of heap in addition to what the subject keeps
	WarmUp    time.Duration
	Window    time.Duration
}

// A Finding is the result of a measurement.
type Finding struct {
	Runs    uint64        `json:"runs"`
	CPU     time.Duration `json:"cpu_ns"` // of the process, including the garbage collector
	Elapsed time.Duration `json:"elapsed_ns"`
	Objects uint64        `json:"objects"`
	Bytes   uint64        `json:"bytes"`
	GCs     uint32        `json:"gcs"`
	GOGC    int           `json:"gogc"`
	Live    uint64        `json:"live_bytes"` // heap in use before the window, after a collection
	Size    int           `json:"size"`       // of the encoding
	Error   string        `json:"error,omitempty"`
}

// Work is what is measured. Run does it once. Check returns an error if the result of the last Run
// is wrong.
type Work struct {
	Run   func()
	Check func() error
	Size  int // of the encoding
}

// Open prepares the work of one subject for a shape.
type Open func(shape string) (Work, error)

// Subjects contains everything that can be measured, by operation and name of the subject.
type Subjects map[string]map[string]Open

// Add adds a subject.
func (s Subjects) Add(operation, subject string, open Open) {
	if s[operation] == nil {
		s[operation] = make(map[string]Open)
	}
	s[operation][subject] = open
}

// Main implements the process: it reads a job from standard input and runs it.
func (s Subjects) Main() {
	f, err := s.perform(os.Stdin)
	if err != nil {
		f.Error = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// least is the minimum number of operations per window, however long they take.
const least = 6

func (s Subjects) perform(in io.Reader) (f Finding, err error) {
	var j Job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return f, fmt.Errorf("job: %w", err)
	}
	open := s[j.Operation][j.Subject]
	if open == nil {
		return f, fmt.Errorf("no subject %q for %q", j.Subject, j.Operation)
	}
	debug.SetGCPercent(j.GOGC)
	live := make([]byte, j.Live<<20)
	defer runtime.KeepAlive(live)
	work, err := open(j.Shape)
	if err != nil {
		return f, err
	}
	work.Run()
	if err := work.Check(); err != nil {
		return f, fmt.Errorf("wrong before the window: %w", err)
	}
	batch := repeat(work.Run, 1, j.WarmUp)
	batch = max(1, batch*uint64(time.Millisecond)/uint64(max(j.WarmUp, time.Millisecond)))
	if err := f.window(work.Run, j, batch); err != nil {
		return f, err
	}
	if err := work.Check(); err != nil {
		return f, fmt.Errorf("wrong after the window: %w", err)
	}
	f.GOGC, f.Size = j.GOGC, work.Size
	return f, nil
}

// window measures. The clock is read after each batch.
func (f *Finding) window(run func(), j Job, batch uint64) error {
	meter := load.NewProcessMeter(os.Getpid())
	var before, after runtime.MemStats
	runtime.GC()
	cpu, err := meter.CPU() // It allocates.
	if err != nil {
		return err
	}
	runtime.ReadMemStats(&before)
	started := time.Now()
	f.Runs = repeat(run, batch, j.Window)
	f.Elapsed = time.Since(started)
	runtime.ReadMemStats(&after)
	used, err := meter.CPU()
	if err != nil {
		return err
	}
	f.CPU, f.Live = used-cpu, before.HeapAlloc
	f.Objects, f.Bytes, f.GCs = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc, after.NumGC-before.NumGC
	return nil
}

// repeat runs in batches for the time given, and returns how often.
func repeat(run func(), batch uint64, d time.Duration) (n uint64) {
	for end := time.Now().Add(d); n < least || time.Now().Before(end); {
		for range batch {
			run()
		}
		n += batch
	}
	return n
}
