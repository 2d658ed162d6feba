package postgres

import (
	"context"
	"log/slog"
	"sync"
	"testing"
)

// A pollLog is a log that notes why polls failed, except by a time limit: on a busy machine
// that proves nothing.
type pollLog struct {
	slog.Handler

	mu     sync.Mutex
	failed []error // guarded by mu
}

func newPollLog(t *testing.T) *pollLog {
	return &pollLog{Handler: slog.NewTextHandler(t.Output(), nil)}
}

// Handle implements [slog.Handler].
func (l *pollLog) Handle(ctx context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && a.Key == "error" && !outOfTime(err) {
			l.mu.Lock()
			l.failed = append(l.failed, err)
			l.mu.Unlock()
		}
		return true
	})
	return l.Handler.Handle(ctx, r)
}

// check fails the test if a poll of the stream failed.
func (l *pollLog) check(t *testing.T, s *Stream) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failed) > 0 {
		t.Errorf("%d polls failed: %v", s.Stats().PollErrors, l.failed)
	}
}
