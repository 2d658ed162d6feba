package pipe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// ticketWorld is the traffic of one socket as its server sees it: every ticket that was sent, and its state.
type ticketWorld struct {
	t       *testing.T
	r       *rand.Rand
	m       matcher
	traits  Traits
	queued  []*Call
	owed    map[uint64]*Call // sent, without a reply; nil if the call was given up
	order   []uint64         // the keys of owed, oldest first
	gone    []uint64         // the last tickets that were answered
	sent    map[uint64]bool  // with 64 bits: all that were ever sent
	oneWays []uint64
	calls   int
}

func newTicketWorld(t *testing.T, traits Traits) *ticketWorld {
	traits.Match, traits.PutTicket = ByTicket, func([]byte, uint64) {}
	return &ticketWorld{
		t: t, r: testkit.Rand(t), m: newMatcher(&traits), traits: traits,
		owed: map[uint64]*Call{}, sent: map[uint64]bool{},
	}
}

func (w *ticketWorld) send(n int) {
	for range n {
		c := &Call{}
		w.m.add(c)
		w.queued = append(w.queued, c)
	}
	if w.r.IntN(8) == 0 && len(w.queued) > 0 {
		dead := w.queued[len(w.queued)-1]
		w.m.dropQueued(func(c *Call) bool { return c == dead })
		w.queued = w.queued[:len(w.queued)-1]
	}
	w.m.take(len(w.queued), clockOnly, 0)
	for _, c := range w.queued {
		w.calls++
		ticket := w.m.slots.ticket(c.slot)
		_, owed := w.owed[ticket]
		switch {
		case owed:
			w.t.Fatalf("after %d calls: ticket %#x is sent again, and has no reply yet", w.calls, ticket)
		case w.sent[ticket]:
			w.t.Fatalf("after %d calls: ticket %#x is sent twice", w.calls, ticket)
		case ticket < uint64(w.traits.FirstTicket):
			w.t.Fatalf("ticket %#x is below the first one, %#x", ticket, w.traits.FirstTicket)
		case ticket&slotMask == slotMask, ticket == w.traits.GreetingTicket():
			w.t.Fatalf("a call has ticket %#x, which is in the range of requests without a reply", ticket)
		case w.traits.TicketBits == 64:
			w.sent[ticket] = true
		case ticket >= 1<<32:
			w.t.Fatalf("ticket %#x has more than 32 bits", ticket)
		}
		w.owed[ticket] = c
		w.order = append(w.order, ticket)
	}
	w.queued = w.queued[:0]
}

// reply delivers a reply with the ticket, and returns the call that gets it.
func (w *ticketWorld) reply(ticket uint64) (*Call, error) {
	kept, calls, _, err := w.m.match([]arrived{{ticket: ticket}}, nil)
	if len(kept) != len(calls) && err == nil {
		w.t.Fatalf("%d replies for %d calls", len(kept), len(calls))
	}
	if len(calls) == 0 {
		return nil, err
	}
	return calls[0], err
}

// answer lets the server answer the i-th ticket of order.
func (w *ticketWorld) answer(i int) {
	ticket := w.order[i]
	w.order = slices.Delete(w.order, i, i+1)
	want := w.owed[ticket]
	delete(w.owed, ticket)
	blocked := w.m.blocked()
	got, err := w.reply(ticket)
	if got != want || err != nil {
		w.t.Fatalf("after %d calls: ticket %#x matches %p, %v, want %p", w.calls, ticket, got, err, want)
	}
	if want == nil && w.m.blocked() != blocked-1 {
		w.t.Fatal("the late reply left its ticket blocked")
	}
	if w.gone = append(w.gone, ticket); len(w.gone) > 4000 {
		w.gone = w.gone[1000:]
	}
}

// again lets the server answer a ticket a second time. With 32 bits, the ticket may have been sent again by
// then.
func (w *ticketWorld) again(ticket uint64) {
	if _, owed := w.owed[ticket]; owed {
		return
	}
	if got, err := w.reply(ticket); got != nil || err != nil {
		w.t.Fatalf("after %d calls: a second reply to %#x matches %p, %v", w.calls, ticket, got, err)
	}
}

// A ticket is not sent again before its call has a reply, even if replies are late, come twice or never come: a
// reply that is 100,000 calls late matches no other call either.
func TestTicketsUnderLateReplies(t *testing.T) {
	for _, traits := range []Traits{
		{TicketBits: 32}, {TicketBits: 64}, {TicketBits: 32, FirstTicket: 1}, {TicketBits: 64, FirstTicket: 1<<20 + 5},
	} {
		t.Run(fmt.Sprintf("%d bits from %d", traits.TicketBits, traits.FirstTicket), func(t *testing.T) {
			w := newTicketWorld(t, traits)
			w.send(5)
			late := slices.Clone(w.order) // these are answered at the very end
			for _, ticket := range late {
				if w.m.leave(w.owed[ticket]) != (traits.TicketBits == 32) {
					t.Fatal("a canceled call must leave its slot if and only if tickets have 32 bits")
				}
				if traits.TicketBits == 32 {
					w.owed[ticket] = nil
				}
			}
			for w.calls < 250_000 {
				w.send(1 + w.r.IntN(8))
				for range w.r.IntN(10) {
					if i := len(late) + w.r.IntN(100); i < len(w.order) {
						if ticket := w.order[i]; w.r.IntN(50) == 0 && w.owed[ticket] != nil && w.m.leave(w.owed[ticket]) {
							w.owed[ticket] = nil
						} else {
							w.answer(i)
						}
					}
				}
				for len(w.order) > 500 {
					w.answer(len(late))
				}
				if len(w.gone) > 0 && w.r.IntN(4) == 0 {
					w.again(w.gone[w.r.IntN(len(w.gone))])
				}
				w.hostile()
			}
			first := w.gone
			for len(w.order) > 0 {
				w.answer(0)
			}
			for _, ticket := range append(first, late...) {
				w.again(ticket)
			}
			if w.m.size()+w.m.blocked()+w.m.slots.busy != 0 {
				t.Errorf("at the end: %d calls, %d blocked, %d busy", w.m.size(), w.m.blocked(), w.m.slots.busy)
			}
		})
	}
}

// hostile delivers a reply with a ticket that was never sent, and one to a request without a reply.
func (w *ticketWorld) hostile() {
	if w.r.IntN(20) > 0 {
		return
	}
	w.oneWays = append(w.oneWays, w.m.slots.oneWays&w.m.slots.genMask<<slotBits|slotMask)
	w.m.addOneWay(&Call{})
	if w.r.IntN(2) == 0 {
		w.again(w.oneWays[w.r.IntN(len(w.oneWays))])
	}
	blocked, busy := w.m.blocked(), w.m.slots.busy
	never := []uint64{uint64(w.m.slots.peak), slotMask - 1}
	if w.traits.FirstTicket > 0 {
		never = append(never, 0, uint64(w.traits.FirstTicket-1))
	}
	if w.traits.TicketBits == 64 {
		next := w.m.slots.slots[0].generation + 1
		never = append(never, next<<slotBits, (w.m.slots.oneWays+1)<<slotBits|slotMask)
	} else {
		never = append(never, 1<<32, 1<<32|w.order[0])
	}
	for _, ticket := range never {
		if got, err := w.reply(ticket); got != nil || !errors.Is(err, ErrUnsolicited) {
			w.t.Fatalf("a reply to %#x, which was never sent, matches %p, %v", ticket, got, err)
		}
	}
	if w.m.blocked() != blocked || w.m.slots.busy != busy {
		w.t.Fatal("an unknown ticket, or a request without a reply, changed the blocked tickets")
	}
}

// startLossy returns a server that never answers requests whose body starts with "rlost".
func startLossy(t *testing.T) (*toyServer, func() []toyRequest) {
	var mu sync.Mutex
	var lost []toyRequest
	s := startToy(t, &toyServer{tickets: true, network: "unix", handle: func(r toyRequest) {
		if len(r.body) >= 5 && r.body[:5] == "rlost" {
			mu.Lock()
			lost = append(lost, r)
			mu.Unlock()
			return
		}
		r.reply(r.body)
	}})
	return s, func() []toyRequest {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lost)
	}
}

// giveUp makes n calls that are never answered, and cancels them when the server has received them.
func giveUp(t *testing.T, s *toyServer, lost func() []toyRequest, e *Engine, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var cs []*Call
	all := len(lost()) + n
	for range n {
		c := s.newCall(e, "rlost")
		if err := e.Start(ctx, c); err != nil {
			t.Fatal(err)
		}
		cs = append(cs, c)
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		if got := len(lost()); got < all {
			return fmt.Errorf("%d of %d requests have arrived", got, all)
		}
		return nil
	})
	cancel()
	for _, c := range cs {
		if err := c.Wait(); err == nil {
			t.Error("a request without a reply succeeded")
		}
		c.Release()
	}
}

func use32BitTickets(c *Config) { c.Traits.TicketBits, c.Traits.FirstTicket = 32, 1 }

// With 32 bits, a call that was given up is released, and its reply is dropped and counted when it arrives. So
// is a second one.
func TestLateRepliesAreDropped(t *testing.T) {
	for _, bits := range []int{32, 64} {
		s, lost := startLossy(t)
		e := s.engine(func(c *Config) { use32BitTickets(c); c.Traits.TicketBits = bits })
		giveUp(t, s, lost, e, 10)
		if v := e.Snapshot(); v.Outstanding != 10 || bits == 32 && v.HeldBytes != 0 {
			t.Errorf("%d bits: %d outstanding, %d bytes are held", bits, v.Outstanding, v.HeldBytes)
		}
		for range 2 {
			for _, r := range lost() {
				r.reply("rlate")
			}
		}
		testkit.Eventually(t, 5*time.Second, func() error {
			if err := s.echo(t.Context(), e, "rx"); err != nil {
				return err
			}
			if v := e.Snapshot(); v.Late != 20 || v.Outstanding != 0 || v.Reconnects != 0 {
				return fmt.Errorf("%d bits: %d late replies, %d outstanding, %d reconnects", bits, v.Late, v.Outstanding, v.Reconnects)
			}
			return nil
		})
		checkBalanced(t, e)
	}
}

// A socket with 1,024 blocked tickets, or with as many as the depth, is replaced.
func TestBlockedTicketsReplaceTheSocket(t *testing.T) {
	for _, depth := range []int{0, 20} {
		s, lost := startLossy(t)
		e := s.engine(func(c *Config) { use32BitTickets(c); c.Traits.Depth, c.StallTimeout = depth, -1 })
		limit := maxBlocked
		if depth > 0 {
			limit = windowNow(e)
		}
		giveUp(t, s, lost, e, limit-1)
		if v := e.Snapshot(); v.Reconnects != 0 || v.Outstanding != limit-1 {
			t.Errorf("depth %d: %d reconnects, %d outstanding", depth, v.Reconnects, v.Outstanding)
		}
		giveUp(t, s, lost, e, 1)
		testkit.Eventually(t, 5*time.Second, func() error {
			if n := e.Snapshot().Reconnects; n != 1 {
				return fmt.Errorf("depth %d: %d reconnects", depth, n)
			}
			return s.echo(t.Context(), e, "rx")
		})
		checkBalanced(t, e)
	}
}

// A socket is also replaced if its window becomes so small that blocked tickets fill it, because its calls
// would wait forever.
func TestBlockedTicketsFillASmallerWindow(t *testing.T) {
	s, lost := startLossy(t)
	e := s.engine(func(c *Config) { use32BitTickets(c); c.StallTimeout = -1 })
	giveUp(t, s, lost, e, 10)
	pin, err := e.PinNow()
	if err != nil {
		t.Fatal(err)
	}
	pin.SetDepth(10)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.echo(ctx, e, "rx"); err != nil {
		t.Error(err)
	}
	if n := e.Snapshot().Reconnects; n != 1 {
		t.Errorf("%d connections have ended, want 1", n)
	}
	checkBalanced(t, e)
}

// Calls have no tickets below the first one, even when generations wrap around, and none in the range of
// requests without a reply.
func TestTicketRanges(t *testing.T) {
	var last uint64
	m := newMatcher(&Traits{Match: ByTicket, FirstTicket: 1, PutTicket: func(_ []byte, ticket uint64) { last = ticket }})
	for range 10_000 {
		m.add(&Call{})
		if last < 1 || last&slotMask == slotMask {
			t.Fatalf("a call has ticket %#x", last)
		}
		m.take(1, clockOnly, 0)
		popTicket(&m, last)
		m.addOneWay(&Call{})
		if last < 1 || last&slotMask != slotMask {
			t.Fatalf("a request without a reply has ticket %#x", last)
		}
	}
}
