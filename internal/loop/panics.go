package loop

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// panicLines is how many panics are logged per second: a line contains a stack trace, and a client
// that knows how to cause a panic can send thousands of such requests.
const panicLines = 10

// panicLog bounds the number of log lines about panics.
type panicLog struct {
	// Atomics. Written and read where panics are recovered.
	second  atomic.Int64 // on the engine's clock
	lines   atomic.Int64 // in that second
	leftOut atomic.Int64 // since the last line
}

// take reports whether a panic at now is to be logged, and how many were left out since the last
// line.
func (p *panicLog) take(now time.Duration) (leftOut int64, ok bool) {
	second := int64(now / time.Second)
	if last := p.second.Load(); last != second && p.second.CompareAndSwap(last, second) {
		p.lines.Store(0)
	}
	if p.lines.Add(1) > panicLines {
		p.leftOut.Add(1)
		return 0, false
	}
	return p.leftOut.Swap(0), true
}

// panicked logs a panic of a session, a reply or a hook and returns the error with which its
// connection ends. It is called where the panic was recovered.
func (s *Server) panicked(c *Conn, v any) error {
	if leftOut, ok := s.panics.take(s.now()); ok {
		s.config.Log.Error("a session panicked", "connection", c.id, "panic", v, "left_out", leftOut, "stack", string(debug.Stack()))
	}
	return &CloseError{ReasonAborted, fmt.Errorf("panic: %v", v)}
}
