package pipe

import (
	"context"
	"errors"
	"os"
	"time"
)

// The receiver of a lone stream reads the socket, as a lone caller does (solo.go): the keeper does not have to be woken
// for each frame, and does not have to wake the receiver. After soloNeeded consecutive frames for which the receiver
// of the only stream waited, the keeper lends it the reader's role. The receiver keeps the loan between two calls of
// Recv. In the meantime no other goroutine reads, so the loan ends when
//
//   - there is a call or another stream,
//   - Send waits for credit,
//   - the stream ends,
//   - or the receiver did not use it between two rounds of the sweeper, at most restEvery apart.
//
// So if the program sends and does not receive, the end of the connection is noticed late. A receiver that reads
// delivers everything that arrives, whichever call it belongs to.

// streamLoan records the loan of the reader's role to the receiver of a stream. The socket's lock guards all fields
// except checked.
type streamLoan struct {
	to      *Stream // the borrower; nil if the role is not lent
	reading bool    // the borrower reads
	waits   int     // consecutive waits of the receiver of the only stream
	uses    uint64  // number of times that a borrower began to read
	checked uint64  // uses at the last round of the sweeper, which owns it
}

// onlyStream reports whether the socket has one stream and no call. The caller holds mu.
func (s *socket) onlyStream() bool { return s.streams.live == 1 && s.calls.size() == 1 }

// lendToStream lends the role to the receiver of the only stream. It reports whether it did. Only the keeper calls it,
// with mu held.
func (s *socket) lendToStream() bool {
	loan := &s.streams.loan
	st := s.streams.waited
	if st == nil || !st.sending.live || s.life.retiring.Load() || !s.onlyStream() || loan.waits < s.engine.cfg.choices.SoloAfter || st.sending.want > 0 {
		return false
	}
	s.role, loan.to = roleLent, st
	st.notify() // it may be waiting for the keeper
	return true
}

// recall ends the loan to a stream whose receiver is not reading. One that reads returns the role when it has a frame.
// The caller holds mu.
func (s *socket) recall() {
	if s.role == roleLent && !s.streams.loan.reading {
		s.giveToKeeper()
	}
}

// borrows reports whether the receiver, which has to wait, has the reader's role now. If so, it must call readLoan.
func (st *Stream) borrows() bool {
	s := st.socket
	if s.raw == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !st.sending.live || s.life.closed {
		return false
	}
	loan := &s.streams.loan
	if s.streams.waited = st; s.onlyStream() {
		loan.waits++
	} else {
		loan.waits = 0
	}
	if s.role != roleLent || loan.to != st {
		return false
	}
	loan.reading = true
	loan.uses++
	return true
}

// readLoan reads until the receiver no longer has to wait, ctx ends, or the socket fails.
func (st *Stream) readLoan(ctx context.Context) {
	s := st.socket
	defer s.endIfOver()
	defer st.endReading()
	st.watchRecv(ctx)
	for ctx.Err() == nil && !st.arrivedAny() {
		switch err := s.readOnce(); {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.mu.Lock()
			s.unstop()
			s.mu.Unlock()
		default:
			s.fail(err)
			return
		}
	}
}

// endReading keeps the loan for the next Recv, or returns the role to the keeper.
func (st *Stream) endReading() {
	s := st.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unstop()
	s.streams.loan.reading = false
	if s.life.closed || s.life.retiring.Load() || !st.sending.live || !s.onlyStream() || st.sending.want > 0 || s.in.partial() || s.listens.Load() {
		s.giveToKeeper()
	}
}

// arrivedAny reports whether Recv can return without waiting.
func (st *Stream) arrivedAny() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return !st.inbox.empty() || st.last != nil || st.err != nil
}

// watchRecv makes the end of ctx interrupt the receiver while it reads. It watches ctx until Recv is called with
// another context, or the stream ends: most receivers use one context.
func (st *Stream) watchRecv(ctx context.Context) {
	done := ctx.Done()
	if done == st.watching {
		return
	}
	st.mu.Lock()
	unwatch := st.unwatch
	st.unwatch = nil
	st.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
	if st.watching = done; done == nil {
		return
	}
	unwatch = context.AfterFunc(ctx, func() {
		s := st.socket
		s.mu.Lock()
		defer s.mu.Unlock()
		s.interruptReceiver(st)
	})
	st.mu.Lock()
	ended := st.call == nil
	if !ended {
		st.unwatch = unwatch
	}
	st.mu.Unlock()
	if ended {
		unwatch()
	}
}

// interruptReceiver wakes the receiver of st if it reads. The caller holds mu.
func (s *socket) interruptReceiver(st *Stream) {
	if loan := &s.streams.loan; s.role == roleLent && loan.to == st && loan.reading && !s.stopped {
		s.stopped = true
		s.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// unstop makes the socket readable again after an interruption. The caller holds mu and the role.
func (s *socket) unstop() {
	if s.stopped {
		s.stopped = false
		s.conn.SetReadDeadline(time.Time{})
	}
}
