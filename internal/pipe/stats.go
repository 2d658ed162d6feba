package pipe

import (
	"math/bits"
	"time"
)

// Buckets is the number of buckets of a Snapshot's histograms.
const Buckets = 24

// Counts are the counters of a socket, or the sums for all sockets of an engine. Those of a socket are
// guarded by its lock, because they change where it is held anyway.
type Counts struct {
	// Calls counts queued calls. Each of them ends in one of four ways: Replies counts those that were
	// answered, OneWays those without a reply that were written, Failed those that ended with their socket,
	// and NeverWritten those that were given up and dropped before they were written.
	// Refused counts calls that were not queued because a bound was reached.
	Calls, Replies, OneWays, Failed, NeverWritten, Refused uint64
	// Writes counts writes; FlushIdle, FlushDepth and FlushBytes count them by the reason of the flush rule:
	// nothing was in flight, enough calls were queued, enough bytes were queued. Kicks counts writes after
	// replies, Yields those before which the caller or the reader yielded,
	// ShortWrites those of which the kernel took only a part.
	Writes, FlushIdle, FlushDepth, FlushBytes, Kicks, Yields, ShortWrites uint64
	// BytesOut counts bytes that the kernel took, Reads reads of the
	// socket, and Deliveries groups of replies that were delivered together.
	BytesOut, Reads, Deliveries uint64
	// SoloReplies counts replies that were read by their caller, Pushes messages that answered
	// no request.
	SoloReplies, Pushes uint64
	// Reconnects counts sockets that ended.
	Reconnects uint64
	// Late counts replies that were dropped because their call had been given up or answered.
	Late uint64
	// Batch is a histogram of the number of calls in a write: Batch[i] counts those in
	// [2^(i-1), 2^i). WriteSize is the same for bytes.
	Batch, WriteSize [Buckets]uint64
}

func (c *Counts) noteWrite(reason Reason, calls, size int) {
	c.Writes++
	switch reason {
	case Idle:
		c.FlushIdle++
	case Depth:
		c.FlushDepth++
	case Bytes:
		c.FlushBytes++
	}
	c.Batch[min(bits.Len(uint(calls)), Buckets-1)]++
	c.WriteSize[min(bits.Len(uint(size)), Buckets-1)]++
}

func (c *Counts) add(o Counts) {
	for _, f := range [...]struct {
		to   *uint64
		from uint64
	}{
		{&c.Calls, o.Calls}, {&c.Replies, o.Replies}, {&c.Failed, o.Failed}, {&c.Refused, o.Refused},
		{&c.Writes, o.Writes}, {&c.ShortWrites, o.ShortWrites}, {&c.Yields, o.Yields},
		{&c.FlushIdle, o.FlushIdle}, {&c.FlushDepth, o.FlushDepth}, {&c.FlushBytes, o.FlushBytes},
		{&c.Kicks, o.Kicks}, {&c.BytesOut, o.BytesOut}, {&c.NeverWritten, o.NeverWritten},
		{&c.Deliveries, o.Deliveries}, {&c.Pushes, o.Pushes}, {&c.SoloReplies, o.SoloReplies},
		{&c.Reconnects, o.Reconnects}, {&c.OneWays, o.OneWays}, {&c.Reads, o.Reads}, {&c.Late, o.Late},
	} {
		*f.to += f.from
	}
	for i := range c.Batch {
		c.Batch[i] += o.Batch[i]
		c.WriteSize[i] += o.WriteSize[i]
	}
}

// A Snapshot is the statistics of an engine: totals since it was created, and current values.
// Its values are from slightly different times.
type Snapshot struct {
	Counts
	// Cancelled counts calls that were given up because of a context or a deadline, and streams that
	// were ended by this side.
	Cancelled uint64
	// Backstop counts writes that only the sweeper made. It is 0 unless something is
	// wrong. Aged counts the sweeper's writes of calls that slow ones held back.
	Backstop, Aged uint64
	// Moved counts how often calls left a socket unsent. Calls counts each of them once.
	Moved uint64
	// Stalls counts sockets that were closed because the server was silent for too long,
	// Pings and Probes the requests that checked whether it is alive.
	Stalls, Pings, Probes uint64
	// CompleterPanics counts recovered panics of completers; SlowCompleters counts completers that took more than 1 ms.
	CompleterPanics, SlowCompleters uint64
	// Queued and Outstanding are the current calls, HeldBytes is what they are charged,
	// and Connected is the number of open sockets.
	Queued, Outstanding, Connected int
	HeldBytes                      int64
	// Streams is the number of open streams. StreamBytes is the maximum that they, and streams that were not read to
	// their end, may hold.
	Streams     int
	StreamBytes int64
	// StreamOverflows counts streams that ended because a received frame did not fit.
	StreamOverflows uint64
	// Sockets is the number set by SetSockets or Config. Leaving is the number of further sockets that have not
	// ended yet.
	Sockets, Leaving int
	// RoundTrip is the smallest reply time of the last seconds on the slowest
	// socket, or 0 if unknown. FlushFactor is k of its flush rule.
	RoundTrip   time.Duration
	FlushFactor int
}

func (s *socket) snapshotCounts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := s.counts
	counts.Reads = s.reads.Load()
	counts.Refused = s.refused.Load()
	counts.Late += s.late.Load()
	return counts
}

// awaited reports whether a caller waits for a call that is queued or in flight.
// Calls that were given up do not count.
func (s *socket) awaited() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.calls.each {
		if c.state.Load() == statePending {
			return true
		}
	}
	return len(s.out.oneWays)+len(s.out.leaving) > 0
}

// Snapshot returns the engine's statistics.
func (e *Engine) Snapshot() Snapshot {
	var out Snapshot
	t := &e.transit
	t.mu.Lock() // so that no call moves
	defer t.mu.Unlock()
	out.Moved, out.Failed, out.NeverWritten = t.moved, t.failed, t.givenUp
	out.Calls = t.failed + t.givenUp
	if e.past != nil {
		out.Counts.add(*e.past)
	}
	l := e.list.Load()
	out.Sockets, out.Leaving = l.places, len(l.peers)-l.places
	for i := range t.units {
		out.Calls += uint64(t.units[i].places)
		out.Queued += t.units[i].places
	}
	for _, p := range l.peers {
		p.mu.Lock()
		if p.past != nil {
			out.Counts.add(*p.past)
		}
		s := p.socket
		p.mu.Unlock()
		if s == nil {
			out.HeldBytes += p.kept.Load() & (oneCall - 1)
			continue
		}
		out.Counts.add(s.snapshotCounts())
		s.mu.Lock()
		out.Queued += s.calls.queued() + len(s.out.oneWays)
		out.Streams += s.streams.live
		out.Outstanding += s.calls.atServer() + len(s.out.leaving)
		if !s.life.closed {
			out.Connected++
		}
		if t := s.pace.trip.get(); t > out.RoundTrip {
			out.RoundTrip, out.FlushFactor = t, s.pace.k
		}
		s.mu.Unlock()
		out.HeldBytes += s.charged.Load() & (oneCall - 1)
	}
	out.Cancelled, out.Backstop, out.Aged = e.sweeping.cancelled.Load(), e.sweeping.backstop.Load(), e.sweeping.aged.Load()
	out.Stalls, out.Pings, out.Probes = e.sweeping.stalls.Load(), e.sweeping.pings.Load(), e.sweeping.probes.Load()
	out.StreamBytes, out.StreamOverflows = e.streams.reserved.Load(), e.streams.overflows.Load()
	out.CompleterPanics, out.SlowCompleters = e.panics.Load(), e.slow.Load()
	return out
}
