package load

import (
	"context"
	"math"
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"
)

// An Interval is what a run did in a part of a phase: in a second or, in a long run, in several
// seconds. A request belongs to the interval in which it ended.
type Interval struct {
	WarmUp    bool          `json:"warm_up,omitempty"`
	Start     time.Duration `json:"start_ns"` // from the start of the phase
	Width     time.Duration `json:"width_ns"`
	Completed uint64        `json:"completed"`
	Errors    uint64        `json:"errors"`
	// Quantiles of the latency of completed requests, from the intended time in an open loop. They
	// are at most 1.6 % too high, and 0 if no request was completed.
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
	// Client is the CPU time of the generator, or 0 if unknown. Counters holds the increase of each
	// live [Counter] in the window; one that could not be read is absent.
	Client   time.Duration      `json:"client_ns"`
	Counters map[string]float64 `json:"counters,omitempty"`

	counts []bucketCount // of the latencies
}

const (
	// lineTick is how often a time line is read.
	lineTick = time.Second
	// maxCells bounds the cells of a time line. When it has more, pairs of cells are merged.
	maxCells = 512
	// liveLimit bounds the time for reading the live counters each second.
	liveLimit = 900 * time.Millisecond

	// The latencies of a cell are counted in 64 buckets for each power of two
	// nanoseconds, up to that above histogramHighest.
	lineBits    = 6
	lineBuckets = (36 - lineBits + 1) << lineBits
)

// lineBucket returns the bucket of a latency from 0 to histogramHighest.
func lineBucket(ns int64) int {
	if ns < 1<<lineBits {
		return int(ns)
	}
	e := bits.Len64(uint64(ns)) - lineBits - 1
	return e<<lineBits + int(ns>>e)
}

// lineTop returns the highest latency of a bucket.
func lineTop(bucket int) int64 {
	if bucket < 2<<lineBits {
		return int64(bucket)
	}
	e := bucket>>lineBits - 1
	return int64(bucket-e<<lineBits+1)<<e - 1
}

// A timeline records what a phase does each second. Its memory is bounded: the cells of a long
// phase cover several seconds.
type timeline struct {
	// Immutable after newTimeline.
	began  time.Time
	warmUp bool
	shards []*lineShard // the callers are distributed among them

	// Owned by the goroutine that reads the time line, and by Run after the phase.
	read  time.Duration // when the shards were read last, from began
	used  []float64     // at that time: the CPU time of the generator and the live counters
	ticks int           // readings per cell
	cells []*cell
	part  *cell // the current second, if the line is read more often; nil if nothing was read since the last cell
}

// A lineShard collects what some of the callers do. Reading it resets it to zero.
type lineShard struct {
	buckets [lineBuckets]atomic.Uint32
	failed  atomic.Uint64
	longest atomic.Int64
}

// A cell is a part of a time line.
type cell struct {
	ticks   int // readings in it
	start   time.Duration
	width   time.Duration
	failed  uint64
	longest int64
	used    []float64 // NaN: unknown
	buckets [lineBuckets]uint64
}

// newTimeline returns the time line of a phase that begins now. used holds the current readings of
// the meters.
func newTimeline(warmUp bool, callers int, used []float64) *timeline {
	l := &timeline{warmUp: warmUp, ticks: 1, used: used}
	for range min(runtime.GOMAXPROCS(0), callers) {
		l.shards = append(l.shards, new(lineShard))
	}
	l.began = time.Now()
	return l
}

// record counts requests that have ended with the same latency. It is safe for
// concurrent use.
func (l *timeline) record(caller int, latency time.Duration, completed, failed int) {
	s := l.shards[caller%len(l.shards)]
	if failed > 0 {
		s.failed.Add(uint64(failed))
	}
	if completed == 0 {
		return
	}
	ns := min(max(int64(latency), 0), histogramHighest)
	for longest := s.longest.Load(); ns > longest; longest = s.longest.Load() {
		if s.longest.CompareAndSwap(longest, ns) {
			break
		}
	}
	s.buckets[lineBucket(ns)].Add(uint32(completed))
}

// harvest collects what was recorded since the last call. at is the current time, from began, and
// used holds the current readings of the meters.
func (l *timeline) harvest(at time.Duration, used []float64) *cell {
	at = max(at, l.read) // the last reading may be later than the last request
	c := &cell{ticks: 1, start: l.read, width: at - l.read, used: make([]float64, len(used))}
	for i, v := range used {
		c.used[i] = v - l.used[i]
	}
	l.read, l.used = at, used
	for _, s := range l.shards {
		for i := range s.buckets {
			if s.buckets[i].Load() != 0 {
				c.buckets[i] += uint64(s.buckets[i].Swap(0))
			}
		}
		c.failed += s.failed.Swap(0)
		c.longest = max(c.longest, s.longest.Swap(0))
	}
	return c
}

// add appends a cell, or merges it into the last one.
func (l *timeline) add(c *cell) {
	if last := len(l.cells) - 1; last >= 0 && l.cells[last].ticks < l.ticks {
		l.cells[last].merge(c)
		return
	}
	l.cells = append(l.cells, c)
	if len(l.cells) < maxCells {
		return
	}
	for i := range maxCells / 2 {
		l.cells[2*i].merge(l.cells[2*i+1])
		l.cells[i] = l.cells[2*i]
	}
	clear(l.cells[maxCells/2:])
	l.cells = l.cells[:maxCells/2]
	l.ticks *= 2
}

// finish adds what was recorded since the last reading. Less than half a second does not become a
// separate cell, because its rate would mean little.
func (l *timeline) finish(at time.Duration, used []float64) {
	c := l.joined(l.harvest(at, used))
	if last := len(l.cells) - 1; last >= 0 && c.width < lineTick/2 {
		l.cells[last].merge(c)
		return
	}
	l.add(c)
}

// joined returns a reading merged with the part of a second that was read before it.
func (l *timeline) joined(c *cell) *cell {
	if l.part == nil {
		return c
	}
	l.part.merge(c)
	c, l.part = l.part, nil
	c.ticks = 1
	return c
}

// second returns the readings of about a second as one, or nil if the second is not over.
func (l *timeline) second(c *cell) *cell {
	if c = l.joined(c); c.width < lineTick-steadyTick/2 {
		l.part = c
		return nil
	}
	return c
}

// merge adds the cell that follows c.
func (c *cell) merge(next *cell) {
	c.ticks += next.ticks
	c.width += next.width
	c.failed += next.failed
	c.longest = max(c.longest, next.longest)
	for i := range c.used {
		c.used[i] += next.used[i]
	}
	for i, n := range next.buckets {
		c.buckets[i] += n
	}
}

// interval converts a cell to an Interval. live holds the names of the live counters.
func (c *cell) interval(warmUp bool, live []string) Interval {
	i := Interval{WarmUp: warmUp, Start: c.start, Width: c.width, Errors: c.failed}
	if !math.IsNaN(c.used[0]) {
		i.Client = time.Duration(c.used[0])
	}
	for _, n := range c.buckets {
		i.Completed += n
	}
	if i.Completed > 0 {
		i.P50, i.P99, i.Max = c.quantile(0.50, i.Completed), c.quantile(0.99, i.Completed), c.quantile(1, i.Completed)
	}
	for k, name := range live {
		if v := c.used[k+1]; !math.IsNaN(v) {
			if i.Counters == nil {
				i.Counters = map[string]float64{}
			}
			i.Counters[name] = v
		}
	}
	return i
}

// quantile returns the latency below which the share q of count requests lies.
func (c *cell) quantile(q float64, count uint64) time.Duration {
	want := max(uint64(math.Ceil(q*float64(count))), 1)
	var below uint64
	for i, n := range c.buckets {
		if below += n; below >= want {
			top := lineTop(i)
			// If a request ends during a harvest, its latency may be counted in one cell and
			// recorded as the longest one in another.
			if lowest := lineTop(max(i, 1)-1) + 1; c.longest >= lowest {
				top = min(top, c.longest)
			}
			return time.Duration(top)
		}
	}
	return time.Duration(c.longest)
}

// live returns the names of the live counters.
func (r *runner) live() (names []string) {
	for _, c := range r.cfg.Counters {
		if c.Live {
			names = append(names, c.Name)
		}
	}
	return names
}

// used returns the values of a reading that the time line needs.
func (r *runner) used(now reading) []float64 {
	used := []float64{cpuOrNaN(now.client)}
	for i, c := range r.cfg.Counters {
		if c.Live {
			used = append(used, now.counters[i])
		}
	}
	return used
}

func cpuOrNaN(cpu time.Duration) float64 {
	if cpu == noCPU {
		return math.NaN()
	}
	return float64(cpu)
}

// usedNow reads the meters of the time line. The counters of a warm-up are unknown.
func (r *runner) usedNow(ctx context.Context, warmUp bool) []float64 {
	cpu, err := ownCPU()
	if err != nil {
		cpu = noCPU
	}
	used := []float64{cpuOrNaN(cpu)}
	ctx, cancel := context.WithTimeout(ctx, liveLimit)
	defer cancel()
	for _, c := range r.cfg.Counters {
		if !c.Live {
			continue
		}
		v := math.NaN()
		if !warmUp {
			if now, err := c.Read(ctx); err == nil {
				v = now
			}
		}
		used = append(used, v)
	}
	return used
}

// follow reads the time line each second until ctx ends. In a warm-up that may end early, it reads
// the time line more often, and ends the warm-up.
func (r *runner) follow(ctx context.Context) {
	tick := lineTick
	if r.steady != nil {
		tick = steadyTick
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	l, live := r.line, r.live()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		used := r.usedNow(ctx, l.warmUp)
		if ctx.Err() != nil {
			return // the rest is read at the end of the phase
		}
		c := l.harvest(time.Since(l.began), used)
		if r.steady != nil {
			r.steady.add(c)
			if c = l.second(c); l.read >= r.cfg.SteadyAfter && !r.steady.ended {
				r.endWarmUp()
			}
			if c == nil {
				continue
			}
		}
		if r.cfg.Progress != nil {
			r.cfg.Progress(c.interval(l.warmUp, live))
		}
		l.add(c)
	}
}

// intervals returns the time line of the phase.
func (r *runner) intervals() []Interval {
	live := r.live()
	all := make([]Interval, len(r.line.cells))
	for i, c := range r.line.cells {
		all[i] = c.interval(r.line.warmUp, live)
		all[i].counts = c.sparse()
	}
	return all
}
