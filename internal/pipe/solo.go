package pipe

import (
	"errors"
	"io"
	"os"
	"time"
)

// A lone caller reads its own reply. That saves waking the reader and being woken by it, which
// takes a third of the CPU time with one caller. After soloNeeded consecutive lone calls the keeper
// lends the reader's role; the first call that overlaps with another returns it.
//
// The role changes under the socket's lock: keeper -> free (lend), free -> caller
// (submit), caller -> free or keeper (endSolo), free -> keeper (reclaim).
// Its holder owns the read buffer and the scanner.
//
// While the role is free, no goroutine reads. So a caller first checks
// whether data has arrived: it answers no request, and a
// server that has hung up is noticed before the request is written. The goroutine
// that returns the free role to the keeper checks in the same way.
const soloNeeded = 64

// lend makes the role free if callers come one at a time. Only the keeper calls it.
func (s *socket) lend() bool {
	if s.raw == nil || s.engine.cfg.Traits.AlwaysRead || s.engine.cfg.choices.SoloAfter < 0 || s.in.partial() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.closed || s.listens.Load() {
		return false
	}
	if s.streams.live > 0 {
		return s.lendToStream()
	}
	if s.lone < s.engine.cfg.choices.SoloAfter || !s.unused() {
		return false
	}
	s.role = roleFree
	return true
}

// reclaim returns the role to the keeper and writes what is queued. It is called by the goroutine
// that took the free role and has set writing. It first calls look, as a lone reader does, because
// a reply that came meanwhile would otherwise count as the reply to the next call.
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

// endIfOver ends a retired socket that has no more calls. What was read while the role was free may have
// retired it.
func (s *socket) endIfOver() {
	if cause := s.outlived(); cause != nil {
		s.fail(cause)
	}
}

// waitForRole waits until the keeper has the role again. It returns false if the socket has ended.
func (s *socket) waitForRole() bool {
	select {
	case <-s.roleWake:
		return true
	case <-s.life.done:
		return false
	}
}

// giveToKeeper gives the role to the keeper. The caller holds mu and the role.
func (s *socket) giveToKeeper() {
	s.role, s.reader, s.lone = roleKeeper, nil, 0
	s.streams.loan.to, s.streams.loan.waits = nil, 0
	select {
	case s.roleWake <- struct{}{}:
	default:
	}
}

// readSolo writes what submit has queued and waits until the leader of the
// caller's calls is resolved. It is called by the goroutine for which submit returned solo.
func (s *socket) readSolo(leader *Call) {
	if !s.readFor(leader) {
		leader.ending.wait() // wait without the role, so that the keeper can reconnect
	}
}

// readFor writes what submit has queued and reads until the leader is resolved. It returns false
// if the socket has failed or the calls have moved to another socket.
func (s *socket) readFor(leader *Call) bool {
	defer s.endSolo()
	if err := s.look(); err != nil {
		s.fail(err) // the flag stays set, so nothing more is written to this socket
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

// awaitReader waits until a lone caller or receiver no longer reads the closed socket: it may still
// be calling completers.
func (s *socket) awaitReader() {
	for {
		s.mu.Lock()
		busy := s.role == roleCaller || s.role == roleLent && s.streams.loan.reading
		s.mu.Unlock()
		if !busy {
			return
		}
		<-s.roleWake
	}
}

// readOnce reads and delivers once. It recovers panics of the protocol's code, which must not
// reach a caller that happens to read.
func (s *socket) readOnce() (err error) {
	defer recovered(&err)
	if err = s.read(); err == nil {
		err = s.deliver()
	}
	return err
}

// look calls peek and recovers panics.
func (s *socket) look() (err error) {
	defer recovered(&err)
	return s.peek()
}

// resume makes the socket readable again after interrupt. It reports whether the calls of a lone
// reader are still on the socket. The caller has the role.
func (s *socket) resume() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unstop()
	return s.reader != nil
}

// endSolo passes the role to the next lone caller, or to the keeper if other calls
// came meanwhile or a part of a reply was read.
func (s *socket) endSolo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unstop()
	s.reader = nil
	if s.life.closed || !s.unused() || s.in.partial() || s.listens.Load() {
		s.giveToKeeper()
		return
	}
	s.role = roleFree
}

// interrupt wakes a lone reader whose call was given up. The caller holds mu.
func (s *socket) interrupt() {
	if s.role == roleCaller && !s.stopped {
		s.stopped = true
		s.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// unused reports whether no call is queued or in flight and no goroutine writes. The role is free only while this
// holds. The caller holds mu.
func (s *socket) unused() bool {
	return s.calls.size() == 0 && len(s.out.oneWays)+len(s.out.leaving) == 0 && !s.out.writing
}

// readEarly reads what arrived while the role was free. Pushes and late replies are
// accepted; any other reply, complete or not, is an error.
func (s *socket) readEarly() error {
	if err := s.read(); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.resume() // the lone reader's call was given up; the data is read later
			return nil
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return ErrHungUp
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
