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

// The flush rule under all orders of events. One goroutine plays all parts: a
// write is a hook in which the next events happen until the one that ends it,
// so every interleaving of submit, reply, kick, sweep and the end of a write is
// a path of choices, and small worlds are walked completely.

// chooser picks one of n ways at each step.
type chooser interface{ choose(n int) int }

// walker walks all paths of choices, depth first.
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

// next moves to the next path; false: there is none.
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

// hookedRaw is a connection whose writes are a hook.
type hookedRaw struct{ write func() }

func (h hookedRaw) Control(func(uintptr)) error    { return nil }
func (h hookedRaw) Read(func(uintptr) bool) error  { return nil }
func (h hookedRaw) Write(func(uintptr) bool) error { h.write(); return nil }

// modelTrip is the round trip of the model world, so long that real time is
// nothing in it.
const modelTrip = time.Hour

// modelLimits bound a world.
type modelLimits struct {
	tickets, oneWays                 bool
	k, submits, cancels, sweeps, big int
	window                           int // 0: none
	events                           int // 0: until nothing is left to do
}

type modelCall struct {
	call      *Call
	body      string
	cancel    context.CancelFunc
	cancelled bool
	oneWay    bool
	at        time.Duration // of its write
}

type modelWorld struct {
	t      testing.TB
	limits modelLimits
	choice chooser
	engine *Engine
	socket *socket

	queued, away []*modelCall // what the model knows
	all          []*modelCall
	inWrite      bool
	kickPending  bool
	log          []string
	scratch      []byte
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
	w.t.Fatalf("%s\nevents: %q\nqueued %d, under way %d", fmt.Sprintf(format, args...), w.log, len(w.queued), len(w.away))
}

// young counts what the rule counts as outstanding.
func (w *modelWorld) young() int {
	n := 0
	for _, c := range w.away {
		if !w.limits.tickets || w.engine.now()-c.at <= youngTrips*modelTrip {
			n++
		}
	}
	return n
}

// due says, from the words of the rule alone, whether what is queued must leave.
func (w *modelWorld) due() bool {
	size := 0
	for _, c := range w.queued {
		size += len(c.call.Frame)
	}
	n, may := w.young(), len(w.queued)
	if l := w.limits.window; l > 0 && l-len(w.away) < may {
		may = l - len(w.away)
		size = size * may / len(w.queued)
	}
	return may > 0 && (n == 0 || may*w.limits.k >= n || size > w.limits.big)
}

// write is the kernel's part: it is entered when the engine writes, and goes on
// with the world until the write ends.
func (w *modelWorld) write() {
	if w.inWrite {
		w.fatal("two writes at a time")
	}
	if !w.due() {
		w.fatal("a write that the rule does not allow")
	}
	var want, calls []byte
	var stay []*modelCall
	for _, c := range w.queued {
		if c.cancelled {
			continue
		}
		if len(stay) > 0 || !c.oneWay && w.limits.window > 0 && len(w.away) == w.limits.window {
			stay = append(stay, c)
			continue
		}
		if c.oneWay {
			want = append(want, c.call.Frame...)
		} else {
			calls = append(calls, c.call.Frame...)
			c.at = w.engine.now()
			w.away = append(w.away, c)
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

// play lets events happen until the world ends, or the write.
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

// moves returns what may happen now.
func (w *modelWorld) moves() (moves []func()) {
	if len(w.all) < w.limits.submits {
		moves = append(moves, func() { w.submit(false) })
		if w.limits.oneWays {
			moves = append(moves, func() { w.submit(true) })
		}
	}
	if w.kickPending {
		moves = append(moves, w.kick)
	} else if len(w.away) > 0 {
		moves = append(moves, func() { w.reply(1, 0) })
		if len(w.away) > 1 {
			moves = append(moves, func() { w.reply(2, 0) })
			if w.limits.tickets {
				moves = append(moves, func() { w.reply(1, len(w.away)-1) })
			}
		}
	}
	if w.limits.cancels > 0 {
		for _, list := range [][]*modelCall{w.queued, w.away} {
			if i := slices.IndexFunc(list, func(c *modelCall) bool { return !c.cancelled }); i >= 0 {
				moves = append(moves, func() { w.cancel(list[i]) })
			}
		}
	}
	if w.limits.sweeps > 0 && len(w.queued)+len(w.away) > 0 {
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

// reply lets the server answer n calls from the i-th on, in one read.
func (w *modelWorld) reply(n, i int) {
	s := w.socket
	w.scratch = w.scratch[:0]
	for _, c := range w.away[i : i+n] {
		w.scratch = append(w.scratch, c.call.Frame...)
	}
	w.away = slices.Delete(w.away, i, i+n)
	w.note("reply %d at %d", n, i)
	s.calls.probing = false // the round trip stays the model's
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
	c.cancelled = true
	c.cancel()
	for range 2 { // calls are visited from the second sweep on
		w.socket.sweepCalls()
	}
	if state := c.call.state.Load(); state != stateDead {
		w.fatal("%s was not given up: state %d", c.body, state)
	}
}

// sweep is a visit of the sweeper, after so long a time that all is old.
func (w *modelWorld) sweep() {
	w.limits.sweeps--
	w.note("sweep")
	w.engine.epoch = w.engine.epoch.Add(-(youngTrips + 1) * modelTrip)
	w.socket.backstop()
}

// check: nothing may be stranded at any moment.
func (w *modelWorld) check() {
	if w.inWrite || w.kickPending || len(w.queued) == 0 {
		return // somebody will look at the rule
	}
	switch s := w.socket; {
	case w.limits.tickets && s.out.holding: // the sweeper will
	case w.limits.tickets:
		w.fatal("a held call that the sweeper does not know of")
	case w.due():
		w.fatal("a stranded call")
	}
}

// finish answers what is left, and looks at the end of every call.
func (w *modelWorld) finish() {
	for w.limits.events = 0; len(w.queued)+len(w.away) > 0 || w.kickPending; {
		switch {
		case w.kickPending:
			w.kick()
		case len(w.away) > 0:
			w.reply(1, 0)
		default:
			w.fatal("queued calls that no reply frees")
		}
	}
	for _, c := range w.all {
		if !c.call.ending.reached() {
			w.fatal("%s has no end", c.body)
		}
		if (c.call.err != nil) != c.cancelled {
			w.fatal("%s: error %v, cancelled %v", c.body, c.call.err, c.cancelled)
		}
		if !c.cancelled && !c.oneWay && string(c.call.Reply()) != string(c.call.Frame) {
			w.fatal("%s got %q", c.body, c.call.Reply())
		}
		c.cancel()
		c.call.Release()
	}
	s := w.socket
	k := s.counts
	if k.Calls != k.Replies+k.OneWays+k.NeverWritten || s.charged.Load() != 0 || s.calls.size() != 0 {
		w.fatal("left behind: %+v, charged %d", k, s.charged.Load())
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
				// One goroutine walks: the race detector only makes it slow.
				if !walk.next() || raceEnabled && paths%2_000 == 0 {
					break
				}
			}
		})
	}
	t.Logf("%d orders", paths)
	if paths < 10_000 {
		t.Errorf("only %d orders were walked", paths)
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

// A slow call never holds a new one for longer than the rule says: four round
// trips, and what the sweeper needs to come.
func TestSlowTicketsHoldNobody(t *testing.T) {
	w := newModelWorld(t, modelLimits{k: 1, tickets: true, big: 1 << 20, events: 1}, dice{testkit.Rand(t)})
	for range 800 {
		w.submit(false)
		if w.engine.sweep == nil || len(w.queued) > 0 && !w.socket.out.holding {
			t.Fatal("held, and the sweeper does not know")
		}
	}
	w.limits.sweeps = 2
	w.sweep() // now the first are old, and the held ones leave
	if len(w.queued) != 0 {
		t.Fatalf("%d calls stay behind old ones", len(w.queued))
	}
	w.sweep() // and now these are old too
	w.submit(false)
	if len(w.queued) != 0 {
		t.Fatal("a quick call was held by 800 slow ones")
	}
	w.finish()
}
