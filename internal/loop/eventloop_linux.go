package loop

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Sizes of a loop.
const (
	eventsAtOnce = 256
	readSize     = 64 << 10
	// turnReads bounds the reads of one connection before other connections get their turn.
	turnReads = 1
	// acceptsAtOnce bounds the connections accepted in one call of accept.
	acceptsAtOnce = 64
	// yieldEvery is the number of busy rounds after which a loop yields its processor even if
	// no answer is owed.
	yieldEvery = 64
	// roundUnits is how many units connections in again may spend in one round, and turnCost is the
	// cost of a turn's system calls, in addition to what its session has spent.
	roundUnits = 64
	turnCost   = 16
	// mailAtOnce bounds the number of answers settled in one round, mailUnits their work.
	mailAtOnce = 64
	mailUnits  = mailAtOnce * (turnCost + 4)
	// sweepAtOnce bounds the slots that a sweep or a survey visits in one round, and
	// sweepUnits the work of the turns of overdue connections, most of which are closed.
	sweepAtOnce = 1024
	sweepUnits  = 256
)

// eventLoop is one loop. Fields belong to its goroutine unless stated otherwise.
type eventLoop struct {
	// Immutable after newEventLoop, until closeFiles.
	engine *epollEngine
	server *Server
	lane   int // the index among the engine's loops
	epfd   int
	wakefd int // eventfd(2): written to end a wait

	listeners []listener
	slots     []slot
	free      []uint32                // numbers of free slots
	again     queue[*epollConn]       // connections with more to do than one turn allows
	spent     int                     // units in this step of the round
	crowded   bool                    // many connections are ready in this round, or wait in again
	bulky     bool                    // one of the crowd has sent much; others may have, too
	tasks     []func()                // posted and not run yet
	surveys   []*survey               // requested and not answered yet
	settling  queue[*Deferred]        // complete and not settled yet
	calls     queue[*epollConn]       // connections to which something was posted and that have not had a turn since
	measure   func(cpu time.Duration) // set by MeasureTurns; nil if turns are not measured
	events    []unix.EpollEvent
	readBuf   []byte
	scratch   *Output  // of the current turn, unless the connection has another
	segments  [][]byte // of the current write
	cohort    cohort
	clockAt   time.Duration // Config.Clock, read after the last read of any connection; -1 if it has not been read since
	conns     int
	owed      int64
	now       time.Duration
	round     round
	sweepAt   time.Duration
	sweeping  int           // slots that the current sweep has not visited; 0 if there is no sweep
	acceptAt  time.Duration // when accepting resumes; 0 if it is not paused
	stopAt    time.Duration // when accepting ends; 0 if it does not
	accepting bool
	idled     bool
	yields    bool // other goroutines may be waiting for this one's processor
	stopped   bool
	counts    struct{ reads, writes, wakes, events, sleeps, postponed, late uint64 }

	// Guarded by mu.
	mu     sync.Mutex
	posted []func()
	done   []*Deferred
	called []*epollConn // a task was posted to them
	closed bool         // the loop ends and accepts no more posts

	// Atomics. waiting is written by the loop and read by posters; mail is written by posters and
	// by the loop. published holds the counters for other goroutines.
	waiting   atomic.Bool
	mail      atomic.Bool
	published struct {
		reads, writes, wakes, events, sleeps, postponed, late atomic.Uint64
		owed                                                  atomic.Int64
	}
}

// slot is a slot for a connection. Epoll returns its number and generation, so that an event of a
// connection that has gone does not reach its successor.
type slot struct {
	conn       *epollConn
	generation uint32
}

type listener struct {
	fd     int
	shared bool
	local  bool // bound to a loopback address
}

// Event data of descriptors that are not connections. The generation of a connection's slot is
// never 0.
const (
	wakeEvent     = 0
	firstListener = 1
)

func newEventLoop(e *epollEngine) (*eventLoop, error) {
	l := &eventLoop{engine: e, server: e.server, lane: len(e.loops), events: make([]unix.EpollEvent, eventsAtOnce),
		readBuf: make([]byte, readSize), scratch: new(Output), segments: make([][]byte, 0, 64), accepting: true}
	l.cohort.arena = make([]byte, cohortSize*cohortRead)
	if f := turnMeasure.Load(); f != nil {
		l.measure = *f
	}
	var err error
	if l.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if l.wakefd, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		_ = unix.Close(l.epfd)
		return nil, os.NewSyscallError("eventfd", err)
	}
	if err = l.watch(l.wakefd, unix.EPOLLIN, 0, wakeEvent); err != nil {
		l.closeFiles()
		return nil, err
	}
	return l, nil
}

// watch adds a descriptor. Its events carry generation and place.
func (l *eventLoop) watch(fd int, events uint32, generation, place uint32) error {
	// In x/sys, the union epoll_data consists of the two words Fd and Pad.
	ev := unix.EpollEvent{Events: events, Fd: int32(place), Pad: int32(generation)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epfd, unix.EPOLL_CTL_ADD, fd, &ev))
}

// run is the loop.
func (l *eventLoop) run() {
	if l.measure != nil {
		runtime.LockOSThread() // never unlocked: the thread's CPU clock is read
	}
	l.noteProcessors()
	for rounds := 0; !l.stopped; rounds++ {
		n := l.wait()
		if n > 0 {
			l.counts.wakes++
			l.counts.events += uint64(n)
		}
		l.crowded = n > cohortSize || l.again.len() > 0
		l.bulky = l.bulky && l.crowded
		for i := 0; i < n; i += cohortSize {
			l.serve(l.events[i:min(i+cohortSize, n)])
		}
		l.goOn()
		if l.mail.Load() || l.hasMail() {
			l.readMail()
		}
		if len(l.surveys) > 0 {
			l.goOnSurvey()
		}
		l.keepTime()
		l.publish()
		// Goroutines that complete answers need a processor, and this loop may always have
		// events.
		if l.yields && (l.owed > 0 || rounds%yieldEvery == 0) {
			runtime.Gosched()
		}
	}
	l.closeFiles()
}

// wait begins the next round and returns its number of events. It first polls without waiting:
// under load there are always events, and that call can be made without notifying the scheduler.
func (l *eventLoop) wait() int {
	n := pollEvents(l.epfd, l.events)
	if n == 0 && l.again.len() == 0 && !l.hasMail() && len(l.surveys) == 0 && l.sweeping == 0 && !l.mail.Load() {
		return l.sleep()
	}
	polled := l.now
	l.now = l.server.now()
	l.noteLate(l.now)
	l.round = round{since: polled, events: n}
	return n
}

// sleep yields once, waits for events, and returns their number.
func (l *eventLoop) sleep() int {
	polled := l.server.now()
	l.noteLate(polled)
	asleep := polled
	if l.yields {
		runtime.Gosched()
		asleep = l.server.now()
	}
	n := 0
	// A poster checks waiting after posting, and the loop checks its mail after setting
	// waiting, so one of the two sees the other.
	l.waiting.Store(true)
	if !l.mail.Load() {
		l.counts.sleeps++
		n = waitEvents(l.epfd, l.events, l.patience(asleep))
	}
	l.waiting.Store(false)
	l.now = l.server.now()
	l.round = round{since: l.now - (asleep - polled), events: n}
	return n
}

// patience returns how long the loop may sleep from now on, in milliseconds, or -1 if there is no limit.
func (l *eventLoop) patience(now time.Duration) int {
	until := time.Duration(-1)
	if l.conns > 0 {
		until = l.sweepAt
	}
	for _, at := range [...]time.Duration{l.acceptAt, l.stopAt} {
		if at > 0 && (until < 0 || at < until) {
			until = at
		}
	}
	if until < 0 {
		return -1
	}
	left := until - now
	if left <= 0 {
		return 0
	}
	return int((left + time.Millisecond - 1) / time.Millisecond)
}

// connOf returns the connection of an event, or nil if the event is not that of a connection or the
// connection has gone.
func (l *eventLoop) connOf(ev *unix.EpollEvent) *epollConn {
	if generation := uint32(ev.Pad); generation != 0 {
		if s := &l.slots[uint32(ev.Fd)]; s.generation == generation {
			return s.conn
		}
	}
	return nil
}

// dispatch processes an event that is not that of a connection.
func (l *eventLoop) dispatch(ev *unix.EpollEvent) {
	place, generation := uint32(ev.Fd), uint32(ev.Pad)
	switch {
	case generation != 0: // its connection has gone
	case place == wakeEvent:
		drainEventfd(l.wakefd)
	case l.accepting:
		l.accept(&l.listeners[place-firstListener])
	}
}

// queue queues the connection, which continues after the others.
func (l *eventLoop) queue(c *epollConn) {
	if !c.queued {
		c.queued = true
		l.again.push(c)
	}
}

// goOn continues queued connections in order, for at most a round's share, so that connections with
// little to do are served in between.
func (l *eventLoop) goOn() {
	l.spent = 0
	n := l.again.len() // not counting those that are queued again in the meantime
	share := turnUnits
	if n > cohortSize {
		share = crowdUnits // each of these turns keeps many others waiting
	}
	for ; n > 0 && l.spent < roundUnits; n-- {
		c := l.again.pop()
		c.queued = false
		if !c.closed {
			c.share = share
			l.turn(c)
			c.share = turnUnits
		}
	}
}

// post runs f on the loop. It returns false if the loop has ended. A function posted while the loop
// ends may not run.
func (l *eventLoop) post(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.posted = append(l.posted, f)
	l.wakeLocked()
	return true
}

// postDone passes a complete answer to the loop. It returns false if the loop has ended.
func (l *eventLoop) postDone(d *Deferred) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.done = append(l.done, d)
	l.wakeLocked()
	return true
}

// wakeLocked makes the loop read its mail. The caller holds mu, so that the descriptor cannot be
// closed and reused for another file in the meantime.
func (l *eventLoop) wakeLocked() {
	if l.mail.Swap(true) {
		return // the poster that set it woke the loop
	}
	if l.waiting.Load() {
		wakeEventfd(l.wakefd)
	}
}

// runTask runs a function that was posted.
func (l *eventLoop) runTask(f func()) {
	if l.measure != nil {
		defer l.measured(threadCPU())
	}
	f()
}

func (l *eventLoop) readMail() {
	l.mail.Store(false)
	l.mu.Lock()
	l.tasks = append(l.tasks, l.posted...)
	clear(l.posted)
	l.posted = l.posted[:0]
	for _, d := range l.done {
		l.settling.push(d)
	}
	clear(l.done)
	l.done = l.done[:0]
	for _, c := range l.called {
		l.calls.push(c)
	}
	clear(l.called)
	l.called = l.called[:0]
	l.mu.Unlock()
	l.spent = 0
	for len(l.tasks) > 0 && l.spent < mailUnits {
		f := l.tasks[0]
		l.tasks[0] = nil
		l.tasks = l.tasks[1:]
		l.runTask(f)
	}
	if len(l.tasks) == 0 {
		l.tasks = nil
	}
	for n := min(l.settling.len(), mailAtOnce); n > 0 && l.spent < mailUnits; {
		n -= l.settle(l.settling.pop(), n) // its connection belongs to this loop: see epollConn.complete
	}
	l.answerCalls()
}

// keepTime starts and continues sweeps, and resumes and ends accepting.
func (l *eventLoop) keepTime() {
	if l.acceptAt > 0 && l.now >= l.acceptAt {
		l.resumeAccepting()
	}
	if l.stopAt > 0 && l.now >= l.stopAt {
		l.finishAccepting()
	}
	if l.sweeping == 0 && l.conns > 0 && l.now >= l.sweepAt {
		l.noteProcessors()
		interval := l.server.config.sweepInterval()
		if l.server.draining.Load() {
			interval = min(interval, 20*time.Millisecond)
		}
		l.sweepAt = l.now + interval
		l.sweeping = len(l.slots)
	}
	if l.sweeping > 0 {
		l.sweep()
	}
}

// sweep checks the time limits of some connections; the next round continues. Otherwise thousands
// that are overdue at the same time would keep all others waiting.
func (l *eventLoop) sweep() {
	if l.measure != nil {
		defer l.measured(threadCPU())
	}
	l.spent = 0
	for n := 0; l.sweeping > 0 && n < sweepAtOnce && l.spent < sweepUnits; n++ {
		l.sweeping--
		if c := l.slots[l.sweeping].conn; c != nil && c.overdue(l.now) {
			l.turn(c)
		}
	}
}

// noteProcessors finds out whether the scheduler has a processor besides those of the loops. If so,
// the loop does not yield: each yield would wake a thread that looks for work, which costs a tenth
// of a cache hit.
func (l *eventLoop) noteProcessors() {
	l.yields = runtime.GOMAXPROCS(0) <= len(l.engine.loops)
}

func (l *eventLoop) publish() {
	p := &l.published
	p.reads.Store(l.counts.reads)
	p.writes.Store(l.counts.writes)
	p.wakes.Store(l.counts.wakes)
	p.events.Store(l.counts.events)
	p.sleeps.Store(l.counts.sleeps)
	p.postponed.Store(l.counts.postponed)
	p.late.Store(l.counts.late)
	p.owed.Store(l.owed)
}

// checkIdle notifies the engine, once, that nothing is left to drain.
func (l *eventLoop) checkIdle() {
	if !l.accepting && l.conns == 0 && !l.idled {
		l.idled = true
		l.engine.wentIdle()
	}
}

// quit ends the loop and all its connections.
func (l *eventLoop) quit(err error) {
	l.stopAccepting()
	for i := range l.slots {
		if c := l.slots[i].conn; c != nil {
			l.close(c, err)
		}
	}
	l.mu.Lock()
	l.closed = true
	for _, d := range l.done {
		l.settling.push(d)
	}
	l.done = nil
	l.mu.Unlock()
	for l.settling.len() > 0 {
		l.settle(l.settling.pop(), 1) // its connection is closed, so it is dropped
	}
	l.stopped = true
}

// closeFiles closes the loop's descriptors. Later calls do nothing.
func (l *eventLoop) closeFiles() {
	if l.epfd < 0 {
		return
	}
	for _, ln := range l.listeners {
		_ = unix.Close(ln.fd)
	}
	l.listeners = nil
	_ = unix.Close(l.wakefd)
	_ = unix.Close(l.epfd)
	l.epfd = -1
}
