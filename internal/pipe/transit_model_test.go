package pipe

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// These tests move calls under all orders of events: one goroutine submits, answers, retires, breaks and opens
// connections, changes their number, gives calls up, and lets time pass. After each event, every call is in
// exactly one place, and no share of the bounds is exceeded that was not exceeded before.

type transitLimits struct {
	tickets                                 bool
	sockets, room                           int
	submits, groups, ends, cancels, expires int
	resizes                                 int
	events                                  int
}

type transitWorld struct {
	t      testing.TB
	limits transitLimits
	choice chooser
	engine *Engine

	calls    []*transitCall
	inFlight map[*peer][]*transitCall // what each server has received, oldest first
	written  []int                    // the calls written, in order, on all connections
	held     map[*peer]int64          // what each peer was charged at the last check
	resizes  bool                     // the number of connections changes
	retires  bool                     // a connection was retired, which changes the shares
	log      []string
}

type transitCall struct {
	id      int
	call    *Call
	charge  int64
	cancel  context.CancelFunc
	ends    int // the number of times that it has ended
	err     error
	written bool
	before  []*transitCall // earlier calls that have always been queued on the same connection
}

// Complete implements Completer.
func (c *transitCall) Complete(call *Call) { c.ends, c.err = c.ends+1, call.Err() }

func newTransitWorld(t testing.TB, l transitLimits, choice chooser) *transitWorld {
	traits, p := toyTraits(l.tickets), Protocol(toyFIFO{})
	if l.tickets {
		p = toyTickets{}
	}
	traits.FirstDepth, traits.Place, traits.Spill = 1, Gather, 2
	cfg := Config{
		Protocol: p, Traits: traits, FlushFactor: 1, Sockets: l.sockets, MaxCalls: l.room * l.sockets, MaxBytes: mostPlaces << 39,
	}.WithChoices(Choices{NeverYield: true, SoloAfter: -1}).withDefaults()
	e := &Engine{cfg: cfg, epoch: time.Now(), sweep: make(chan struct{}, 1), keeperless: true}
	e.refusal = e.overloaded(ErrOverloaded)
	e.ctx, e.cancel = context.WithCancel(context.Background())
	w := &transitWorld{t: t, limits: l, choice: choice, engine: e, inFlight: map[*peer][]*transitCall{}, held: map[*peer]int64{}, resizes: l.resizes > 0}
	var peers []*peer
	for range l.sockets {
		peers = append(peers, &peer{engine: e})
	}
	e.list.Store(newList(&e.cfg, l.sockets, peers, make([]*socket, l.sockets)))
	for _, p := range peers {
		w.connect(p)
	}
	return w
}

func (w *transitWorld) fatal(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%+v\nevents: %q", fmt.Sprintf(format, args...), w.limits, w.log)
}

func (w *transitWorld) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// place returns the index of a peer in the list, for the log.
func (w *transitWorld) place(p *peer) int { return slices.Index(w.engine.list.Load().peers, p) }

func (w *transitWorld) connect(p *peer) {
	w.note("connect %d", w.place(p))
	conn, other := net.Pipe()
	other.Close()
	s := newSocket(w.engine, conn, nil, modelTrip)
	s.peer = p
	s.raw = hookedRaw{func() { w.write(s) }}
	if !w.engine.welcome(p, s) {
		w.fatal("a connection for a place was refused")
	}
}

// write passes the written bytes to the server of a connection.
func (w *transitWorld) write(s *socket) {
	var b []byte
	for _, segment := range s.out.outgoing.Segments() {
		b = append(b, segment...)
	}
	s.out.wrote = len(b)
	for len(b) > 0 {
		f, err := toyScanner{tickets: w.limits.tickets}.Scan(b)
		if err != nil || f.Verdict != Done {
			w.fatal("wrote %q", b)
		}
		id := 0
		fmt.Sscanf(toyScanner{tickets: w.limits.tickets}.body(b[:f.Len]), "r%d", &id)
		c := w.calls[id]
		if c.written {
			w.fatal("call %d was written twice", id)
		}
		// Calls that stay on a retired connection are written when its server answers.
		if n := len(w.written); w.limits.sockets == 1 && !w.resizes && !s.peer.leaving && n > 0 && w.written[n-1] > id {
			w.fatal("call %d was written after %d", id, w.written[n-1])
		}
		for _, b := range c.before {
			if b.ends == 0 && !b.written && w.places()[b.call] == s {
				w.fatal("call %d was written before %d, which was always queued before it", id, b.id)
			}
		}
		c.written = true
		w.inFlight[s.peer], w.written = append(w.inFlight[s.peer], c), append(w.written, id)
		b = b[f.Len:]
	}
}

func (w *transitWorld) newCall() *transitCall {
	c := &transitCall{id: len(w.calls), call: w.engine.Acquire()}
	body := fmt.Sprintf("r%d", c.id)
	if w.limits.tickets {
		c.call.Frame = appendToyTicket(nil, body)
	} else {
		c.call.Frame = appendToy(nil, body)
	}
	w.calls = append(w.calls, c)
	return c
}

// submit submits n calls together. A single call has a completer.
func (w *transitWorld) submit(n int) {
	w.note("submit %d", n)
	var cs []*Call
	var own []*transitCall
	for range n {
		c := w.newCall()
		cs, own = append(cs, c.call), append(own, c)
	}
	var ctx context.Context
	ctx, own[0].cancel = context.WithCancel(context.Background())
	for _, c := range own {
		c.cancel = own[0].cancel
	}
	if n == 1 {
		cs[0].route(own[0], nil)
	} else {
		cs[0].left.Store(int32(n))
		cs[0].ending.members = uint16(n)
		for _, c := range own {
			c.call.route(c, cs[0]) // completed one by one, but still a group
		}
	}
	_, _, err := w.engine.submit(ctx, cs, false)
	for _, c := range own {
		if c.charge = c.call.charge; err != nil {
			c.ends, c.err = c.ends+1, err
		}
	}
	if err == nil {
		w.remember(own)
		return
	}
	held, l := int64(0), w.engine.list.Load()
	for i := range l.places {
		held = max(held, w.account(i)>>chargeBits)
	}
	if o := slipstream.OutcomeOf(err); o != slipstream.NotSent && (o != slipstream.Overloaded || held+int64(n) <= l.maxCalls) {
		w.fatal("submit: %v, %d calls are charged", err, held)
	}
}

// account returns the charge of a peer's share.
func (w *transitWorld) account(i int) int64 {
	l := w.engine.list.Load()
	if s := l.sockets[i]; s != nil {
		return s.charged.Load()
	}
	return l.peers[i].kept.Load()
}

// reply lets a server answer its oldest call.
func (w *transitWorld) reply(s *socket) {
	p := s.peer
	w.note("reply on %d", w.place(p))
	c := w.inFlight[p][0]
	w.inFlight[p] = w.inFlight[p][1:]
	s.calls.probing = false // so that the round trip stays modelTrip
	s.in.begin, s.in.end = 0, copy(s.in.buf, c.call.Frame)
	if err := s.deliver(); err != nil {
		w.fail(s, err)
	}
}

func (w *transitWorld) fail(s *socket, cause error) {
	w.note("end of %d: %v", w.place(s.peer), cause)
	s.fail(cause)
	w.ended(s)
}

// ended does what the keeper does when its connection has ended.
func (w *transitWorld) ended(s *socket) {
	delete(w.inFlight, s.peer)
	if s.peer.unset(nil); s.peer.leaving {
		s.peer.end()
	}
}

func (w *transitWorld) retire(s *socket) {
	w.note("retire %d", w.place(s.peer))
	w.retires = true
	if cause := s.retire(ErrRetired); cause != nil {
		w.fail(s, cause)
	}
}

// cancel cancels a call, wherever it is.
func (w *transitWorld) cancel(c *transitCall) {
	w.limits.cancels--
	w.note("cancel %d", c.id)
	c.cancel()
	w.sweep()
	if c.ends != 1 {
		w.fatal("call %d was not given up", c.id)
	}
}

func (w *transitWorld) sweep() {
	for range 2 { // the second sweep visits the calls
		for _, s := range w.engine.list.Load().sockets {
			if s != nil {
				s.sweepCalls()
				w.engine.completeGivenUp()
				w.retires = w.retires || s.life.retiring.Load()
				if cause := s.outlived(); cause != nil {
					w.fail(s, cause)
				}
			}
		}
		w.engine.visitTransit(w.engine.now())
		w.engine.prune()
	}
}

// expire lets DialTimeout pass.
func (w *transitWorld) expire() {
	w.limits.expires--
	w.note("DialTimeout passes")
	ended := func() (n int) {
		for _, c := range w.calls {
			n += c.ends
		}
		return n
	}
	up, before := w.engine.anySocket() != nil, ended()
	w.engine.epoch = w.engine.epoch.Add(-w.engine.cfg.DialTimeout)
	w.sweep()
	if left := len(w.engine.transit.units); !up && left > 0 || up && ended() != before {
		w.fatal("a connection is up: %v; %d units remain in transit, %d calls have ended", up, left, ended()-before)
	}
}

func (w *transitWorld) play() {
	for w.check(); len(w.log) < w.limits.events; w.check() {
		moves := w.moves()
		if len(moves) == 0 {
			return
		}
		moves[w.choice.choose(len(moves))]()
	}
}

func (w *transitWorld) moves() (moves []func()) {
	if w.limits.submits > 0 {
		moves = append(moves, func() { w.limits.submits--; w.submit(1) })
	}
	if w.limits.groups > 0 {
		moves = append(moves, func() { w.limits.groups--; w.submit(2) })
	}
	l := w.engine.list.Load()
	for i, s := range l.sockets {
		if s == nil {
			if i < l.places {
				moves = append(moves, func() { w.connect(l.peers[i]) })
			}
			continue
		}
		if len(w.inFlight[s.peer]) > 0 {
			moves = append(moves, func() { w.reply(s) })
		}
		if w.limits.ends > 0 {
			moves = append(moves, func() { w.limits.ends--; w.fail(s, ErrHungUp) })
			if (Pin{s}).Alive() {
				moves = append(moves, func() { w.limits.ends--; w.retire(s) })
			}
		}
	}
	for n := 1; n <= mostPlaces && w.limits.resizes > 0; n++ {
		if n != l.places {
			moves = append(moves, func() { w.limits.resizes--; w.resize(n) })
		}
	}
	if w.limits.cancels > 0 {
		if i := slices.IndexFunc(w.calls, func(c *transitCall) bool { return c.ends == 0 }); i >= 0 {
			moves = append(moves, func() { w.cancel(w.calls[i]) })
		}
	}
	if w.limits.expires > 0 && len(w.engine.transit.units) > 0 {
		moves = append(moves, w.expire)
	}
	return moves
}

// check checks the bounds and the places of all calls.
func (w *transitWorld) check() {
	w.part()
	places := map[*Call]int{}
	charged, live := int64(0), int64(0)
	w.checkShares()
	l := w.engine.list.Load()
	for i, s := range l.sockets {
		charged += w.account(i)
		if s == nil {
			continue
		}
		if i >= l.places && (Pin{s}).Alive() {
			w.fatal("connection %d accepts calls, but has no place", i)
		}
		for c := range s.calls.each {
			places[c]++
		}
		if s.out.kicking || s.out.writing {
			w.fatal("connection %d: kicking %v, writing %v, want false", i, s.out.kicking, s.out.writing)
		}
		if len(w.inFlight[s.peer]) == 0 && s.calls.queued() > 0 && s.out.dead == 0 {
			w.fatal("calls are stranded on connection %d", i)
		}
	}
	for _, u := range w.engine.transit.units {
		for _, c := range u.calls {
			places[c]++
		}
	}
	for _, c := range w.calls {
		if n := places[c.call]; c.ends == 0 && n != 1 || n > 1 || c.ends > 1 {
			w.fatal("call %d is in %d places and has ended %d times", c.id, n, c.ends)
		}
		if c.ends == 0 {
			live += c.charge
		}
		if o := slipstream.OutcomeOf(c.err); c.err != nil && c.written && o != slipstream.MaybeExecuted {
			w.fatal("call %d was written, but its error is %v", c.id, c.err)
		}
	}
	if charged < live {
		w.fatal("%d is charged, want at least %d", charged, live)
	}
}

// finish answers the remaining calls.
func (w *transitWorld) finish() {
	for left := true; left; {
		w.check()
		left = false
		l := w.engine.list.Load()
		for i, s := range l.sockets {
			switch {
			case s == nil && i < l.places:
				w.connect(l.peers[i])
				left = true
			case s != nil && len(w.inFlight[s.peer]) > 0:
				w.reply(s)
				left = true
			}
		}
		w.sweep()
	}
	for _, c := range w.calls {
		if c.ends != 1 {
			w.fatal("call %d has ended %d times", c.id, c.ends)
		}
		if c.err == nil && !c.written {
			w.fatal("call %d succeeded, but was not written", c.id)
		}
		c.cancel()
	}
	v := w.engine.Snapshot()
	if v.Calls != v.Replies+v.OneWays+v.Failed+v.NeverWritten || v.Queued+v.Outstanding != 0 {
		w.fatal("calls do not balance: %+v", v)
	}
	l := w.engine.list.Load()
	for i := range l.peers {
		if n := w.account(i); n != 0 {
			w.fatal("connection %d has no calls, but is charged %d", i, n)
		}
	}
	if len(l.peers) != l.places {
		w.fatal("%d connections have not ended", len(l.peers)-l.places)
	}
}

func TestTransitUnderEveryOrder(t *testing.T) {
	paths := 0
	for _, l := range []transitLimits{
		{sockets: 1, room: 3, submits: 4, ends: 2, events: 9},
		{sockets: 1, room: 4, submits: 3, ends: 2, cancels: 1, events: 8},
		{sockets: 1, room: 4, submits: 1, groups: 2, ends: 2, events: 8},
		{sockets: 1, room: 4, submits: 2, ends: 1, expires: 1, cancels: 1, events: 9},
		{sockets: 2, room: 3, submits: 4, ends: 2, events: 8},
		{sockets: 2, room: 2, submits: 1, groups: 2, ends: 2, cancels: 1, events: 8},
		{sockets: 1, room: 3, submits: 3, ends: 2, tickets: true, events: 8},
		{sockets: 2, room: 2, submits: 3, ends: 2, cancels: 1, tickets: true, events: 7},
		{sockets: 1, room: 4, submits: 4, resizes: 2, events: 8},
		{sockets: 2, room: 2, submits: 3, resizes: 2, ends: 1, events: 8},
		{sockets: 2, room: 2, submits: 1, groups: 2, resizes: 2, events: 8},
		{sockets: 2, room: 3, submits: 3, resizes: 1, ends: 1, cancels: 1, tickets: true, events: 7},
	} {
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
			for walk := (&walker{}); ; {
				w := newTransitWorld(t, l, walk)
				w.play()
				w.finish()
				w.engine.cancel()
				paths++
				if !walk.next() || (raceEnabled || testing.Short()) && paths%2_000 == 0 {
					break
				}
			}
		})
	}
	t.Logf("explored %d orders", paths)
	if paths < 10_000 && !raceEnabled && !testing.Short() {
		t.Errorf("explored only %d orders", paths)
	}
}

func TestTransitUnderRandomOrders(t *testing.T) {
	r := testkit.Rand(t)
	n := 3_000
	if raceEnabled {
		n = 300
	}
	for range n {
		l := transitLimits{
			tickets: r.IntN(2) == 0, sockets: 1 + r.IntN(3), room: 1 + r.IntN(12),
			submits: r.IntN(40), groups: r.IntN(8), ends: r.IntN(12), cancels: r.IntN(6), expires: r.IntN(3), events: 20 + r.IntN(150),
		}
		if r.IntN(2) == 0 {
			l.resizes = 1 + r.IntN(12)
		}
		w := newTransitWorld(t, l, dice{r})
		w.play()
		w.finish()
		w.engine.cancel()
	}
}
