package pipe

import (
	"errors"
	"os"
	"time"
)

// A caller that is alone on its socket reads its own reply: that saves the wake
// of the reader and the wake by it, a third of the CPU at one caller. After
// soloNeeded lone calls in a row the keeper lends the reader's role; the first
// call that meets another gives it back.
//
// The role moves under the socket's lock: keeper -> free (lend), free -> caller
// (submit), caller -> free or keeper (endSolo), free -> keeper (giveToKeeper).
// Who has it owns the read buffer and the scanner.
//
// While the role is free nobody hears the server. So a caller first looks
// whether something has arrived: bytes then answer nobody's request, and a
// server that has hung up is noticed before the request is written.
const soloNeeded = 64

// lend makes the role free if callers come one at a time. Keeper only.
func (s *socket) lend() bool {
	if s.raw == nil || s.engine.cfg.choices.SoloAfter < 0 || s.begin != s.end {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lone < s.engine.cfg.choices.SoloAfter || s.table.size() > 0 || s.closed {
		return false
	}
	s.role = roleFree
	return true
}

// waitForRole parks the keeper until its role comes back; false: the socket ended.
func (s *socket) waitForRole() bool {
	select {
	case <-s.roleWake:
		return true
	case <-s.done:
		return false
	}
}

// giveToKeeper gives the role back. Under mu, by whoever may give it.
func (s *socket) giveToKeeper() {
	s.role, s.reader, s.lone = roleKeeper, nil, 0
	select {
	case s.roleWake <- struct{}{}:
	default:
	}
}

// readSolo writes what submit has queued and reads until the leader of the
// caller's calls is resolved. Whoever got solo from submit.
func (s *socket) readSolo(leader *Call) {
	if err := s.peek(); err != nil {
		s.mu.Lock()
		s.writing = false
		s.mu.Unlock()
		s.fail(err)
		<-leader.wake
		return
	}
	s.mu.Lock()
	s.flush(Idle)
	for {
		select {
		case <-leader.wake:
			s.endSolo()
			return
		default:
		}
		err := s.read()
		if err == nil {
			err = s.deliver()
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			s.fail(err)
			<-leader.wake
			return
		}
	}
}

// endSolo gives up the role: to the next lone caller, or to the keeper if others
// have come meanwhile or a part of a reply is there.
func (s *socket) endSolo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.stopped {
		s.stopped = false
		s.conn.SetReadDeadline(time.Time{})
	}
	s.reader = nil
	if s.table.size() > 0 || s.begin != s.end || s.writing {
		s.giveToKeeper()
		return
	}
	s.role = roleFree
}

// interrupt wakes a lone reader whose call was given up. Under mu.
func (s *socket) interrupt() {
	if s.role == roleCaller && !s.stopped {
		s.stopped = true
		s.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// readEarly reads what arrived while the role was free: pushes are in order, a
// reply is not.
func (s *socket) readEarly() error {
	if err := s.read(); err != nil {
		return err
	}
	for s.begin < s.end {
		f, err := s.scanner.Scan(s.in[s.begin:s.end])
		switch {
		case err != nil:
			return err
		case f.Verdict == More:
			s.makeRoomFor(f.Len)
			return nil // the rest comes before our reply, and is judged then
		case f.Verdict != Push:
			return ErrUnsolicited
		}
		s.pushed(s.in[s.begin : s.begin+f.Len])
		s.begin += f.Len
	}
	return nil
}
