package pipe

import (
	"math/bits"
	"time"
)

// Buckets is the number of buckets of a Snapshot's histograms.
const Buckets = 24

// Counts are what a socket has done, or all sockets of an engine. Those of a socket are
// guarded by its lock: they change where it is held anyway.
type Counts struct {
	// Calls were queued. Each of them ends as one of four: Replies came for them,
	// OneWays have no reply and were written, Failed ended with their socket,
	// NeverWritten were given up and dropped before they were written.
	// Refused were turned away, not queued, because a bound was reached.
	Calls, Replies, OneWays, Failed, NeverWritten, Refused uint64
	// Writes by the reason of the flush rule: nothing was in flight, enough was
	// queued for what was, flushBytes were queued. Kicks are those that a reply
	// set off, Yields those before which the caller let neighbors run,
	// ShortWrites those that the kernel did not take whole.
	Writes, FlushIdle, FlushDepth, FlushBytes, Kicks, Yields, ShortWrites uint64
	// BytesOut were taken by the kernel; Reads and Deliveries are reads of the
	// socket, and groups of replies handed out together.
	BytesOut, Reads, Deliveries uint64
	// SoloReplies were read by the caller that waited for them; Pushes answered
	// no request.
	SoloReplies, Pushes uint64
	// Reconnects are sockets that ended.
	Reconnects uint64
	// Late replies were dropped, because their call had been given up or answered before.
	Late uint64
	// Batch counts writes by their number of calls: Batch[i] those of
	// [2^(i-1), 2^i); WriteSize the same by bytes.
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

// Snapshot is what an engine has done since it was made, and what it holds now.
// Its figures are of slightly different moments.
type Snapshot struct {
	Counts
	// Cancelled were given up for a context or a deadline, wherever they were, and streams that
	// were ended from this side.
	Cancelled uint64
	// Backstop counts writes that only the sweeper made: 0, unless something is
	// wrong. Aged counts those it made of calls held back by slow ones.
	Backstop, Aged uint64
	// Moved are calls that left a socket unsent for another, each time that they did. Calls
	// counts them once.
	Moved uint64
	// Stalls are sockets that ended because the server was silent for too long,
	// Pings and Probes the requests sent to find out.
	Stalls, Pings, Probes uint64
	// CompleterPanics were contained; SlowCompleters took more than 1 ms.
	CompleterPanics, SlowCompleters uint64
	// Queued and Outstanding are calls now, HeldBytes what they are charged,
	// Connected the sockets that are up.
	Queued, Outstanding, Connected int
	HeldBytes                      int64
	// Streams are open; StreamBytes are what open streams, and those that were not read to their end,
	// may hold together.
	Streams     int
	StreamBytes int64
	// StreamOverflows are streams that ended because more was received than Recv has taken.
	StreamOverflows uint64
	// Sockets is the number that SetSockets or Config asks for, Leaving how many more have not
	// ended yet.
	Sockets, Leaving int
	// RoundTrip is the smallest reply time of the last seconds, of the slowest
	// socket; 0: not known. FlushFactor is k of the rule there.
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

// awaited reports whether somebody waits for a call that is queued or under way.
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

// Snapshot returns the engine's figures.
func (e *Engine) Snapshot() Snapshot {
	var out Snapshot
	t := &e.transit
	t.mu.Lock() // meanwhile no call moves
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
