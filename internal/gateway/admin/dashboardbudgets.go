package admin

import "slices"

// closedByRule are the reasons for which the gateway closes a connection because of what it
// uses or does not do. The others are the ordinary ends of connections.
var closedByRule = []string{"memory", "large", "address", "unproven", "room-unproven", "room-address", "room-idle", "room-crowd",
	"stalled", "partial", "too-large"}

// Effects of a rule.
const (
	effectThrottled = "throttled"
	effectClosed    = "closed"
)

// budgetsOf returns the usage of the budgets that clients share.
func budgetsOf(o *observation) []pageBudget {
	all := []pageBudget{{Name: "client_memory", Used: o.ClientMemory.Used, Limit: o.ClientMemory.Limit}}
	for i := range o.Frontends {
		f := &o.Frontends[i]
		all = append(all, pageBudget{Name: "large_answers", Frontend: f.Name, Used: f.Large, Limit: f.LargeLimit})
	}
	for i := range o.Frontends {
		f := &o.Frontends[i]
		all = append(all, pageBudget{Name: "connections", Frontend: f.Name, Used: f.Connections, Limit: f.Places})
	}
	for i := range o.Frontends {
		f := &o.Frontends[i]
		for _, b := range f.Budgets {
			all = append(all, pageBudget{Name: b.Name, Frontend: f.Name, Used: b.Used, Limit: b.Limit})
		}
	}
	for i := range o.Cache.Resources {
		if r := &o.Cache.Resources[i]; r.Queued > 0 { // there may be many resources
			all = append(all, pageBudget{Name: "load_queue", Frontend: r.Name, Used: r.Queued, Limit: r.QueueLimit})
		}
	}
	return all
}

// rulesOf returns how often rules throttled or closed something, since the start and in the
// last seconds. Rules that were never applied are omitted.
func rulesOf(from, to *observation, per func(before, after int64) float64) []pageRule {
	before := make(map[pageRule]int64)
	eachRule(from, func(r pageRule, n int64) { before[r] = n })
	shown := []pageRule{}
	eachRule(to, func(r pageRule, n int64) {
		if n > 0 {
			rate := per(before[r], n)
			r.Rate, r.Total = rate, n
			shown = append(shown, r)
		}
	})
	return shown
}

// eachRule calls visit with the name of every rule, and how often it was applied since the start.
func eachRule(o *observation, visit func(r pageRule, n int64)) {
	visit(pageRule{Rule: "memory", Effect: effectThrottled}, o.ClientMemory.Throttled)
	for i := range o.Frontends {
		f := &o.Frontends[i]
		for _, t := range f.Throttled {
			visit(pageRule{Frontend: f.Name, Rule: t.Rule, Effect: effectThrottled}, t.Count)
		}
	}
	for i := range o.Frontends {
		f := &o.Frontends[i]
		for _, c := range f.Closes {
			if slices.Contains(closedByRule, c.Reason) {
				visit(pageRule{Frontend: f.Name, Rule: c.Reason, Effect: effectClosed}, c.Count)
			}
		}
	}
}
