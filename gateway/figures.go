package gateway

import (
	"cmp"
	"runtime/debug"
	"slices"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/admin"
	front "github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/measure"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// figures collects what the dashboard shows. It takes 60 us, once a second.
func (g *Gateway) figures() admin.Figures {
	f := admin.Figures{
		Cache:       g.cache.Stats(),
		StaleServed: g.canary.stale.Load(),
	}
	promised := false
	now := g.now()
	for i := range f.Cache.Resources {
		p := admin.Promise{}
		if at := now.named(f.Cache.Resources[i].Name); at >= 0 {
			r := &now.config.Resources[at]
			p = admin.Promise{Bound: r.Freshness, OnStale: string(r.OnStale)}
			promised = promised || !r.NoPromise
		}
		f.Resources = append(f.Resources, p)
	}
	if promised {
		f.Bound = now.config.MinFreshness()
	}
	m := g.bounds.memory.Stats()
	f.ClientMemory = admin.ClientMemory{Used: m.Used, Limit: m.Limit, Throttled: int64(m.Throttled)}
	g.frontendFigures(&f)
	if c := g.origin.reached.Load(); c != nil {
		n := c.stream.Stats()
		f.PollErrors, f.Trouble = n.PollErrors, n.Trouble
		f.Fresh = admin.Freshness{Bounds: n.ToFresh.Bounds, Counts: n.ToFresh.Counts, Max: n.ToFresh.Max, AtMost: n.ToFresh.AtMost}
	}
	return f
}

// frontendFigures fills in the fields for the frontends: each of them, and all together.
func (g *Gateway) frontendFigures(f *admin.Figures) {
	var latency [len(front.Sources)]measure.Distribution
	for _, one := range g.frontends {
		is := one.Figures()
		shown := admin.Frontend{Name: one.name, HandedOver: -1, Places: int64(g.bounds.places[one.name]),
			Requests: is.Requests, Large: is.Large, LargeLimit: maxPending(g.config)}
		for _, t := range is.Throttled {
			shown.Throttled = append(shown.Throttled, admin.Throttle{Rule: t.Name, Count: t.N})
		}
		for _, b := range is.Budgets {
			shown.Budgets = append(shown.Budgets, admin.Budget{Name: b.Name, Used: b.Used, Limit: b.Limit})
		}
		engineFigures(&shown, &is.Engine)
		if is.HandedOver != nil {
			shown.HandedOver = 0
		}
		for _, reason := range is.HandedOver {
			shown.HandedOver += reason.N
		}
		f.Frontends = append(f.Frontends, shown)
		f.Connections += shown.Connections
		for _, s := range is.Statuses {
			f.Statuses = append(f.Statuses, admin.Status{Status: s.Name, Count: s.N})
		}
		for i, source := range front.Sources {
			latency[i] = latency[i].Add(is.Answers.Latency(source).Snapshot())
		}
		f.BodyBytes += is.Answers.Bytes()
		f.Slowest = append(f.Slowest, is.Answers.Slowest(g.cache.Now())...)
	}
	for i, source := range front.Sources {
		f.Sources = append(f.Sources, admin.Source{Name: source.String(), Requests: latency[i].Count(), Latency: &latency[i]})
	}
	slices.SortStableFunc(f.Slowest, func(a, b measure.Slow) int { return cmp.Compare(b.Took, a.Took) })
	f.Slowest = f.Slowest[:min(front.KeptSlowest, len(f.Slowest))]
}

// engineFigures fills in what an engine knows about its frontend.
func engineFigures(f *admin.Frontend, s *loop.Stats) {
	f.Engine, f.Connections, f.Unwritten = s.Backend, s.Connections, s.Unwritten
	f.Throttled = append(f.Throttled, admin.Throttle{Rule: "turn", Count: int64(s.Postponed)})
	s.EachClose(func(reason string, n uint64) {
		f.Closes = append(f.Closes, admin.Close{Reason: reason, Count: int64(n)})
	})
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// version returns the version of this module that the program was built with:
// its own, or that of a dependency.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	const module = "github.com/slipstream-go/slipstream"
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module {
			return m.Version
		}
	}
	return ""
}
