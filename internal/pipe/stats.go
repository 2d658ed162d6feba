package pipe

import (
	"math/bits"
	"time"
)

// Buckets is the number of buckets of a Snapshot's histograms.
const Buckets = 24

// counts are the figures of a socket, guarded by its lock: they are changed
// where it is held anyway.
type counts struct {
	Calls, Replies, Failed, Refused uint64
	Writes, ShortWrites, Yields     uint64
	FlushIdle, FlushDepth           uint64
	FlushBytes, Kicks               uint64
	BytesOut, NeverWritten, OneWays uint64
	Deliveries, Pushes, SoloReplies uint64
	Reconnects, Reads               uint64
	Batch, WriteSize                [Buckets]uint64
}

func (c *counts) noteWrite(reason Reason, calls, size int) {
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

func (c *counts) add(o counts) {
	for _, f := range [...]struct {
		to   *uint64
		from uint64
	}{
		{&c.Calls, o.Calls}, {&c.Replies, o.Replies}, {&c.Failed, o.Failed}, {&c.Refused, o.Refused},
		{&c.Writes, o.Writes}, {&c.ShortWrites, o.ShortWrites}, {&c.Yields, o.Yields},
		{&c.FlushIdle, o.FlushIdle}, {&c.FlushDepth, o.FlushDepth}, {&c.FlushBytes, o.FlushBytes},
		{&c.Kicks, o.Kicks}, {&c.BytesOut, o.BytesOut}, {&c.NeverWritten, o.NeverWritten},
		{&c.Deliveries, o.Deliveries}, {&c.Pushes, o.Pushes}, {&c.SoloReplies, o.SoloReplies},
		{&c.Reconnects, o.Reconnects}, {&c.OneWays, o.OneWays}, {&c.Reads, o.Reads},
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
	// Calls were queued. Each of them ends as one of four: Replies came for them,
	// OneWays have no reply and were written, Failed ended with their socket,
	// NeverWritten were given up and dropped before they were written.
	// Cancelled were given up for a context or a deadline, wherever they were;
	// Refused were turned away, not queued, because a bound was reached.
	Calls, Replies, OneWays, Failed, NeverWritten, Cancelled, Refused uint64
	// Writes by the reason of the flush rule: nothing was under way, enough was
	// queued for what was, flushBytes were queued. Kicks are those that a reply
	// set off, Yields those before which the caller let neighbours run,
	// ShortWrites those that the kernel did not take whole.
	Writes, FlushIdle, FlushDepth, FlushBytes, Kicks, Yields, ShortWrites uint64
	// Backstop counts writes that only the sweeper made: 0, unless something is
	// wrong. Aged counts those it made of calls held back by slow ones.
	Backstop, Aged uint64
	// BytesOut were taken by the kernel; Reads and Deliveries are reads of the
	// socket, and groups of replies handed out together.
	BytesOut, Reads, Deliveries uint64
	// SoloReplies were read by the caller that waited for them; Pushes answered
	// no request.
	SoloReplies, Pushes uint64
	// Reconnects are sockets that ended, Stalls those that were silent for too
	// long, Pings the requests sent to find out.
	Reconnects, Stalls, Pings uint64
	// CompleterPanics were contained; SlowCompleters took more than 1 ms.
	CompleterPanics, SlowCompleters uint64
	// Batch counts writes by their number of calls: Batch[i] those of
	// [2^(i-1), 2^i); WriteSize the same by bytes.
	Batch, WriteSize [Buckets]uint64
	// Queued and Outstanding are calls now, HeldBytes what they are charged,
	// Connected the sockets that are up.
	Queued, Outstanding, Connected int
	HeldBytes                      int64
	// RoundTrip is the smallest reply time of the last seconds, of the slowest
	// socket; 0: not known. FlushFactor is k of the rule there.
	RoundTrip   time.Duration
	FlushFactor int
}

func (s *socket) snapshotCounts() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := s.counts
	counts.Reads = s.reads.Load()
	counts.Refused = s.refused.Load()
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
	return len(s.oneWays)+len(s.leaving) > 0
}

// Snapshot returns the engine's figures.
func (e *Engine) Snapshot() Snapshot {
	var out Snapshot
	var sum counts
	for _, p := range e.peers {
		p.mu.Lock()
		sum.add(p.past)
		s := p.socket
		p.mu.Unlock()
		if s == nil {
			continue
		}
		sum.add(s.snapshotCounts())
		s.mu.Lock()
		out.Queued += s.calls.queued() + len(s.oneWays)
		out.Outstanding += s.calls.pending() + len(s.leaving)
		if !s.closed {
			out.Connected++
		}
		if t := s.trip.get(); t > out.RoundTrip {
			out.RoundTrip, out.FlushFactor = t, s.k
		}
		s.mu.Unlock()
		out.HeldBytes += s.charged.Load() & (oneCall - 1)
	}
	out.Calls, out.Replies, out.Failed, out.Refused = sum.Calls, sum.Replies, sum.Failed, sum.Refused
	out.Writes, out.ShortWrites, out.Yields, out.Kicks = sum.Writes, sum.ShortWrites, sum.Yields, sum.Kicks
	out.FlushIdle, out.FlushDepth, out.FlushBytes = sum.FlushIdle, sum.FlushDepth, sum.FlushBytes
	out.BytesOut, out.NeverWritten = sum.BytesOut, sum.NeverWritten
	out.Deliveries, out.Pushes, out.SoloReplies = sum.Deliveries, sum.Pushes, sum.SoloReplies
	out.Reads, out.OneWays = sum.Reads, sum.OneWays
	out.Reconnects, out.Batch, out.WriteSize = sum.Reconnects, sum.Batch, sum.WriteSize
	out.Cancelled, out.Backstop, out.Aged = e.sweeping.cancelled.Load(), e.sweeping.backstop.Load(), e.sweeping.aged.Load()
	out.Stalls, out.Pings = e.sweeping.stalls.Load(), e.sweeping.pings.Load()
	out.CompleterPanics, out.SlowCompleters = e.panics.Load(), e.slow.Load()
	return out
}
