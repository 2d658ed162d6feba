package admin

import "github.com/slipstream-go/slipstream/cache"

// page is /dashboard.json. Times are in seconds, sizes in bytes, rates per second
// over the last ten seconds ("window"); null means unknown.
type page struct {
	Instance string   `json:"instance"`
	Version  string   `json:"version"`
	Now      int64    `json:"now"`    // milliseconds since 1970, of the newest figures
	Uptime   float64  `json:"uptime"` // seconds
	Window   float64  `json:"window"`
	Ready    bool     `json:"ready"`
	Reasons  []string `json:"reasons"`

	Requests pageRequests   `json:"requests"`
	Memory   []pageTier     `json:"memory"`
	Horizon  pageHorizon    `json:"horizon"`
	Fresh    pageFresh      `json:"fresh"`
	Loads    pageLoads      `json:"loads"`
	Tables   []pageResource `json:"resources"`
	Slowest  []pageSlow     `json:"slowest"`
	Statuses []pageStatus   `json:"statuses"`
	Fronts   []pageFrontend `json:"frontends"`
	Budgets  []pageBudget   `json:"budgets"`
	Rules    []pageRule     `json:"rules"`
	Series   pageSeries     `json:"series"`
}

type pageRequests struct {
	Rate        float64      `json:"rate"`
	Errors      float64      `json:"errors"` // answers with a status of 500 or more
	Total       int64        `json:"total"`
	HitRatio    *float64     `json:"hit_ratio"`
	BytesOut    float64      `json:"bytes_out"`
	Connections int64        `json:"connections"`
	Latency     *pageLatency `json:"latency"`
	Sources     []pageSource `json:"sources"`
}

type pageSource struct {
	Name    string       `json:"name"`
	Rate    float64      `json:"rate"`
	Total   uint64       `json:"total"`
	Latency *pageLatency `json:"latency"`
}

// pageLatency is in seconds.
type pageLatency struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

type pageTier struct {
	Name      string  `json:"name"`
	Bytes     int64   `json:"bytes"`
	Budget    int64   `json:"budget"`
	Documents int64   `json:"documents"`
	Missing   int64   `json:"missing"`
	FormBytes int64   `json:"form_bytes"`
	Evicted   int64   `json:"evicted"`
	Evictions float64 `json:"evictions"`
}

type pageHorizon struct {
	Age         *float64 `json:"age"`
	Bound       *float64 `json:"bound"`
	Tombstones  int64    `json:"tombstones"`
	Voids       int64    `json:"voids"`
	VoidReason  string   `json:"void_reason"`
	PollErrors  int64    `json:"poll_errors"`
	Trouble     string   `json:"trouble"`
	StaleServed int64    `json:"stale_served"`
}

// pageFresh is the time from commit to fresh, since the start. A bucket ends at
// its bound; the last has none.
type pageFresh struct {
	Count   uint64     `json:"count"`
	P50     float64    `json:"p50"`
	P99     float64    `json:"p99"`
	Max     float64    `json:"max"`
	Above   bool       `json:"above"` // max is a lower bound
	AtMost  bool       `json:"at_most"`
	Bounds  []*float64 `json:"bounds"`
	Buckets []uint64   `json:"buckets"`
}

type pageLoads struct {
	InFlight   int64   `json:"in_flight"`
	Statements float64 `json:"statements"`
	Loaded     float64 `json:"loaded"`
	Failed     float64 `json:"failed"`
	Events     float64 `json:"events"`
}

type pageResource struct {
	Name       string   `json:"name"`
	Promise    string   `json:"promise"` // "kept", "broken" or "none"
	Why        string   `json:"why"`
	Bound      float64  `json:"bound"`
	OnStale    string   `json:"on_stale"`
	Rate       float64  `json:"rate"`
	HitRatio   *float64 `json:"hit_ratio"`
	Statements float64  `json:"statements"`
	InFlight   int64    `json:"in_flight"`
	Events     float64  `json:"events"`
	Failed     int64    `json:"failed"`
	Unkept     int64    `json:"unkept"` // answers stale, refused or loaded because the promise could not be kept
}

type pageSlow struct {
	Resource string  `json:"resource"`
	Key      string  `json:"key"`
	Source   string  `json:"source"`
	Took     float64 `json:"took"`
	Ago      float64 `json:"ago"`
}

type pageStatus struct {
	Status string  `json:"status"`
	Count  int64   `json:"count"`
	Rate   float64 `json:"rate"`
}

type pageFrontend struct {
	Name        string      `json:"name"`
	Engine      string      `json:"engine"`
	Connections int64       `json:"connections"`
	Rate        float64     `json:"rate"`
	Handed      *float64    `json:"handed_over"` // share of the requests
	Unwritten   int64       `json:"unwritten"`
	Closes      []pageClose `json:"closes"` // those that have happened, since the start
}

type pageClose struct {
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// pageBudget is a budget that clients share, and its usage.
type pageBudget struct {
	Name     string `json:"name"`     // "client_memory", "large_answers" (bytes), "connections", those of Frontend.Budgets, "load_queue"
	Frontend string `json:"frontend"` // "" for all together; for "load_queue" the resource
	Used     int64  `json:"used"`
	Limit    int64  `json:"limit"`
}

// pageRule is how often a rule throttled or closed something, if it ever has.
type pageRule struct {
	Frontend string  `json:"frontend"` // "" for all together
	Rule     string  `json:"rule"`
	Effect   string  `json:"effect"` // "throttled" or "closed"
	Rate     float64 `json:"rate"`
	Total    int64   `json:"total"` // since the start
}

// pageSeries are the samples, one row each: numbers are shorter than names.
type pageSeries struct {
	Newest  int64    `json:"newest"`
	Columns []string `json:"columns"`
	Rows    rows     `json:"rows"`
}

// page converts a view into the response.
func (d *dashboard) page(v *view) page {
	from, to := &v.from, &v.to
	elapsed := to.at.Sub(from.at)
	per := func(before, after int64) float64 { return rate(before, after, elapsed) }
	p := page{
		Instance: d.instance, Version: d.version,
		Now: to.at.UnixMilli(), Uptime: to.at.Sub(d.begun).Seconds(), Window: elapsed.Seconds(),
		Ready: len(to.reasons) == 0, Reasons: append([]string{}, to.reasons...),
		Requests: requestsOf(from, to, per),
		Memory:   []pageTier{},
		Horizon: pageHorizon{
			Age: known(to.Cache.HorizonAge), Tombstones: to.Cache.Tombstones,
			Voids: to.Cache.Voids, VoidReason: to.Cache.VoidReason,
			PollErrors: to.PollErrors, Trouble: to.Trouble, StaleServed: to.StaleServed,
		},
		Fresh:    freshOf(to.Fresh),
		Tables:   []pageResource{},
		Slowest:  []pageSlow{},
		Statuses: []pageStatus{},
		Fronts:   []pageFrontend{},
		Budgets:  budgetsOf(to),
		Rules:    rulesOf(from, to, per),
		Series:   pageSeries{Newest: v.taken, Columns: columns(to.Sources), Rows: rows{v.samples, len(to.Sources)}},
	}
	if to.Bound > 0 {
		p.Horizon.Bound = known(to.Bound)
	}
	for i, t := range to.Cache.Tiers {
		before := t
		if i < len(from.Cache.Tiers) {
			before = from.Cache.Tiers[i]
		}
		p.Memory = append(p.Memory, pageTier{Name: t.Name, Bytes: t.Bytes, Budget: t.Budget, Documents: t.Documents, Missing: t.Missing,
			FormBytes: t.FormBytes, Evicted: t.Evicted, Evictions: per(before.Evicted, t.Evicted)})
	}
	p.resources(from, to, per)
	p.frontends(from, to, per)
	for _, s := range to.Slowest {
		p.Slowest = append(p.Slowest, pageSlow{s.Resource, s.Key, s.Source, s.Took.Seconds(), s.Ago.Seconds()})
	}
	before := make(map[string]int64)
	for _, s := range from.Statuses {
		before[s.Status] = s.Count
	}
	for _, s := range to.Statuses {
		p.Statuses = append(p.Statuses, pageStatus{s.Status, s.Count, per(before[s.Status], s.Count)})
	}
	return p
}

// requestsOf returns the requests of the last seconds.
func requestsOf(from, to *observation, per func(before, after int64) float64) pageRequests {
	r := pageRequests{
		Errors:      per(from.failures(), to.failures()),
		BytesOut:    per(from.BodyBytes, to.BodyBytes),
		Connections: to.Connections,
		Sources:     []pageSource{},
	}
	for i, s := range to.Sources {
		shown := pageSource{Name: s.Name, Rate: per(from.requests(i), to.requests(i)), Total: s.Requests}
		if d, ok := to.sourceSince(from, i); ok {
			shown.Latency = latencyOf(d)
		}
		r.Rate += shown.Rate
		r.Total += int64(s.Requests)
		r.Sources = append(r.Sources, shown)
	}
	r.Latency = latencyOf(to.latencySince(from))
	var hits, all int64
	for i := range to.Cache.Resources {
		h, a := asked(from, to, i)
		hits, all = hits+h, all+a
	}
	r.HitRatio = ratio(hits, all)
	return r
}

// before returns the earlier stats of the same resource. A resource of the same name that replaced
// it since starts again from zero.
func (o *observation) before(now *cache.ResourceStats) *cache.ResourceStats {
	for i := range o.Cache.Resources {
		r := &o.Cache.Resources[i]
		if r.Name == now.Name && r.Hits <= now.Hits && r.Misses <= now.Misses && r.Statements <= now.Statements {
			return r
		}
	}
	return nil
}

// asked returns the hits and all GETs of the i-th resource between two observations.
func asked(from, to *observation, i int) (hits, all int64) {
	hits, all = to.Cache.Resources[i].Hits, to.Cache.Resources[i].Hits+to.Cache.Resources[i].Misses
	if before := from.before(&to.Cache.Resources[i]); before != nil {
		hits, all = hits-before.Hits, all-before.Hits-before.Misses
	}
	return hits, all
}

// resources fills in the fields for resources and their loads.
func (p *page) resources(from, to *observation, per func(before, after int64) float64) {
	for i := range to.Cache.Resources {
		now := &to.Cache.Resources[i]
		before := from.before(now)
		if before == nil {
			before = now
		}
		r := pageResource{
			Name: now.Name, Promise: "kept",
			Rate:       per(before.Hits+before.Misses, now.Hits+now.Misses),
			HitRatio:   ratio(asked(from, to, i)),
			Statements: per(before.Statements, now.Statements),
			InFlight:   now.InFlight,
			Events:     per(before.Events+before.Flushes, now.Events+now.Flushes),
			Failed:     now.Failed,
			Unkept:     now.Stale + now.Unavailable + now.Reloaded,
		}
		switch {
		case now.NoPromise:
			r.Promise = "none"
		case !now.Promised:
			r.Promise, r.Why = "broken", now.Why
		}
		if i < len(to.Resources) {
			r.Bound, r.OnStale = to.Resources[i].Bound.Seconds(), to.Resources[i].OnStale
		}
		p.Tables = append(p.Tables, r)
		p.Loads.InFlight += now.InFlight
		p.Loads.Statements += r.Statements
		p.Loads.Events += r.Events
		p.Loads.Loaded += per(before.Loaded, now.Loaded)
		p.Loads.Failed += per(before.Failed, now.Failed)
	}
}
