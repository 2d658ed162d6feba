package pipe

import "time"

// ages counts the young calls in flight of a protocol with tickets: those written
// less than four round trips ago. Older calls are slow and must not hold back a
// new one. There is one entry for each write, so the clock is read once for each write, and only while
// the rule needs it. Each write removes expired entries, so that a socket whose rule
// always holds does not list all its writes. It is guarded by the socket's lock.
type ages struct {
	batches []batchAge // oldest first; those before head have expired
	head    int
	first   uint64 // number of batches[head]
	young   int
}

type batchAge struct {
	at   time.Duration // since the engine's epoch
	live int           // its calls that are not answered yet
}

// youngTrips is the number of round trips for which a call is young.
const youngTrips = 4

// next returns the number of the batch that add adds next.
func (a *ages) next() uint64 { return a.first + uint64(len(a.batches)-a.head) }

func (a *ages) add(at time.Duration, live int) {
	if live == 0 {
		return
	}
	a.batches = append(a.batches, batchAge{at, live})
	a.young += live
}

// answered records that a call of a batch has its reply.
func (a *ages) answered(batch uint64) {
	if batch < a.first {
		return // it is no longer counted
	}
	a.batches[a.head+int(batch-a.first)].live--
	a.young--
}

// expire removes the batches that are no longer young.
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
	// Entries move when half of the list has expired, so each moves once on average.
	if a.head > len(a.batches)/2 {
		a.batches = a.batches[:copy(a.batches, a.batches[a.head:])]
		a.head = 0
	}
}
