package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// channel is what the triggers notify and the stream listens on.
const channel = "slipstream"

// listen wakes the stream with each notification. The payload does not matter: a
// forged notification costs a poll, a lost one the rest of the poll interval. It
// runs in its own goroutine until ctx ends.
func (s *Stream) listen(ctx context.Context) {
	for pause := time.Second; ctx.Err() == nil; {
		conn, err := s.origin.streamTo.connect(ctx)
		if err == nil {
			began := time.Now()
			if err = s.hear(ctx, conn); time.Since(began) > time.Minute {
				pause = time.Second
			}
		}
		if ctx.Err() != nil {
			return
		}
		s.origin.cfg.Logger.Warn("not listening for notifications; changes are found by polling", "error", s.origin.wrapError(ctx, "listen", s.origin.streamTo, err))
		if !sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, 30*time.Second)
	}
}

// hear passes notifications on until the connection fails.
func (s *Stream) hear(ctx context.Context, conn *pgx.Conn) error {
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_ = conn.Close(ctx) // nothing is lost with it
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
		select {
		case s.notified <- struct{}{}:
		default: // one is already requested
		}
	}
}
