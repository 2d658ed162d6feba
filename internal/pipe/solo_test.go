package pipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// systemSockets calls f with both kinds of connection that can be written
// without waiting, and both kinds of protocol.
func systemSockets(t *testing.T, f func(t *testing.T, network string, tickets bool)) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		if network != "" {
			f(t, network, tickets)
		}
	})
}

// freeRole makes calls until the reader's role is free.
func freeRole(t *testing.T, s *toyServer, e *Engine) *socket {
	t.Helper()
	var sock *socket
	testkit.Eventually(t, 5*time.Second, func() error {
		if err := s.ask(context.Background(), e, "ralone"); err != nil {
			return err
		}
		if sock = socketAt(e, 0); sock == nil {
			return errors.New("no socket")
		}
		sock.mu.Lock()
		defer sock.mu.Unlock()
		if sock.role != roleFree {
			return fmt.Errorf("the role is %d", sock.role)
		}
		return nil
	})
	return sock
}

func soloSoon(c *Config) { c.choices.SoloAfter = 3 }

// Callers that are alone, that overlap, that start and that give up, in turns: the
// role goes from hand to hand, and nobody misses a reply.
func TestRoleGoesFromHandToHand(t *testing.T) {
	systemSockets(t, func(t *testing.T, network string, tickets bool) {
		s := startToy(t, &toyServer{network: network, tickets: tickets})
		e := s.engine(soloSoon)
		seed := testkit.Seed(t)
		var active atomic.Int64
		var wg sync.WaitGroup
		for g := range 4 {
			r := testkit.Fork(seed, uint64(g))
			wg.Go(func() {
				for i := range 1500 {
					// Mostly one of them is awake: then it is alone.
					if active.Add(1) > 1 && r.IntN(4) > 0 {
						active.Add(-1)
						time.Sleep(time.Duration(r.IntN(100)) * time.Microsecond)
						continue
					}
					s.anyCall(t, r.IntN(20), e, fmt.Sprintf("r%d/%d", g, i))
					active.Add(-1)
				}
			})
		}
		wg.Wait()
		v := e.Snapshot()
		t.Logf("%d of %d replies were read by their caller", v.SoloReplies, v.Replies)
		if v.SoloReplies == 0 || v.SoloReplies == v.Replies || v.Reconnects != 0 {
			t.Errorf("%+v", v)
		}
		balanced(t, e)
	})
}

// anyCall makes a call in one of the ways there are.
func (s *toyServer) anyCall(t *testing.T, way int, e *Engine, body string) {
	switch way {
	case 0: // a future
		c := s.newCall(e, body)
		if err := e.Start(t.Context(), c); err != nil {
			t.Error(err)
		} else if err := c.Wait(); err != nil || s.replyOf(c) != body {
			t.Errorf("asked %q, got %q, %v", body, c.Reply(), err)
		}
		c.Release()
	case 1: // two at once
		cs := []*Call{s.newCall(e, body), s.newCall(e, body+"+")}
		if err := e.DoAll(t.Context(), cs); err != nil || s.replyOf(cs[1]) != body+"+" {
			t.Errorf("asked %q twice, got %q, %v", body, cs[1].Reply(), err)
		}
		cs[0].Release()
		cs[1].Release()
	case 2: // a call that is given up, perhaps
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Microsecond)
		if err := s.ask(ctx, e, body); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
	default:
		if err := s.ask(t.Context(), e, body); err != nil {
			t.Error(err)
		}
	}
}

// The server hangs up while nobody listens: the next call was not sent, or is
// answered on another connection, however it is made.
func TestHangUpWhileTheRoleIsFree(t *testing.T) {
	systemSockets(t, func(t *testing.T, network string, tickets bool) {
		for way := range 4 {
			s := startToy(t, &toyServer{network: network, tickets: tickets})
			e := s.engine(soloSoon)
			freeRole(t, s, e)
			s.hangUp()
			time.Sleep(5 * time.Millisecond)
			var err error
			c := s.newCall(e, "rnext")
			switch way {
			case 0:
				err = e.Do(t.Context(), c)
			case 1:
				err = e.DoAll(t.Context(), []*Call{c})
			case 2:
				if err = e.Start(t.Context(), c); err == nil {
					err = c.Wait()
				}
			case 3:
				done := make(chan struct{})
				if err = e.StartFunc(t.Context(), c, completerFunc(func(*Call) { close(done) })); err == nil {
					<-done
					err = c.Err()
				}
			}
			if err != nil && slipstream.OutcomeOf(err) != slipstream.NotSent {
				t.Errorf("way %d: %v", way, err)
			}
			c.Release()
			if err := s.ask(t.Context(), e, "rnext"); err != nil {
				t.Errorf("way %d, then: %v", way, err)
			}
		}
	})
}

// A reply too many that comes while nobody has asked never reaches a caller,
// whoever calls next, also if it comes in parts.
func TestSurplusReplyWhileIdle(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		for _, way := range []int{0, 1, 5} {
			for _, part := range []int{100, 6, 1} {
				s := startToy(t, &toyServer{network: network, tickets: tickets})
				e := s.engine(soloSoon)
				if network == "" {
					if err := s.ask(t.Context(), e, "rx"); err != nil {
						t.Fatal(err)
					}
				} else {
					freeRole(t, s, e)
				}
				p := s.last()
				surplus := toyRequest{peer: p, ticket: 1 << 40}.frame("rsurplus") // which no call had
				part := min(part, len(surplus))
				p.mu.Lock() // its answer to the call comes behind the surplus
				p.conn.Write(surplus[:part])
				time.Sleep(2 * time.Millisecond)
				ended := make(chan error, 1)
				go func() {
					c := s.newCall(e, "rmine")
					defer c.Release()
					var err error
					switch way {
					case 0:
						if err = e.Start(t.Context(), c); err == nil {
							err = c.Wait()
						}
					case 1:
						err = e.DoAll(t.Context(), []*Call{c})
					default:
						err = e.Do(t.Context(), c)
					}
					if err == nil && s.replyOf(c) != "rmine" {
						err = fmt.Errorf("got %q", s.replyOf(c))
					}
					ended <- err
				}()
				time.Sleep(time.Millisecond)
				p.conn.Write(surplus[part:])
				p.mu.Unlock()
				if err := <-ended; err != nil && !errors.Is(err, ErrUnsolicited) {
					t.Errorf("way %d, %d bytes first: %v", way, part, err)
				}
				testkit.Eventually(t, 5*time.Second, func() error {
					if e.Snapshot().Reconnects == 0 {
						s.ask(t.Context(), e, "rx") // somebody must listen
						return errors.New("the connection is still trusted")
					}
					return nil
				})
				e.Close()
			}
		}
	})
}

// A reply too many in one read with the right one: which is which is not known,
// so nobody gets either.
func TestSurplusReplyBesideTheRightOne(t *testing.T) {
	eachWay(t, func(t *testing.T, network string, tickets bool) {
		if tickets {
			return // they say whose they are
		}
		for _, solo := range []bool{false, true} {
			var evil atomic.Bool
			s := startToy(t, &toyServer{network: network, handle: func(r toyRequest) {
				if evil.Load() {
					r.peer.send(append(r.frame("rsurplus"), r.frame(r.body)...))
				} else {
					r.reply(r.body)
				}
			}})
			e := s.engine(soloSoon)
			if solo && network != "" {
				freeRole(t, s, e)
			}
			evil.Store(true)
			if err := s.ask(t.Context(), e, "rmine"); !errors.Is(err, ErrUnsolicited) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
				t.Errorf("solo %v: %v", solo, err)
			}
			balanced(t, e)
		}
	})
}

// Pushes that come while nobody listens are heard at the next call, or soon.
func TestPushesWhileTheRoleIsFree(t *testing.T) {
	systemSockets(t, func(t *testing.T, network string, tickets bool) {
		s := startToy(t, &toyServer{network: network, tickets: tickets})
		pushes := make(chan string, 1000)
		e := s.engine(func(c *Config) {
			soloSoon(c)
			c.StallTimeout = 200 * time.Millisecond // so that the idle pace is 20 ms
			c.OnPush = func(_ Pin, f []byte) { pushes <- toyScanner{tickets: tickets}.body(f) }
		})
		freeRole(t, s, e)
		p := s.last()
		push := toyRequest{peer: p}.frame("phello")
		for i := range 3 {
			p.mu.Lock()
			p.conn.Write(push)
			p.conn.Write(push[:7+i]) // and a part of the next
			ended := make(chan error)
			go func() { ended <- s.ask(t.Context(), e, "rx") }()
			time.Sleep(time.Millisecond)
			p.conn.Write(push[7+i:])
			p.mu.Unlock()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			for range 2 {
				select {
				case got := <-pushes:
					if got != "phello" {
						t.Errorf("a push of %q", got)
					}
				case <-time.After(5 * time.Second):
					t.Fatal("a push was not heard")
				}
			}
		}
		if v := e.Snapshot(); v.Pushes != 6 {
			t.Errorf("%d pushes", v.Pushes)
		}
	})
}

// A loan ends when nobody uses it: then the keeper hears an idle server.
func TestLoanEnds(t *testing.T) {
	systemSockets(t, func(t *testing.T, network string, tickets bool) {
		s := startToy(t, &toyServer{network: network, tickets: tickets})
		e := s.engine(func(c *Config) { soloSoon(c); c.StallTimeout = 100 * time.Millisecond })
		sock := freeRole(t, s, e)
		testkit.Eventually(t, 5*time.Second, func() error {
			sock.mu.Lock()
			defer sock.mu.Unlock()
			if sock.role != roleKeeper {
				return errors.New("the role is still lent")
			}
			return nil
		})
		s.hangUp()
		testkit.Eventually(t, 5*time.Second, func() error {
			if e.Snapshot().Reconnects == 0 {
				return errors.New("nobody hears that the server is gone")
			}
			return nil
		})
	})
}

// Connections that are not of the system go through the writer, and are read by
// the keeper alone.
func TestPipesGoThroughTheWriter(t *testing.T) {
	testkit.NoLeaks(t)
	for _, tickets := range []bool{false, true} {
		s := startToy(t, &toyServer{tickets: tickets})
		e := s.engine(func(c *Config) {
			soloSoon(c)
			c.Dial = func(context.Context) (net.Conn, error) {
				client, server := net.Pipe()
				s.take(server)
				return client, nil
			}
		})
		var wg sync.WaitGroup
		for g := range 5 {
			wg.Go(func() {
				for i := range 200 {
					if err := s.ask(t.Context(), e, fmt.Sprintf("r%d/%d", g, i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for range 20 {
			if err := s.ask(t.Context(), e, "ralone"); err != nil {
				t.Error(err)
			}
		}
		if v := e.Snapshot(); v.SoloReplies != 0 || v.Replies != 1020 {
			t.Errorf("%+v", v)
		}
		balanced(t, e)
	}
}
