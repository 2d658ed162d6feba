package pipe

import (
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/buf"
)

// Errors of a socket that are in the chain of the errors that callers get.
var (
	ErrClosed     = errors.New("client is closed")
	ErrOverloaded = errors.New("too many calls or bytes are queued or in flight")
	ErrStalled    = errors.New("server was silent for longer than the stall timeout")
	// ErrUnsolicited means that a reply answered no request.
	ErrUnsolicited = errors.New("protocol: reply to no request")
	errWorn        = errors.New("too many requests were never answered; the connection is being replaced")
	// ErrHungUp means that the server has closed a connection on which it owed no reply.
	ErrHungUp = errors.New("connection closed by the server while idle")

	// errGone makes the engine choose another socket: nothing was queued.
	errGone = errors.New("socket is gone")
	// errDraining informs the engine that it is being closed: nothing was queued.
	errDraining = errors.New("engine is draining")
	// errFull informs the engine that a bound was reached: nothing was queued.
	errFull = errors.New("full")
)

// A role says which goroutine reads the socket.
type role uint8

const (
	roleKeeper role = iota // the keeper
	roleFree               // none; the next lone caller takes the role
	roleCaller             // a lone caller
	roleLent               // the receiver of the only stream, see stream_solo.go
)

// A socket is one connection and the calls on it. It is created by the keeper,
// which reads it until it fails, and ended once by fail.
type socket struct {
	// Immutable.
	engine *Engine
	conn   net.Conn
	raw    syscall.RawConn // nil if direct writes and lone readers are impossible (TLS, pipes)

	in  input
	out output

	mu sync.Mutex
	// Guarded by mu, except where the types say otherwise.
	calls   matcher
	pace    pace
	life    life
	role    role
	reader  *Call // of roleCaller
	lone    int   // consecutive lone calls
	stopped bool  // a read deadline was set to wake the reader
	watched bool  // a call may have a context that can be canceled
	fresh   bool  // such a call came since the sweeper started its last round
	counts  Counts

	roleWake chan struct{} // capacity 1: the keeper has the role again

	// Atomics.
	charged atomic.Int64  // charge of the calls in the table; added by callers, subtracted by goroutines that end calls
	reads   atomic.Uint64 // written by the role's holder, read by the sweeper
	refused atomic.Uint64 // number of refused calls; written by callers
	late    atomic.Uint64 // number of replies to calls that were given up; written by the role's holder
	listens atomic.Bool   // the keeper reads while there is no call; written by Pin.Listen

	// Owned by the sweeper.
	watch stallWatch

	peer    *peer        // immutable
	quiet   atomic.Bool  // silence is longer than it should be; written by the sweeper
	silence atomic.Int64 // how long the server has been silent while it owed replies; written by the sweeper

	streams socketStreams
}

// input is the reading side of a socket. It is owned by the goroutine that has the
// reader's role.
type input struct {
	// Immutable.
	socket  *socket
	conn    net.Conn
	raw     syscall.RawConn // nil if reads go through conn
	scanner Scanner
	doPeek  func(fd uintptr)
	doRead  func(fd uintptr) bool
	// directFrom is directReply, except in measurements.
	directFrom int

	vectors    [2][]byte // used by doRead
	buf        []byte
	wantRead   int // size of the buffer that a waiting reader has released
	got        int // result of doRead
	gotErr     error
	begin, end int
	direct     direct
	aim        *aim   // allocated on first use
	own        []byte // the message of frames that was read directly
	frames     []arrived
	popped     []*Call
	woken      int  // number of callers that waited for the last delivered replies
	quiet      int  // consecutive reads that used little of the buffer
	full       bool // the last read filled the buffer
	cut        int  // number of messages since settle
	cutBytes   int  // their total length
	copied     int  // number of bytes copied, of large replies and of incomplete messages
	// early means that the message at begin started to arrive while nothing was in flight, so it
	// answers no call.
	early  bool
	last   bool // one of the messages cut had Frame.Last
	watch  watch
	peeked peekResult  // result of doPeek
	bulky  atomic.Bool // the reader's memory has grown; read by the sweeper
}

// watch is what a watcher is informed of.
type watch struct {
	watcher Watcher // the scanner, or nil
	replied int     // number of replies that were matched last
	newest  uint64  // largest offset of a request that was answered
}

// output is the writing side of a socket.
type output struct {
	// Owned by the goroutine that has set writing.
	wrote    int // result of doWrite
	wroteErr error
	outgoing buf.Chain
	vectors  [][]byte
	doWrite  func(fd uintptr) bool // immutable

	// Guarded by the socket's lock.
	queued   buf.Chain
	oneWays  []*Call // queued calls without replies
	leaving  []*Call // calls without replies in the current write
	dead     int     // number of queued calls that were given up
	appended uint64  // offset after the last queued byte
	taken    uint64  // offset after the last byte that a write took
	written  uint64  // offset after the last byte that the kernel took
	writing  bool    // a goroutine flushes
	inWrite  bool    // bytes are being passed to the kernel
	handed   bool    // with inWrite: by the writer
	holding  bool    // calls are held back, and the sweeper evaluates the rule again
	kicking  bool    // the reader will flush when it has woken all callers

	writerWake chan struct{} // capacity 1: wakes the writer; nil until there is one
	writerDone chan struct{}
}

// pace is the input of the flush rule. It is guarded by the socket's lock.
type pace struct {
	k       int
	window  int  // maximum number of calls in flight; 0 if there is none
	urgent  bool // the first queued call is a ping, which no window holds back
	crowd   int  // number of flushes that still yield first
	trip    roundTrip
	probeAt time.Duration // when the measured call was written
	epoch   uint64        // incremented when a call is written while none is in flight
	depth   int           // the window set by the driver, or 0
}

// life is the state of the end of a socket.
type life struct {
	// Immutable.
	done  chan struct{} // closed by fail
	ended chan struct{} // closed when all calls of a failed socket are resolved

	// Guarded by the socket's lock.
	closed   bool
	cause    error
	finished bool          // the calls of a closed socket were ended
	retired  error         // why the socket was retired, or nil
	doubted  []*Call       // calls removed together with a protocol error, whose replies cannot be trusted
	room     chan struct{} // closed when calls end; created by callers that wait

	// Atomics, written under the lock.
	crowded atomic.Bool // a caller waits for room
	// retiring means that no more calls are accepted, and that the end of the last one ends the
	// socket.
	retiring atomic.Bool
	// muted means that the server is silent and new calls use other sockets. Written by the sweeper.
	muted atomic.Bool
}

// arrived is a reply in the read buffer.
type arrived struct {
	at, len int
	ticket  uint64
}

func newSocket(e *Engine, conn net.Conn, rest []byte, greeted time.Duration) *socket {
	s := &socket{
		engine: e, conn: conn,
		in:       input{conn: conn, scanner: e.cfg.Protocol.NewScanner(), directFrom: e.cfg.choices.DirectReply},
		calls:    newMatcher(&e.cfg.Traits),
		life:     life{done: make(chan struct{}), ended: make(chan struct{})},
		roleWake: make(chan struct{}, 1),
	}
	s.in.socket = s
	s.in.watch.watcher, _ = s.in.scanner.(Watcher)
	s.setRaw()
	s.in.buf = buf.Get(max(minRead, len(rest)))
	s.in.buf = s.in.buf[:cap(s.in.buf)]
	s.in.end = copy(s.in.buf, rest)
	s.pace.trip.add(e.now(), greeted)
	s.pace.depth = max(e.cfg.Traits.FirstDepth, 0)
	s.setFactor()
	return s
}

func (s *socket) setFactor() {
	s.pace.k = s.engine.cfg.FlushFactor
	if s.pace.k <= 0 {
		s.pace.k = factor(s.pace.trip.get())
	}
	s.setWindow()
}

// roomAfter returns a channel that is closed when calls end.
func (s *socket) roomAfter() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.room == nil {
		s.life.room = make(chan struct{})
		s.life.crowded.Store(true)
		if s.life.closed {
			close(s.life.room)
		}
	}
	return s.life.room
}

// makeRoom wakes callers that wait for room. The caller holds mu.
func (s *socket) makeRoom() {
	if s.life.room != nil && !s.life.closed {
		close(s.life.room)
		s.life.room = nil
		s.life.crowded.Store(false)
	}
}

// refuse counts n refused calls.
func (s *socket) refuse(n int) { s.refused.Add(uint64(n)) }

// fits reports whether calls with this charge in total are within the bounds.
func (s *socket) fits(charge int64) bool { return s.engine.list.Load().fits(charge) }

// mayFit reports whether such calls are within the bounds, now or after the peers that leave have ended.
func (s *socket) mayFit(charge int64) bool {
	l := s.engine.list.Load()
	return l.fits(charge) || l.whole.fits(charge)
}

// reserve adds a charge if it fits or anyway is true, and reports whether it did.
func (s *socket) reserve(charge int64, anyway bool) bool {
	for {
		now := s.charged.Load()
		if !anyway && !s.fits(now+charge) {
			return false
		}
		if s.charged.CompareAndSwap(now, now+charge) {
			return true
		}
	}
}

// free subtracts a charge.
func (s *socket) free(charge int64) {
	s.charged.Add(-charge)
	if s.life.crowded.Load() { // after the line above, because waiting callers must see its effect
		s.mu.Lock()
		s.makeRoom()
		s.mu.Unlock()
	}
}

// submit queues calls contiguously, all or none. With canRead, the submitter
// waits for the result and may become the reader. Then solo is true, the
// submitter has the role and the flag writing, and it must call readSolo.
// If the error is errGone, errFull or errDraining, nothing was queued.
func (s *socket) submit(cs []*Call, canRead bool) (solo bool, err error) {
	charge := int64(0)
	for _, c := range cs {
		charge += c.charge
		// The end of a call without a reply cannot be read.
		canRead = canRead && !c.OneWay
	}
	// The charge is reserved before the lock, so that rejected callers do not wait for the lock:
	// with 10,000 callers that was 75 ms (p99). A ping is always accepted, because it is needed
	// when the server answers nothing.
	if !s.reserve(charge, cs[0].ping) {
		select {
		case <-s.life.done:
			return false, errGone
		default:
		}
		if s.life.retiring.Load() { // a retired socket may be full
			return false, errGone
		}
		return false, errFull
	}
	for _, c := range cs {
		if len(c.Frame) >= s.engine.cfg.choices.LinkedFrame && c.lent == nil {
			c.link() // before the lock, because copying 64 KiB under it would block others for 5 us
		}
	}
	s.mu.Lock()
	if s.life.closed || s.life.retiring.Load() && !cs[0].ping || s.life.muted.Load() && cs[0].Pin.s == nil {
		s.mu.Unlock()
		s.free(charge)
		return false, errGone
	}
	if s.engine.draining.Load() && !cs[0].ping { // Shutdown sets it before it checks for calls
		s.mu.Unlock()
		s.free(charge)
		return false, errDraining
	}
	if s.calls.full(len(cs)) {
		s.mu.Unlock()
		s.free(charge)
		return false, errFull
	}
	alone := s.unused()
	if alone && canRead {
		s.lone++
	} else {
		s.lone = 0
	}
	if !alone {
		s.pace.crowd = crowdLasts
	}
	wakeSweeper := s.queue(cs)
	s.recall()
	if s.role == roleFree { // so there is no other call
		s.role, s.out.writing = roleCaller, true
		if canRead {
			s.reader = cs[0]
		}
		s.mu.Unlock()
		s.engine.wakeSweeper(wakeSweeper)
		if !canRead {
			s.reclaim()
		}
		return canRead, nil
	}
	reason := NotYet
	if !s.out.writing {
		// With many callers, reading the clock for each call would make up a tenth of the cost of a
		// call.
		n := s.calls.queued()
		reason = s.rule(n <= clockEvery || n%clockEvery == 0)
	}
	if reason == NotYet {
		if !s.out.writing {
			wakeSweeper = s.hold() || wakeSweeper
		}
		s.mu.Unlock()
		s.engine.wakeSweeper(wakeSweeper)
		return false, nil
	}
	s.startFlush(reason)
	s.engine.wakeSweeper(wakeSweeper)
	return false, nil
}

// queue appends the frames. It reports whether the sweeper must be woken. The caller holds mu.
func (s *socket) queue(cs []*Call) (wakeSweeper bool) {
	for _, c := range cs {
		c.state.Store(statePending)
		if c.ping && s.pace.window > 0 {
			s.queuePing(c)
			continue
		}
		c.start = s.out.appended
		if c.OneWay {
			s.out.oneWays = append(s.out.oneWays, c)
			s.calls.addOneWay(c)
		} else {
			s.calls.add(c)
		}
		if c.deadline > 0 && s.calls.arm(c) {
			wakeSweeper = true
		}
		switch {
		case c.lent != nil:
			c.lent.appendTo(&s.out.queued, c.Frame)
		case c.holds == holdsFrame:
			s.out.queued.Link(c.unlink())
		default:
			s.out.queued.Append(c.Frame)
		}
		s.out.appended += uint64(c.size)
		s.counts.Calls += uint64(c.places())
		if c.watched {
			wakeSweeper = wakeSweeper || !s.watched
			s.watched, s.fresh = true, true
		}
	}
	return wakeSweeper
}

// rule evaluates the flush rule. It reads the clock only if that is needed and clock is true. The caller holds mu.
func (s *socket) rule(clock bool) Reason {
	queued, bytes := s.calls.queued()+len(s.out.oneWays), s.out.queued.Len()
	if queued == 0 {
		return NotYet
	}
	limit := s.engine.cfg.choices.FlushBytes
	if room := s.windowRoom(); room < queued {
		queued, bytes = room, int(int64(bytes)*int64(room)/int64(queued))
	}
	r := rule(queued, bytes, s.calls.young(), s.pace.k, limit)
	if r != NotYet || !clock || !s.calls.mayAge() {
		return r
	}
	s.calls.age(s.engine, s.pace.trip.get())
	return rule(queued, bytes, s.calls.young(), s.pace.k, limit)
}

// fail closes the socket and ends its calls. Only the first call has an effect.
//
// The outcome of a call depends on which bytes the kernel has taken, so fail
// waits for the end of the current write. Closing the
// connection unblocks the writer. A flusher, which never waits, ends the calls instead of fail, and
// so does a reader that is adding replies to calls in the table or writing to the memory of one. Calls
// that no write has taken do not wait: they move to another socket immediately.
func (s *socket) fail(cause error) {
	t := &s.engine.transit
	t.mu.Lock()
	s.mu.Lock()
	if s.life.closed {
		s.mu.Unlock()
		t.mu.Unlock()
		return
	}
	s.life.closed, s.life.cause = true, cause
	handed, writer := s.out.handed, s.out.writerDone
	if s.life.room != nil {
		close(s.life.room)
	}
	takers := s.moveUnsent()
	close(s.life.done)
	s.mu.Unlock()
	t.mu.Unlock()
	flushTaken(takers)
	s.conn.Close()
	if handed {
		<-writer
	}
	s.finish()
}

// finish ends the calls of a closed socket, once. If another goroutine is using them, it does nothing, because
// that goroutine will call finish.
func (s *socket) finish() {
	s.mu.Lock()
	if s.life.finished || s.calls.gathering || s.calls.filled != nil || s.out.inWrite && !s.out.handed {
		s.mu.Unlock()
		return
	}
	s.life.finished = true
	sent, cause := s.out.written, s.life.cause
	// A call with several replies has several consecutive places.
	blocked := s.calls.blocked()
	ended := append(s.life.doubted, s.calls.all()...)
	ended = append(ended, s.out.oneWays...)
	ended = append(ended, s.out.leaving...)
	s.out.oneWays, s.out.leaving, s.life.doubted = nil, nil, nil
	s.counts.Failed += uint64(len(ended) + blocked)
	ended = slices.Compact(ended)
	queued := s.out.queued
	s.out.queued = buf.Chain{}
	s.mu.Unlock()
	drop(&queued)
	waiting := ended[:0]
	for _, c := range ended {
		if c.takeOut() {
			c.written = int(min(max(sent, c.start)-c.start, uint64(c.size)))
			c.fail(outcomeOf(c, sent, cause), cause)
			waiting = append(waiting, c)
		}
	}
	for _, c := range waiting {
		c.resolve()
	}
	close(s.life.ended)
}

// outcomeOf returns the outcome of a call whose socket ended after the
// kernel had taken the bytes before sent.
func outcomeOf(c *Call, sent uint64, cause error) slipstream.Outcome {
	switch {
	case c.start < sent:
		return slipstream.MaybeExecuted
	case errors.Is(cause, ErrClosed):
		return slipstream.Closed
	}
	return slipstream.NotSent
}
