package pipe

import "time"

// ages counts the calls under way of a TicketProtocol that are young: written
// less than four round trips ago. Older ones are slow, and must not hold back a
// new call. One entry a write, so the clock is read once a write and only while
// the rule needs it. Guarded by the socket's lock.
type ages struct {
	batches []batchAge // oldest first, [first, first+len)
	first   uint64
	young   int
}

type batchAge struct {
	at   time.Duration // since the engine's epoch
	live int           // of its calls, those not answered yet
}

// youngTrips is how many round trips a call is young.
const youngTrips = 4

// next returns the number of the batch that add will make.
func (a *ages) next() uint64 { return a.first + uint64(len(a.batches)) }

func (a *ages) add(at time.Duration, live int) {
	if live == 0 {
		return
	}
	a.batches = append(a.batches, batchAge{at, live})
	a.young += live
}

// answered notes that a call of a batch has its reply.
func (a *ages) answered(batch uint64) {
	if batch < a.first {
		return // it was no longer counted
	}
	a.batches[batch-a.first].live--
	a.young--
}

// expire forgets the batches that are no longer young.
func (a *ages) expire(now, roundTrip time.Duration) {
	n := 0
	for n < len(a.batches) && (a.batches[n].live == 0 || now-a.batches[n].at > youngTrips*roundTrip) {
		a.young -= a.batches[n].live
		n++
	}
	if n > 0 {
		a.batches = a.batches[:copy(a.batches, a.batches[n:])]
		a.first += uint64(n)
	}
}
