package admin

import (
	"context"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/measure"
)

// Times of the dashboard.
const (
	sampleInterval = time.Second
	// historyLength is how many samples are kept: ten minutes, 130 kB.
	historyLength = 600
	// recentLength is how many complete figures are kept, for rates and quantiles
	// over the last ten seconds; with the latency of five sources 20 kB each.
	recentLength = 10
)

// sample is what happened in one second, for the charts. Rates are per second;
// unknown values are negative.
type sample struct {
	at       time.Time
	requests [maxSources]float64 // by source
	quantile [len(quantiles)]time.Duration
	errors   float64 // answers with a status of 500 or more
	bytesOut float64
	horizon  time.Duration // age, negative without a horizon
	bound    time.Duration
	memory   int64
	budget   int64
	evicted  float64
	events   float64 // invalidations
	commands float64 // statements sent to the origin
	inFlight int64
	open     int64 // connections
	ready    bool
}

// maxSources bounds the sources that are shown; there are five.
const maxSources = 8

// quantiles of the latency that are shown.
var quantiles = [...]float64{0.5, 0.9, 0.99, 0.999}

// observation is the figures at one moment.
type observation struct {
	Figures
	at      time.Time
	reasons []string // why the gateway is not ready
}

// history keeps the last ten minutes, so that a page opened during an incident
// shows what came before it. Its size is bounded.
type history struct {
	// Immutable after newHistory.
	figures func() Figures
	reasons func() []string
	now     func() time.Time

	mu sync.Mutex
	// Guarded by mu.
	samples []sample      // a ring once it is full
	next    int           // index of the next sample
	taken   int64         // samples since the start; the newest has this number
	recent  []observation // the newest last
}

func newHistory(figures func() Figures, reasons func() []string, now func() time.Time) *history {
	if reasons == nil {
		reasons = func() []string { return nil }
	}
	return &history{figures: figures, reasons: reasons, now: now}
}

// run takes a sample every second until ctx ends.
func (h *history) run(ctx context.Context) {
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	for {
		h.take()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// take observes, and adds a sample of what happened since the last time.
func (h *history) take() {
	o := observation{at: h.now(), Figures: h.figures(), reasons: h.reasons()}
	if len(o.Sources) > maxSources {
		o.Sources = o.Sources[:maxSources]
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.recent); n > 0 {
		last := &h.recent[n-1]
		if o.at.Sub(last.at) <= 0 {
			h.recent = append(h.recent[:0], o) // the clock was set back: start over
			return
		}
		h.add(difference(last, &o))
	}
	if len(h.recent) > recentLength {
		h.recent = append(h.recent[:0], h.recent[1:]...)
	}
	h.recent = append(h.recent, o)
}

func (h *history) add(s sample) {
	if len(h.samples) < historyLength {
		h.samples = append(h.samples, s)
	} else {
		h.samples[h.next] = s
	}
	h.next = (h.next + 1) % historyLength
	h.taken++
}

// view is the data for one answer of the dashboard.
type view struct {
	samples  []sample // the oldest first
	taken    int64    // the number of the newest
	from, to observation
}

// since returns the samples after the one with the number, and the first and
// last figures of the last seconds. ok is false before the first figures.
func (h *history) since(number int64) (v view, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.recent) == 0 {
		return view{}, false
	}
	v.taken, v.from, v.to = h.taken, h.recent[0], h.recent[len(h.recent)-1]
	n := int64(len(h.samples))
	if number < 0 || number > h.taken { // of another process
		number = 0
	}
	wanted := min(h.taken-number, n)
	for i := n - wanted; i < n; i++ {
		at := i
		if n == historyLength {
			at = (int64(h.next) + i) % n
		}
		v.samples = append(v.samples, h.samples[at])
	}
	return v, true
}

// rate returns how much a counter grew in a second. A counter that went back,
// because its part was recreated, counts as unchanged.
func rate(before, after int64, elapsed time.Duration) float64 {
	if elapsed <= 0 {
		return 0
	}
	return float64(max(after-before, 0)) / elapsed.Seconds()
}

// difference returns what happened between two observations.
func difference(before, after *observation) sample {
	elapsed := after.at.Sub(before.at)
	s := sample{
		at:       after.at,
		bytesOut: rate(before.BodyBytes, after.BodyBytes, elapsed),
		errors:   rate(before.failures(), after.failures(), elapsed),
		horizon:  after.Cache.HorizonAge,
		bound:    after.Bound,
		open:     after.Connections,
		ready:    len(after.reasons) == 0,
	}
	for i := range after.Sources {
		s.requests[i] = rate(before.requests(i), after.requests(i), elapsed)
	}
	latency := after.latencySince(before)
	for i, q := range quantiles {
		s.quantile[i] = -1
		if latency.Count() > 0 {
			s.quantile[i] = latency.Quantile(q)
		}
	}
	b, a := before.totals(), after.totals()
	s.commands = rate(b.statements, a.statements, elapsed)
	s.events = rate(b.events, a.events, elapsed)
	s.evicted = rate(b.evicted, a.evicted, elapsed)
	s.inFlight, s.memory, s.budget = a.inFlight, a.bytes, a.budget
	return s
}

// requests returns the count of the i-th source, or 0 if there was none yet.
func (o *observation) requests(i int) int64 {
	if i >= len(o.Sources) {
		return 0
	}
	return int64(o.Sources[i].Requests)
}

// failures returns the answers with a status of 500 or more.
func (o *observation) failures() (n int64) {
	for _, s := range o.Statuses {
		if s.Status >= "500" {
			n += s.Count
		}
	}
	return n
}

// latencySince returns the latency of all requests after an earlier observation.
func (o *observation) latencySince(before *observation) (all measure.Distribution) {
	for i := range o.Sources {
		if d, ok := o.sourceSince(before, i); ok {
			all = all.Add(d)
		}
	}
	return all
}

// sourceSince returns the latency of the i-th source; ok is false if it is not
// measured.
func (o *observation) sourceSince(before *observation, i int) (measure.Distribution, bool) {
	now := o.Sources[i].Latency
	if now == nil {
		return measure.Distribution{}, false
	}
	if i < len(before.Sources) && before.Sources[i].Latency != nil {
		return now.Sub(*before.Sources[i].Latency), true
	}
	return *now, true
}

// totals are sums over all resources and tiers.
type totals struct{ statements, events, inFlight, evicted, bytes, budget int64 }

func (o *observation) totals() (t totals) {
	for i := range o.Cache.Resources {
		r := &o.Cache.Resources[i]
		t.statements += r.Statements
		t.events += r.Events + r.Flushes
		t.inFlight += r.InFlight
	}
	for i := range o.Cache.Tiers {
		tier := &o.Cache.Tiers[i]
		t.evicted += tier.Evicted
		t.bytes += tier.Bytes
		t.budget += tier.Budget
	}
	return t
}
