package rpc

import "time"

// A server that answers in order processes one call of a connection at a time, so the number of connections bounds its
// concurrency. The number is doubled while calls wait and the last change was useful. It is quadrupled while many calls
// wait and the throughput rises with the number.
//
// A doubling is useful if the server answers at least 1.2 times as many calls. Many calls means at least eight for each
// connection. After a change that was not useful, the number is reset to its previous value, and the next attempt
// follows after 1 to 30 s. Connections that were not needed for a minute are closed, as are those that the server
// closes while they are idle.
const (
	// growthEvery is the interval at which the number is reconsidered while calls wait.
	growthEvery = 5 * time.Millisecond
	// growthReplies is the number of replies over which a rate is measured, if they arrive within growthPatience.
	growthReplies  = 32
	growthPatience = time.Second
	// growthGain is the fraction of the ideal gain that makes a change useful: with 0.2, doubling the connections is
	// useful if the server answers 1.2 times as many calls.
	growthGain = 0.2
	// growthLinear is the fraction of the ideal gain that counts as linear scaling.
	growthLinear = 0.75
	// manyWait is the number of waiting calls per connection from which growth quadruples the number.
	manyWait = 8
	// The pause after a change that was not useful. It doubles up to mostGrowthPause.
	firstGrowthPause = time.Second
	mostGrowthPause  = 30 * time.Second
	// starvedPause is how long no more connections are opened to a server that did not answer on another one.
	starvedPause = 30 * time.Second
)

// growth decides how many connections a lane has.
type growth struct {
	most int // maximum number of connections

	limit   int       // lower maximum that applies until starved
	starved time.Time // when limit stops applying

	// The rate being measured.
	since   time.Time // start of the measurement; zero if there is none
	replies uint64    // count at since
	at      int       // number of connections

	// The previous rate, with fewer connections.
	rate   float64 // 0 if there is none
	before int
	curbed bool // a change gained less than linear scaling

	until time.Time // no change before this time
	pause time.Duration
}

// state is the input for a decision of growth.
type state struct {
	now      time.Time
	conns    int           // target number of connections
	answered int           // connections that have answered a call
	waiting  int           // calls
	replies  uint64        // so far
	slow     time.Duration // duration of slow calls
}

// next returns the number of connections that the lane should have.
func (g *growth) next(s state) int {
	if s.waiting == 0 {
		g.since, g.rate, g.curbed = time.Time{}, 0, false
		return s.conns
	}
	if s.answered < s.conns || s.now.Before(g.until) {
		g.since = time.Time{}
		return s.conns
	}
	if g.since.IsZero() || g.at != s.conns {
		g.since, g.replies, g.at = s.now, s.replies, s.conns
		return s.conns
	}
	took, n := s.now.Sub(g.since), s.replies-g.replies
	many := s.waiting >= manyWait*s.conns && !g.curbed
	needed := uint64(growthReplies)
	if many { // a quadrupling has a large effect, so a rough measurement is enough
		needed = min(needed, uint64(manyWait*s.conns))
	}
	if (took < max(growthEvery, 4*s.slow) || n < needed) && took < growthPatience {
		return s.conns
	}
	rate := float64(n) / took.Seconds()
	g.since = time.Time{}
	if g.rate > 0 && g.before < s.conns {
		ideal := float64(s.conns)/float64(g.before) - 1
		if rate < g.rate*(1+growthGain*ideal) {
			return g.back(s)
		}
		g.pause, g.curbed = 0, g.curbed || rate < g.rate*(1+growthLinear*ideal)
	}
	factor := 2
	if many && !g.curbed {
		factor = 4
	}
	to := min(factor*s.conns, s.conns+s.waiting, g.bound(s.now))
	if to <= s.conns {
		g.until = s.now.Add(firstGrowthPause)
		return s.conns
	}
	g.rate, g.before = rate, s.conns
	return to
}

// back returns the number of connections before the last change, or half of the current number if that is larger; in
// that case, the rate before the change remains the reference.
func (g *growth) back(s state) int {
	g.curbed = true
	if half := s.conns / 2; half > g.before {
		return half
	}
	g.pause = min(max(2*g.pause, firstGrowthPause), mostGrowthPause)
	g.until, g.rate = s.now.Add(g.pause), 0
	return g.before
}

// bound returns the maximum number of connections.
func (g *growth) bound(now time.Time) int {
	if now.Before(g.starved) {
		return min(g.limit, g.most)
	}
	return g.most
}

// starve records that the server does not answer on more than n connections.
func (g *growth) starve(n int, now time.Time) {
	g.limit, g.starved = max(n, 1), now.Add(starvedPause)
	g.since, g.rate = time.Time{}, 0
}

// slowest approximates the 99th percentile of a duration by the largest of the last 128 to 256 values.
type slowest struct {
	current, previous time.Duration
	n                 int
}

func (s *slowest) add(d time.Duration) {
	s.current = max(s.current, d)
	if s.n++; s.n == 128 {
		s.previous, s.current, s.n = s.current, 0, 0
	}
}

func (s *slowest) get() time.Duration { return max(s.current, s.previous) }
