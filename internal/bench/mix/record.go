package mix

import (
	"context"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// Figures holds what was measured for one operation in the window.
type Figures struct {
	Name              string
	Weight            int
	Completed, Failed uint64
	FirstFailed       string         // the first error of a caller
	Service           load.Histogram // of the completed ones, from sending
}

// A Recorder records the latency and the errors of each operation of a workload.
type Recorder struct {
	operations []Operation // immutable

	mu       sync.Mutex
	all      []*Record // guarded by mu; their contents are owned by the callers while requests are in flight
	measured bool      // guarded by mu: the window has begun
}

// NewRecorder returns a recorder of operations.
func NewRecorder(operations []Operation) *Recorder { return &Recorder{operations: operations} }

// A Record holds the figures of one caller. A nil Record records nothing.
type Record struct{ operations []Figures }

// New returns the record for one more caller, or nil if r is nil.
func (r *Recorder) New() *Record {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	one := &Record{operations: make([]Figures, len(r.operations))}
	r.all = append(r.all, one)
	return one
}

// Counters returns what [load.Run] reads before and after the window. The first reading discards
// what was recorded before it.
func (r *Recorder) Counters() []load.Counter {
	if r == nil {
		return nil
	}
	return []load.Counter{{Name: "operations", Read: func(context.Context) (float64, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.measured {
			r.measured = true
			for _, one := range r.all {
				clear(one.operations)
			}
		}
		return 0, nil
	}}}
}

// Begin returns the current time as the start of a request, or the zero time if c is nil.
func (c *Record) Begin() (began time.Time) {
	if c != nil {
		began = time.Now()
	}
	return began
}

// End records a request that has ended. One that failed because ctx has ended does not
// count.
func (c *Record) End(ctx context.Context, operation int, began time.Time, err error) {
	if c == nil {
		return
	}
	c.add(ctx, operation, time.Since(began), err)
}

// EndBatch records requests that were sent together and have the same latency.
func (c *Record) EndBatch(ctx context.Context, operations []int, began time.Time, outcomes []error) {
	if c == nil {
		return
	}
	took := time.Since(began)
	for i, operation := range operations {
		c.add(ctx, operation, took, outcomes[i])
	}
}

func (c *Record) add(ctx context.Context, operation int, took time.Duration, err error) {
	f := &c.operations[operation]
	switch {
	case err == nil:
		f.Completed++
		f.Service.Record(took)
	case ctx.Err() == nil:
		f.Failed++
		if f.FirstFailed == "" {
			f.FirstFailed = err.Error()
		}
	}
}

// Figures returns the figures of the window, or none if r is nil. No request may be in flight.
func (r *Recorder) Figures() []Figures {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Figures, len(r.operations))
	for i, name := range Names(r.operations) {
		all[i].Name, all[i].Weight = name, r.operations[i].Weight
		for _, one := range r.all {
			f := &one.operations[i]
			all[i].Completed += f.Completed
			all[i].Failed += f.Failed
			all[i].Service.Merge(&f.Service)
			if all[i].FirstFailed == "" {
				all[i].FirstFailed = f.FirstFailed
			}
		}
	}
	return all
}
