package pipe

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// fifoModel models a table with two slices.
type fifoModel struct{ inFlight, queued []*Call }

// The table of calls in order behaves like fifoModel.
func TestRingEqualsTwoSlices(t *testing.T) {
	r := testkit.Rand(t)
	for range 20 {
		table := newMatcher(&Traits{})
		var m fifoModel
		burst := 1 + r.IntN(200)
		for range 1_000 {
			switch r.IntN(12) {
			case 0, 1, 2, 3:
				for range r.IntN(burst) {
					c := &Call{}
					table.add(c)
					m.queued = append(m.queued, c)
				}
			case 4, 5:
				n := randomTake(r, len(m.queued))
				table.take(n, clockOnly, 0)
				m.inFlight, m.queued = append(m.inFlight, m.queued[:n]...), m.queued[n:]
			case 6:
				dropped := randomSubset(r, m.queued)
				table.dropQueued(func(c *Call) bool { return dropped[c] })
				m.queued = slices.DeleteFunc(m.queued, func(c *Call) bool { return dropped[c] })
			case 7:
				table.shrink()
			default:
				for range r.IntN(burst) {
					c := popTicket(&table, 0)
					if len(m.inFlight) == 0 {
						if c != nil {
							t.Fatal("an empty table returned a call")
						}
						break
					}
					if c != m.inFlight[0] {
						t.Fatal("the call is not the oldest")
					}
					m.inFlight = m.inFlight[1:]
				}
			}
			compareTable(t, &table, m.inFlight, m.queued)
		}
		if got := table.all(); len(got) != len(m.inFlight)+len(m.queued) || table.size() != 0 {
			t.Fatalf("all returned %d of %d calls", len(got), len(m.inFlight)+len(m.queued))
		}
	}
}

func randomSubset(r *rand.Rand, calls []*Call) map[*Call]bool {
	some := map[*Call]bool{}
	for _, c := range calls {
		if r.IntN(3) == 0 {
			some[c] = true
		}
	}
	return some
}

func compareTable(t *testing.T, table *matcher, inFlight, queued []*Call) {
	t.Helper()
	if table.pending() != len(inFlight) || table.queued() != len(queued) || table.size() != len(inFlight)+len(queued) {
		t.Fatalf("%d in flight and %d queued, want %d and %d", table.pending(), table.queued(), len(inFlight), len(queued))
	}
	if !slices.Equal(slices.Collect(table.eachQueued), queued) {
		t.Fatal("the queued calls differ")
	}
	if n := len(slices.Collect(table.each)); n != table.size() {
		t.Fatalf("each yields %d of %d calls", n, table.size())
	}
}

// ticketModel models a matcher by ticket with two slices.
type ticketModel struct{ inFlight, queued []*Call }

var (
	// ticketTraits are the traits of a protocol that does not put tickets into requests.
	ticketTraits = &Traits{Match: ByTicket, PutTicket: func([]byte, uint64) {}}
	clockOnly    = &Engine{epoch: time.Now()}
)

// The table of calls by ticket behaves like ticketModel.
func TestSlotsEqualMaps(t *testing.T) {
	r := testkit.Rand(t)
	for range 8 {
		table := newMatcher(ticketTraits)
		var m ticketModel
		burst := 1 + r.IntN(400)
		for range 300 {
			switch r.IntN(8) {
			case 0, 1:
				for range r.IntN(burst) {
					c := &Call{}
					table.add(c)
					for _, other := range slices.Concat(m.inFlight, m.queued) {
						if other.slot == c.slot {
							t.Fatal("two calls have the same ticket")
						}
					}
					m.queued = append(m.queued, c)
				}
			case 2, 3:
				n := randomTake(r, len(m.queued))
				table.take(n, clockOnly, 0)
				m.inFlight, m.queued = append(m.inFlight, m.queued[:n]...), m.queued[n:]
			case 4:
				dropped := randomSubset(r, m.queued)
				table.dropQueued(func(c *Call) bool { return dropped[c] })
				m.queued = slices.DeleteFunc(m.queued, func(c *Call) bool { return dropped[c] })
			case 5:
				table.shrink()
			default:
				for range r.IntN(burst) {
					if len(m.inFlight) == 0 {
						break
					}
					i := r.IntN(len(m.inFlight))
					c := m.inFlight[i]
					ticket := table.slots.ticket(c.slot)
					if got := popTicket(&table, ticket); got != c {
						t.Fatal("the ticket matches another call")
					}
					if popTicket(&table, ticket) != nil {
						t.Fatal("a second reply matches a call")
					}
					m.inFlight = slices.Delete(m.inFlight, i, i+1)
				}
			}
			for _, c := range m.queued {
				if popTicket(&table, table.slots.ticket(c.slot)) != nil {
					t.Fatal("a ticket matches a queued call")
				}
			}
			compareTable(t, &table, m.inFlight, m.queued)
		}
	}
}

// A ticket matches only the call that has it, even after its generation wraps around.
func TestForeignTicketsMatchNoCall(t *testing.T) {
	table := newMatcher(ticketTraits)
	c := &Call{}
	table.add(c)
	table.take(table.queued(), clockOnly, 0)
	for _, ticket := range []uint64{1, 1 << slotBits, slotMask, 1<<32 - 1} {
		if popTicket(&table, ticket) != nil {
			t.Errorf("unknown ticket %#x matches a call", ticket)
		}
	}
	if popTicket(&table, table.slots.ticket(c.slot)) != c {
		t.Error("the ticket of the call does not match it")
	}
	// The generation wraps around.
	for i := range 2 * (int(table.slots.genMask) + 1) {
		table.add(c)
		table.take(table.queued(), clockOnly, 0)
		ticket := table.slots.ticket(c.slot)
		if want := uint64(i+1) & table.slots.genMask << slotBits; ticket != want {
			t.Fatalf("use %d of a slot has ticket %#x, want %#x", i, ticket, want)
		}
		if popTicket(&table, ticket) != c {
			t.Fatalf("ticket %#x does not match its call", ticket)
		}
	}
	if table.full(slotMask) || !table.full(slotMask+1) {
		t.Error("full returns the wrong result")
	}
}

// popTicket removes and returns the call that a reply with the ticket answers, or nil if there is none.
func popTicket(m *matcher, ticket uint64) *Call {
	_, calls, _, err := m.match([]arrived{{ticket: ticket}}, nil)
	if err != nil || len(calls) == 0 {
		return nil
	}
	return calls[0]
}

// randomTake returns how many of n queued calls a write takes: all, or as many as a window allows.
func randomTake(r *rand.Rand, n int) int {
	if r.IntN(2) == 0 {
		return n
	}
	return r.IntN(n + 1)
}

// After a burst little memory remains, and a reply to a slot that was removed and added again matches no call.
func TestTableShrinks(t *testing.T) {
	const burst = 20_000
	fifo, matched := newMatcher(&Traits{}), newMatcher(ticketTraits)
	var last *Call
	for range burst {
		last = &Call{}
		fifo.add(&Call{})
		matched.add(last)
	}
	old := matched.slots.ticket(last.slot)
	for _, table := range []*matcher{&fifo, &matched} {
		table.take(table.queued(), clockOnly, 0)
		table.shrink()
		if table.pending() != burst {
			t.Fatal("a table in use shrank")
		}
		for table.pending() > 0 {
			ticket := uint64(0)
			for c := range table.each {
				if table.byTicket {
					ticket = table.slots.ticket(c.slot)
				}
				break
			}
			if popTicket(table, ticket) == nil {
				t.Fatal("a call is lost")
			}
			if table.byTicket && table.pending() > 10 { // finding the first call each time would take quadratic time
				for c := range table.each {
					if popTicket(table, table.slots.ticket(c.slot)) == nil {
						t.Fatal("a call is lost")
					}
				}
			}
		}
		table.shrink()
	}
	if len(fifo.order.ring) > keptCalls || cap(matched.slots.slots) > keptSlots || cap(matched.slots.free) > keptSlots || cap(matched.slots.queue) > keptCalls {
		t.Errorf("capacity at the end: ring %d, slots %d, free %d, queued %d", len(fifo.order.ring), cap(matched.slots.slots), cap(matched.slots.free), cap(matched.slots.queue))
	}
	for range burst {
		matched.add(&Call{})
	}
	matched.take(matched.queued(), clockOnly, 0)
	if popTicket(&matched, old) != nil {
		t.Error("a ticket from before the shrinking matches a call")
	}
}

// ages behaves like a list of all writes.
func TestAgesEqualAList(t *testing.T) {
	type write struct {
		at   time.Duration
		live int
		old  bool
	}
	r := testkit.Rand(t)
	for range 200 {
		var a ages
		var writes []write
		now := time.Duration(0)
		trip := time.Duration(1 + r.IntN(10))
		for range 500 {
			now += time.Duration(r.IntN(20))
			switch r.IntN(3) {
			case 0:
				if n := uint64(len(writes)); a.next() != n {
					t.Fatalf("the next batch is %d, want %d", a.next(), n)
				}
				live := 1 + r.IntN(4)
				a.add(now, live)
				writes = append(writes, write{at: now, live: live})
			case 1:
				if len(writes) == 0 {
					continue
				}
				i := max(0, len(writes)-1-r.IntN(6))
				if writes[i].live > 0 {
					writes[i].live--
					a.answered(uint64(i))
				}
			case 2:
				a.expire(now, trip)
				for i := range writes {
					writes[i].old = writes[i].old || now-writes[i].at > youngTrips*trip
				}
			}
			young := 0
			for _, w := range writes {
				if !w.old {
					young += w.live
				}
			}
			if a.young != young {
				t.Fatalf("%d calls are young, want %d", a.young, young)
			}
		}
	}
}

// Neither a socket whose rule always holds nor one with a call that is never answered keeps a list of all
// writes.
func TestAgesStayShort(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		var a ages
		if stuck {
			a.add(0, 1)
		}
		for i := range 10_000 {
			now := time.Duration(i) * time.Millisecond
			batch := a.next()
			a.add(now, 1)
			a.expire(now, time.Millisecond)
			a.answered(batch)
		}
		if len(a.batches) > 20 {
			t.Errorf("stuck %v: the list has %d writes", stuck, len(a.batches))
		}
	}
}

// The round trip is the minimum of the samples of the last windows.
func TestRoundTripIsTheSmallestOfTheLastSeconds(t *testing.T) {
	r := testkit.Rand(t)
	for range 100 {
		var trip roundTrip
		type sample struct{ at, d time.Duration }
		var all []sample
		now := time.Duration(0)
		for range 300 {
			now += time.Duration(r.Int64N(int64(time.Second)))
			d := time.Duration(1+r.IntN(1000)) * time.Microsecond
			trip.add(now, d)
			all = append(all, sample{now, d})
			// The result is at least the minimum of the last window, and at most the minimum of the
			// last two and of the one sample that started the third.
			lower, upper := time.Duration(1<<62), time.Duration(1<<62)
			for _, s := range all {
				if now-s.at <= 2*roundTripWindow+time.Second {
					lower = min(lower, s.d)
				}
				if now == s.at {
					upper = min(upper, s.d)
				}
			}
			if got := trip.get(); got < lower || got > upper {
				t.Fatalf("the round trip is %v, want %v to %v", got, lower, upper)
			}
		}
	}
	var none roundTrip
	if none.get() != 0 {
		t.Error("the round trip without samples is not 0")
	}
	none.add(0, 0)
	if none.get() != time.Microsecond {
		t.Errorf("the round trip after a sample of 0 is %v, want 1µs", none.get())
	}
}

func TestRuleAndFactor(t *testing.T) {
	for _, c := range []struct {
		queued, size, outstanding, k int
		want                         Reason
	}{
		{0, 0, 0, 1, NotYet}, {0, 1 << 20, 5, 8, NotYet},
		{1, 10, 0, 1, Idle}, {1, 1 << 20, 0, 1, Idle},
		{1, 10, 1, 1, Depth}, {1, 10, 2, 1, NotYet}, {1, 10, 2, 2, Depth}, {2, 10, 17, 8, NotYet},
		{2, flushBytes, 17, 8, NotYet}, {2, flushBytes + 1, 17, 8, Bytes},
	} {
		if got := rule(c.queued, c.size, c.outstanding, c.k, flushBytes); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	for trip, want := range map[time.Duration]int{
		0: 1, holdTarget: 1, 2*holdTarget - 1: 1, 2 * holdTarget: 2,
		time.Millisecond: 7, time.Second: maxFactor,
	} {
		if got := factor(trip); got != want {
			t.Errorf("k is %d at %v, want %d", got, trip, want)
		}
	}
}
