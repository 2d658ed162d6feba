package pipe

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
)

const (
	// sweepEvery is the interval at which calls whose context can be canceled are visited. A
	// cancel is honored within twice that. docs/decisions/0006 has the cost.
	sweepEvery = 4 * time.Millisecond
	// heldEvery replaces sweepEvery while a protocol with tickets holds calls back, because they may
	// all wait for slow calls.
	heldEvery = time.Millisecond
	// restEvery is the interval of an idle engine: two wake-ups per second.
	restEvery = 500 * time.Millisecond
	// noticedAfter is how long a server that owes replies is silent until Config.OnSilence is called.
	noticedAfter = time.Second
	// calmSweeps is the number of sweeps without watched calls after which the short interval ends.
	calmSweeps = 20
	// sweepChunk is the maximum number of calls that are visited under one lock.
	sweepChunk = 256
	// sweepShare is the minimum number of calls with tickets that a round checks; it checks half of
	// all calls if that is more.
	sweepShare = 2048
)

// sweepCounts are written by the sweeper; cancelled is also written by goroutines that end a stream.
type sweepCounts struct {
	cancelled, backstop, aged, stalls, pings, probes atomic.Uint64
}

// stallWatch is the state of the sweeper for a socket.
type stallWatch struct {
	reads, epoch uint64
	since        time.Duration // start of the silence: the last received bytes, or the first call in flight
	heard        time.Duration // the same, but not counting answers to probes
	idleSince    time.Duration
	calls        uint64
	pinged       bool
	suspect      bool // owes replies, and is silent
	calm         int
	swept        time.Duration
	blocked      time.Duration // since when the socket has been retired and no connection accepts calls; 0 if not
}

// sleepFrom is the pause from which the sweeper ends its goroutine. Until a timer or wakeSweeper starts the next one,
// an idle engine does without its stack.
const sleepFrom = 10 * time.Millisecond

// wakeSweeper makes the sweeper visit all sockets soon, if needed.
func (e *Engine) wakeSweeper(needed bool) {
	if needed && e.rouse() {
		// Stopped by Close, which waits for it.
		go e.runSweeper()
	}
}

// alarm runs the sweeper at the end of a long pause, in the goroutine of a timer.
func (e *Engine) alarm() {
	if e.rouse() {
		e.runSweeper()
	}
}

// rouse requests a round of the sweeper. It reports whether the sweeper has no goroutine, so that the caller
// must call runSweeper.
func (e *Engine) rouse() bool {
	select {
	case e.sweep <- struct{}{}:
	default:
	}
	return e.asleep.Load() && e.asleep.CompareAndSwap(true, false)
}

// rest is the interval at which stalls are checked: a twelfth of the stall
// timeout, and a tenth while nothing is in flight. A stall is noticed at most two intervals
// late, so within 1.2 times the timeout.
func (e *Engine) rest(idle bool) time.Duration {
	t := e.cfg.StallTimeout
	switch {
	case t < 0:
		return restEvery
	case idle:
		return min(restEvery, max(t/10, time.Millisecond))
	}
	return min(restEvery, max(t/12, time.Millisecond))
}

// runSweeper visits sockets, at short intervals while there are calls to watch and at long ones otherwise. It returns
// when the engine is closed or when the next round is sleepFrom away. It is called by the goroutine for which rouse
// returned true.
func (e *Engine) runSweeper() {
	var timer *time.Timer
	for e.ctx.Err() == nil {
		select {
		case <-e.sweep:
		default:
		}
		next := e.sweepSockets()
		if next >= sleepFrom {
			e.sleep.Reset(next)
			e.asleep.Store(true)
			// A request or Close before the line above did not find the sweeper asleep.
			if len(e.sweep) == 0 && e.ctx.Err() == nil || !e.asleep.CompareAndSwap(true, false) {
				return
			}
			continue
		}
		if timer == nil {
			timer = time.NewTimer(next)
			defer timer.Stop()
		} else {
			timer.Reset(next)
		}
		select {
		case <-e.ctx.Done():
		case <-timer.C:
		case <-e.sweep:
		}
	}
	e.sleep.Stop()
	e.keepers.Done()
}

// endSweeper ends a sweeper without a goroutine, after the engine's context was canceled. A sweeper that has one
// ends itself.
func (e *Engine) endSweeper() {
	e.sleep.Stop()
	if e.asleep.CompareAndSwap(true, false) {
		e.keepers.Done()
	}
}

// sweepSockets is a round of the sweeper. It returns the time until the next round.
func (e *Engine) sweepSockets() time.Duration {
	now := e.now()
	due := now-e.lastRest >= e.rest(false)-time.Millisecond/2
	if due {
		e.lastRest = now
	}
	next := e.rest(true)
	for _, s := range e.list.Load().sockets {
		if s != nil {
			next = min(next, e.visit(s, now, due))
		}
	}
	e.runProbe(now)
	e.release()
	next = min(next, e.visitTransit(now))
	if l := e.list.Load(); l.places < len(l.peers) {
		e.prune()
	}
	return next
}

// visit performs the periodic work for a socket and returns the time until the next visit.
func (e *Engine) visit(s *socket, now time.Duration, due bool) time.Duration {
	w := &s.watch
	every := e.cfg.choices.SweepEvery
	s.mu.Lock()
	watched := s.watched
	next := e.rest(s.calls.atServer() == 0)
	// While calls are held, the sweeper runs more often than the calls must be visited.
	sweep := watched && now-w.swept >= every*3/4
	if sweep {
		s.fresh = false
	}
	s.mu.Unlock()
	if sweep {
		w.swept = now
		if s.sweepCalls() {
			w.calm = 0
		} else if w.calm++; w.calm >= calmSweeps {
			s.calm()
		}
	}
	if watched {
		next = max(w.swept+every-now, heldEvery/2)
	}
	if at := s.expireCalls(now); at > 0 {
		next = min(next, max(at-now, 0))
	}
	e.completeGivenUp()
	if s.backstop() {
		next = min(next, heldEvery)
	}
	if cause := s.outlived(); cause != nil {
		s.fail(cause)
	}
	e.endStreamsOf(s, now)
	if due {
		e.checkLife(s, now)
		s.endLoan(now)
	}
	return next
}

// outlived returns why a retired socket whose last call has ended is to end, and nil for other sockets.
// The goroutine that ends the last call also checks this, unless another one is writing then.
func (s *socket) outlived() error {
	if !s.life.retiring.Load() {
		return nil
	}
	return s.retire(ErrRetired) // moves the unsent calls of a socket that wear has retired
}

// calm ends the short interval, unless a watched call came since the last round
// started: it may have come too late for that round.
func (s *socket) calm() {
	s.watch.calm = 0
	s.mu.Lock()
	// Calls that the last sweep left to the next one keep the interval short too.
	s.watched = s.fresh || s.calls.unswept()
	s.mu.Unlock()
}

// sweepCalls gives up the calls whose context has ended. It reports whether there are calls to
// watch. It visits sweepChunk calls under each lock: 8,192 calls would block all callers for 0.1 ms.
func (s *socket) sweepCalls() bool {
	found := false
	for at := uint64(0); ; {
		s.mu.Lock()
		next, more := s.sweepSome(at, &found)
		s.mu.Unlock()
		if !more {
			return found
		}
		at = next
	}
}

// sweepSome visits the calls from position at on. The caller holds mu.
func (s *socket) sweepSome(at uint64, found *bool) (next uint64, more bool) {
	if s.life.closed {
		return 0, false
	}
	if at == 0 {
		for _, c := range s.out.oneWays {
			s.sweepCall(c, found)
		}
		for _, c := range s.out.leaving { // so that a full send buffer delays no cancel
			s.sweepCall(c, found)
		}
	}
	next, more, left := s.calls.sweep(at, func(c *Call) { s.sweepCall(c, found) })
	*found = *found || left
	return next, more
}

// sweepCall gives c up if its context has ended. The caller holds mu.
func (s *socket) sweepCall(c *Call, found *bool) {
	if !c.watched || c.state.Load() != statePending {
		return
	}
	*found = true
	if cause := c.ctx.Err(); cause != nil {
		s.giveUp(c, cause)
	}
}

// expireCalls gives up the calls whose deadline has passed, and returns the time at which the
// next deadline may pass, or 0 if there is none.
func (s *socket) expireCalls(now time.Duration) (next time.Duration) {
	for more := true; more; {
		s.mu.Lock()
		more = s.calls.expire(now, func(c *Call) bool { return s.giveUp(c, context.DeadlineExceeded) })
		next = time.Duration(s.calls.deadlines.alarm) * tick
		s.mu.Unlock()
	}
	return next
}

// giveUp ends c because of its context or its deadline, unless the reader is adding replies to
// it or writing to its memory. It reports whether it did. Only the sweeper calls it, with mu held.
func (s *socket) giveUp(c *Call, cause error) bool {
	if s.calls.gathering && c.several || s.calls.filled == c {
		return false // the next sweep tries again
	}
	s.abandon(c, cause)
	if c.completes() {
		// The user's code must not run under the lock, and c must not be recycled
		// by the reader before it has run.
		s.engine.givenUp = append(s.engine.givenUp, c)
	} else {
		c.resolve()
	}
	if s.reader != nil && (s.reader == c || c.routed && s.reader == c.leader) {
		s.interrupt()
	}
	return true
}

// abandon ends c, which is in its table, because of cause. It does not notify the waiter. The caller holds mu.
func (s *socket) abandon(c *Call, cause error) {
	outcome := slipstream.MaybeExecuted
	if c.start >= s.out.taken && !c.Whole {
		outcome = slipstream.NotSent
		s.out.dead++
	}
	s.calls.forget(c)
	c.giveUp(outcome, cause)
	if outcome == slipstream.MaybeExecuted && s.calls.leave(c) {
		c.state.Store(stateSwept)
		s.charged.Add(-c.charge)
		s.makeRoom()
		s.wear()
	}
	s.engine.sweeping.cancelled.Add(1)
}

// completeGivenUp calls the completers of the calls that the last sweep gave up.
func (e *Engine) completeGivenUp() {
	for i, c := range e.givenUp {
		e.givenUp[i] = nil
		e.complete(c)
	}
	e.givenUp = e.givenUp[:0]
}

// backstop flushes what the rule allows and no other goroutine has flushed. With tickets, these are calls that were
// held back by slow ones; otherwise there are never any. It
// reports whether calls are still held back.
func (s *socket) backstop() bool {
	s.mu.Lock()
	if s.calls.queued()+len(s.out.oneWays) == 0 {
		s.out.holding = false
	}
	held := s.out.holding && !s.life.closed
	if s.out.writing || s.out.kicking || s.life.closed || s.calls.queued()+len(s.out.oneWays) == 0 {
		s.mu.Unlock()
		return held
	}
	reason := s.rule(true)
	if reason == NotYet {
		s.mu.Unlock()
		return held
	}
	if held {
		s.engine.sweeping.aged.Add(1)
	} else {
		s.engine.sweeping.backstop.Add(1)
	}
	s.out.writing = true
	s.flush(reason)
	return held
}

// checkLife closes a socket whose server is silent for too long, and sends pings and probes.
func (e *Engine) checkLife(s *socket, now time.Duration) {
	w := &s.watch
	reads := s.reads.Load()
	s.mu.Lock()
	epoch, calls := s.pace.epoch, s.counts.Calls
	outstanding := max(s.calls.atServer()-s.streams.live, 0) // an open stream owes nothing
	patience, overdue := s.calls.patience(), s.calls.oldestGivenUp()
	s.calls.shrink()
	s.mu.Unlock()
	if reads != w.reads || epoch != w.epoch || outstanding == 0 {
		w.since, w.heard, w.pinged = now, now, false
	}
	if reads != w.reads || calls != w.calls || w.idleSince == 0 {
		w.idleSince = now
	}
	w.reads, w.epoch, w.calls = reads, epoch, calls
	if s.in.bulky.Load() && now-w.idleSince >= e.rest(true) {
		s.wakeKeeper()
	}
	stall := e.cfg.StallTimeout
	silent := now - w.since
	s.silence.Store(int64(silent))
	noticed := silent >= noticedAfter+patience
	s.quiet.Store(noticed)
	if noticed && e.cfg.OnSilence != nil {
		e.cfg.OnSilence()
	}
	if stall > 0 && e.cfg.Traits.AppendProbe != nil {
		e.suspect(s, now)
	}
	switch {
	case outstanding == 0:
		if e.cfg.IdlePing > 0 && now-w.idleSince >= e.cfg.IdlePing {
			w.idleSince = now
			e.ping(s)
		}
	case stall <= 0:
	case e.cfg.Traits.AppendProbe != nil:
		if overdue && now-w.heard >= stall+patience {
			e.stalled(s)
		}
	default:
		switch s.calls.judge(silent, stall, patience, w.pinged) {
		case verdictPing:
			w.pinged = e.ping(s)
		case verdictStalled:
			e.stalled(s)
		}
	}
}

// stalled closes a socket whose server has been silent for too long.
func (e *Engine) stalled(s *socket) {
	e.sweeping.stalls.Add(1)
	s.fail(ErrStalled)
}

// wakeKeeper makes the keeper of an idle socket release memory retained after a burst. The keeper
// owns the buffer and waits for data.
func (s *socket) wakeKeeper() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.role == roleKeeper && s.unused() && !s.life.closed && !s.stopped {
		s.stopped = true
		s.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// ping sends a request whose reply proves that the server is alive. It reports whether it did.
func (e *Engine) ping(s *socket) bool {
	if e.cfg.Traits.AppendProbe != nil {
		return false // there is no ping
	}
	c := e.Acquire()
	err := contain(func() error {
		c.Frame = e.cfg.Protocol.AppendPing(c.Frame[:0])
		return nil
	})
	if err != nil || len(c.Frame) == 0 {
		c.Release()
		return false
	}
	c.route(pinged{}, nil)
	c.ping = true
	c.prepare(context.Background(), e)
	c.deadline, c.watched = 0, false
	one := [1]*Call{c}
	if _, err := s.submit(one[:], false); err != nil {
		c.Release()
		return false
	}
	e.sweeping.pings.Add(1)
	return true
}

// pinged releases a ping.
type pinged struct{}

// Complete implements Completer.
func (pinged) Complete(c *Call) { c.Release() }

// endLoan returns the reader's role to the keeper when no lone caller has
// used it for some time, so that an idle socket is read.
func (s *socket) endLoan(now time.Duration) {
	s.mu.Lock()
	if loan := &s.streams.loan; loan.uses == loan.checked {
		s.recall()
	} else {
		loan.checked = loan.uses
	}
	if s.role != roleFree || s.life.closed || now-s.watch.idleSince < s.engine.rest(true) {
		s.mu.Unlock()
		return
	}
	s.role, s.out.writing = roleCaller, true
	s.mu.Unlock()
	s.reclaim()
}
