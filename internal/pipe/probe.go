package pipe

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A protocol without a ping cannot query the server on a socket whose calls are all slow: in order, or if the
// server works on one call at a time, the answer would come after theirs. The server is queried on a new
// connection instead. A reply to this probe proves that the server is alive, and all calls continue. Without one,
// the socket accepts no new calls until data arrives or the server answers a later probe. It is not closed,
// because a call may take any time. If the host is gone, the kernel ends its connections, see setOptions.
//
// In order, the calls after the oldest one wait for its reply, which may be lost. If that call was given up and nothing
// arrives for the stall timeout, the socket is closed, whether or not the server is alive.

// ErrSilent means that a call was not sent because the server answered neither calls nor a probe.
var ErrSilent = errors.New("the server is silent and does not answer a probe on a new connection")

// maxProbeReply bounds what is read of the reply to a probe.
const maxProbeReply = 64 << 10

// A prober checks whether a silent server is alive. It is owned by the sweeper.
type prober struct {
	running bool
	needed  bool // a socket has been silent for half of the stall timeout
	next    time.Duration
	alive   chan bool // capacity 1: the result
}

// suspect records whether s owes replies and has been silent for half of the stall timeout. Only
// the sweeper calls it.
func (e *Engine) suspect(s *socket, now time.Duration) {
	w := &s.watch
	w.suspect = now-w.since >= e.cfg.StallTimeout/2
	if w.suspect {
		e.prober.needed = true
	} else {
		e.mute(s, false)
	}
}

// mute sets whether s rejects new calls. Only the sweeper calls it.
func (e *Engine) mute(s *socket, mute bool) {
	if s.life.muted.Load() == mute {
		return
	}
	s.mu.Lock()
	s.life.muted.Store(mute)
	s.mu.Unlock()
	e.changes.send()
}

// runProbe starts a probe if one is needed, and applies the result of the last one. Only the
// sweeper calls it.
func (e *Engine) runProbe(now time.Duration) {
	p := &e.prober
	select {
	case alive := <-p.alive:
		p.running = false
		p.next = now + e.cfg.StallTimeout/2
		for _, s := range e.list.Load().sockets {
			if s != nil && s.watch.suspect {
				if alive {
					s.watch.since = now
				}
				e.mute(s, !alive)
			}
		}
	default:
	}
	if !p.needed || p.running || now < p.next {
		return
	}
	p.needed, p.running = false, true
	if p.alive == nil {
		p.alive = make(chan bool, 1)
	}
	e.sweeping.probes.Add(1)
	e.keepers.Add(1)
	// Stopped by its timeout or by Close, which waits for it.
	go func() {
		defer e.keepers.Done()
		p.alive <- e.probe() == nil
		e.wakeSweeper(true)
	}()
}

// probe opens a connection, sends a request, and waits for a reply. It returns nil if one comes.
func (e *Engine) probe() error {
	ctx, cancel := context.WithTimeout(e.ctx, e.cfg.StallTimeout)
	defer cancel()
	return contain(func() error {
		conn, err := e.cfg.Dial(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		rest, err := e.cfg.Protocol.Greet(ctx, conn)
		if err != nil {
			return fmt.Errorf("greeting: %w", err)
		}
		t := &e.cfg.Traits
		frame := t.AppendProbe(nil)
		if t.Match == ByTicket {
			t.PutTicket(frame, t.GreetingTicket())
		}
		if ctx.Err() != nil { // a greeting may have reset the deadline
			return ctx.Err()
		}
		if _, err := conn.Write(frame); err != nil {
			return err
		}
		scanner := e.cfg.Protocol.NewScanner()
		b := append(make([]byte, 0, max(len(rest), minRead)), rest...)
		for {
			whole, err := skipToReply(scanner, &b)
			if whole || err != nil {
				return err
			}
			if len(b) == cap(b) {
				b = append(b, make([]byte, len(b))...)[:len(b)]
			}
			n, err := conn.Read(b[len(b):min(cap(b), maxProbeReply)])
			if b = b[:len(b)+n]; n == 0 && err != nil {
				return err
			}
		}
	})
}

// skipToReply reports whether b contains a whole reply, or enough of one to prove that the server is alive. It
// drops the messages before the reply.
func skipToReply(scanner Scanner, b *[]byte) (bool, error) {
	for len(*b) > 0 {
		f, err := scanner.Scan(*b)
		switch {
		case err != nil:
			return false, err
		case f.Verdict == Done || len(*b) >= maxProbeReply:
			return true, nil
		case f.Verdict == More:
			return false, nil
		case f.Len <= 0 || f.Len > len(*b):
			return false, fmt.Errorf("protocol: scanner found a message of %d bytes in %d", f.Len, len(*b))
		}
		*b = append((*b)[:0], (*b)[f.Len:]...)
	}
	return false, nil
}
