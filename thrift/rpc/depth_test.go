package rpc

import (
	"testing"
	"time"
)

// The depth rises while the server needs little time for all calls of a connection, and falls otherwise.
func TestDepthRule(t *testing.T) {
	var d depth
	now := time.Unix(1000, 0)
	reply := func(n int, each time.Duration) {
		for range n {
			now = now.Add(each)
			d.replied(1, each, now)
		}
	}
	if d.limit() != 1 {
		t.Fatalf("the first depth is %d", d.limit())
	}
	reply(15, 20*time.Microsecond)
	if d.limit() != 1 {
		t.Errorf("depth %d after 15 replies", d.limit())
	}
	reply(1, 20*time.Microsecond)
	if d.limit() != 2 {
		t.Errorf("depth %d after 16 replies", d.limit())
	}
	reply(1000, 20*time.Microsecond)
	if d.limit() != 16 { // 32 calls would take 640 us
		t.Errorf("depth %d at 20 us", d.limit())
	}
	reply(5000, 5*time.Microsecond)
	if d.limit() != 64 {
		t.Errorf("depth %d at 5 us; the maximum is 64", d.limit())
	}
	reply(1, depthAlarm)
	if d.limit() != 1 {
		t.Errorf("depth %d after an interval of %v", d.limit(), depthAlarm)
	}
	reply(1000, 5*time.Microsecond)
	if d.limit() != 1 {
		t.Errorf("depth %d 5 ms after a fall", d.limit())
	}
	now = now.Add(firstDepthPause)
	reply(16, 5*time.Microsecond)
	if d.limit() != 2 {
		t.Errorf("depth %d after the pause", d.limit())
	}
	reply(16, 400*time.Microsecond)
	if d.limit() != 1 {
		t.Errorf("depth %d at 400 us", d.limit())
	}
	reply(1, depthAlarm)
	now = now.Add(firstDepthPause)
	reply(100, 5*time.Microsecond)
	if d.limit() != 1 {
		t.Errorf("depth %d, although the second pause is longer", d.limit())
	}
	now = now.Add(firstDepthPause)
	reply(16, 5*time.Microsecond)
	if d.limit() != 2 {
		t.Errorf("depth %d after the second pause", d.limit())
	}
	for range 20 {
		reply(1, depthAlarm)
	}
	if d.pause != mostDepthPause {
		t.Errorf("the pause is %v, want at most %v", d.pause, mostDepthPause)
	}
	now = now.Add(depthForgiven + time.Second)
	reply(1, depthAlarm)
	if d.pause != firstDepthPause {
		t.Errorf("the pause is %v after a long time without a fall, want %v", d.pause, firstDepthPause)
	}
	// The depth is halved, without a pause, while the calls exceed the budget.
	busy := depth{}
	for _, row := range []struct {
		each time.Duration
		n    int
		want int
	}{{20 * time.Microsecond, 1000, 16}, {40 * time.Microsecond, 100, 8}, {100 * time.Microsecond, 100, 4}, {20 * time.Microsecond, 1000, 16}} {
		for range row.n {
			now = now.Add(row.each)
			busy.replied(1, row.each, now)
		}
		if busy.limit() != row.want {
			t.Errorf("depth %d at %v, want %d", busy.limit(), row.each, row.want)
		}
	}
	slow := depth{}
	for range 1000 {
		now = now.Add(300 * time.Microsecond)
		slow.replied(1, 300*time.Microsecond, now)
	}
	if slow.limit() != 1 {
		t.Errorf("depth %d at 300 us", slow.limit())
	}
	fixed := depth{fixed: 3}
	if fixed.replied(1, time.Second, now); fixed.limit() != 3 || fixed.mayRise(now) {
		t.Errorf("a fixed depth is %d", fixed.limit())
	}
}

// simulatedServer answers rate calls per second on each connection, and at most most in total.
type simulatedServer struct {
	rate, most float64
	replies    float64
}

func (s *simulatedServer) work(conns int, d time.Duration) {
	s.replies += min(s.rate*float64(conns), s.most) * d.Seconds()
}

// simulate returns the number of connections after calls have waited for the duration d.
func simulate(g *growth, s *simulatedServer, conns, callers int, now *time.Time, d time.Duration) int {
	for until := now.Add(d); now.Before(until); *now = now.Add(growthEvery) {
		s.work(min(conns, callers), growthEvery)
		conns = g.next(state{now: *now, conns: conns, answered: conns, waiting: max(callers-conns, 0), replies: uint64(s.replies), slow: time.Millisecond})
	}
	return conns
}

func TestGrowthRule(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, row := range []struct {
		name        string
		server      simulatedServer
		callers     int
		most        int
		least, want int // connections after 2 s
	}{
		{"each connection adds", simulatedServer{1000, 1e9, 0}, 100, 1024, 100, 100},
		{"many callers", simulatedServer{1000, 1e9, 0}, 5000, 1024, 1024, 1024},
		{"a bound", simulatedServer{1000, 1e9, 0}, 100, 7, 7, 7},
		{"a server that is busy with 8", simulatedServer{1000, 8000, 0}, 1000, 1024, 8, 16},
		{"a server that does one thing at a time", simulatedServer{1000, 1000, 0}, 100, 1024, 1, 1},
		{"a lone caller", simulatedServer{1000, 1e9, 0}, 1, 1024, 1, 1},
		{"a slow server", simulatedServer{20, 1e9, 0}, 8, 1024, 2, 8},
		{"a busy server and many callers", simulatedServer{100, 20000, 0}, 1000, 1024, 200, 600},
	} {
		g := growth{most: row.most}
		if n := simulate(&g, &row.server, 1, row.callers, &now, 2*time.Second); n < row.least || n > row.want {
			t.Errorf("%s: %d connections, want %d to %d", row.name, n, row.least, row.want)
		}
	}
	// With many callers, enough connections are opened soon.
	many, slowly := growth{most: 1024}, simulatedServer{100, 1e9, 0}
	if n := simulate(&many, &slowly, 1, 1000, &now, 300*time.Millisecond); n < 500 {
		t.Errorf("%d connections after 0.3 s, want at least 500", n)
	}
	// The number does not grow while a new connection has not answered yet.
	g := growth{most: 100}
	for range 1000 {
		now = now.Add(growthEvery)
		if n := g.next(state{now: now, conns: 2, answered: 1, waiting: 50, replies: uint64(now.UnixMilli())}); n != 2 {
			t.Fatalf("%d connections, although one of 2 has not answered", n)
		}
	}
	// A server that does not answer on a connection gets no more of them for a while.
	g, s := growth{most: 100}, simulatedServer{1000, 1e9, 0}
	g.starve(2, now)
	if n := simulate(&g, &s, 2, 50, &now, 20*time.Second); n != 2 {
		t.Errorf("%d connections, although the server answers on 2", n)
	}
	if n := simulate(&g, &s, 2, 50, &now, 20*time.Second); n != 50 {
		t.Errorf("%d connections after %v, want 50", n, starvedPause)
	}
}

// Replies are acknowledged immediately on a new connection, and on one whose server has been observed to wait.
func TestAcksRule(t *testing.T) {
	var a acks
	for i := range 2 * ackTrials {
		if got := a.needed(time.Millisecond); got != (i < ackTrials) {
			t.Fatalf("reply %d: acknowledged immediately: %v", i, got)
		}
	}
	if a.needed(200 * time.Millisecond) {
		t.Error("a slow server is taken for one that waits for acknowledgments")
	}
	if !a.needed(40*time.Millisecond) || !a.needed(time.Millisecond) {
		t.Error("the replies of a server that waits are not acknowledged immediately")
	}
}

func TestSlowest(t *testing.T) {
	var s slowest
	for i := range 1000 {
		s.add(time.Duration(1 + i%100))
	}
	if got := s.get(); got != 100 {
		t.Errorf("%d, want 100", got)
	}
	for range 256 {
		s.add(1)
	}
	if got := s.get(); got != 1 {
		t.Errorf("%d after 256 small values, want 1", got)
	}
}

// Connections are replaced after the server closed an idle one, unless it always closes connections that have been idle
// for the same time.
func TestIdleTimeoutOfServer(t *testing.T) {
	var n notices
	now := time.Now()
	for _, step := range []struct {
		idle     time.Duration
		replaced bool
	}{{time.Minute, true}, {61 * time.Second, false}, {59 * time.Second, false}, {20 * time.Second, true}, {time.Second, true}, {1050 * time.Millisecond, false}, {time.Millisecond, true}, {time.Millisecond, true}} {
		l := &lane{closed: true, notices: n} // closed, so that it sets no timer
		now = now.Add(time.Hour)
		gone, old, opened := &conn{answered: true, since: now.Add(-step.idle)}, new(conn), new(conn)
		l.conns = []*conn{old}
		if !l.try(gone, now) {
			t.Fatal("no trial")
		}
		if l.try(gone, now) {
			t.Error("two trials at the same time")
		}
		l.conns = append(l.conns, opened)
		l.tried(opened, now)
		if old.old != step.replaced || opened.old {
			t.Errorf("after %v, the old connection is replaced: %v, and the new one: %v", step.idle, old.old, opened.old)
		}
		if l.try(gone, now.Add(noticePause-1)) {
			t.Error("a trial soon after another one")
		}
		n = l.notices
	}
	alone := &lane{closed: true}
	if alone.try(&conn{answered: true}, now) {
		t.Error("a trial for the only connection")
	}
	alone.conns = []*conn{new(conn)}
	if alone.try(new(conn), now) {
		t.Error("a trial for a connection that has not answered")
	}
}
