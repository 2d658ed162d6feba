package pipe

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/slipstream-go/slipstream/internal/buf"
)

const (
	// minRead and maxRead bound the size of the read buffer.
	minRead = 4 << 10
	maxRead = 256 << 10
	// quietReads is the number of consecutive reads of less than an eighth of the buffer after which it is halved.
	quietReads = 64
	// manyFrames is the maximum number of replies that are cut before their calls are removed
	// under one lock.
	manyFrames = 512
)

// read reads once into the buffer. The caller has the reader's role.
func (s *socket) read() error {
	switch {
	case s.in.begin == s.in.end:
		s.in.begin, s.in.end = 0, 0
	case s.in.end == len(s.in.buf):
		s.in.makeRoomFor(0)
	}
	n, err := s.in.readSome()
	if s.in.aim != nil {
		s.finishHeld()
	}
	if n > 0 {
		s.reads.Add(1)
		switch {
		case s.in.direct.buf != nil:
			s.in.took(n)
		case s.in.aiming():
			s.tookAimed(n)
		default:
			s.in.end += n
			s.in.adapt(n)
		}
		return nil // the next read returns the error again
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("connection closed by the server: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// adapt adapts the size of the buffer to a read of n bytes.
func (in *input) adapt(n int) {
	switch {
	case in.end == len(in.buf):
		in.quiet, in.full = 0, true
	case len(in.buf) > minRead && n < len(in.buf)/8:
		if in.quiet++; in.quiet >= quietReads && in.end-in.begin <= len(in.buf)/2 {
			in.quiet = 0
			in.resize(len(in.buf) / 2)
			in.popped, in.frames = nil, nil
		}
	default:
		in.quiet = 0
	}
}

// trim releases memory retained after a burst. The keeper calls it when the socket is idle.
func (in *input) trim() {
	if in.partial() {
		return
	}
	in.bulky.Store(false)
	in.resize(minRead)
	in.frames, in.popped, in.quiet = nil, nil, 0
}

// resize moves the unread bytes to another buffer of at least n bytes.
func (in *input) resize(n int) {
	b := buf.Get(max(n, in.end-in.begin))
	b = b[:cap(b)]
	kept := copy(b, in.buf[in.begin:in.end])
	in.copied += kept
	buf.Put(in.buf[:0])
	in.buf, in.begin, in.end = b, 0, kept
	if n > minRead {
		in.bulky.Store(true)
	}
}

// makeRoomFor prepares the buffer for an incomplete message of n bytes or more.
func (in *input) makeRoomFor(n int) {
	have := in.end - in.begin
	want := min(max(n, have+1), max(2*have, have+growStep))
	switch {
	case want > len(in.buf):
		// It grows by at least a half. Where n is far too low, as for an array of
		// long strings, the bytes would otherwise be copied once for each small read.
		in.resize(max(want, have+have/2))
	case in.begin > 0 && in.begin+want > len(in.buf):
		copy(in.buf, in.buf[in.begin:in.end])
		in.copied += have
		in.begin, in.end = 0, have
	}
}

// settle prepares the buffers for the next read, after all complete messages
// were delivered. need is a lower bound of the length of the incomplete message, or 0 if
// there is none. A buffer that was full doubles while messages are small; large messages
// would only be copied out of it.
func (s *socket) settle(need int) {
	in := &s.in
	large := in.cut > 0 && in.cutBytes/in.cut >= directReply
	full := in.full
	in.cut, in.cutBytes, in.full = 0, 0, false
	switch {
	case need-(in.end-in.begin) >= in.directFrom && !in.aiming(): // otherwise it is a tail, which is small
		if !s.startAim() {
			in.startDirect(need)
		}
	case need > 0:
		in.makeRoomFor(need)
	}
	switch {
	case in.aiming():
	case large && len(in.buf) > minRead && in.end-in.begin <= minRead/2:
		in.resize(minRead)
	case full && !large && len(in.buf) < maxRead:
		in.resize(2 * len(in.buf))
	}
}

// deliver cuts all replies that have arrived, gives them to their calls, wakes
// the callers, and then flushes what the rule allows. The caller has the reader's role.
func (s *socket) deliver() error {
	need := 0
	for {
		more, err := s.cutFrames(&need)
		if err != nil {
			return err
		}
		kick, err := s.hand()
		if err != nil {
			return err
		}
		if kick {
			s.kick()
		}
		if !more {
			break
		}
	}
	s.settle(need)
	if s.in.partial() || s.life.retiring.Load() {
		var cause error
		s.mu.Lock()
		s.in.early = s.in.early || s.in.partial() && s.calls.pending() == 0
		if s.life.retiring.Load() && s.over() {
			cause = s.life.retired
		}
		s.mu.Unlock()
		return cause
	}
	return nil
}

// cutFrames fills s.in.frames. It reports whether there may be more replies, and sets need to
// a lower bound of the length of an incomplete message.
func (s *socket) cutFrames(need *int) (more bool, err error) {
	s.in.frames = s.in.frames[:0]
	if s.in.direct.buf != nil {
		if done, err := s.cutDirect(); !done || err != nil {
			return false, err
		}
	} else if s.in.aiming() {
		if done, err := s.cutAimed(need); !done || err != nil {
			return false, err
		}
	}
	for s.in.begin < s.in.end {
		rest := s.in.buf[s.in.begin:s.in.end]
		f, err := s.in.scanner.Scan(rest)
		switch {
		case err != nil:
			return false, fmt.Errorf("protocol: %w", err)
		case f.Verdict == More:
			*need = max(f.Len, len(rest)+1)
			return false, nil
		case f.Len <= 0 || f.Len > len(rest):
			return false, fmt.Errorf("protocol: scanner found a message of %d bytes in %d", f.Len, len(rest))
		}
		if err := s.classify(f, s.in.begin, rest[:f.Len]); err != nil {
			return false, err
		}
		s.in.begin += f.Len
		if len(s.in.frames) == manyFrames {
			return true, nil
		}
	}
	return false, nil
}

// classify handles a complete message. It appends a reply to s.in.frames.
func (s *socket) classify(f Frame, at int, message []byte) error {
	early := s.in.early
	s.in.early = false
	s.in.cut++
	s.in.cutBytes += f.Len
	s.in.last = s.in.last || f.Last
	switch {
	case f.Verdict == Push:
		s.pushed(message)
	case f.Verdict == Interim:
		s.interim(f.Ticket, message)
	case f.Verdict == Part:
		return s.part(f, at)
	case early:
		return s.dropEarly(f.Ticket)
	default:
		s.in.frames = append(s.in.frames, arrived{at, f.Len, f.Ticket})
	}
	return nil
}

func (s *socket) pushed(frame []byte) {
	s.mu.Lock()
	s.counts.Pushes++
	s.mu.Unlock()
	if s.engine.cfg.OnPush != nil {
		s.engine.cfg.OnPush(Pin{s}, frame)
	}
}

// interim passes a message to the call that it belongs to, unless the call was given up.
func (s *socket) interim(ticket uint64, frame []byte) {
	s.mu.Lock()
	s.counts.Pushes++
	var tell func([]byte)
	if c := s.calls.find(ticket); c != nil && c.state.Load() == statePending {
		tell = c.Interim()
	}
	s.mu.Unlock()
	if tell != nil {
		tell(frame)
	}
}

// dropEarly drops a reply whose first bytes arrived while no call was in flight.
func (s *socket) dropEarly(ticket uint64) error {
	s.mu.Lock()
	blocked := s.calls.blocked()
	err := s.calls.dropEarly(ticket)
	n := blocked - s.calls.blocked()
	if err == nil {
		s.counts.Late++
		s.counts.Replies += uint64(n)
	}
	s.mu.Unlock()
	if n > 0 && s.in.watch.watcher != nil {
		s.in.watch.watcher.Replied(n, false)
	}
	return err
}

// hand gives the cut replies to their calls. It reports whether calls are
// queued that the flush rule may allow now.
func (s *socket) hand() (kick bool, err error) {
	defer s.in.dropOwn()
	if s.in.last {
		s.in.last = false
		s.retire(ErrRetired) // it ends after the replies were delivered: see deliver and outlived
	}
	if len(s.streams.parts) > 0 {
		if err := s.handParts(); err != nil {
			return false, err
		}
	}
	if len(s.in.frames) == 0 {
		return false, nil
	}
	kick, err = s.takeOut()
	if err != nil {
		return false, err
	}
	if s.in.watch.watcher != nil {
		s.watchReplies()
	}
	freed, late := int64(0), uint64(0)
	waiting := s.in.popped[:0]
	gathered := false
	for i := 0; i < len(s.in.popped); i++ {
		c, f := s.in.popped[i], s.in.frames[i]
		if c.several {
			gathered = true
			n, all := s.gather(i)
			i += n - 1
			if !all {
				continue
			}
		}
		freed += c.charge
		several := c.several // read before the call may be reused
		if !c.takeOut() {
			late++
			continue
		}
		if !several {
			s.in.give(c, f)
		}
		waiting = append(waiting, c)
	}
	if gathered {
		s.endGathering()
	}
	if late > 0 {
		s.late.Add(late)
	}
	s.free(freed)
	s.in.woken = 0
	for i, c := range waiting {
		waiting[i] = nil
		if c.resolve() {
			s.in.woken++
		}
	}
	clear(s.in.popped)
	if cap(s.in.popped) > 64 && !s.in.bulky.Load() {
		s.in.bulky.Store(true)
	}
	return kick, nil
}

// watchReplies informs the watcher of the calls that takeOut has removed.
func (s *socket) watchReplies() {
	overtaken := false
	for _, c := range s.in.popped {
		overtaken = overtaken || c.start < s.in.watch.newest
		s.in.watch.newest = max(s.in.watch.newest, c.start)
	}
	if s.in.watch.replied > 0 {
		s.in.watch.watcher.Replied(s.in.watch.replied, overtaken)
	}
}

// takeOut removes the calls of s.in.frames from the table.
func (s *socket) takeOut() (kick bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.closed {
		return false, s.life.cause
	}
	arrived, blocked, probed := len(s.in.frames), s.calls.blocked(), false
	s.in.frames, s.in.popped, probed, err = s.calls.match(s.in.frames, s.in.popped[:0])
	if err != nil {
		s.unpop()
		return false, err
	}
	if probed {
		s.endProbe()
	}
	s.in.watch.replied = len(s.in.popped) + blocked - s.calls.blocked()
	s.counts.Replies += uint64(s.in.watch.replied)
	s.counts.Late += uint64(arrived - len(s.in.popped))
	s.counts.Deliveries++
	if s.role == roleCaller {
		s.counts.SoloReplies += uint64(len(s.in.popped))
	}
	s.out.kicking = s.calls.queued()+len(s.out.oneWays) > 0 && !s.out.writing
	return s.out.kicking, nil
}

// unpop puts back calls that were removed before a protocol error was found. Whether their replies
// belong to them is unknown, so they fail with the socket. The caller holds mu.
func (s *socket) unpop() {
	s.calls.unawait(s.in.popped)
	s.life.doubted = append(s.life.doubted, s.in.popped...)
	s.in.popped = s.in.popped[:0]
}

func (s *socket) endProbe() {
	s.calls.probing = false
	now := s.engine.now()
	s.pace.trip.add(now, now-s.pace.probeAt)
	s.setFactor()
}

// kick writes what replies have released, unless another goroutine does. If the reader has woken
// callers that use several connections, they run first, so that their next calls leave in the same
// write. Until then the flag writing is free, and the first of them may take it.
func (s *socket) kick() {
	s.mu.Lock()
	if s.in.woken > 0 && s.engine.readerYields() && s.kickReason() != NotYet {
		s.counts.Yields++
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
	}
	s.out.kicking = false
	reason := s.kickReason()
	if reason == NotYet {
		s.mu.Unlock()
		return
	}
	s.out.writing = true
	s.counts.Kicks++
	s.flush(reason)
}

// readerYields reports whether readers let callers that they have woken run before they write.
// Yielding helps with several connections, because a connection also gets the calls of callers that
// the reader of another one has woken. With one connection it would only delay the write.
func (e *Engine) readerYields() bool {
	ch := &e.cfg.choices
	return !ch.NeverYield && (ch.ReaderYields || e.cfg.OneOfSeveral || len(e.list.Load().sockets) > 1)
}

// kickReason returns the reason for the reader to write, or NotYet. It is called with mu held.
func (s *socket) kickReason() Reason {
	if s.out.writing || s.life.closed {
		return NotYet
	}
	return s.rule(true)
}

// serve reads the socket until it fails. It runs in the keeper's goroutine, which lends the reader's
// role to lone callers.
func (s *socket) serve() error {
	for {
		switch err := s.readOnce(); {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.resume()
			s.in.trim()
		default:
			return err
		}
		if s.lend() && !s.waitForRole() {
			return nil
		}
	}
}
