package pipe

import (
	"iter"
	"net"
	"runtime"
	"slices"

	"github.com/slipstream-go/slipstream/internal/buf"
)

const (
	// linkedFrame is the size from which a request is linked instead of copied into the shared
	// buffer under the lock; docs/decisions/0006 has the table.
	linkedFrame = 16 << 10
	// crowdLasts is the number of writes, after calls have overlapped, for which a caller yields
	// before it writes, so that other runnable callers add their requests. A lone caller never
	// yields, because it would run the scheduler for nothing.
	crowdLasts = 16
)

// startFlush makes the caller the flusher. It is called with mu held and writing
// false, and returns with mu released.
func (s *socket) startFlush(reason Reason) {
	s.out.writing = true
	ch := &s.engine.cfg.choices
	if (s.pace.crowd > 0 || ch.AlwaysYield) && !ch.NeverYield {
		s.counts.Yields++
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
	}
	s.flush(reason)
}

// flush writes until the rule no longer holds. It is called with mu held and writing
// true. It returns with mu released, and with writing false unless the writer has
// taken over.
//
// The flag is cleared and the rule evaluated in one critical section. Otherwise a
// reply could arrive before the flag is cleared, its kick could see a writer and return,
// and a call queued meanwhile would be stranded.
func (s *socket) flush(reason Reason) {
	for {
		if s.life.closed {
			s.mu.Unlock()
			drop(&s.out.outgoing)
			return
		}
		s.take(reason)
		if s.raw == nil {
			s.wakeWriter() // releases mu
			return
		}
		s.mu.Unlock()
		n, err := s.tryWrite()
		s.mu.Lock()
		s.noteWritten(n)
		if s.life.closed { // during the write: fail has left the rest to this goroutine
			s.out.inWrite = false
			s.mu.Unlock()
			drop(&s.out.outgoing)
			s.finish()
			return
		}
		if err == nil && s.out.outgoing.Len() > 0 {
			s.counts.ShortWrites++
			s.wakeWriter()
			return
		}
		if reason = s.endWrite(err); reason == NotYet {
			return
		}
	}
}

// flushDue writes what the flush rule allows, unless another goroutine is writing. It is called with mu held and
// returns with mu released.
func (s *socket) flushDue() {
	if s.out.writing || s.life.closed {
		s.mu.Unlock()
		return
	}
	if reason := s.rule(true); reason != NotYet {
		s.out.writing = true
		s.flush(reason)
		return
	}
	held := s.hold()
	s.mu.Unlock()
	s.engine.wakeSweeper(held)
}

// endWrite records the end of a write. It returns with mu held if the rule holds
// again, otherwise with mu released and writing false.
func (s *socket) endWrite(err error) Reason {
	s.out.inWrite, s.out.handed = false, false
	if err != nil || s.life.closed {
		s.mu.Unlock()
		drop(&s.out.outgoing)
		s.fail(err)
		return NotYet
	}
	s.out.outgoing.Shrink()
	if left := s.out.leaving; len(left) > 0 {
		s.out.leaving = nil
		s.counts.OneWays += uint64(len(left))
		for _, c := range left {
			s.calls.disarm(c)
		}
		if s.streams.unsent > 0 {
			s.framesSent(left)
		}
		s.mu.Unlock()
		s.endOneWays(left)
		s.mu.Lock()
		if s.life.closed {
			s.mu.Unlock()
			return NotYet
		}
	}
	reason := s.rule(true)
	if reason == NotYet {
		s.out.writing = false
		wakeSweeper := s.hold()
		s.mu.Unlock()
		s.engine.wakeSweeper(wakeSweeper)
	}
	return reason
}

// hold records that calls stay queued while those in flight may all be slow, so that the
// sweeper evaluates the rule again. It reports whether the sweeper must be woken. The caller holds mu.
func (s *socket) hold() (wakeSweeper bool) {
	if !s.calls.mayAge() || s.out.holding || s.calls.queued()+len(s.out.oneWays) == 0 {
		return false
	}
	s.out.holding = true
	return true
}

// wakeWriter leaves outgoing to the writer, the only goroutine that may wait for
// the kernel. It is called with mu held and writing true, and releases mu.
func (s *socket) wakeWriter() {
	s.out.handed = true
	if s.out.writerWake == nil {
		s.out.writerWake = make(chan struct{}, 1)
		s.out.writerDone = make(chan struct{})
		// Stopped by fail, which closes done and the connection; the keeper waits for it.
		go s.runWriter(s.out.writerWake, s.out.writerDone)
	}
	wake := s.out.writerWake
	s.mu.Unlock()
	wake <- struct{}{} // never blocks: only the holder of the flag writing sends
}

func (s *socket) runWriter(wake <-chan struct{}, ended chan<- struct{}) {
	defer close(ended)
	for {
		select {
		case <-wake:
			s.writeOn()
		case <-s.life.done:
			return
		}
	}
}

// writeOn writes as flush does, but waits for the kernel.
func (s *socket) writeOn() {
	for {
		s.out.vectors = append(s.out.vectors[:0], s.out.outgoing.Segments()...)
		vectors := net.Buffers(s.out.vectors)
		n, err := vectors.WriteTo(s.conn)
		clear(s.out.vectors)
		s.mu.Lock()
		s.noteWritten(int(n))
		reason := s.endWrite(err)
		if reason == NotYet {
			return
		}
		s.take(reason)
		s.out.handed = true
		s.mu.Unlock()
	}
}

// endOneWays resolves calls without replies that have been written.
func (s *socket) endOneWays(calls []*Call) {
	for _, c := range calls {
		s.free(c.charge) // before resolve, because a completer may submit again
		if c.takeOut() {
			if st := c.frameOf(); st != nil {
				c.Release() // no goroutine waits for it
				st.tellServer()
				continue
			}
			c.resolve()
		}
	}
}

// take moves what is queued to the write. The caller holds mu.
func (s *socket) take(reason Reason) {
	if s.out.dead > 0 {
		s.cutDead()
	}
	n := s.cut()
	s.out.inWrite = true

	idle := s.calls.pending() <= s.streams.live // an open stream owes no reply
	if idle && n > 0 {
		s.pace.epoch++
		// Every 16th write while nothing is in flight measures the round trip. Two readings
		// of the clock for each write, about 60 ns, would be measurable with one caller.
		if s.counts.Writes&15 == 0 {
			// If the measured call is never answered, the next measurement starts.
			now := s.engine.now()
			if (!s.calls.probing || now-s.pace.probeAt > roundTripWindow) && s.calls.queuedCall(0).stream() == nil {
				s.calls.startProbe()
				s.pace.probeAt = now
			}
		}
	}
	s.calls.take(n, s.engine, s.pace.trip.get())
	if n+len(s.out.leaving) == 1 && idle && s.pace.crowd > 0 {
		s.pace.crowd--
	}
	s.counts.noteWrite(reason, n+len(s.out.leaving), s.out.outgoing.Len())
}

// cutDead removes queued calls that were given up, with their bytes. The caller holds mu.
func (s *socket) cutDead() {
	s.cutQueued(func(c *Call) bool { return !c.Whole && c.state.Load() != statePending }, func(c *Call) {
		s.charged.Add(-c.charge)
		s.counts.NeverWritten += uint64(c.places())
		c.takeOut()
	})
	s.out.dead = 0
	s.makeRoom()
}

// cutQueued removes the queued calls that goes selects, with their bytes, and passes each of them to
// out once. The caller holds mu.
func (s *socket) cutQueued(goes func(*Call) bool, out func(*Call)) {
	var spans []buf.Span
	var dropped *Call // a call with several replies has several places
	drop := func(c *Call) bool {
		if c == dropped {
			return true
		}
		if !goes(c) {
			return false
		}
		from := int(c.start - s.out.taken)
		spans = append(spans, buf.Span{From: from, To: from + c.size})
		if c.several {
			dropped = c
		}
		out(c)
		return true
	}
	s.calls.dropQueued(drop)
	s.out.oneWays = slices.DeleteFunc(s.out.oneWays, drop)
	slices.SortFunc(spans, func(a, b buf.Span) int { return a.From - b.From })
	s.out.queued.Cut(spans)
	s.engine.freeLater(&s.out.queued)
	s.renumber(s.calls.eachQueued, spans)
	s.renumber(slices.Values(s.out.oneWays), spans)
	for _, span := range spans {
		s.out.appended -= uint64(span.To - span.From)
	}
}

// renumber subtracts from the offsets of queued calls the spans that were cut before
// them. Calls and spans are in ascending order. The caller holds mu.
func (s *socket) renumber(queued iter.Seq[*Call], spans []buf.Span) {
	removed := uint64(0)
	var last *Call
	for c := range queued {
		if c == last {
			continue // another place of a call with several replies
		}
		last = c
		for len(spans) > 0 && uint64(spans[0].From)+s.out.taken < c.start {
			removed += uint64(spans[0].To - spans[0].From)
			spans = spans[1:]
		}
		c.start -= removed
	}
}

// tryWrite passes outgoing to the kernel without waiting, and returns how many
// bytes the kernel took. The caller has set writing.
func (s *socket) tryWrite() (n int, err error) {
	err = s.raw.Write(s.out.doWrite)
	if err == nil {
		err = s.out.wroteErr
	}
	n = s.out.wrote
	s.out.wrote, s.out.wroteErr = 0, nil
	return n, err
}

// noteWritten consumes n bytes of the current write. The caller holds mu and has set
// writing.
func (s *socket) noteWritten(n int) {
	s.out.outgoing.Consume(n)
	s.engine.freeLater(&s.out.outgoing)
	s.out.written += uint64(n)
	s.counts.BytesOut += uint64(n)
}
