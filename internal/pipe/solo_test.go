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

// systemSockets calls f with each kind of connection that can be written without blocking, and each kind of
// protocol.
func systemSockets(t *testing.T, f func(t *testing.T, network string, tickets bool)) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
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
		if err := s.echo(context.Background(), e, "ralone"); err != nil {
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

// Lone and overlapping calls, futures, and calls that are given up are interleaved: the role passes
// from one goroutine to another, and no caller misses a reply.
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
					// Usually only one of them runs, so its calls do not overlap.
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
		t.Logf("callers read %d of %d replies themselves", v.SoloReplies, v.Replies)
		if v.SoloReplies == 0 || v.SoloReplies == v.Replies || v.Reconnects != 0 {
			t.Errorf("snapshot: %+v", v)
		}
		checkBalanced(t, e)
	})
}

// anyCall makes a call in the given way.
func (s *toyServer) anyCall(t *testing.T, way int, e *Engine, body string) {
	switch way {
	case 0: // a future
		c := s.newCall(e, body)
		if err := e.Start(t.Context(), c); err != nil {
			t.Error(err)
		} else if err := c.Wait(); err != nil || s.replyOf(c) != body {
			t.Errorf("sent %q, got %q, %v", body, c.Reply(), err)
		}
		c.Release()
	case 1: // two together
		cs := []*Call{s.newCall(e, body), s.newCall(e, body+"+")}
		if err := e.DoAll(t.Context(), cs); err != nil || s.replyOf(cs[1]) != body+"+" {
			t.Errorf("sent %q twice, got %q, %v", body, cs[1].Reply(), err)
		}
		cs[0].Release()
		cs[1].Release()
	case 3: // while the role is taken back by the keeper
		if pin, err := e.PinNow(); err == nil {
			pin.Listen(true)
			defer pin.Listen(false)
		}
		if err := s.echo(t.Context(), e, body); err != nil {
			t.Error(err)
		}
	case 2: // a call that may be given up
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Microsecond)
		if err := s.echo(ctx, e, body); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
	default:
		if err := s.echo(t.Context(), e, body); err != nil {
			t.Error(err)
		}
	}
}

// The server closes the connection while no goroutine reads: the next call, however it is made, fails as not
// sent or succeeds on another connection.
func TestHangUpWhileTheRoleIsFree(t *testing.T) {
	systemSockets(t, func(t *testing.T, network string, tickets bool) {
		for way := range 4 {
			s := startToy(t, &toyServer{network: network, tickets: tickets})
			e := s.engine(soloSoon)
			freeRole(t, s, e)
			s.closeConns()
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
			if err := s.echo(t.Context(), e, "rnext"); err != nil {
				t.Errorf("way %d, next call: %v", way, err)
			}
		}
	})
}

// A surplus reply that arrives while no call is in flight, whole or in parts, is never delivered to the next
// caller.
func TestSurplusReplyWhileIdle(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		for _, way := range []int{0, 1, 5} {
			for _, part := range []int{100, 6, 1} {
				s := startToy(t, &toyServer{network: network, tickets: tickets})
				e := s.engine(soloSoon)
				if network == "" {
					if err := s.echo(t.Context(), e, "rx"); err != nil {
						t.Fatal(err)
					}
				} else {
					freeRole(t, s, e)
				}
				p := s.last()
				surplus := toyRequest{peer: p, ticket: 1 << 40}.frame("rsurplus") // a ticket that no call ever had
				part := min(part, len(surplus))
				p.mu.Lock() // so that its reply to the call follows the surplus reply
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
						s.echo(t.Context(), e, "rx") // so that a goroutine reads
						return errors.New("the connection is still trusted")
					}
					return nil
				})
				e.Close()
			}
		}
	})
}

// If a surplus reply and the right one arrive in the same read, they cannot be distinguished, so
// neither is delivered.
func TestSurplusReplyInTheSameRead(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		if tickets {
			return // tickets identify the replies
		}
		for _, solo := range []bool{false, true} {
			var hostile atomic.Bool
			s := startToy(t, &toyServer{network: network, handle: func(r toyRequest) {
				if hostile.Load() {
					r.peer.send(append(r.frame("rsurplus"), r.frame(r.body)...))
				} else {
					r.reply(r.body)
				}
			}})
			e := s.engine(soloSoon)
			if solo && network != "" {
				freeRole(t, s, e)
			}
			hostile.Store(true)
			if err := s.echo(t.Context(), e, "rmine"); !errors.Is(err, ErrUnsolicited) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
				t.Errorf("solo %v: %v", solo, err)
			}
			checkBalanced(t, e)
		}
	})
}

// Pushes that arrive while no goroutine reads are handled at the next call, or soon.
func TestPushesWhileTheRoleIsFree(t *testing.T) {
	systemSockets(t, func(t *testing.T, network string, tickets bool) {
		s := startToy(t, &toyServer{network: network, tickets: tickets})
		pushes := make(chan string, 1000)
		e := s.engine(func(c *Config) {
			soloSoon(c)
			c.StallTimeout = 200 * time.Millisecond // so that the idle interval is 20 ms
			c.OnPush = func(_ Pin, f []byte) { pushes <- toyScanner{tickets: tickets}.body(f) }
		})
		freeRole(t, s, e)
		p := s.last()
		push := toyRequest{peer: p}.frame("phello")
		for i := range 3 {
			p.mu.Lock()
			p.conn.Write(push)
			p.conn.Write(push[:7+i]) // followed by a part of the next one
			ended := make(chan error)
			go func() { ended <- s.echo(t.Context(), e, "rx") }()
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
						t.Errorf("the push is %q", got)
					}
				case <-time.After(5 * time.Second):
					t.Fatal("a push was not handled")
				}
			}
		}
		if v := e.Snapshot(); v.Pushes != 6 {
			t.Errorf("%d pushes", v.Pushes)
		}
	})
}

// The loan of the role ends when no caller uses it: then the keeper notices that the server is gone.
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
		s.closeConns()
		testkit.Eventually(t, 5*time.Second, func() error {
			if e.Snapshot().Reconnects == 0 {
				return errors.New("the engine has not noticed that the server is gone")
			}
			return nil
		})
	})
}

// The keeper of a connection that is listened to reads it even if calls come one at a time. It gets
// the role immediately.
func TestListen(t *testing.T) {
	systemSockets(t, func(t *testing.T, network string, tickets bool) {
		s := startToy(t, &toyServer{network: network, tickets: tickets})
		e := s.engine(func(c *Config) { soloSoon(c); c.StallTimeout = -1 })
		sock := freeRole(t, s, e)
		(Pin{sock}).Listen(true)
		for i := range 20 {
			sock.mu.Lock()
			got := sock.role
			sock.mu.Unlock()
			if got != roleKeeper {
				t.Fatalf("call %d: the role is %d", i, got)
			}
			if err := s.echo(t.Context(), e, "rlistened"); err != nil {
				t.Fatal(err)
			}
		}
		(Pin{sock}).Listen(false)
		if again := freeRole(t, s, e); again != sock {
			t.Error("the connection was replaced")
		}
		checkBalanced(t, e)
	})
}

// A caller that reads its own reply gives the connection to the keeper if it is listened to by then.
func TestListenWhileACallerReads(t *testing.T) {
	systemSockets(t, func(t *testing.T, network string, tickets bool) {
		var held holder
		s := startToy(t, &toyServer{network: network, tickets: tickets, handle: func(r toyRequest) {
			if r.body == "rhold" {
				held.handle(r)
				return
			}
			r.reply(r.body)
		}})
		e := s.engine(func(c *Config) { soloSoon(c); c.StallTimeout = -1 })
		sock := freeRole(t, s, e)
		done := make(chan error, 1)
		go func() { done <- s.echo(t.Context(), e, "rhold") }() // ends with the reply
		held.wait(t, 1)
		(Pin{sock}).Listen(true)
		held.release(1)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		sock.mu.Lock()
		defer sock.mu.Unlock()
		if sock.role != roleKeeper {
			t.Errorf("after the reply the role is %d, want that of the keeper, %d", sock.role, roleKeeper)
		}
	})
}

// Close ends a connection and its calls, and the next calls use another one.
func TestCloseConnection(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		var held holder
		s := startToy(t, &toyServer{network: network, tickets: tickets, handle: held.handle})
		e := s.engine(nil)
		c := s.newCall(e, "rhold")
		if err := e.Start(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		held.wait(t, 1)
		pin, err := e.Pin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cause := errors.New("not needed")
		pin.Close(cause)
		pin.Close(errors.New("again"))
		if err := c.Wait(); !errors.Is(err, cause) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
			t.Errorf("the error is %v", err)
		}
		c.Release()
		if err := s.echo(t.Context(), e, "rnext"); err != nil {
			t.Error(err)
		}
	})
}

// Connections that are not system sockets are written by the writer and read only by the keeper.
func TestPipesGoThroughTheWriter(t *testing.T) {
	testkit.NoLeaks(t)
	for _, tickets := range []bool{false, true} {
		s := startToy(t, &toyServer{tickets: tickets})
		e := s.engine(func(c *Config) {
			soloSoon(c)
			c.Dial = func(context.Context) (net.Conn, error) {
				client, server := net.Pipe()
				s.accept(server)
				return client, nil
			}
		})
		var wg sync.WaitGroup
		for g := range 5 {
			wg.Go(func() {
				for i := range 200 {
					if err := s.echo(t.Context(), e, fmt.Sprintf("r%d/%d", g, i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for range 20 {
			if err := s.echo(t.Context(), e, "ralone"); err != nil {
				t.Error(err)
			}
		}
		if v := e.Snapshot(); v.SoloReplies != 0 || v.Replies != 1020 {
			t.Errorf("snapshot: %+v", v)
		}
		checkBalanced(t, e)
	}
}
