package pipe

import "time"

// ages counts the calls in flight of a protocol with tickets that are young: written
// less than four round trips ago. Older ones are slow, and must not hold back a
// new call. One entry a write, so the clock is read once a write and only while
// the rule needs it. Each write forgets what it can, so that a socket whose rule
// always holds keeps no list of all its writes. Guarded by the socket's lock.
type ages struct {
	batches []batchAge // oldest first; those before head are forgotten
	head    int
	first   uint64 // number of batches[head]
	young   int
}

type batchAge struct {
	at   time.Duration // since the engine's epoch
	live int           // of its calls, those not answered yet
}

// youngTrips is how many round trips a call is young.
const youngTrips = 4

// next returns the number of the batch that add will make.
func (a *ages) next() uint64 { return a.first + uint64(len(a.batches)-a.head) }

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
	a.batches[a.head+int(batch-a.first)].live--
	a.young--
}

// expire forgets the batches that are no longer young.
func (a *ages) expire(now, roundTrip time.Duration) {
	for a.head < len(a.batches) {
		b := a.batches[a.head]
		if b.live > 0 && now-b.at <= youngTrips*roundTrip {
			break
		}
		a.young -= b.live
		a.head++
		a.first++
	}
	// Moved when half is forgotten, so an entry is moved once on average.
	if a.head > len(a.batches)/2 {
		a.batches = a.batches[:copy(a.batches, a.batches[a.head:])]
		a.head = 0
	}
}
