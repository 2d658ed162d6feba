package postgres

import (
	"context"
	"time"
)

// connect makes sure that there is a connection, and with several hosts that it
// leads to the one to follow.
func (s *Stream) connect(ctx context.Context) error {
	alive := s.conn != nil && !s.conn.IsClosed()
	if s.hosts == nil {
		if alive {
			return nil
		}
		s.disconnect()
		conn, err := s.origin.streamTo.connect(ctx)
		s.conn = conn
		return err
	}
	best, err := s.hosts.best()
	if alive && s.stays(best) {
		return nil
	}
	s.disconnect()
	if err != nil {
		return err
	}
	conn, err := s.origin.streamTo.connectHost(ctx, best.cfg)
	if err != nil {
		return err
	}
	if best != s.host {
		s.drift = drift{} // another clock
		s.origin.streamTo.followed.Store(best.cfg)
		s.origin.pool.Reset() // loads go to the same host
		s.origin.cfg.Logger.Info("the change table is polled on a host of the URL that accepts writes", "host", best.name)
	}
	s.conn, s.host, s.dubious = conn, best, true
	return nil
}

// stays reports whether the present connection is kept. It is, unless its server was
// abandoned, or does not accept writes, or another one is on a higher timeline. Among
// equal servers the stream has no preference.
func (s *Stream) stays(best *watchedHost) bool {
	if s.origin.lineage.Load().left(s.followed.system, s.followed.timeline) {
		return false
	}
	if best == nil || best == s.host {
		return true
	}
	mine, other := s.host.view.Load(), best.view.Load()
	if mine.err != nil {
		return true // the poll will show it
	}
	return mine.timeline != "" && (mine.system != other.system || mine.timeline >= other.timeline)
}

// vouched is the moment up to which a statement sent at the given time can vouch
// for; ok is false if there is none.
func (s *Stream) vouched(sent time.Duration) (moment time.Duration, ok bool) {
	if s.hosts == nil {
		return sent, true
	}
	return s.hosts.vouched(sent, s.host, s.followed)
}

// met records that the server of this poll was the primary up to the moment that
// this poll, sent at that time, can vouch for.
func (s *Stream) met(began time.Time, sent time.Duration) {
	if moment, ok := s.vouched(sent); ok {
		s.origin.met.Store(int64(began.Add(moment - sent).Sub(s.origin.began)))
	}
}
