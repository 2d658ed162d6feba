package admin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/measure"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// fakeGateway makes figures from numbers that a test sets.
type fakeGateway struct {
	now     time.Time
	reasons []string
	hits    measure.Latency
	loads   measure.Latency
	figures Figures
}

func (g *fakeGateway) collect() Figures {
	f := g.figures
	for _, s := range []struct {
		name    string
		latency *measure.Latency
	}{{"hit", &g.hits}, {"load", &g.loads}} {
		d := s.latency.Snapshot()
		f.Sources = append(f.Sources, Source{Name: s.name, Requests: d.Count(), Latency: &d})
	}
	f.Cache.Resources = slices.Clone(f.Cache.Resources)
	return f
}

// newFakeDashboard returns a server whose clock stands still, and the gateway that
// it shows.
func newFakeDashboard() (*Server, *fakeGateway) {
	g := &fakeGateway{now: time.UnixMilli(1_700_000_000_000)}
	g.figures.Cache.Resources = []cache.ResourceStats{{Name: "depts", Promised: true}, {Name: "logs", NoPromise: true}}
	g.figures.Resources = []Promise{{Bound: time.Second, OnStale: "reload"}, {Bound: time.Minute}}
	g.figures.Bound = time.Second
	s := New(Config{Ready: func() []string { return g.reasons }, Figures: g.collect, Version: "v1.2.3"})
	s.dashboard = newDashboard(Config{Ready: func() []string { return g.reasons }, Figures: g.collect, Version: "v1.2.3"}, func() time.Time { return g.now })
	s.mux = http.NewServeMux()
	s.dashboard.register(s.mux)
	return s, g
}

// tick lets a second pass, and takes a sample.
func (g *fakeGateway) tick(s *Server, n int) {
	for range n {
		g.now = g.now.Add(time.Second)
		s.dashboard.history.take()
	}
}

// shown is what the tests read of /dashboard.json.
type shown struct {
	page
	Series struct {
		Newest  int64
		Columns []string
		Rows    [][]*float64
	} `json:"series"` // instead of the type of the page, whose rows can only be encoded
}

func (p *shown) column(t *testing.T, name string) (values []float64) {
	t.Helper()
	i := slices.Index(p.Series.Columns, name)
	if i < 0 {
		t.Fatalf("no column %s in %q", name, p.Series.Columns)
	}
	for _, row := range p.Series.Rows {
		v := -1.0
		if row[i] != nil {
			v = *row[i]
		}
		values = append(values, v)
	}
	return values
}

func figuresOf(t *testing.T, s *Server, query string) (p shown) {
	t.Helper()
	w := ask(s, "GET", "/dashboard.json"+query)
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("/dashboard.json%s: %d %s", query, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v in %.500s", err, w.Body)
	}
	return p
}

func TestDashboardFiles(t *testing.T) {
	s, _ := newFakeDashboard()
	for path, contentType := range map[string]string{
		"/": "text/html; charset=utf-8", "/dashboard/dashboard.css": "text/css; charset=utf-8",
		"/dashboard/dashboard.js": "text/javascript; charset=utf-8", "/dashboard/chart.js": "text/javascript; charset=utf-8",
		"/dashboard/tables.js": "text/javascript; charset=utf-8", "/dashboard/format.js": "text/javascript; charset=utf-8",
		"/dashboard/icon.svg": "image/svg+xml",
	} {
		w := ask(s, "GET", path)
		if w.Code != 200 || w.Header().Get("Content-Type") != contentType || w.Body.Len() < 100 {
			t.Errorf("%s: %d %s, %d bytes; want 200 %s", path, w.Code, w.Header().Get("Content-Type"), w.Body.Len(), contentType)
		}
		policy := w.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, ":") {
			t.Errorf("%s: Content-Security-Policy %q", path, policy)
		}
		if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: fields %v", path, w.Header())
		}
		for _, foreign := range []string{"http://", "https://", "//cdn", "@import", "innerHTML", "style=", "onclick"} {
			if body := strings.ReplaceAll(w.Body.String(), "http://www.w3.org/2000/svg", ""); strings.Contains(body, foreign) {
				t.Errorf("%s has %q", path, foreign)
			}
		}
		if w := ask(s, "POST", path); w.Code != 405 {
			t.Errorf("POST %s: %d, want 405", path, w.Code)
		}
	}
	if w := ask(s, "GET", "/dashboard/"); w.Code != 404 {
		t.Errorf("/dashboard/: %d, want 404", w.Code)
	}
	if w := ask(s, "GET", "/dashboard.json", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"); w.Code != 403 {
		t.Errorf("a foreign page reads the figures: %d", w.Code)
	}
}

func TestDashboardFigures(t *testing.T) {
	s, g := newFakeDashboard()
	if w := ask(s, "GET", "/dashboard.json"); w.Code != 503 {
		t.Errorf("before the first figures: %d, want 503", w.Code)
	}
	s.dashboard.history.take()
	p := figuresOf(t, s, "")
	if !p.Ready || p.Requests.Latency != nil || p.Requests.HitRatio != nil || p.Series.Newest != 0 || len(p.Series.Rows) != 0 || p.Fresh.Count != 0 {
		t.Errorf("without parameters: %+v", p)
	}

	// A second with 90 hits of 2 us and 10 loads of 5 ms, of which 2 fail.
	for range 90 {
		g.hits.Record(2 * time.Microsecond)
	}
	for range 10 {
		g.loads.Record(5 * time.Millisecond)
	}
	f := &g.figures
	f.Cache.Resources[0].Hits, f.Cache.Resources[0].Misses, f.Cache.Resources[0].Statements = 90, 10, 4
	f.Cache.Resources[0].Events, f.Cache.Resources[0].InFlight = 7, 3
	f.Cache.Tiers = []cache.NamedTierStats{{Name: "memory", TierStats: cache.TierStats{Documents: 10, Bytes: 4096, Budget: 8192, Evicted: 5}}}
	f.Cache.HorizonAge = 50 * time.Millisecond
	f.BodyBytes, f.Connections = 5000, 12
	f.Statuses = []Status{{"200", 98}, {"502", 2}}
	f.Slowest = []measure.Slow{{Resource: "depts", Key: "<b>", Source: "load", Took: time.Second, Ago: time.Minute}}
	f.Fresh = Freshness{Bounds: []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second},
		Counts: []uint64{0, 50, 48, 2, 0}, AtMost: true}
	f.StaleServed = 1
	g.tick(s, 1)
	p = figuresOf(t, s, "")
	for name, c := range map[string]struct{ got, want float64 }{
		"rate": {p.Requests.Rate, 100}, "errors": {p.Requests.Errors, 2}, "hit ratio": {*p.Requests.HitRatio, 0.9},
		"total": {float64(p.Requests.Total), 100}, "bytes out": {p.Requests.BytesOut, 5000}, "connections": {float64(p.Requests.Connections), 12},
		"statements": {p.Loads.Statements, 4}, "in flight": {float64(p.Loads.InFlight), 3}, "events": {p.Loads.Events, 7},
		"horizon": {*p.Horizon.Age, 0.05}, "bound": {*p.Horizon.Bound, 1}, "stale": {float64(p.Horizon.StaleServed), 1},
		"memory": {float64(p.Memory[0].Bytes), 4096}, "evictions": {p.Memory[0].Evictions, 0}, // the tier is new
		"hits": {p.Requests.Sources[0].Rate, 90}, "loads": {p.Requests.Sources[1].Rate, 10},
		"fresh p50": {p.Fresh.P50, 0.01}, "fresh p99": {p.Fresh.P99, 1}, "fresh max": {p.Fresh.Max, 1},
		"status": {p.Statuses[1].Rate, 2}, "slow": {p.Slowest[0].Took, 1}, "uptime": {p.Uptime, 1}, "window": {p.Window, 1},
		"resource": {p.Tables[0].Rate, 100}, "bound of the second": {p.Tables[1].Bound, 60},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
	if l := p.Requests.Latency; l.P50 > 3e-6 || l.P99 < 4.5e-3 || l.P99 > 5.5e-3 {
		t.Errorf("latency %+v, want p50 2 us, p99 5 ms", *l)
	}
	if len(p.Fresh.Buckets) != 3 || *p.Fresh.Bounds[0] != 0.01 {
		t.Errorf("fresh %+v, want the buckets from 10 ms to 1 s", p.Fresh)
	}
	if p.Tables[0].Promise != "kept" || p.Tables[1].Promise != "none" || p.Version != "v1.2.3" {
		t.Errorf("promises %q, %q, version %q", p.Tables[0].Promise, p.Tables[1].Promise, p.Version)
	}

	// The promise breaks, and there are no requests.
	g.reasons = []string{"resource depts: trigger t is missing"}
	f.Cache.Resources[0].Promised, f.Cache.Resources[0].Why, f.Cache.HorizonAge = false, "trigger t is missing", -1
	g.tick(s, 1)
	p = figuresOf(t, s, "")
	if p.Ready || len(p.Reasons) != 1 || p.Tables[0].Promise != "broken" || p.Tables[0].Why == "" || p.Horizon.Age != nil {
		t.Errorf("not ready: %+v", p.page)
	}
	for name, want := range map[string]string{"source:hit": "[90 0]", "ready": "[1 0]", "horizon": "[0.05 -1]", "errors": "[2 0]", "memory": "[4096 4096]"} {
		if got := fmt.Sprint(p.column(t, name)); got != want {
			t.Errorf("column %s: got %s, want %s", name, got, want)
		}
	}
	if q := p.column(t, "p99"); q[0] < 0.0045 || q[1] != -1 {
		t.Errorf("column p99: %v, want 5 ms and then nothing", q)
	}
	g.tick(s, recentLength+1)
	if p = figuresOf(t, s, ""); p.Requests.Rate != 0 || p.Requests.Latency != nil || p.Window != recentLength {
		t.Errorf("after ten quiet seconds: rate %v, latency %v, window %v", p.Requests.Rate, p.Requests.Latency, p.Window)
	}
}

// TestDashboardFrontends: rates and shares are of the last seconds, and only closes
// that have happened are shown.
func TestDashboardFrontends(t *testing.T) {
	s, g := newFakeDashboard()
	show := func(http, handed, redis int64) []pageFrontend {
		g.figures.Frontends = []Frontend{
			{Name: "http", Engine: "epoll", Connections: 3, Requests: http, HandedOver: handed, Unwritten: 7, Closes: []Close{{"end", 0}, {"idle", 2}}},
			{Name: "redis", Engine: "goroutines", Requests: redis, HandedOver: -1},
		}
		g.tick(s, 1)
		return figuresOf(t, s, "").Fronts
	}
	show(100, 20, 7)
	quarter := 0.25
	want := []pageFrontend{
		{Name: "http", Engine: "epoll", Connections: 3, Rate: 40, Handed: &quarter, Unwritten: 7, Closes: []pageClose{{"idle", 2}}},
		{Name: "redis", Engine: "goroutines", Rate: 80, Closes: []pageClose{}},
	}
	if got := show(140, 30, 87); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	g.tick(s, recentLength+1)
	if got := figuresOf(t, s, "").Fronts[0]; got.Rate != 0 || got.Handed != nil {
		t.Errorf("after ten quiet seconds: %+v", got)
	}
}

// TestDashboardBudgets: every budget is shown, and of the rules those that were used.
func TestDashboardBudgets(t *testing.T) {
	s, g := newFakeDashboard()
	g.figures.ClientMemory = ClientMemory{Used: 40, Limit: 64, Throttled: 3}
	g.figures.Frontends = []Frontend{
		{Name: "http", Connections: 3, Places: 10, Large: 5, LargeLimit: 256, Budgets: []Budget{{"streams", 7, 20}},
			Throttled: []Throttle{{"client", 10}, {"caller", 0}}, Closes: []Close{{"end", 9}, {"partial", 1}}},
		{Name: "redis", Connections: 4, Places: 20, Large: 6, LargeLimit: 256, Throttled: []Throttle{{"client", 7}}, Closes: []Close{{"memory", 2}, {"room-idle", 0}}},
	}
	g.tick(s, 1)
	g.figures.ClientMemory = ClientMemory{Used: 41, Limit: 64, Throttled: 5}
	g.figures.Cache.Resources[0].Queued, g.figures.Cache.Resources[0].QueueLimit = 9, 100
	g.figures.Frontends = slices.Clone(g.figures.Frontends)
	g.figures.Frontends[0].Throttled = []Throttle{{"client", 30}, {"caller", 0}}
	g.tick(s, 2)
	p := figuresOf(t, s, "")
	budgets := []pageBudget{
		{Name: "client_memory", Used: 41, Limit: 64},
		{Name: "large_answers", Frontend: "http", Used: 5, Limit: 256}, {Name: "large_answers", Frontend: "redis", Used: 6, Limit: 256},
		{Name: "connections", Frontend: "http", Used: 3, Limit: 10}, {Name: "connections", Frontend: "redis", Used: 4, Limit: 20},
		{Name: "streams", Frontend: "http", Used: 7, Limit: 20}, {Name: "load_queue", Frontend: g.figures.Cache.Resources[0].Name, Used: 9, Limit: 100},
	}
	if !reflect.DeepEqual(p.Budgets, budgets) {
		t.Errorf("budgets: got %+v, want %+v", p.Budgets, budgets)
	}
	rules := []pageRule{
		{Rule: "memory", Effect: "throttled", Rate: 1, Total: 5},
		{Frontend: "http", Rule: "client", Effect: "throttled", Rate: 10, Total: 30}, {Frontend: "redis", Rule: "client", Effect: "throttled", Total: 7},
		{Frontend: "http", Rule: "partial", Effect: "closed", Total: 1}, {Frontend: "redis", Rule: "memory", Effect: "closed", Total: 2},
	}
	if !reflect.DeepEqual(p.Rules, rules) {
		t.Errorf("rules: got %+v, want %+v", p.Rules, rules)
	}
}

// TestDashboardKnowsEveryReason: each reason for closing a connection is a rule or ordinary.
func TestDashboardKnowsEveryReason(t *testing.T) {
	rest := append([]string{"end", "detached", "idle", "drained", "reset", "aborted"}, closedByRule...)
	for r := range loop.CloseReasons {
		if i := slices.Index(rest, r.String()); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
			continue
		}
		t.Errorf("the reason %s is neither a rule nor ordinary", r)
	}
	if len(rest) > 0 {
		t.Errorf("there are no reasons %q", rest)
	}
}

// TestDashboardHistory: a page gets the samples that it lacks, or all if those
// that it has are from another process; the history does not grow forever.
func TestDashboardHistory(t *testing.T) {
	s, g := newFakeDashboard()
	g.tick(s, 1)
	for i := range historyLength + 50 {
		g.hits.Record(time.Microsecond)
		if i%2 == 0 {
			g.hits.Record(time.Microsecond)
		}
		g.tick(s, 1)
	}
	all := figuresOf(t, s, "")
	times := all.column(t, "t")
	if len(times) != historyLength || all.Series.Newest != historyLength+50 || !slices.IsSorted(times) || times[historyLength-1] != float64(g.now.UnixMilli()) {
		t.Fatalf("%d samples up to number %d, sorted %v; want the last %d", len(times), all.Series.Newest, slices.IsSorted(times), historyLength)
	}
	if n := len(s.dashboard.history.recent); n != recentLength+1 {
		t.Errorf("%d figures are kept, want %d", n, recentLength+1)
	}
	g.tick(s, 3)
	for query, want := range map[string]int{
		fmt.Sprintf("?since=%d&instance=%s", all.Series.Newest, all.Instance):   3,
		fmt.Sprintf("?since=%d&instance=%s", all.Series.Newest+3, all.Instance): 0,
		fmt.Sprintf("?since=%d&instance=%s", all.Series.Newest+9, all.Instance): historyLength,
		fmt.Sprintf("?since=-5&instance=%s", all.Instance):                      historyLength,
		fmt.Sprintf("?since=%d&instance=another", all.Series.Newest):            historyLength,
		"?since=&instance=":          historyLength,
		"?instance=" + all.Instance:  historyLength,
		"?since=7&instance=" + "%zz": historyLength,
	} {
		if got := len(figuresOf(t, s, query).Series.Rows); got != want {
			t.Errorf("%s: %d samples, want %d", query, got, want)
		}
	}
	if w := ask(s, "GET", "/dashboard.json?since=x&instance="+all.Instance); w.Code != 400 {
		t.Errorf("since=x: %d, want 400", w.Code)
	}
	g.now = g.now.Add(-time.Hour) // the machine's clock is set
	s.dashboard.history.take()
	if p := figuresOf(t, s, ""); p.Series.Newest != all.Series.Newest+3 {
		t.Errorf("sample %d of a clock that was set back", p.Series.Newest)
	}
	g.hits.Record(time.Microsecond)
	g.tick(s, 1)
	if p := figuresOf(t, s, ""); p.Series.Newest != all.Series.Newest+4 || p.Requests.Rate != 1 {
		t.Errorf("a second after that: sample %d, %v requests a second; want %d, 1", p.Series.Newest, p.Requests.Rate, all.Series.Newest+4)
	}
}

// TestDashboardSamples: samples are taken while Serve runs, even if no page is
// open.
func TestDashboardSamples(t *testing.T) {
	testkit.NoLeaks(t)
	g := &fakeGateway{now: time.Now()}
	s := New(Config{Figures: g.collect})
	base := start(t, s)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	testkit.Eventually(t, 10*time.Second, func() error {
		response, err := client.Get(base + "/dashboard.json")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		var p shown
		if err := json.Unmarshal(body, &p); err != nil || p.Series.Newest < 2 {
			return fmt.Errorf("%v, %.200s; want two samples", err, body)
		}
		return nil
	})
}
