package pipe

import (
	"errors"
	"io"
	"os"
	"time"
)

// A caller that is alone on its socket reads its own reply: that saves the wake
// of the reader and the wake by it, a third of the CPU at one caller. After
// soloNeeded lone calls in a row the keeper lends the reader's role; the first
// call that meets another gives it back.
//
// The role moves under the socket's lock: keeper -> free (lend), free -> caller
// (submit), caller -> free or keeper (endSolo), free -> keeper (reclaim).
// Who has it owns the read buffer and the scanner.
//
// While the role is free nobody hears the server. So a caller first looks
// whether something has arrived: bytes then answer nobody's request, and a
// server that has hung up is noticed before the request is written. The same
// holds for who takes the free role back for the keeper.
const soloNeeded = 64

// lend makes the role free if callers come one at a time. Keeper only.
func (s *socket) lend() bool {
	if s.raw == nil || s.engine.cfg.Traits.AlwaysRead || s.engine.cfg.choices.SoloAfter < 0 || s.in.partial() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lone < s.engine.cfg.choices.SoloAfter || !s.unused() || s.life.closed {
		return false
	}
	s.role = roleFree
	return true
}

// reclaim gives the role to the keeper and writes what is queued. Whoever took
// the role when it was free, with the flag writing. It looks first, as a lone
// reader does: a reply that came meanwhile would be taken for the next call's.
func (s *socket) reclaim() {
	err := s.look()
	if err != nil {
		s.fail(err)
	}
	s.mu.Lock()
	s.giveToKeeper()
	if s.life.closed {
		s.mu.Unlock()
		return
	}
	if reason := s.rule(true); reason != NotYet {
		s.flush(reason)
		return
	}
	s.out.writing = false
	s.mu.Unlock()
	s.endIfOver()
}

// endIfOver ends a socket that was retired, perhaps by what was read while the role was free, if it
// has no calls any more.
func (s *socket) endIfOver() {
	if cause := s.outlived(); cause != nil {
		s.fail(cause)
	}
}

// waitForRole parks the keeper until its role comes back; false: the socket ended.
func (s *socket) waitForRole() bool {
	select {
	case <-s.roleWake:
		return true
	case <-s.life.done:
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

// readSolo writes what submit has queued and waits until the leader of the
// caller's calls is resolved. Whoever got solo from submit.
func (s *socket) readSolo(leader *Call) {
	if !s.readFor(leader) {
		leader.ending.wait() // without the role: the keeper must be able to connect again
	}
}

// readFor writes what submit has queued and reads until the leader is resolved. It returns false
// if the socket has failed, or the calls have moved to another one.
func (s *socket) readFor(leader *Call) bool {
	defer s.endSolo()
	if err := s.look(); err != nil {
		s.fail(err) // the flag stays: nothing is written to this socket any more
		return false
	}
	s.mu.Lock()
	moved := s.reader == nil
	s.flush(Idle)
	for !moved {
		if leader.ending.reached() {
			return true
		}
		switch err := s.readOnce(); {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			moved = !s.resume()
		default:
			s.fail(err)
			return false
		}
	}
	s.endIfOver()
	return false
}

// awaitReader waits until a lone caller has left the closed socket: it may still
// be telling completers of replies.
func (s *socket) awaitReader() {
	for {
		s.mu.Lock()
		busy := s.role == roleCaller
		s.mu.Unlock()
		if !busy {
			return
		}
		<-s.roleWake
	}
}

// readOnce reads and hands out once. A panic of the protocol's code must not
// reach the caller that happens to read.
func (s *socket) readOnce() (err error) {
	defer recovered(&err)
	if err = s.read(); err == nil {
		err = s.deliver()
	}
	return err
}

// look is peek, contained.
func (s *socket) look() (err error) {
	defer recovered(&err)
	return s.peek()
}

// resume makes the socket readable again after interrupt. It reports whether the calls of a lone
// reader are still there. Whoever has the role.
func (s *socket) resume() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		s.stopped = false
		s.conn.SetReadDeadline(time.Time{})
	}
	return s.reader != nil
}

// endSolo gives up the role: to the next lone caller, or to the keeper if others
// have come meanwhile or a part of a reply is there.
func (s *socket) endSolo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		s.stopped = false
		s.conn.SetReadDeadline(time.Time{})
	}
	s.reader = nil
	if s.life.closed || !s.unused() || s.in.partial() {
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

// unused reports whether no call is queued or under way and nobody writes. Under
// mu. The role is free only while this holds.
func (s *socket) unused() bool {
	return s.calls.size() == 0 && len(s.out.oneWays)+len(s.out.leaving) == 0 && !s.out.writing
}

// readEarly reads what arrived while the role was free: pushes and late replies are in
// order, another reply is not, whether it is there as a whole or in part.
func (s *socket) readEarly() error {
	if err := s.read(); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.resume() // our call was given up; what is there is read all the same
			return nil
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return errHungUp
		}
		return err
	}
	s.in.early = true
	need := 0
	for more := true; more; {
		var err error
		if more, err = s.cutFrames(&need); err != nil {
			return err
		}
		if _, err := s.hand(); err != nil { // nothing is in flight
			return err
		}
	}
	s.settle(need)
	s.in.early = s.in.partial()
	return nil
}
