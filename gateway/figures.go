package gateway

import (
	"cmp"
	"runtime/debug"
	"slices"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/admin"
	"github.com/slipstream-go/slipstream/internal/gateway/measure"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// sources are how an answer can be come by, in the order of the dashboard.
var sources = [...]string{"hit", "load", "joined", "stale", "other"}

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
	g.now().service.EachStatus(func(status string, n int64) {
		f.Statuses = append(f.Statuses, admin.Status{Status: status, Count: n})
	})
	for _, name := range sources {
		d := g.now().service.Latency(name).Snapshot()
		if g.redis != nil {
			d = d.Add(g.redis.Latency(name).Snapshot())
		}
		f.Sources = append(f.Sources, admin.Source{Name: name, Requests: d.Count(), Latency: &d})
	}
	f.BodyBytes = g.now().service.BodyBytes()
	m := g.bounds.memory.Stats()
	f.ClientMemory = admin.ClientMemory{Used: m.Used, Limit: m.Limit, Throttled: int64(m.Throttled)}
	g.frontends(&f)
	f.Slowest = g.slowest()
	if c := g.origin.reached.Load(); c != nil {
		n := c.stream.Stats()
		f.PollErrors, f.Trouble = n.PollErrors, n.Trouble
		f.Fresh = admin.Freshness{Bounds: n.ToFresh.Bounds, Counts: n.ToFresh.Counts, Max: n.ToFresh.Max, AtMost: n.ToFresh.AtMost}
	}
	return f
}

// slowest returns the slowest documents of all frontends, the slowest first.
func (g *Gateway) slowest() []measure.Slow {
	list := g.now().service.Slowest().List(g.cache.Now())
	if g.redis == nil {
		return list
	}
	n := max(len(list), 20) // what one frontend remembers
	list = append(list, g.redis.Slowest().List(g.cache.Now())...)
	slices.SortStableFunc(list, func(a, b measure.Slow) int { return cmp.Compare(b.Took, a.Took) })
	return list[:min(n, len(list))]
}

// frontends fills what concerns each frontend. Every request counts with a source.
func (g *Gateway) frontends(f *admin.Figures) {
	if g.http == nil {
		return // not yet
	}
	one := admin.Frontend{Name: "http", HandedOver: -1, Places: int64(g.bounds.httpPlaces),
		Large: g.http.LargePending(), LargeLimit: maxPending(g.config)}
	g.http.EachThrottled(func(rule string, n int64) { throttle(&one, rule, n) })
	g.http.EachBudget(func(name string, used, limit int64) { budget(&one, name, used, limit) })
	for _, name := range sources {
		one.Requests += count(g.now().service.Latency(name))
	}
	s, looped := g.http.EngineStats()
	engineFigures(&one, &s)
	if looped {
		one.HandedOver = 0
		g.http.EachHandover(func(_ string, n int64) { one.HandedOver += n })
	}
	f.Frontends = append(f.Frontends, one)
	f.Connections += one.Connections
	if g.redis == nil {
		return
	}
	one = admin.Frontend{Name: "redis", HandedOver: -1, Places: int64(g.bounds.redisPlaces),
		Large: g.redis.LargePending(), LargeLimit: maxPending(g.config)}
	g.redis.EachThrottled(func(rule string, n int64) { throttle(&one, rule, n) })
	g.redis.EachBudget(func(name string, used, limit int64) { budget(&one, name, used, limit) })
	g.redis.EachGroup(func(_ string, n int64) { one.Requests += n })
	s = g.redis.EngineStats()
	engineFigures(&one, &s)
	f.Frontends = append(f.Frontends, one)
	f.Connections += one.Connections
	f.BodyBytes += g.redis.BodyBytes()
}

func count(l *measure.Latency) int64 { return int64(l.Snapshot().Count()) }

func throttle(f *admin.Frontend, rule string, n int64) {
	f.Throttled = append(f.Throttled, admin.Throttle{Rule: rule, Count: n})
}

func budget(f *admin.Frontend, name string, used, limit int64) {
	f.Budgets = append(f.Budgets, admin.Budget{Name: name, Used: used, Limit: limit})
}

// engineFigures fills what an engine knows of its frontend.
func engineFigures(f *admin.Frontend, s *loop.Stats) {
	f.Engine, f.Connections, f.Unwritten = s.Backend, s.Connections, s.Unwritten
	throttle(f, "turn", int64(s.Postponed))
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
