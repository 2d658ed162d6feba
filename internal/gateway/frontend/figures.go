package frontend

import (
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/measure"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/striped"
)

// KeptSlowest is how many of the slowest documents a frontend remembers.
const KeptSlowest = 20

// Answers are the counters of a frontend's answers. Create them with [NewAnswers]. All
// methods are safe for concurrent use.
type Answers struct {
	// Immutable after NewAnswers.
	slowest *measure.Slowest

	// Atomics. Written with every answer, read by any goroutine.
	bytes   striped.Counter
	latency [sources]measure.Latency
}

// NewAnswers returns counters that are all zero.
func NewAnswers() *Answers { return &Answers{slowest: measure.NewSlowest(KeptSlowest)} }

// Latency returns the distribution of the time from the end of reading a request to its
// answer, for answers from the source.
func (a *Answers) Latency(source Source) *measure.Latency { return &a.latency[source] }

// Requests returns how many answers have a latency.
func (a *Answers) Requests() (n int64) {
	for i := range a.latency {
		d := a.latency[i].Snapshot()
		n += int64(d.Count())
	}
	return n
}

// AddBytes counts bytes of documents and other bodies that were answered.
func (a *Answers) AddBytes(n int64) {
	if n != 0 {
		a.bytes.Add(n)
	}
}

// Bytes returns how many bytes were answered.
func (a *Answers) Bytes() int64 { return a.bytes.Sum() }

// Record counts an answer that took the time took and was complete at now, on the clock of
// the cache. The slowest are remembered with the resource and what key returns, if the
// answer holds a document.
func (a *Answers) Record(now, took time.Duration, source Source, resource string, key func() string) {
	a.latency[source].Record(took)
	a.RecordSlow(now, took, source, resource, key)
}

// RecordSlow is Record for an answer whose latency was counted before.
func (a *Answers) RecordSlow(now, took time.Duration, source Source, resource string, key func() string) {
	if source != SourceOther {
		a.slowest.Record(now, took, resource, key, source.String())
	}
}

// Slowest returns the slowest recent documents, the slowest first.
func (a *Answers) Slowest(now time.Duration) []measure.Slow { return a.slowest.List(now) }

// Figures are the current figures of a frontend.
type Figures struct {
	Answers *Answers // continues to count
	// Requests is how many requests or commands were answered since the start.
	Requests int64
	// Statuses are the answers by status, for protocols that have one.
	Statuses []Count
	Engine   loop.Stats
	// Looped says that an event loop serves the connections. Otherwise Engine has only the
	// connections and those that were closed by rule.
	Looped bool
	// HandedOver are the requests that the event loop handed over with their connection, by
	// reason; or nil if the loop does not do that.
	HandedOver []Count
	// Large is how many bytes of large answers wait for clients, or for their turn to
	// be sent.
	Large int64
	// Budgets are the bounds that clients share, apart from connections and memory.
	Budgets []Budget
	// Throttled are the requests that were refused or delayed because clients do too much, by
	// rule.
	Throttled []Count
}

// Count is how often something happened, by its name in metrics.
type Count struct {
	Name string
	N    int64
}

// Budget is a bound that clients share, and its usage.
type Budget struct {
	Name        string
	Used, Limit int64
}

// Counts collects what each passes to its visitor.
func Counts(each func(visit func(name string, n int64))) []Count {
	var all []Count
	each(func(name string, n int64) { all = append(all, Count{name, n}) })
	return all
}

// Budgets collects what each passes to its visitor.
func Budgets(each func(visit func(name string, used, limit int64))) []Budget {
	var all []Budget
	each(func(name string, used, limit int64) { all = append(all, Budget{name, used, limit}) })
	return all
}
