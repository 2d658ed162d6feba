package pipe

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/slipstream-go/slipstream/internal/buf"
)

const (
	// minRead is the read buffer of an idle socket, maxRead that of a busy one.
	minRead = 4 << 10
	maxRead = 256 << 10
	// growStep bounds how far a buffer grows beyond what has arrived: a length
	// that a server claims allocates nothing by itself.
	growStep = 1 << 20
	// quietReads that use an eighth of the buffer halve it.
	quietReads = 64
	// manyFrames is how many replies are cut before their calls are taken out
	// under one lock.
	manyFrames = 512
	// adoptedReply is the size from which a reply takes the read buffer with it
	// instead of being copied; docs/decisions/0006 has the table.
	adoptedReply = 32 << 10
)

// read reads once into the buffer. Whoever has the reader's role.
func (s *socket) read() error {
	switch {
	case s.begin == s.end:
		s.begin, s.end = 0, 0
	case s.end == len(s.in):
		s.makeRoomFor(0)
	}
	n, err := s.readSome()
	if n > 0 {
		s.reads.Add(1)
		s.end += n
		s.adapt(n)
	}
	if n > 0 {
		return nil // an error comes again
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("connection closed by the server: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// adapt lets the buffer follow what reads bring.
func (s *socket) adapt(n int) {
	switch {
	case s.end == len(s.in):
		s.quiet = 0
		if len(s.in) < maxRead {
			s.resize(2 * len(s.in))
		}
	case len(s.in) > minRead && n < len(s.in)/8:
		if s.quiet++; s.quiet >= quietReads && s.end-s.begin <= len(s.in)/2 {
			s.quiet = 0
			s.resize(len(s.in) / 2)
			s.popped, s.frames = nil, nil
		}
	default:
		s.quiet = 0
	}
}

// trim gives back what a burst has left. The keeper, when the socket is idle.
func (s *socket) trim() {
	if s.begin != s.end {
		return
	}
	s.bulky.Store(false)
	s.resize(minRead)
	s.frames, s.popped, s.quiet = nil, nil, 0
}

// resize moves what is unread to another buffer of at least n bytes.
func (s *socket) resize(n int) {
	b := buf.Get(max(n, s.end-s.begin))
	b = b[:cap(b)]
	kept := copy(b, s.in[s.begin:s.end])
	buf.Put(s.in[:0])
	s.in, s.begin, s.end = b, 0, kept
	if n > minRead {
		s.bulky.Store(true)
	}
}

// makeRoomFor makes the buffer ready for a message of n bytes or more, of which
// only a part is there.
func (s *socket) makeRoomFor(n int) {
	have := s.end - s.begin
	want := min(max(n, have+1), max(2*have, have+growStep))
	switch {
	case want > len(s.in):
		// Half as much again at least: where n is far too low, as for an array of
		// long strings, the bytes would be copied once for each read of a few.
		s.resize(max(want, have+have/2))
	case s.begin > 0 && s.begin+want > len(s.in):
		copy(s.in, s.in[s.begin:s.end])
		s.begin, s.end = 0, have
	}
}

// deliver cuts all replies that have arrived, hands them to their calls, wakes
// the callers, and flushes what the rule allows then. Whoever has the role.
func (s *socket) deliver() error {
	for {
		more, err := s.cutFrames()
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
	if s.begin < s.end || s.retiring.Load() {
		s.mu.Lock()
		s.early = s.early || s.begin < s.end && s.calls.pending() == 0
		over := s.retiring.Load() && s.unused()
		s.mu.Unlock()
		if over {
			return ErrRetired
		}
	}
	return nil
}

// cutFrames fills s.frames. It reports whether there may be more replies.
func (s *socket) cutFrames() (more bool, err error) {
	s.frames = s.frames[:0]
	at := s.begin
	for at < s.end {
		f, err := s.scanner.Scan(s.in[at:s.end])
		if err != nil {
			return false, fmt.Errorf("protocol: %w", err)
		}
		if f.Verdict == More {
			s.begin = at
			if len(s.frames) == 0 {
				s.makeRoomFor(f.Len)
			}
			return false, nil
		}
		if f.Len <= 0 || f.Len > s.end-at {
			return false, fmt.Errorf("protocol: a message of %d bytes was cut off %d", f.Len, s.end-at)
		}
		switch {
		case f.Verdict == Push:
			s.pushed(s.in[at : at+f.Len])
		case f.Verdict == Interim:
			s.interim(f.Ticket, s.in[at:at+f.Len])
		case s.early:
			return false, ErrUnsolicited
		default:
			s.frames = append(s.frames, arrived{at, f.Len, f.Ticket})
		}
		s.early = false
		at += f.Len
		if len(s.frames) == manyFrames {
			s.begin = at
			return true, nil
		}
	}
	s.begin = at
	return false, nil
}

func (s *socket) pushed(frame []byte) {
	s.mu.Lock()
	s.counts.Pushes++
	s.mu.Unlock()
	if s.engine.cfg.OnPush != nil {
		s.engine.cfg.OnPush(Pin{s}, frame)
	}
}

// interim gives a message to the call that it belongs to, if somebody waits for that.
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

// hand gives the cut replies to their calls. It reports whether something is
// queued that these replies may have freed.
func (s *socket) hand() (kick bool, err error) {
	if len(s.frames) == 0 {
		return false, nil
	}
	kick, err = s.takeOut()
	if err != nil {
		return false, err
	}
	freed := int64(0)
	waiting := s.popped[:0]
	last := len(s.frames) - 1
	gathered := false
	for i := 0; i < len(s.popped); i++ {
		c, f := s.popped[i], s.frames[i]
		if c.several {
			gathered = true
			n, all := s.gather(i)
			i += n - 1
			if !all {
				continue
			}
		}
		freed += c.charge
		several := c.several // asked before the call may be another's
		if !c.takeOut() {
			continue
		}
		switch {
		case several:
		case i == last && s.adoptable(f):
			s.giveBuffer(c, f)
		default:
			c.setReply(s.in[f.at : f.at+f.len])
		}
		waiting = append(waiting, c)
	}
	if gathered {
		s.endGathering()
	}
	s.free(freed)
	for i, c := range waiting {
		waiting[i] = nil
		c.resolve()
	}
	clear(s.popped)
	if cap(s.popped) > 64 && !s.bulky.Load() {
		s.bulky.Store(true)
	}
	return kick, nil
}

// takeOut takes the calls of s.frames out.
func (s *socket) takeOut() (kick bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, s.cause
	}
	probed := false
	if s.popped, probed, err = s.calls.match(s.frames, s.popped[:0]); err != nil {
		s.unpop()
		return false, err
	}
	if probed {
		s.endProbe()
	}
	s.counts.Replies += uint64(len(s.popped))
	s.counts.Deliveries++
	if s.role == roleCaller {
		s.counts.SoloReplies += uint64(len(s.popped))
	}
	s.kicking = s.calls.queued()+len(s.oneWays) > 0 && !s.writing
	return s.kicking, nil
}

// unpop ends calls taken out before the doubt came up: whether their replies
// are theirs is not known either. Under mu.
func (s *socket) unpop() {
	s.calls.unawait(s.popped)
	s.doubted = append(s.doubted, s.popped...)
	s.popped = s.popped[:0]
}

func (s *socket) endProbe() {
	s.calls.probing = false
	now := s.engine.now()
	s.trip.add(now, now-s.probeAt)
	s.setFactor()
}

// adoptable: the reply begins the buffer, is large, and little follows it.
func (s *socket) adoptable(f arrived) bool {
	return f.len >= s.engine.cfg.choices.AdoptedReply && f.at == 0 && f.len >= len(s.in)/2 && s.end-s.begin <= f.len/4
}

// giveBuffer makes the read buffer the call's, and takes another.
func (s *socket) giveBuffer(c *Call, f arrived) {
	b := buf.Get(max(minRead, s.end-s.begin))
	b = b[:cap(b)]
	kept := copy(b, s.in[s.begin:s.end])
	c.adopt(s.in[:f.len])
	s.in, s.begin, s.end = b, 0, kept
}

// kick flushes what replies have freed.
func (s *socket) kick() {
	s.mu.Lock()
	s.kicking = false
	if s.writing || s.closed {
		s.mu.Unlock()
		return
	}
	reason := s.rule(true)
	if reason == NotYet {
		s.mu.Unlock()
		return
	}
	s.writing = true
	s.counts.Kicks++
	s.flush(reason)
}

// serve reads the socket until it fails. It is the keeper's, which lends its
// role to lone callers.
func (s *socket) serve() error {
	for {
		switch err := s.readOnce(); {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.resume()
			s.trim()
		default:
			return err
		}
		if s.lend() && !s.waitForRole() {
			return nil
		}
	}
}
