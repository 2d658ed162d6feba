package rpc

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
)

// A streamLink is a connection of a StreamClient. It is the connection's scanner, so it sees every frame, and it finds
// out whether the server has flow control: a server of this package announces its window when it has received the first
// frame, before it sends anything else.
type streamLink struct {
	known chan struct{} // closed when window is set, or the connection has ended

	// Owned by the goroutine that reads.
	scanner frame.Scanner

	// Atomic: the number of bytes that a stream may send before it gets credit; endless if the server has no flow control,
	// 0 if not yet known. Written with mu held.
	window atomic.Int64

	mu sync.Mutex
	// Guarded by mu.
	assumed bool                   // window was assumed because the server sent nothing
	waiting map[*ClientStream]bool // open streams while window is unknown
	patient *time.Timer            // resolves window after silence; nil until there is a stream
}

const (
	// endless is the window of servers without flow control.
	endless = 1 << 40
	// silence is how long a server may send nothing while streams are open before it is assumed to have no flow control.
	// Kitex sends nothing before the first response.
	silence = time.Second
)

func newStreamLink(most int) *streamLink {
	return &streamLink{scanner: frame.Scanner{Max: most}, known: make(chan struct{}), waiting: make(map[*ClientStream]bool)}
}

// Opened implements [pipe.Watcher].
func (l *streamLink) Opened(pipe.Pin) {}

// Replied implements [pipe.Watcher].
func (l *streamLink) Replied(int, bool) {}

// Ended implements [pipe.Watcher].
func (l *streamLink) Ended(error) { l.resolve(endless, false) }

// Scan implements [pipe.Scanner].
func (l *streamLink) Scan(b []byte) (out pipe.Frame, err error) {
	n, whole, err := l.scanner.Size(b)
	switch {
	case err != nil:
		return out, unreadable(err)
	case !whole:
		return pipe.Frame{Len: n, Verdict: pipe.More}, nil
	}
	f, err := frame.OpenStream(b[:n])
	if err != nil {
		return out, unreadable(err)
	}
	out = pipe.Frame{Len: n, Verdict: pipe.Part, Ticket: uint64(uint32(f.Info.Seq))}
	if out.Ticket == 0 {
		out.Verdict = pipe.Push
		out.Last = string(f.Info.String(frame.KeyReset)) == "1"
		if window := number(f.Info.String(keyWindow)); window > 0 {
			l.resolve(int64(window), false)
		}
		return out, nil
	}
	if l.window.Load() == 0 {
		l.resolve(endless, false)
	}
	switch f.Kind {
	case frame.StreamTrailer, frame.StreamReset:
		out.Verdict = pipe.Done
	case frame.StreamMeta:
		out.Verdict = pipe.Push
	}
	return out, nil
}

// resolve sets the window. It replaces an assumed window, but not a known one.
func (l *streamLink) resolve(window int64, assumed bool) {
	l.mu.Lock()
	if l.window.Load() != 0 && (!l.assumed || assumed) {
		l.mu.Unlock()
		return
	}
	first := l.window.Swap(window) == 0
	l.assumed = assumed
	waiting := l.waiting
	l.waiting = nil
	if l.patient != nil {
		l.patient.Stop()
	}
	l.mu.Unlock()
	if !first {
		return
	}
	close(l.known)
	for s := range waiting {
		s.permit(window)
	}
}

// join lets a new stream send as much as the server's window allows, as soon as the window is known.
func (l *streamLink) join(s *ClientStream) {
	l.mu.Lock()
	window := l.window.Load()
	if window == 0 {
		l.waiting[s] = true
		if l.patient == nil {
			// The function does not block, and nothing waits for it.
			l.patient = time.AfterFunc(silence, func() { l.resolve(endless, true) })
		}
	}
	l.mu.Unlock()
	if window != 0 {
		s.permit(window)
	}
}

// leave removes a closed stream.
func (l *streamLink) leave(s *ClientStream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, s)
}
