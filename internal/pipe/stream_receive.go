package pipe

import (
	"context"
	"io"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/buf"
)

// The reader never waits for the owner of a stream. It copies a frame into the inbox of its stream;
// a frame that does not fit ends that stream. With flow control, the server receives credit for
// what Recv has returned, so that it stops sending before its frames no longer fit.

const (
	// partCost is what a frame counts in an inbox in addition to its bytes.
	partCost = 64
	// manyParts is the maximum number of frames of streams that are cut before their streams are found under one
	// lock.
	manyParts = 128
	// creditShare is the divisor of the window that gives the credit sent in one frame.
	creditShare = 4
)

// A part is a frame of a stream in the read buffer.
type part struct {
	arrived
	after int // number of replies that were cut before it
	st    *Stream
}

// part records a frame of a stream.
func (s *socket) part(f Frame, at int) error {
	s.streams.parts = append(s.streams.parts, part{arrived: arrived{at, f.Len, f.Ticket}, after: len(s.in.frames)})
	if len(s.streams.parts) == manyParts {
		return s.handParts()
	}
	return nil
}

// handParts delivers the frames that were cut to their streams. Frames of streams that have ended are
// dropped and counted, and so are those that came after the last frame, which may be among the replies
// that are delivered next. A ticket that was never sent is an error.
func (s *socket) handParts() error {
	parts := s.streams.parts
	defer func() {
		clear(parts)
		s.streams.parts = parts[:0]
	}()
	s.mu.Lock()
	if s.life.closed {
		defer s.mu.Unlock()
		return s.life.cause
	}
	seen := 0
	for i := range parts {
		p := &parts[i]
		for ; seen < p.after; seen++ {
			if st, _ := s.calls.streamOf(s.in.frames[seen].ticket); st != nil {
				st.over = true
			}
		}
		st, known := s.calls.streamOf(p.ticket)
		if st == nil && !known {
			s.mu.Unlock()
			return ErrUnsolicited
		}
		if st != nil && !st.over {
			p.st = st
		}
	}
	s.mu.Unlock()
	late := 0
	for i := range parts {
		if p := &parts[i]; p.st == nil || !p.st.receive(s, p.arrived) {
			late++
		}
	}
	if late > 0 {
		s.late.Add(uint64(late))
	}
	return nil
}

// receive puts a frame into the inbox. It reports whether it was kept.
func (st *Stream) receive(s *socket, f arrived) bool {
	st.mu.Lock()
	switch {
	case st.call == nil || st.closed:
		st.mu.Unlock()
		return false
	case st.inbox.held+f.len+partCost > st.most:
		st.mu.Unlock()
		s.engine.streams.overflows.Add(1)
		st.end(ErrStreamOverflow)
		return false
	case f.at == ownBuffer:
		st.inbox.adopt(s.in.own)
		s.in.own = nil
	default:
		st.inbox.add(s.in.bytes(f))
	}
	st.mu.Unlock()
	st.notify()
	return true
}

// Recv returns the next frame of the stream, a whole message, valid until the next call of Recv. It waits for one until
// ctx ends, which does not end the stream. After the last frame the error is io.EOF. If the stream has
// ended in another way, Recv returns the frames received before, and then the cause; after Close it
// returns no frames. Recv must be called by one goroutine at a time.
func (st *Stream) Recv(ctx context.Context) ([]byte, error) {
	for {
		b, err := st.next()
		st.tellServer()
		if b != nil || err != nil {
			return b, err
		}
		if st.borrows() {
			st.readLoan(ctx)
			if st.arrivedAny() {
				continue
			}
		}
		select {
		case <-st.arrived:
		case <-ctx.Done():
			return nil, &slipstream.Error{Addr: st.socket.engine.cfg.Addr, Outcome: slipstream.MaybeExecuted, Err: ctx.Err()}
		}
	}
}

// next releases the previous frame and returns the next one, or the error after the last one. It returns nil and nil if
// there is no frame yet.
func (st *Stream) next() ([]byte, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.inbox.giveBack()
	if b := st.inbox.take(); b != nil {
		if t := st.socket.engine.cfg.Traits.Streams; t.AppendCredit != nil {
			st.untold.Add(int64(t.cost(b, len(b))))
		}
		return b, nil
	}
	if c := st.last; c != nil {
		st.last, st.inbox.givenCall, st.err = nil, c, io.EOF
		return c.Reply(), nil
	}
	if st.err != nil {
		st.settle()
	}
	return nil, st.err
}

// tellServer gives the server credit for what Recv has returned, if that is enough for a frame and the previous
// such frame is written. So at most one is queued for each stream. It is called by the receiver, and by the
// goroutine that has written a frame of the stream.
func (st *Stream) tellServer() {
	e, s := st.socket.engine, st.socket
	window := st.most
	if t := e.cfg.Traits.Streams; t.Window > 0 {
		window = min(window, t.Window)
	}
	least := max(int64(window/creditShare), 1)
	if st.untold.Load() < least {
		return
	}
	s.mu.Lock()
	// Another goroutine may have given the credit meanwhile. Only the one that has set telling takes it.
	may := st.sending.live && !st.sending.telling && !s.life.closed && st.untold.Load() >= least
	st.sending.telling = st.sending.telling || may
	s.mu.Unlock()
	if !may {
		return
	}
	n := int(st.untold.Swap(0))
	frames := st.newFrame(func(b []byte) []byte { return e.cfg.Traits.Streams.AppendCredit(b, n) })
	s.mu.Lock()
	if len(frames) == 0 || !st.sending.live || s.life.closed {
		st.sending.telling = false
		s.mu.Unlock()
		releaseAll(frames)
		return
	}
	st.sending.credits = frames[0]
	s.flushQueued(st.queueOwn(frames[0]))
}

// An inbox holds the frames that were received and that Recv has not returned. Small frames are stored consecutively in
// chunks, so that many of them take little more than their bytes. It is guarded by the stream's mu.
type inbox struct {
	frames []inboxFrame // from index first
	first  int
	held   int    // cost of the frames
	chunk  []byte // the last chunk, which has room
	// given is the frame that the receiver uses, and givenCall the call with the last frame.
	given     inboxFrame
	givenCall *Call
}

// An inboxFrame is a frame. If free is not nil, it is the chunk whose last frame this is.
type inboxFrame struct{ b, free []byte }

const (
	firstChunk = 512
	nextChunk  = 4 << 10
)

// add copies a frame.
func (in *inbox) add(b []byte) {
	in.held += len(b) + partCost
	if cap(in.chunk)-len(in.chunk) < len(b) {
		in.endChunk()
		size := nextChunk
		if in.empty() {
			size = firstChunk
		}
		in.chunk = buf.Get(max(size, len(b)))
	}
	from := len(in.chunk)
	in.chunk = append(in.chunk, b...)
	in.frames = append(in.frames, inboxFrame{b: in.chunk[from:len(in.chunk):len(in.chunk)]})
}

// adopt adds a frame that has a dedicated buffer.
func (in *inbox) adopt(b []byte) {
	in.held += len(b) + partCost
	in.endChunk()
	in.frames = append(in.frames, inboxFrame{b, b[:0]})
}

// endChunk makes the last chunk be released with the last frame.
func (in *inbox) endChunk() {
	if in.chunk != nil { // it contains a frame of the inbox
		in.frames[len(in.frames)-1].free, in.chunk = in.chunk[:0], nil
	}
}

func (in *inbox) empty() bool { return in.first == len(in.frames) }

// take removes the next frame and returns it, or nil if there is none.
func (in *inbox) take() []byte {
	if in.empty() {
		return nil
	}
	if in.first == len(in.frames)-1 {
		in.endChunk()
	}
	in.given = in.frames[in.first]
	in.frames[in.first] = inboxFrame{}
	in.held -= len(in.given.b) + partCost
	// Entries move when half of them were taken, so each moves once on average.
	if in.first++; in.first > len(in.frames)/2 {
		n := copy(in.frames, in.frames[in.first:])
		clear(in.frames[n:])
		in.frames, in.first = in.frames[:n], 0
	}
	return in.given.b
}

// giveBack releases the frame that the receiver uses.
func (in *inbox) giveBack() {
	if in.given.free != nil {
		buf.Put(in.given.free)
	}
	in.given = inboxFrame{}
	if in.givenCall != nil {
		in.givenCall.Release()
		in.givenCall = nil
	}
}

// drop drops all frames. The chunk of the frame that the receiver uses is left to the garbage
// collector.
func (in *inbox) drop() {
	in.endChunk()
	inUse := in.given.b != nil && in.given.free == nil
	for _, f := range in.frames[in.first:] {
		switch {
		case f.free == nil:
		case inUse:
			inUse = false
		default:
			buf.Put(f.free)
		}
	}
	in.frames, in.first, in.held = nil, 0, 0
}
