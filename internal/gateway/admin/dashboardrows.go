package admin

import (
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/measure"
)

// known returns seconds, or nil for a negative duration.
func known(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	seconds := d.Seconds()
	return &seconds
}

// ratio returns part of all, or nil if all is 0.
func ratio(part, all int64) *float64 {
	if all <= 0 {
		return nil
	}
	r := float64(part) / float64(all)
	return &r
}

// latencyOf returns the quantiles, or nil without values.
func latencyOf(d measure.Distribution) *pageLatency {
	if d.Count() == 0 {
		return nil
	}
	at := func(q float64) float64 { return d.Quantile(q).Seconds() }
	return &pageLatency{P50: at(0.5), P90: at(0.9), P99: at(0.99), P999: at(0.999), Max: d.Max().Seconds()}
}

// freshOf omits the empty buckets at both ends.
func freshOf(f Freshness) pageFresh {
	p := pageFresh{Count: f.count(), AtMost: f.AtMost, Bounds: []*float64{}, Buckets: []uint64{}}
	if p.Count == 0 {
		return p
	}
	p50, _ := f.quantile(0.5)
	p99, _ := f.quantile(0.99)
	top, above := f.quantile(1)
	p.P50, p.P99, p.Max, p.Above = p50.Seconds(), p99.Seconds(), top.Seconds(), above
	first, last := 0, len(f.Counts)-1
	for f.Counts[first] == 0 {
		first++
	}
	for f.Counts[last] == 0 {
		last--
	}
	for i := first; i <= last; i++ {
		var bound *float64
		if i < len(f.Bounds) {
			bound = known(f.Bounds[i])
		}
		p.Bounds = append(p.Bounds, bound)
		p.Buckets = append(p.Buckets, f.Counts[i])
	}
	return p
}

// frontends fills in the fields for the frontends.
func (p *page) frontends(from, to *observation, per func(before, after int64) float64) {
	for i := range to.Frontends {
		now := &to.Frontends[i]
		before := now
		if i < len(from.Frontends) {
			before = &from.Frontends[i]
		}
		f := pageFrontend{Name: now.Name, Engine: now.Engine, Connections: now.Connections, Unwritten: now.Unwritten,
			Rate: per(before.Requests, now.Requests), Closes: []pageClose{}}
		if now.HandedOver >= 0 {
			f.Handed = ratio(now.HandedOver-before.HandedOver, now.Requests-before.Requests)
		}
		for _, c := range now.Closes {
			if c.Count > 0 {
				f.Closes = append(f.Closes, pageClose(c))
			}
		}
		p.Fronts = append(p.Fronts, f)
	}
}

// columns names the numbers of a row, in order.
func columns(sources []Source) []string {
	names := []string{"t"}
	for _, s := range sources {
		names = append(names, "source:"+s.Name)
	}
	return append(names, "p50", "p90", "p99", "p999", "errors", "bytes_out", "horizon", "bound", "memory", "budget",
		"evictions", "events", "statements", "in_flight", "connections", "ready")
}

// rows are samples in JSON: arrays of numbers in the order of columns, of six
// significant digits, null for unknown values.
type rows struct {
	samples []sample
	sources int
}

// MarshalJSON implements [json.Marshaler].
func (r rows) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 2+len(r.samples)*128), '[')
	for i := range r.samples {
		if i > 0 {
			b = append(b, ',')
		}
		b = r.samples[i].appendRow(b, r.sources)
	}
	return append(b, ']'), nil
}

func (s *sample) appendRow(b []byte, sources int) []byte {
	number := func(v float64) { b = strconv.AppendFloat(append(b, ','), v, 'g', 6, 64) }
	seconds := func(d time.Duration) {
		if d < 0 {
			b = append(b, ",null"...)
			return
		}
		number(d.Seconds())
	}
	whole := func(n int64) { b = strconv.AppendInt(append(b, ','), n, 10) }
	b = strconv.AppendInt(append(b, '['), s.at.UnixMilli(), 10)
	for _, v := range s.requests[:sources] {
		number(v)
	}
	for _, d := range s.quantile {
		seconds(d)
	}
	number(s.errors)
	number(s.bytesOut)
	seconds(s.horizon)
	if s.bound == 0 {
		b = append(b, ",null"...)
	} else {
		seconds(s.bound)
	}
	whole(s.memory)
	whole(s.budget)
	number(s.evicted)
	number(s.events)
	number(s.commands)
	whole(s.inFlight)
	whole(s.open)
	ready := int64(0)
	if s.ready {
		ready = 1
	}
	whole(ready)
	return append(b, ']')
}
