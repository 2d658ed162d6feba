package pipe

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// These tests check the flush rule under all orders of events. One goroutine does everything: a write is a hook
// in which the next events happen until the one that ends the write. So every interleaving of submissions,
// replies, kicks, sweeps and ends of writes is a path of choices, and small worlds are explored exhaustively.

// A chooser chooses one of n alternatives at each step.
type chooser interface{ choose(n int) int }

// A walker walks all paths of choices, depth first.
type walker struct {
	path, width []int
	at          int
}

func (w *walker) choose(n int) int {
	if w.at == len(w.path) {
		w.path, w.width = append(w.path, 0), append(w.width, n)
	}
	w.at++
	return w.path[w.at-1]
}

// next moves to the next path. It reports false if there is none.
func (w *walker) next() bool {
	w.at = 0
	for i := len(w.path) - 1; i >= 0; i-- {
		if w.path[i]++; w.path[i] < w.width[i] {
			w.path, w.width = w.path[:i+1], w.width[:i+1]
			return true
		}
	}
	return false
}

type dice struct{ *rand.Rand }

func (d dice) choose(n int) int { return d.IntN(n) }

// hookedRaw is a connection whose writes call a hook.
type hookedRaw struct{ write func() }

func (h hookedRaw) Control(func(uintptr)) error    { return nil }
func (h hookedRaw) Read(func(uintptr) bool) error  { return nil }
func (h hookedRaw) Write(func(uintptr) bool) error { h.write(); return nil }

// modelTrip is the round trip of a modelWorld, so long that elapsed real time is negligible.
const modelTrip = time.Hour

// modelLimits bounds a modelWorld.
type modelLimits struct {
	tickets, oneWays                 bool
	k, submits, cancels, sweeps, big int
	window                           int // if 0, there is none
	events                           int // if 0, the world runs until there is nothing left to do
}

type modelCall struct {
	call     *Call
	body     string
	cancel   context.CancelFunc
	canceled bool
	oneWay   bool
	at       time.Duration // of the write
}

type modelWorld struct {
	t      testing.TB
	limits modelLimits
	choice chooser
	engine *Engine
	socket *socket

	queued, inFlight []*modelCall // according to the model
	all              []*modelCall
	inWrite          bool
	kickPending      bool
	log              []string
	scratch          []byte
}

func newModelWorld(t testing.TB, l modelLimits, c chooser) *modelWorld {
	var p Protocol = toyFIFO{}
	if l.tickets {
		p = toyTickets{}
	}
	cfg := Config{Protocol: p, Traits: toyTraits(l.tickets), FlushFactor: l.k}.WithChoices(Choices{NeverYield: true, FlushBytes: l.big, SoloAfter: -1}).withDefaults()
	cfg.MaxCalls, cfg.MaxBytes = 1<<20, 1<<39
	e := &Engine{cfg: cfg, epoch: time.Now(), sweep: make(chan struct{}, 1)}
	e.list.Store(newList(&e.cfg, 1, make([]*peer, 1), make([]*socket, 1)))
	conn, other := net.Pipe()
	other.Close()
	w := &modelWorld{t: t, limits: l, choice: c, engine: e, socket: newSocket(e, conn, nil, modelTrip)}
	w.socket.raw = hookedRaw{w.write}
	w.socket.pace.window = l.window
	return w
}

func (w *modelWorld) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *modelWorld) fatal(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nevents: %q\n%d queued, %d in flight", fmt.Sprintf(format, args...), w.log, len(w.queued), len(w.inFlight))
}

// young returns the number of calls that the rule counts as outstanding.
func (w *modelWorld) young() int {
	n := 0
	for _, c := range w.inFlight {
		if !w.limits.tickets || w.engine.now()-c.at <= youngTrips*modelTrip {
			n++
		}
	}
	return n
}

// due reports whether the queued calls must be sent, according to the text of the rule.
func (w *modelWorld) due() bool {
	size := 0
	for _, c := range w.queued {
		size += len(c.call.Frame)
	}
	n, may := w.young(), len(w.queued)
	if l := w.limits.window; l > 0 && l-len(w.inFlight) < may {
		may = l - len(w.inFlight)
		size = size * may / len(w.queued)
	}
	return may > 0 && (n == 0 || may*w.limits.k >= n || size > w.limits.big)
}

// write replaces the kernel's write: the engine calls it, and it runs events until the write ends.
func (w *modelWorld) write() {
	if w.inWrite {
		w.fatal("two writes at the same time")
	}
	if !w.due() {
		w.fatal("the engine writes, but the rule does not hold")
	}
	var want, calls []byte
	var stay []*modelCall
	for _, c := range w.queued {
		if c.canceled {
			continue
		}
		if len(stay) > 0 || !c.oneWay && w.limits.window > 0 && len(w.inFlight) == w.limits.window {
			stay = append(stay, c)
			continue
		}
		if c.oneWay {
			want = append(want, c.call.Frame...)
		} else {
			calls = append(calls, c.call.Frame...)
			c.at = w.engine.now()
			w.inFlight = append(w.inFlight, c)
		}
	}
	got := bytes.Join(w.socket.out.outgoing.Segments(), nil)
	if len(got) != len(want)+len(calls) || !w.limits.oneWays && !bytes.Equal(got, calls) {
		w.fatal("wrote %q, want %q and %q", got, calls, want)
	}
	w.queued = stay
	w.inWrite = true
	w.note("write")
	w.play()
	w.inWrite = false
	w.note("written")
	w.socket.out.wrote = len(got)
}

// play runs events until the world ends or, within a write, until the write ends.
func (w *modelWorld) play() {
	for {
		w.check()
		moves := w.moves()
		if w.inWrite {
			moves = append(moves, nil)
		}
		if len(moves) == 0 || w.limits.events > 0 && len(w.log) > w.limits.events {
			return
		}
		move := moves[w.choice.choose(len(moves))]
		if move == nil {
			return
		}
		move()
	}
}

// moves returns the events that may happen now.
func (w *modelWorld) moves() (moves []func()) {
	if len(w.all) < w.limits.submits {
		moves = append(moves, func() { w.submit(false) })
		if w.limits.oneWays {
			moves = append(moves, func() { w.submit(true) })
		}
	}
	if w.kickPending {
		moves = append(moves, w.kick)
	} else if len(w.inFlight) > 0 {
		moves = append(moves, func() { w.reply(1, 0) })
		if len(w.inFlight) > 1 {
			moves = append(moves, func() { w.reply(2, 0) })
			if w.limits.tickets {
				moves = append(moves, func() { w.reply(1, len(w.inFlight)-1) })
			}
		}
	}
	if w.limits.cancels > 0 {
		for _, list := range [][]*modelCall{w.queued, w.inFlight} {
			if i := slices.IndexFunc(list, func(c *modelCall) bool { return !c.canceled }); i >= 0 {
				moves = append(moves, func() { w.cancel(list[i]) })
			}
		}
	}
	if w.limits.sweeps > 0 && len(w.queued)+len(w.inFlight) > 0 {
		moves = append(moves, w.sweep)
	}
	return moves
}

func (w *modelWorld) submit(oneWay bool) {
	c := &modelCall{body: fmt.Sprintf("r%d", len(w.all)), oneWay: oneWay}
	c.call = w.engine.Acquire()
	c.call.OneWay = oneWay
	if w.limits.tickets {
		c.call.Frame = appendToyTicket(nil, c.body)
	} else {
		c.call.Frame = appendToy(nil, c.body)
	}
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(context.Background())
	c.call.route(nil, nil)
	c.call.prepare(ctx, w.engine)
	w.all = append(w.all, c)
	w.queued = append(w.queued, c)
	w.note("submit %s", c.body)
	if _, err := w.socket.submit([]*Call{c.call}, false); err != nil {
		w.fatal("submit: %v", err)
	}
}

// reply lets the server answer n calls from the i-th on, which arrive in one read.
func (w *modelWorld) reply(n, i int) {
	s := w.socket
	w.scratch = w.scratch[:0]
	for _, c := range w.inFlight[i : i+n] {
		w.scratch = append(w.scratch, c.call.Frame...)
	}
	w.inFlight = slices.Delete(w.inFlight, i, i+n)
	w.note("reply %d at %d", n, i)
	s.calls.probing = false // so that the round trip stays modelTrip
	s.in.begin, s.in.end = 0, copy(s.in.buf, w.scratch)
	if _, err := s.cutFrames(new(int)); err != nil {
		w.fatal("cut: %v", err)
	}
	kick, err := s.hand()
	if err != nil {
		w.fatal("hand: %v", err)
	}
	w.kickPending = kick
}

func (w *modelWorld) kick() {
	w.note("kick")
	w.kickPending = false
	w.socket.kick()
}

func (w *modelWorld) cancel(c *modelCall) {
	w.limits.cancels--
	w.note("cancel %s", c.body)
	c.canceled = true
	c.cancel()
	for range 2 { // the second sweep visits the calls
		w.socket.sweepCalls()
	}
	if state := c.call.state.Load(); state != stateDead {
		w.fatal("%s was not given up: state %d", c.body, state)
	}
}

// sweep runs the sweeper, after enough time that all calls count as old.
func (w *modelWorld) sweep() {
	w.limits.sweeps--
	w.note("sweep")
	w.engine.epoch = w.engine.epoch.Add(-(youngTrips + 1) * modelTrip)
	w.socket.backstop()
}

// check fails the test if queued calls are stranded.
func (w *modelWorld) check() {
	if w.inWrite || w.kickPending || len(w.queued) == 0 {
		return // the writer will apply the rule
	}
	switch s := w.socket; {
	case w.limits.tickets && s.out.holding: // the sweeper will send them
	case w.limits.tickets:
		w.fatal("a call is held, but the sweeper does not know of it")
	case w.due():
		w.fatal("a queued call is stranded")
	}
}

// finish answers the remaining calls, and checks how each call ended.
func (w *modelWorld) finish() {
	for w.limits.events = 0; len(w.queued)+len(w.inFlight) > 0 || w.kickPending; {
		switch {
		case w.kickPending:
			w.kick()
		case len(w.inFlight) > 0:
			w.reply(1, 0)
		default:
			w.fatal("calls are queued, but none is in flight")
		}
	}
	for _, c := range w.all {
		if !c.call.ending.reached() {
			w.fatal("%s has not ended", c.body)
		}
		if (c.call.err != nil) != c.canceled {
			w.fatal("%s: error %v, canceled %v", c.body, c.call.err, c.canceled)
		}
		if !c.canceled && !c.oneWay && string(c.call.Reply()) != string(c.call.Frame) {
			w.fatal("%s has the reply %q", c.body, c.call.Reply())
		}
		c.cancel()
		c.call.Release()
	}
	s := w.socket
	k := s.counts
	if k.Calls != k.Replies+k.OneWays+k.NeverWritten || s.charged.Load() != 0 || s.calls.size() != 0 {
		w.fatal("not empty at the end: %+v, charged %d", k, s.charged.Load())
	}
	if n := w.engine.sweeping.backstop.Load(); n != 0 {
		w.fatal("the backstop made %d writes", n)
	}
}

func TestFlushRuleUnderEveryOrder(t *testing.T) {
	paths := 0
	for _, l := range []modelLimits{
		{k: 1, submits: 5},
		{k: 2, submits: 4},
		{k: 1, submits: 4, cancels: 1},
		{k: 3, submits: 3, sweeps: 1},
		{k: 1, submits: 3, cancels: 2},
		{k: 1, submits: 4, big: 8},
		{k: 1, submits: 3, oneWays: true, cancels: 1},
		{k: 1, submits: 4, tickets: true},
		{k: 2, submits: 3, tickets: true, sweeps: 2},
		{k: 1, submits: 3, tickets: true, sweeps: 1, cancels: 1},
		{k: 1, submits: 3, tickets: true, oneWays: true},
		{k: 1, submits: 5, tickets: true, window: 2},
		{k: 2, submits: 4, tickets: true, window: 1, sweeps: 1},
		{k: 1, submits: 3, tickets: true, window: 1, cancels: 2},
		{k: 1, submits: 3, tickets: true, window: 1, oneWays: true, cancels: 1},
	} {
		if l.big == 0 {
			l.big = 1 << 20
		}
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
			for walk := (&walker{}); ; {
				w := newModelWorld(t, l, walk)
				w.play()
				w.finish()
				paths++
				// There is only one goroutine, so the race detector would only slow it down.
				if !walk.next() || raceEnabled && paths%2_000 == 0 {
					break
				}
			}
		})
	}
	t.Logf("explored %d orders", paths)
	if paths < 10_000 {
		t.Errorf("explored only %d orders", paths)
	}
}

func TestFlushRuleUnderRandomOrders(t *testing.T) {
	r := testkit.Rand(t)
	for range 3_000 {
		l := modelLimits{
			k: 1 + r.IntN(8), submits: 20 + r.IntN(60), cancels: r.IntN(8), sweeps: r.IntN(4),
			tickets: r.IntN(2) == 0, oneWays: r.IntN(4) == 0, big: []int{30, 100, 1 << 20}[r.IntN(3)],
			events: r.IntN(300),
		}
		if l.tickets && r.IntN(2) == 0 {
			l.window = 1 + r.IntN(30)
		}
		w := newModelWorld(t, l, dice{r})
		w.play()
		w.finish()
	}
}

// A slow call never delays a new one for longer than the rule allows: four round trips and the sweeper's
// interval.
func TestSlowTicketsDelayNoCall(t *testing.T) {
	w := newModelWorld(t, modelLimits{k: 1, tickets: true, big: 1 << 20, events: 1}, dice{testkit.Rand(t)})
	for range 800 {
		w.submit(false)
		if w.engine.sweep == nil || len(w.queued) > 0 && !w.socket.out.holding {
			t.Fatal("calls are held, but the sweeper is not active")
		}
	}
	w.limits.sweeps = 2
	w.sweep() // now the first calls are old, and the held ones are sent
	if len(w.queued) != 0 {
		t.Fatalf("%d calls are still held because of old ones", len(w.queued))
	}
	w.sweep() // now these are old, too
	w.submit(false)
	if len(w.queued) != 0 {
		t.Fatal("800 slow calls delay a quick one")
	}
	w.finish()
}
