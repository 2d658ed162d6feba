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

// Errors of a socket that callers find in the chain of what they get.
var (
	ErrClosed     = errors.New("client is closed")
	ErrOverloaded = errors.New("too many calls or bytes are queued and under way")
	ErrStalled    = errors.New("server was silent for longer than the stall time-out")
	// ErrUnsolicited: a reply came that no request asked for.
	ErrUnsolicited = errors.New("protocol: a reply that answers no request")
	errWorn        = errors.New("too many requests were never answered: the connection is replaced")
	errHungUp      = errors.New("connection closed by the server while idle")

	// errGone tells the engine to choose another socket: nothing was queued.
	errGone = errors.New("socket is gone")
	// errDraining tells the engine that it is being closed: nothing was queued.
	errDraining = errors.New("engine is draining")
	// errFull tells the engine that a bound was reached: nothing was queued.
	errFull = errors.New("full")
)

// role says who reads the socket.
type role uint8

const (
	roleKeeper role = iota // the keeper's goroutine
	roleFree               // nobody: the next lone caller
	roleCaller             // a lone caller
)

// A socket is one connection and the calls on it. Life: made by the keeper,
// which reads it until it fails; ended by fail, once.
type socket struct {
	// Immutable.
	engine *Engine
	conn   net.Conn
	raw    syscall.RawConn // nil: no direct writes, no solo readers (TLS, pipes)

	in  input
	out output

	mu sync.Mutex
	// Guarded by mu, but for what they say themselves.
	calls   matcher
	pace    pace
	life    life
	role    role
	reader  *Call // of roleCaller
	lone    int   // lone calls in a row
	stopped bool  // the sweeper has set a read deadline to wake the reader
	watched bool  // a call may have a context that can be canceled
	fresh   bool  // such a call came since the sweeper began its last round
	counts  Counts

	roleWake chan struct{} // capacity 1: the keeper gets its role back

	// Atomics.
	charged atomic.Int64  // charge of the calls in the table; added by callers, taken off by whoever ends them
	reads   atomic.Uint64 // written by the role's holder, read by the sweeper
	refused atomic.Uint64 // calls turned away; written by callers
	late    atomic.Uint64 // replies to calls that were given up; written by the role's holder

	// Owned by the sweeper.
	watch stallWatch

	peer    *peer        // immutable
	silence atomic.Int64 // how long the server has been silent while it owed replies; written by the sweeper

	streams socketStreams
}

// input is the reader's side of a socket. It is owned by the goroutine that has the
// reader's role.
type input struct {
	// Immutable.
	socket  *socket
	conn    net.Conn
	raw     syscall.RawConn // nil: reads go through conn
	scanner Scanner
	doPeek  func(fd uintptr)
	doRead  func(fd uintptr) bool
	// directFrom is directReply, but for measurements.
	directFrom int

	vectors    [2][]byte // of doRead
	buf        []byte
	wantRead   int // size of the buffer that a waiting reader has given back
	got        int // of doRead
	gotErr     error
	begin, end int
	direct     direct
	aim        *aim   // made when it is first used
	own        []byte // the message of frames that was read directly
	frames     []arrived
	popped     []*Call
	quiet      int  // reads in a row that used little of the buffer
	full       bool // the last read filled the buffer
	cut        int  // messages since settle
	cutBytes   int  // of them
	copied     int  // bytes that were moved in memory: of large replies, and of parts of any
	// early: the message that begins at begin began while nothing was in flight, so it
	// answers no call.
	early  bool
	last   bool        // one of the messages cut was the last; see Frame
	peeked peekResult  // of doPeek
	bulky  atomic.Bool // the reader's memory has grown; read by the sweeper
}

// output is the writer's side of a socket.
type output struct {
	// Owned by the goroutine that has set writing.
	wrote    int // of doWrite
	wroteErr error
	outgoing buf.Chain
	vectors  [][]byte
	doWrite  func(fd uintptr) bool // immutable

	// Guarded by the socket's lock.
	queued   buf.Chain
	oneWays  []*Call // queued, of calls without replies
	leaving  []*Call // the same, in the write under way
	dead     int     // queued calls that were given up
	appended uint64  // offset after the last queued byte
	taken    uint64  // offset after the last byte given to a write
	written  uint64  // offset after the last byte the kernel took
	writing  bool    // a goroutine flushes
	inWrite  bool    // bytes are being given to the kernel
	handed   bool    // and the writer does it
	holding  bool    // calls were held back that age, and the sweeper looks after them
	kicking  bool    // the reader will flush when it has woken all callers

	writerWake chan struct{} // capacity 1: something is left for the writer; nil until there is one
	writerDone chan struct{}
}

// pace is what the flush rule goes by. It is guarded by the socket's lock.
type pace struct {
	k       int
	window  int  // calls that may be in flight; 0: any number
	urgent  bool // the first that is queued is a ping, which no window holds back
	crowd   int  // flushes left that yield first
	trip    roundTrip
	probeAt time.Duration // when the probe left
	epoch   uint64        // grows when calls are first in flight
	depth   int           // what the driver has set for window; 0: nothing
}

// life is the end of a socket.
type life struct {
	// Immutable.
	done  chan struct{} // closed by fail
	ended chan struct{} // closed when all calls of a failed socket are resolved

	// Guarded by the socket's lock.
	closed   bool
	cause    error
	finished bool          // the calls of a closed socket were ended
	retired  error         // why it is retiring; nil: it is not
	doubted  []*Call       // taken out by replies that a protocol error made doubtful
	room     chan struct{} // closed when calls end; made by callers that wait

	// Atomics, written under the lock.
	crowded atomic.Bool // a caller waits for room
	// retiring: no calls are taken any more, and the end of the last one ends the socket.
	retiring atomic.Bool
	// muted: the server is silent, and new calls go elsewhere. Written by the sweeper.
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

// roomAfter returns a channel that is closed when calls have ended.
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

// makeRoom wakes who waits for room. Under mu.
func (s *socket) makeRoom() {
	if s.life.room != nil && !s.life.closed {
		close(s.life.room)
		s.life.room = nil
		s.life.crowded.Store(false)
	}
}

// refuse counts calls that were turned away.
func (s *socket) refuse(n int) { s.refused.Add(uint64(n)) }

// fits reports whether calls of this charge together are within the bounds.
func (s *socket) fits(charge int64) bool { return s.engine.list.Load().fits(charge) }

// mayFit reports whether they will be, at the latest when the peers that leave have ended.
func (s *socket) mayFit(charge int64) bool {
	l := s.engine.list.Load()
	return l.fits(charge) || l.whole.fits(charge)
}

// reserve adds a charge if it fits, or in any case.
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

// free takes a charge off.
func (s *socket) free(charge int64) {
	s.charged.Add(-charge)
	if s.life.crowded.Load() { // after the line above: who waits must see it
		s.mu.Lock()
		s.makeRoom()
		s.mu.Unlock()
	}
}

// submit queues calls, all or none, contiguously. With canRead the submitter
// waits for the result and may become the reader: then solo is true, the
// submitter holds the role and the flag writing, and must call readSolo.
// errGone, errFull and errDraining: nothing was queued.
func (s *socket) submit(cs []*Call, canRead bool) (solo bool, err error) {
	charge := int64(0)
	for _, c := range cs {
		charge += c.charge
		// Nothing that can be read tells of the end of a call without a reply.
		canRead = canRead && !c.OneWay
	}
	// Reserved before the lock, so that who is turned away need not queue for it:
	// 10,000 callers would wait 75 ms (p99). A ping must get through above all
	// when the server answers nothing.
	if !s.reserve(charge, cs[0].ping) {
		select {
		case <-s.life.done:
			return false, errGone
		default:
		}
		if s.life.retiring.Load() { // calls that move may fill it
			return false, errGone
		}
		return false, errFull
	}
	for _, c := range cs {
		if len(c.Frame) >= s.engine.cfg.choices.LinkedFrame && c.lent == nil {
			c.link() // before the lock, which a copy of 64 KiB would hold for 5 us
		}
	}
	s.mu.Lock()
	if s.life.closed || s.life.retiring.Load() && !cs[0].ping || s.life.muted.Load() && cs[0].Pin.s == nil {
		s.mu.Unlock()
		s.free(charge)
		return false, errGone
	}
	if s.engine.draining.Load() && !cs[0].ping { // Shutdown has set it before it looked at our calls
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
	if s.role == roleFree { // so we are alone
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
		// Where many come, reading the clock for each would be a tenth of what a call costs.
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

// queue appends the frames. It reports whether the sweeper must be woken. Under mu.
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

// rule applies the flush rule, by the clock if that is needed and allowed. Under mu.
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

// fail closes the socket and ends its calls. Only the first cause counts.
//
// What became of a call depends on which bytes the kernel has taken, so the end
// waits for the end of a write under way: a writer is freed by closing the
// connection; a flusher, which never waits, finishes in place of the caller, and
// so does a reader that is adding replies to calls that stay in the table, or writes to the memory of one. Calls
// that no write has taken do not wait: they move to another socket at once.
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

// finish ends the calls of a closed socket, unless somebody is busy with them, who will.
// Once.
func (s *socket) finish() {
	s.mu.Lock()
	if s.life.finished || s.calls.gathering || s.calls.filled != nil || s.out.inWrite && !s.out.handed {
		s.mu.Unlock()
		return
	}
	s.life.finished = true
	sent, cause := s.out.written, s.life.cause
	// A call with several replies has several places, all in a row.
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

// outcomeOf says what may have become of a call whose socket ended when the
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
