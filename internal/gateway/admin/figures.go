package admin

import (
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/measure"
)

// Figures are what the dashboard shows: counters since the start, and current
// values. The dashboard may retain the slices and does not modify them.
type Figures struct {
	// Sources are the answered requests by the source of the answer: "hit",
	// "load", "joined", "stale", "other".
	Sources []Source
	// Statuses are the answers by HTTP status, in ascending order.
	Statuses    []Status
	BodyBytes   int64 // bytes of bodies sent since the start
	Connections int64 // open now, of all frontends
	// Frontends are the protocols that carry the requests.
	Frontends []Frontend
	// ClientMemory is the memory that the connections of all frontends hold.
	ClientMemory ClientMemory
	// Slowest are the slowest documents of the last minutes, the slowest first.
	Slowest []measure.Slow

	Cache cache.Stats
	// Resources are those of Cache.Resources, in their order.
	Resources []Promise
	// Bound is the shortest promise of all resources; 0 if none has one.
	Bound time.Duration

	// Fresh is the time from a commit until every answer includes it.
	Fresh Freshness

	PollErrors  int64  // rounds of the invalidation stream that failed, since the start
	Trouble     string // why the last one failed, or "" if it did not
	StaleServed int64  // documents that the canary found older than promised
}

// Source is the requests of one source.
type Source struct {
	Name string
	// Requests counts them since the start.
	Requests uint64
	// Latency is their distribution since the start; nil if it is not measured.
	Latency *measure.Distribution
}

// Frontend is a protocol in front of the cache.
type Frontend struct {
	Name        string // "http", "redis"
	Engine      string // "epoll", "goroutines", "net/http"
	Connections int64  // open now
	Places      int64  // how many connections may be open
	Requests    int64  // answered since the start
	// HandedOver counts the requests that an event loop handed over to net/http with
	// their connection; it is negative if the frontend cannot do that.
	HandedOver int64
	Unwritten  int64 // bytes that wait for clients to read
	// Large is how many bytes of large answers wait, LargeLimit how many may wait before
	// such answers are refused.
	Large, LargeLimit int64
	// Budgets are other bounds that clients share.
	Budgets []Budget
	// Throttled counts what was refused or delayed, by rule, since the start.
	Throttled []Throttle
	// Closes are the connections that ended, by reason, since the start.
	Closes []Close
}

// Budget is a bound that clients share.
type Budget struct {
	Name        string
	Used, Limit int64
}

// Close is how often connections ended for a reason.
type Close struct {
	Reason string
	Count  int64
}

// Throttle is how often something was refused or delayed because of a rule.
type Throttle struct {
	Rule  string
	Count int64
}

// ClientMemory is the budget of the memory that connections hold.
type ClientMemory struct {
	Used, Limit int64 // bytes
	// Throttled counts the connections that got fewer answers at a time because more than
	// half of the limit was used. Those that were closed are among Frontend.Closes.
	Throttled int64
}

// Status is how often an HTTP status was answered since the start.
type Status struct {
	Status string
	Count  int64
}

// Promise is what a resource promises.
type Promise struct {
	Bound   time.Duration // how old its documents may be
	OnStale string        // the policy while that cannot be kept
}

// Freshness is a distribution since the start. Counts[i] values were at most
// Bounds[i] and above the previous bound; there is one more count than bounds, for
// values above all of them. Without bounds nothing is measured.
type Freshness struct {
	Bounds []time.Duration
	Counts []uint64
	Max    time.Duration // the greatest value, or 0 if unknown
	AtMost bool          // the values are upper bounds of the true ones
}

// count returns the number of values.
func (f Freshness) count() (n uint64) {
	for _, c := range f.Counts {
		n += c
	}
	return n
}

// quantile returns the bound that a fraction q of the values do not exceed, or 0 if
// there are no values. above says that the value is above the last bound, which is
// returned.
func (f Freshness) quantile(q float64) (bound time.Duration, above bool) {
	n := f.count()
	if n == 0 || len(f.Bounds) == 0 {
		return 0, false
	}
	rank := max(uint64(q*float64(n)+0.999999), 1)
	for i, c := range f.Counts {
		if rank <= c && i < len(f.Bounds) {
			if f.Max > 0 {
				return min(f.Bounds[i], f.Max), false
			}
			return f.Bounds[i], false
		}
		rank -= min(rank, c)
	}
	if f.Max > 0 {
		return f.Max, false
	}
	return f.Bounds[len(f.Bounds)-1], true
}
