package rpc

import "time"

// A server that answers in order works on one call of a connection at a time, so its connections bound how much it
// does at a time. Their number is doubled while calls wait and while the last change was of use. It is multiplied by
// four while many calls wait and the throughput rises with the number.
//
// The number doubles while calls wait and while twice as many answer at least 1.2 times as many calls. While more
// than eight calls wait for each connection and the throughput rises with their number, it quadruples. Otherwise it
// goes back, and tries again after 1 to 30 s. Connections that were not in use for a minute are closed, as are
// those that the server closes while they are idle.
const (
	// growthEvery is how often the number is considered while calls wait.
	growthEvery = 5 * time.Millisecond
	// growthReplies is how many replies a rate is measured over, if they come within growthPatience.
	growthReplies  = 32
	growthPatience = time.Second
	// growthGain is the part of the ideal gain that must be reached: with 0.2, twice as many connections are of
	// use if the server answers 1.2 times as many calls.
	growthGain = 0.2
	// growthLinear is the fraction of it that counts as all of it.
	growthLinear = 0.75
	// manyWait is the number of calls for each connection that are many.
	manyWait = 8
	// The pause after a change that was of no use. It doubles up to mostGrowthPause.
	firstGrowthPause = time.Second
	mostGrowthPause  = 30 * time.Second
	// starvedPause is how long a server that did not answer on another connection gets no more of them.
	starvedPause = 30 * time.Second
)

// growth decides how many connections a lane has.
type growth struct {
	most int // at any time

	limit   int       // until starved, lower than most
	starved time.Time // when limit ends to apply

	// Of the rate that is being measured.
	since   time.Time // zero if there is none
	replies uint64    // at that time
	at      int       // connections

	// Of the rate before that, at fewer connections.
	rate   float64 // 0 if there is none
	before int
	curbed bool // a change was not of all possible use

	until time.Time // no change before
	pause time.Duration
}

// state is what growth decides upon.
type state struct {
	now      time.Time
	conns    int           // connections that the lane is to have
	answered int           // connections that have answered a call
	waiting  int           // calls
	replies  uint64        // so far
	slow     time.Duration // what slow calls take
}

// next returns how many connections the lane is to have.
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
	if many { // four times as many connections make so much of a difference that a rough figure will do
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

// back returns to the number of connections before the last change, or to half of those that there are, if that is
// more: then it is compared with the same number.
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

// starve notes that the server does not answer on more than n connections.
func (g *growth) starve(n int, now time.Time) {
	g.limit, g.starved = max(n, 1), now.Add(starvedPause)
	g.since, g.rate = time.Time{}, 0
}

// slowest is about the 99th percentile of a time: the largest of the last 128 to 256 values.
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
