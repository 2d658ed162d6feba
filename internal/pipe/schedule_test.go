package pipe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// schedule is one random test run: a server with random behavior and faults, and callers that make
// calls in every way and give some of them up.
type schedule struct {
	t      testing.TB
	seed   uint64
	server *toyServer
	engine *Engine
	plan   schedulePlan

	mu sync.Mutex
	// Guarded by mu.
	r     *rand.Rand     // of the server
	seen  map[string]int // number of times that the server has read each body
	late  []toyRequest   // requests to answer later; with tickets, in any order
	order map[string]int // the last call of each caller on each connection
	moved uint64
	wrong []string
	ends  atomic.Int64 // of calls with completers
}

type schedulePlan struct {
	tickets, unix            bool
	callers, calls           int
	chunk, room, resetEvery  int
	maxCalls, maxBytes       int
	waitWhenFull, failFast   bool
	giveUp, silent, delay    int // percent
	oneWays, factor, sockets int
	soloAfter, linked, flush int
	timeout                  time.Duration
	alwaysYield              bool
	depth                    int           // of a connection; if 0, not limited
	retireEvery              time.Duration // if 0, never
	last                     int           // percentage of replies that are the last on their connection
	resizeEvery              time.Duration // if 0, never
}

func planSchedule(r *rand.Rand) schedulePlan {
	p := schedulePlan{
		tickets: r.IntN(2) == 0, unix: r.IntN(3) == 0,
		callers: 1 + r.IntN(8), calls: 5 + r.IntN(20),
		factor: r.IntN(4), sockets: 1 + r.IntN(5)/3,
		waitWhenFull: r.IntN(2) == 0, failFast: r.IntN(3) == 0,
		alwaysYield: r.IntN(3) == 0, soloAfter: []int{-1, 1, 3}[r.IntN(3)],
	}
	one := func(n, of int) bool { return r.IntN(of) < n }
	if one(1, 2) {
		p.chunk = 1 + r.IntN(20)
	}
	if one(1, 3) {
		p.room = 1 + r.IntN(60)
	}
	if one(1, 2) {
		p.resetEvery = 20 + r.IntN(400)
	}
	if one(1, 3) {
		p.maxCalls = 1 + r.IntN(10)
	}
	if one(1, 4) {
		p.maxBytes = 1000 + r.IntN(10_000)
	}
	if one(1, 2) {
		p.giveUp = r.IntN(60)
	}
	if one(1, 3) {
		p.delay = r.IntN(30)
	}
	if one(1, 3) {
		p.oneWays = r.IntN(30)
	}
	if one(1, 3) {
		p.linked, p.flush = 1+r.IntN(30), 1+r.IntN(200)
	}
	if p.tickets && one(1, 4) {
		p.silent, p.timeout = 5, 20*time.Millisecond
	}
	if one(1, 2) { // otherwise few calls wait to be sent
		p.depth = 1 + r.IntN(3)
	}
	if one(1, 3) {
		p.retireEvery = time.Duration(100+r.IntN(2000)) * time.Microsecond
	}
	if one(1, 3) {
		p.last = r.IntN(20)
	}
	if one(1, 3) {
		p.resizeEvery = time.Duration(100+r.IntN(2000)) * time.Microsecond
	}
	return p
}

func (s *schedule) run() {
	r := testkit.Fork(s.seed, 0)
	p := planSchedule(r)
	s.plan, s.r, s.seen, s.order = p, testkit.Fork(s.seed, 1), map[string]int{}, map[string]int{}
	s.server = &toyServer{tickets: p.tickets, handle: s.handle, faults: func(dial int) faults {
		resets := testkit.Fork(s.seed, 1000+uint64(dial))
		f := faults{chunk: p.chunk, room: p.room}
		if p.resetEvery > 0 { // the greeting takes 5 bytes up and 2 down
			if resets.IntN(2) == 0 {
				f.resetUp = 6 + resets.IntN(p.resetEvery)
			} else {
				f.resetDown = 3 + resets.IntN(p.resetEvery)
			}
		}
		return f
	}}
	if p.unix {
		s.server.network = "unix"
	}
	startToy(s.t, s.server)
	s.engine = s.server.engine(func(c *Config) {
		c.Sockets, c.MaxCalls, c.MaxBytes, c.FlushFactor, c.Timeout = p.sockets, p.maxCalls, p.maxBytes, p.factor, p.timeout
		c.WaitWhenFull, c.FailFast, c.MaxBackoff = p.waitWhenFull, p.failFast, time.Millisecond
		c.Traits.FirstDepth = p.depth
		c.choices = Choices{AlwaysYield: p.alwaysYield, SoloAfter: p.soloAfter, LinkedFrame: p.linked, FlushBytes: p.flush}
	})
	var wg sync.WaitGroup
	started := int64(0)
	for g := range p.callers {
		wg.Go(func() { atomic.AddInt64(&started, s.calls(testkit.Fork(s.seed, 10+uint64(g)), g)) })
	}
	watch := make(chan struct{})
	if p.resizeEvery == 0 { // resizing exceeds the bounds for a while
		go s.watchBounds(watch)
	} else {
		go s.resize(watch, testkit.Fork(s.seed, 2))
	}
	if p.retireEvery > 0 {
		go s.retire(watch)
	}
	wg.Wait()
	testkit.Eventually(s.t, 10*time.Second, func() error {
		if got := s.ends.Load(); got != started {
			return fmt.Errorf("%d of %d completers were called", got, started)
		}
		return nil
	})
	close(watch)
	if p.silent == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.engine.Shutdown(ctx); err != nil {
			s.errorf("Shutdown: %v, %+v", err, s.engine.Snapshot())
		}
	}
	s.engine.Close()
	if got := s.ends.Load(); got != started {
		s.errorf("%d completers were called for %d calls", got, started)
	}
	checkBalanced(s.t, s.engine)
	s.moved = s.engine.Snapshot().Moved
	s.mu.Lock()
	defer s.mu.Unlock()
	for body, n := range s.seen {
		if n != 1 {
			s.wrong = append(s.wrong, fmt.Sprintf("the server got %q %d times", body, n))
		}
	}
}

func (s *schedule) errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// handle handles requests of the server: in order or, with tickets, in any order.
func (s *schedule) handle(r toyRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[r.body]++
	s.inOrder(r)
	if r.body[1] == 'o' {
		return // no reply
	}
	if s.r.IntN(100) < s.plan.delay {
		time.Sleep(time.Duration(s.r.IntN(300)) * time.Microsecond)
	}
	if !s.plan.tickets {
		s.reply(r)
		return
	}
	if s.r.IntN(100) < s.plan.silent {
		return
	}
	s.late = append(s.late, r)
	if s.r.IntN(3) == 0 {
		time.AfterFunc(time.Duration(s.r.IntN(1000))*time.Microsecond, s.answerLate)
		return
	}
	s.answerSome()
}

// reply answers a call, perhaps as the last one on its connection. The caller holds mu.
func (s *schedule) reply(r toyRequest) {
	if s.r.IntN(100) < s.plan.last {
		r.reply("l" + r.body[1:])
		return
	}
	r.reply(r.body)
}

// inOrder checks that the calls of each caller arrive in order on each connection, even if calls move. The
// caller holds mu.
func (s *schedule) inOrder(r toyRequest) {
	var caller, call int
	if _, err := fmt.Sscanf(strings.TrimLeft(r.body, "ro"), "%d/%d", &caller, &call); err != nil || s.plan.sockets > 1 || s.plan.resizeEvery > 0 {
		return
	}
	at := fmt.Sprintf("%p %d", r.peer, caller)
	if last := s.order[at]; last > call {
		s.wrong = append(s.wrong, fmt.Sprintf("caller %d: call %d came after %d", caller, call, last))
	}
	s.order[at] = call
}

// retire retires connections at random. It ends with watchBounds.
func (s *schedule) retire(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(s.plan.retireEvery):
		}
		if pin, err := s.engine.PinNow(); err == nil {
			pin.Retire()
		}
	}
}

// resize changes the number of connections at random. It ends with stop.
func (s *schedule) resize(stop <-chan struct{}, r *rand.Rand) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(s.plan.resizeEvery):
		}
		if err := s.engine.SetSockets(1 + r.IntN(5)); err != nil && slipstream.OutcomeOf(err) != slipstream.Closed {
			s.errorf("%v", err)
		}
	}
}

func (s *schedule) answerLate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.late) > 0 {
		s.answerSome()
	}
}

func (s *schedule) answerSome() {
	i := s.r.IntN(len(s.late))
	r := s.late[i]
	s.late = append(s.late[:i], s.late[i+1:]...)
	s.reply(r)
	if len(s.late) > 3 || s.r.IntN(2) == 0 && len(s.late) > 0 {
		s.answerSome()
	}
}

func (s *schedule) watchBounds(stop <-chan struct{}) {
	cfg := s.engine.cfg
	if s.plan.retireEvery > 0 || s.plan.last > 0 {
		// The sockets that replace retired ones have a half, a third, a quarter and a fifth of the bounds, and
		// room for at least one call.
		cfg.MaxCalls = max(cfg.MaxCalls*5/2, cfg.Sockets*(1+maxRetired))
		cfg.MaxBytes = cfg.MaxBytes * 5 / 2
	}
	for {
		select {
		case <-stop:
			return
		case <-time.After(200 * time.Microsecond):
		}
		v := s.engine.Snapshot()
		if n := v.Queued + v.Outstanding; n > max(cfg.MaxCalls, cfg.Sockets) {
			s.errorf("%d calls, the bound is %d", n, cfg.MaxCalls)
		}
		if v.HeldBytes > int64(cfg.MaxBytes) {
			s.errorf("%d bytes, the bound is %d", v.HeldBytes, cfg.MaxBytes)
		}
	}
}

// calls is one caller. It returns how many calls with completers it started.
func (s *schedule) calls(r *rand.Rand, g int) (started int64) {
	for i := range s.plan.calls {
		ctx, cancel := context.WithCancel(context.Background())
		if r.IntN(100) < s.plan.giveUp {
			d := time.Duration(r.IntN(3000)) * time.Microsecond
			switch r.IntN(3) {
			case 0:
				cancel()
				ctx, cancel = context.WithTimeout(context.Background(), d)
			case 1:
				time.AfterFunc(d, cancel)
			case 2:
				if i%2 == 0 {
					cancel()
				}
			}
		} else if r.IntN(2) == 0 {
			cancel()
			ctx, cancel = context.Background(), func() {}
		}
		kind := "r"
		if r.IntN(100) < s.plan.oneWays {
			kind = "ro"
		}
		body := fmt.Sprintf("%s%d/%d%*s", kind, g, i, r.IntN(80), "")
		c := s.server.newCall(s.engine, body)
		c.OneWay = kind == "ro"
		switch r.IntN(5) {
		case 0:
			if err := s.engine.Start(ctx, c); err != nil {
				s.check(body, c, err)
			} else {
				s.check(body, c, c.Wait())
			}
		case 1:
			if err := s.engine.StartFunc(ctx, c, scheduleCompleter{s, body}); err != nil {
				s.check(body, c, err)
			} else {
				started++
				c = nil
			}
		case 2:
			s.together(ctx, r, c, body)
		default:
			s.check(body, c, s.engine.Do(ctx, c))
		}
		if c != nil {
			c.Release()
		}
		if r.IntN(3) > 0 {
			cancel()
		} else {
			defer cancel()
		}
	}
	return started
}

func (s *schedule) together(ctx context.Context, r *rand.Rand, c *Call, body string) {
	cs, bodies := []*Call{c}, []string{body}
	for j := range r.IntN(5) {
		bodies = append(bodies, fmt.Sprintf("%s+%d", body, j))
		n := s.server.newCall(s.engine, bodies[j+1])
		n.OneWay = c.OneWay
		cs = append(cs, n)
	}
	s.engine.DoAll(ctx, cs)
	for j, c := range cs {
		s.check(bodies[j], c, c.Err())
		if j > 0 {
			c.Release()
		}
	}
}

type scheduleCompleter struct {
	s    *schedule
	body string
}

func (k scheduleCompleter) Complete(c *Call) {
	k.s.check(k.body, c, c.Err())
	c.Release()
	k.s.ends.Add(1)
}

// check checks the result of a call.
func (s *schedule) check(body string, c *Call, err error) {
	if err == nil {
		if !c.OneWay && s.server.replyOf(c)[1:] != body[1:] {
			s.errorf("sent %q, got %q", body, s.server.replyOf(c))
		}
		return
	}
	var e *slipstream.Error
	if !errors.As(err, &e) {
		s.errorf("%q: the error has no outcome: %v", body, err)
		return
	}
	if e.Outcome != slipstream.MaybeExecuted {
		s.mu.Lock()
		seen := s.seen[body]
		s.mu.Unlock()
		if seen > 0 {
			s.errorf("%q: %v, but the server received it", body, err)
		}
	}
}

func runSchedules(t *testing.T, seed uint64, more func(i int) bool) {
	n, moved := 0, uint64(0)
	for ; more(n); n++ {
		s := &schedule{t: t, seed: seed + uint64(n)}
		t.Run("", func(t *testing.T) {
			s.t = t
			s.run()
			for _, w := range s.wrong {
				t.Errorf("schedule %d: %s", s.seed, w)
			}
			if t.Failed() {
				t.Logf("schedule %d: %+v", s.seed, s.plan)
			}
		})
		if t.Failed() {
			t.FailNow()
		}
		moved += s.moved
	}
	t.Logf("%d schedules; calls moved %d times", n, moved)
	if moved == 0 {
		t.Error("no call moved")
	}
}

func TestSchedules(t *testing.T) {
	testkit.NoLeaks(t)
	runSchedules(t, testkit.Seed(t), func(i int) bool { return i < 300 })
}

func TestSchedulesSoak(t *testing.T) {
	testkit.NoLeaks(t)
	end := time.Now().Add(testkit.SoakTime(t, time.Second))
	runSchedules(t, testkit.Seed(t), func(int) bool { return time.Now().Before(end) })
}
