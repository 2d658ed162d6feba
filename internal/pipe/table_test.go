package pipe

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// fifoModel is a table as two slices.
type fifoModel struct{ away, queued []*Call }

func TestRingEqualsTwoSlices(t *testing.T) {
	r := testkit.Rand(t)
	for range 20 {
		var table table
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
				n := takeSome(r, len(m.queued))
				table.take(n, 0)
				m.away, m.queued = append(m.away, m.queued[:n]...), m.queued[n:]
			case 6:
				dead := someOf(r, m.queued)
				table.dropQueued(func(c *Call) bool { return dead[c] })
				m.queued = slices.DeleteFunc(m.queued, func(c *Call) bool { return dead[c] })
			case 7:
				table.shrink()
			default:
				for range r.IntN(burst) {
					c := table.pop()
					if len(m.away) == 0 {
						if c != nil {
							t.Fatal("a call out of nothing")
						}
						break
					}
					if c != m.away[0] {
						t.Fatal("not the oldest call")
					}
					m.away = m.away[1:]
				}
			}
			compareTable(t, &table, m.away, m.queued)
		}
		if got := table.all(); len(got) != len(m.away)+len(m.queued) || table.size() != 0 {
			t.Fatalf("all returned %d of %d", len(got), len(m.away)+len(m.queued))
		}
	}
}

func someOf(r *rand.Rand, calls []*Call) map[*Call]bool {
	some := map[*Call]bool{}
	for _, c := range calls {
		if r.IntN(3) == 0 {
			some[c] = true
		}
	}
	return some
}

func compareTable(t *testing.T, table *table, away, queued []*Call) {
	t.Helper()
	if table.outstanding() != len(away) || table.queuedCalls() != len(queued) || table.size() != len(away)+len(queued) {
		t.Fatalf("%d under way and %d queued, want %d and %d", table.outstanding(), table.queuedCalls(), len(away), len(queued))
	}
	if !slices.Equal(slices.Collect(table.eachQueued), queued) {
		t.Fatal("the queued calls differ")
	}
	if n := len(slices.Collect(table.each)); n != table.size() {
		t.Fatalf("each yields %d of %d", n, table.size())
	}
}

// ticketModel is a table with tickets as maps. used holds every ticket ever
// given out and its last owner.
type ticketModel struct {
	away, queued []*Call
	used         map[uint32]*Call
}

func TestSlotsEqualMaps(t *testing.T) {
	r := testkit.Rand(t)
	for range 8 {
		table := table{matched: true}
		m := ticketModel{used: map[uint32]*Call{}}
		burst := 1 + r.IntN(400)
		for range 300 {
			switch r.IntN(8) {
			case 0, 1:
				for range r.IntN(burst) {
					c := &Call{}
					table.add(c)
					for _, other := range slices.Concat(m.away, m.queued) {
						if other.ticket == c.ticket {
							t.Fatal("two calls with one ticket")
						}
					}
					m.used[c.ticket] = c
					m.queued = append(m.queued, c)
				}
			case 2, 3:
				n := takeSome(r, len(m.queued))
				table.take(n, 0)
				m.away, m.queued = append(m.away, m.queued[:n]...), m.queued[n:]
			case 4:
				dead := someOf(r, m.queued)
				table.dropQueued(func(c *Call) bool { return dead[c] })
				m.queued = slices.DeleteFunc(m.queued, func(c *Call) bool { return dead[c] })
			case 5:
				table.shrink()
			default:
				for range r.IntN(burst) {
					if len(m.away) == 0 {
						break
					}
					i := r.IntN(len(m.away))
					c := m.away[i]
					if got := popTicket(&table, c.ticket); got != c {
						t.Fatal("another one's call")
					}
					if popTicket(&table, c.ticket) != nil {
						t.Fatal("a reply that comes twice finds somebody")
					}
					m.away = slices.Delete(m.away, i, i+1)
				}
			}
			for _, c := range m.queued {
				if popTicket(&table, c.ticket) != nil {
					t.Fatal("a queued call was answered")
				}
			}
			compareTable(t, &table, m.away, m.queued)
		}
	}
}

func TestForeignTicketsFindNobody(t *testing.T) {
	table := table{matched: true}
	c := &Call{}
	table.add(c)
	table.take(table.queuedCalls(), 0)
	for _, ticket := range []uint32{1, 1 << slotBits, slotMask, 1<<32 - 1} {
		if popTicket(&table, ticket) != nil {
			t.Errorf("ticket %#x finds a call", ticket)
		}
	}
	if popTicket(&table, c.ticket) != c {
		t.Error("its own ticket does not")
	}
	// The generation counts to its end and begins again.
	for i := range 2 * (genMask + 1) {
		table.add(c)
		table.take(table.queuedCalls(), 0)
		if want := uint32(i+1) & genMask << slotBits; c.ticket != want {
			t.Fatalf("use %d of a slot has ticket %#x, want %#x", i, c.ticket, want)
		}
		if popTicket(&table, c.ticket) != c {
			t.Fatalf("ticket %#x is lost", c.ticket)
		}
	}
	if (&table).full(slotMask) || !(&table).full(slotMask+1) {
		t.Error("full is wrong")
	}
}

// popTicket takes out the call with that ticket, as a socket does.
func popTicket(t *table, ticket uint32) *Call {
	if !t.matched {
		return t.pop()
	}
	at := t.find(uint64(ticket))
	if at == nil {
		return nil
	}
	c := at.call
	t.release(ticket & slotMask)
	return c
}

// takeSome returns how many of n queued calls a write takes: all, or those a window admits.
func takeSome(r *rand.Rand, n int) int {
	if r.IntN(2) == 0 {
		return n
	}
	return r.IntN(n + 1)
}

// A burst leaves little, and a reply to a slot that went and came back finds
// nobody.
func TestTableShrinks(t *testing.T) {
	const burst = 20_000
	fifo, matched := table{}, table{matched: true}
	var last *Call
	for range burst {
		last = &Call{}
		fifo.add(&Call{})
		matched.add(last)
	}
	old := last.ticket
	for _, table := range []*table{&fifo, &matched} {
		table.take(table.queuedCalls(), 0)
		table.shrink()
		if table.outstanding() != burst {
			t.Fatal("a table in use shrank")
		}
		for table.outstanding() > 0 {
			var ticket uint32
			for c := range table.each {
				ticket = c.ticket
				break
			}
			if popTicket(table, ticket) == nil {
				t.Fatal("a call is lost")
			}
			if table.matched && table.outstanding() > 10 { // looking for the first is quadratic
				for c := range table.each {
					if popTicket(table, c.ticket) == nil {
						t.Fatal("a call is lost")
					}
				}
			}
		}
		table.shrink()
	}
	if len(fifo.ring) > keptCalls || cap(matched.slots) > keptSlots || cap(matched.free) > keptSlots || cap(matched.queued) > keptCalls {
		t.Errorf("left: ring %d, slots %d, free %d, queued %d", len(fifo.ring), cap(matched.slots), cap(matched.free), cap(matched.queued))
	}
	for range burst {
		matched.add(&Call{})
	}
	matched.take(matched.queuedCalls(), 0)
	if popTicket(&matched, old) != nil {
		t.Error("a ticket of before the shrinking finds a call")
	}
}

// ages against a list of all writes.
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
				t.Fatalf("%d are young, want %d", a.young, young)
			}
		}
	}
}

// A socket whose rule always holds, and one with a call that is never answered,
// keep no list of all their writes.
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
			t.Errorf("stuck %v: %d writes are remembered", stuck, len(a.batches))
		}
	}
}

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
			// At least of the last window, at most of the last two and the one
			// sample that began the third.
			least, most := time.Duration(1<<62), time.Duration(1<<62)
			for _, s := range all {
				if now-s.at <= 2*roundTripWindow+time.Second {
					least = min(least, s.d)
				}
				if now == s.at {
					most = min(most, s.d)
				}
			}
			if got := trip.get(); got < least || got > most {
				t.Fatalf("%v, want %v to %v", got, least, most)
			}
		}
	}
	var none roundTrip
	if none.get() != 0 {
		t.Error("a round trip out of nothing")
	}
	none.add(0, 0)
	if none.get() != time.Microsecond {
		t.Errorf("the smallest round trip is %v", none.get())
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
