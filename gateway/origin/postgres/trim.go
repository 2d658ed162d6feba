package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// trimRows is how many rows one statement deletes: some 20 ms of work.
const trimRows = 10_000

// trimNow deletes old rows of the change table in the background if it is time to.
// Every gateway does; the function lets one at a time work. A failure is no
// failure of the stream: the next attempt comes a minute later.
func (s *Stream) trimNow(ctx context.Context, now time.Time) {
	if now.Before(s.nextTrim) || s.statement == "" || ctx.Err() != nil {
		return
	}
	s.nextTrim = now.Add(trimInterval)
	s.helpers.Add(1)
	// Ends by itself or with ctx; Run waits.
	go func() {
		defer s.helpers.Done()
		ctx, cancel := context.WithTimeout(ctx, trimInterval/2)
		defer cancel()
		for {
			var n int64
			err := s.origin.pool.QueryRow(ctx, "SELECT "+trimCall+"($1::pg_catalog.text::pg_catalog.interval, $2::pg_catalog.text::pg_catalog.int4)",
				fmt.Sprintf("%d seconds", int64(s.origin.cfg.KeepChanges.Seconds())), strconv.Itoa(trimRows)).Scan(&n)
			if err != nil && ctx.Err() == context.Canceled {
				return // the gateway ends
			}
			if err != nil {
				s.origin.cfg.Logger.Warn("the change table could not be trimmed", "error", s.origin.wrapError(ctx, "trim", s.origin.loadFrom, err))
				return
			}
			s.trimmed.Add(n)
			if n < trimRows {
				return
			}
		}
	}()
}
