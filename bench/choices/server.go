package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/finetimer"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
)

// startLimit is how long the server may take to become ready, and to be filled.
const startLimit = 30 * time.Second

// A stage is the server to which the engines connect, one redis-server for the whole run. Owned by
// the goroutine that runs the questions.
type stage struct {
	scratch string
	server  *proc.Process // nil before it is started
	address string
	filled  map[int]bool // sizes for which values are stored
	delays  map[time.Duration]*faultproxy.Proxy
	fine    func() // ends fine timers; nil without them
}

func newStage(scratch string) *stage {
	return &stage{scratch: scratch, filled: map[int]bool{}, delays: map[time.Duration]*faultproxy.Proxy{}}
}

// open returns the address of a server that has values of that size and whose round trip takes
// delay longer.
func (s *stage) open(ctx context.Context, size int, delay time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if s.server == nil {
		if err := s.start(ctx); err != nil {
			return "", err
		}
	}
	if !s.filled[size] {
		if err := fill(ctx, s.address, size); err != nil {
			return "", fmt.Errorf("fill: %w", err)
		}
		s.filled[size] = true
	}
	if delay == 0 {
		return s.address, nil
	}
	return s.delayed(delay)
}

func (s *stage) start(ctx context.Context) error {
	address, err := proc.FreePort()
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.scratch, "redis-")
	if err != nil {
		return err
	}
	s.server, err = proc.Start(nil, "redis-server", "--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no")
	if err != nil {
		return fmt.Errorf("%w (make prepare installs it)", err)
	}
	s.address = address
	return s.server.Await(ctx, func(ctx context.Context) error { return ping(ctx, address) })
}

// delayed returns the address of a proxy that adds delay to a round trip.
func (s *stage) delayed(delay time.Duration) (string, error) {
	if p := s.delays[delay]; p != nil {
		return p.Addr(), nil
	}
	if s.fine == nil {
		var err error
		if s.fine, err = finetimer.Start(50 * time.Microsecond); err != nil {
			return "", err
		}
	}
	link := faultproxy.Link{Delay: delay / 2}
	p, err := faultproxy.Listen(s.address, faultproxy.Options{Plan: faultproxy.Always(faultproxy.Plan{Up: link, Down: link})})
	if err != nil {
		return "", err
	}
	s.delays[delay] = p
	return p.Addr(), nil
}

// endDelays ends the proxies, so that their timers do not disturb measurements without a delay.
func (s *stage) endDelays() error {
	var errs []error
	for delay, p := range s.delays {
		errs = append(errs, p.Close())
		delete(s.delays, delay)
	}
	if s.fine != nil {
		s.fine()
		s.fine = nil
	}
	return errors.Join(errs...)
}

func (s *stage) close() error {
	err := s.endDelays()
	if s.server != nil {
		err = errors.Join(err, s.server.Stop())
	}
	return err
}

// ping sends one PING over a separate connection.
func ping(ctx context.Context, address string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	_, err = protocol{}.Greet(ctx, conn)
	return err
}

// fill stores all values of a size through an engine.
func fill(ctx context.Context, address string, size int) error {
	e, err := setting{}.open(ctx, address)
	if err != nil {
		return err
	}
	defer e.Close()
	for first, n := 0, keysOf(size); first < n; first += 64 {
		if err := fillSome(ctx, e, size, first, min(first+64, n)); err != nil {
			return err
		}
	}
	return nil
}

func fillSome(ctx context.Context, e *pipe.Engine, size, first, last int) error {
	var calls []*pipe.Call
	for i := first; i < last; i++ {
		key := keyName(size, i)
		c := e.Acquire()
		c.Frame = appendSet(c.Frame[:0], key, valueOf(key, size))
		calls = append(calls, c)
	}
	err := e.DoAll(ctx, calls)
	for _, c := range calls {
		if err == nil && string(c.Reply()) != string(okReply) {
			err = fmt.Errorf("SET answered by %.60q, want %q", c.Reply(), okReply)
		}
		c.Release()
	}
	return err
}

// A silent server greets and then reads without answering.
type silent struct {
	listener net.Listener
	done     chan struct{}
}

func listenSilent() (*silent, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &silent{listener: l, done: make(chan struct{})}
	// Ends when its only client has disconnected or close closes the listener; close waits for it.
	go func() {
		defer close(s.done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		request := make([]byte, len(pingRequest))
		if _, err := io.ReadFull(conn, request); err != nil {
			return
		}
		if _, err := conn.Write(pongReply); err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, conn)
	}()
	return s, nil
}

// close ends the server. Its client has already disconnected.
func (s *silent) close() error {
	err := s.listener.Close()
	<-s.done
	return err
}
