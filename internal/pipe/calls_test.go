package pipe

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A TLS connection is written by the writer. Frames of all sizes arrive whole and in order, and interrupting
// the reader with a deadline does not break the connection.
func TestTLS(t *testing.T) {
	testkit.NoLeaks(t)
	certificate := testkit.SelfSigned(t, &x509.Certificate{DNSNames: []string{"toy"}}).Certificate
	for _, tickets := range []bool{false, true} {
		s := startToy(t, &toyServer{network: "tcp", tickets: tickets})
		front := startToy(t, &toyServer{tickets: tickets})
		e := s.engine(func(c *Config) {
			soloSoon(c)
			c.StallTimeout = 200 * time.Millisecond // so that the buffer of a burst is released after 20 ms
			c.Dial = func(ctx context.Context) (net.Conn, error) {
				client, server := net.Pipe()
				front.accept(tls.Server(server, &tls.Config{Certificates: []tls.Certificate{certificate}}))
				conn := tls.Client(client, &tls.Config{InsecureSkipVerify: true})
				return conn, conn.HandshakeContext(ctx)
			}
		})
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 30 {
					body := fmt.Sprintf("r%d/%d%s", g, i, strings.Repeat("x", i*i*i*2))
					if err := s.echo(context.Background(), e, body); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		sock := socketAt(e, 0)
		testkit.Eventually(t, 5*time.Second, func() error {
			if sock.in.bulky.Load() {
				return errors.New("the buffer of the burst is not released")
			}
			return nil
		})
		for range 10 {
			if err := s.echo(t.Context(), e, "rafter"); err != nil {
				t.Error(err)
			}
		}
		if v := e.Snapshot(); v.SoloReplies != 0 || v.Reconnects != 0 {
			t.Errorf("snapshot: %+v", v)
		}
		checkBalanced(t, e)
	}
}

// Copied and linked requests are mixed with replies that are stored in the call, are copied, or take over the
// read buffer.
func TestSizes(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		s := startToy(t, &toyServer{network: network, tickets: tickets, handle: func(r toyRequest) {
			// "r<n>,..." requests a reply of n bytes.
			var n int
			fmt.Sscanf(r.body, "r%d", &n)
			r.reply(sizedBody(n))
		}})
		e := s.engine(nil)
		r := testkit.Rand(t)
		sizes := []int{1, 40, 60, 64, 65, 500, 4096, linkedFrame - 20, linkedFrame, directReply + 5, directReply + minRead + 5, 70_000, 200_000, 1_500_000}
		for round := range 30 {
			var cs []*Call
			var want []string
			for range 1 + r.IntN(12) {
				out, in := sizes[r.IntN(len(sizes)-1)], sizes[r.IntN(len(sizes))]
				c := s.newCall(e, fmt.Sprintf("r%d,%s", in, strings.Repeat("y", out)))
				cs, want = append(cs, c), append(want, sizedBody(in))
				if r.IntN(10) == 0 {
					break
				}
			}
			var err error
			if round%2 == 0 {
				err = e.DoAll(t.Context(), cs)
			} else {
				for _, c := range cs {
					if err := e.Start(t.Context(), c); err != nil {
						t.Fatal(err)
					}
				}
				for _, c := range cs {
					err = errors.Join(err, c.Wait())
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range cs {
				if got := s.replyOf(c); got != want[i] {
					t.Fatalf("a reply has %d bytes, want %d", len(got), len(want[i]))
				}
			}
			for _, c := range cs {
				c.Release()
			}
		}
		checkBalanced(t, e)
	})
}

func sizedBody(n int) string {
	return "r" + strings.Repeat(fmt.Sprint(n, "."), n/2+1)[:n]
}

// Calls without a reply end when they are written, before and after other calls.
func TestOneWay(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		var got atomic.Int64
		s := startToy(t, &toyServer{network: network, tickets: tickets, handle: func(r toyRequest) {
			if r.body[1] == 'o' {
				got.Add(1)
			} else {
				r.reply(r.body)
			}
		}})
		e := s.engine(soloSoon)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := range 100 {
					c := s.newCall(e, "ro"+strings.Repeat("x", i*i))
					c.OneWay = true
					other := s.newCall(e, "rx")
					switch i % 3 {
					case 0:
						if err := e.Do(t.Context(), c); err != nil {
							t.Error(err)
						}
					case 1:
						if err := e.DoAll(t.Context(), []*Call{c, other}); err != nil {
							t.Error(err)
						}
					case 2:
						if err := e.DoAll(t.Context(), []*Call{other, c}); err != nil {
							t.Error(err)
						}
					}
					c.Release()
					other.Release()
				}
			})
		}
		wg.Wait()
		// A large call without others: no later reply signals that it was written.
		for range 20 {
			if err := s.echo(t.Context(), e, "ralone"); err != nil {
				t.Fatal(err)
			}
		}
		c := s.newCall(e, "ro"+strings.Repeat("x", 8<<20))
		c.OneWay = true
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := e.Do(ctx, c); err != nil {
			t.Error(err)
		}
		c.Release()
		testkit.Eventually(t, 5*time.Second, func() error {
			if n := got.Load(); n != 401 {
				return fmt.Errorf("%d requests arrived", n)
			}
			return nil
		})
		if v := e.Snapshot(); v.OneWays != 401 || v.HeldBytes != 0 {
			t.Errorf("snapshot: %+v", v)
		}
		checkBalanced(t, e)
	})
}

// Completers may panic, be slow, and submit again.
func TestCompleters(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		s := startToy(t, &toyServer{network: network, tickets: tickets})
		e := s.engine(soloSoon)
		var wg sync.WaitGroup
		submit := func(body string, k completerFunc) {
			wg.Add(1)
			c := s.newCall(e, body)
			if err := e.StartFunc(context.Background(), c, k); err != nil {
				t.Error(err)
				wg.Done()
			}
		}
		var chain func(n int) completerFunc
		chain = func(n int) completerFunc {
			return func(c *Call) {
				defer wg.Done()
				if want := fmt.Sprint("rchain", n); c.Err() != nil || s.replyOf(c) != want {
					t.Errorf("%q: %q, %v", want, c.Reply(), c.Err())
				}
				c.Release()
				if n > 0 {
					submit(fmt.Sprint("rchain", n-1), chain(n-1))
				}
			}
		}
		for range 3 {
			submit("rchain50", chain(50))
			submit("rpanic", func(c *Call) { defer wg.Done(); c.Release(); panic("the user's code") })
			submit("rslow", func(c *Call) { defer wg.Done(); time.Sleep(2 * time.Millisecond); c.Release() })
			for range 10 {
				if err := s.echo(t.Context(), e, "ramong them"); err != nil {
					t.Error(err)
				}
			}
		}
		wg.Wait()
		// The sweeper completes a given-up call once.
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 2)
		c := s.newCall(e, "rgiven up")
		startErr := e.StartFunc(ctx, c, completerFunc(func(c *Call) { results <- c.Err(); c.Release() }))
		cancel()
		if startErr != nil {
			t.Fatal(startErr)
		}
		if err := <-results; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := s.echo(t.Context(), e, "rlast"); err != nil {
			t.Error(err)
		}
		if v := e.Snapshot(); v.CompleterPanics != 3 || v.SlowCompleters < 3 || len(results) != 0 {
			t.Errorf("%d panics, %d slow completers", v.CompleterPanics, v.SlowCompleters)
		}
		checkBalanced(t, e)
	})
}

// A scanner that fails, returns invalid frames or panics ends the connection, not the process, even if a lone
// caller reads.
func TestScannersThatFail(t *testing.T) {
	testkit.NoLeaks(t)
	for _, network := range []string{"", "unix"} {
		for name, scan := range map[string]struct {
			scan func([]byte) (Frame, error)
			want string
		}{
			"error":    {func([]byte) (Frame, error) { return Frame{}, errors.New("garbage") }, "garbage"},
			"panic":    {func([]byte) (Frame, error) { panic("oh") }, "panic: oh"},
			"nothing":  {func([]byte) (Frame, error) { return Frame{}, nil }, "a message of 0 bytes"},
			"negative": {func([]byte) (Frame, error) { return Frame{Len: -5, Verdict: Push}, nil }, "a message of -5 bytes"},
			"too long": {func(b []byte) (Frame, error) { return Frame{Len: len(b) + 1}, nil }, "scanner found a message of"},
		} {
			for _, solo := range []bool{false, true} {
				var evil atomic.Bool
				s := startToy(t, &toyServer{network: network})
				e := s.engine(func(c *Config) {
					soloSoon(c)
					c.Protocol = badProtocol{scan: func(b []byte) (Frame, error) {
						if evil.Load() {
							return scan.scan(b)
						}
						return toyScanner{}.Scan(b)
					}}
				})
				if solo && network != "" {
					freeRole(t, s, e)
				}
				evil.Store(true)
				err := s.echo(t.Context(), e, "rx")
				if err == nil || !strings.Contains(err.Error(), scan.want) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
					t.Errorf("%s, solo %v: %v", name, solo, err)
				}
				evil.Store(false)
				if err := s.echo(t.Context(), e, "rx"); err != nil {
					t.Errorf("%s, solo %v, next call: %v", name, solo, err)
				}
				checkBalanced(t, e)
			}
		}
	}
}

// A push handler that panics ends at most its connection, and the next call succeeds.
func TestPushHandlerThatPanics(t *testing.T) {
	testkit.NoLeaks(t)
	for _, network := range []string{"", "unix"} {
		for _, early := range []bool{false, true} {
			s := startToy(t, &toyServer{network: network, handle: func(r toyRequest) {
				if r.body == "rpush" {
					r.peer.send(r.frame("poh"))
				}
				r.reply(r.body)
			}})
			e := s.engine(func(c *Config) { soloSoon(c); c.OnPush = func(Pin, []byte) { panic("the user's code") } })
			if network != "" {
				freeRole(t, s, e)
			}
			body := "rpush"
			if early {
				s.last().send(appendToy(nil, "poh"))
				time.Sleep(time.Millisecond)
				body = "rx"
			}
			if err := s.echo(t.Context(), e, body); err != nil && !strings.Contains(err.Error(), "panic: the user's code") {
				t.Errorf("early %v: %v", early, err)
			}
			if err := s.echo(t.Context(), e, "rx"); err != nil {
				t.Errorf("early %v, next call: %v", early, err)
			}
		}
	}
}

// A reply that claims a huge length does not cause a huge allocation, and a server that answers an unknown
// ticket is no longer trusted.
func TestHostileReplies(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		for name, traits := range hostileTraits(tickets) {
			t.Run(name, func(t *testing.T) { testHostileReplies(t, network, tickets, traits) })
		}
	})
}

// hostileTraits returns protocols that a hostile server may speak: one with the traits of the toy, and, if it has tickets,
// one that uses all of them.
func hostileTraits(tickets bool) map[string]func(*Traits) {
	all := map[string]func(*Traits){"plain": func(*Traits) {}}
	if tickets {
		all["all traits"] = func(t *Traits) {
			t.TicketBits, t.FirstTicket, t.Depth, t.FirstDepth, t.Place, t.AlwaysRead = 32, 1, 512, 64, LeastOutstanding, true
			t.AppendProbe = func(b []byte) []byte { return appendToyTicket(b, "r!probe") }
			t.Streams = toyStreamTraits()
			t.Streams.AppendCredit = func(b []byte, n int) []byte { return appendToyTicket(b, fmt.Sprint("c", n)) }
			t.Streams.Window, t.Streams.Credited, t.Streams.FirstCredit = 64<<10, true, 64<<10
			t.Streams.Cost = func(frame []byte, size int) int { return size - 4 }
		}
	}
	return all
}

func testHostileReplies(t *testing.T, network string, tickets bool, traits func(*Traits)) {
	var answer atomic.Value
	s := startToy(t, &toyServer{network: network, tickets: tickets, handle: func(r toyRequest) {
		if f, ok := answer.Load().(func(toyRequest)); ok && f != nil {
			f(r)
		} else {
			r.reply(r.body)
		}
	}})
	e := s.engine(func(c *Config) {
		c.Timeout = 100 * time.Millisecond
		traits(&c.Traits)
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	answer.Store(func(r toyRequest) {
		r.peer.send(append(binary.BigEndian.AppendUint32(nil, 1<<31), 'r', 'x'))
	})
	if err := s.echo(t.Context(), e, "rx"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a reply of 2 GiB: %v", err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 4*growStep {
		t.Errorf("a claimed length of 2 GiB allocated %d bytes", got)
	}
	if !tickets {
		return
	}
	for name, ticket := range map[string]func(uint64) uint64{
		"another slot":       func(n uint64) uint64 { return n + 1 },
		"another generation": func(n uint64) uint64 { return n + 1<<slotBits },
		"no slot":            func(uint64) uint64 { return slotMask - 1 },
	} {
		s.closeConns()
		answer.Store(func(r toyRequest) {
			right := r.frame(r.body) // in the same read, so it is not trusted either
			r.ticket = ticket(r.ticket)
			r.peer.send(append(right, r.frame(r.body)...))
		})
		testkit.Eventually(t, 5*time.Second, func() error {
			if err := s.echo(t.Context(), e, "rx"); !errors.Is(err, ErrUnsolicited) {
				return fmt.Errorf("%s: %v", name, err) // perhaps on the connection that was closed
			}
			return nil
		})
	}
	answer.Store(func(r toyRequest) { r.reply(r.body) })
	testkit.Eventually(t, 5*time.Second, func() error { return s.echo(t.Context(), e, "rx") })
	checkBalanced(t, e)
}

// ticketOf returns the ticket of a call on the engine's only socket.
func ticketOf(e *Engine, c *Call) uint64 {
	s := socketAt(e, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls.slots.ticket(c.slot)
}

// A reply to a ticket whose request was not written yet is not delivered.
func TestReplyToAQueuedTicket(t *testing.T) {
	testkit.NoLeaks(t)
	k := startHolding(t, "unix", true)
	e := k.engine(func(c *Config) { oneFactor(c); c.FailFast = true }) // so that the queued call does not move
	setRoundTrip(e, time.Second)
	k.outstanding(e, 4)
	queued := k.start(t.Context(), e, "rqueued")
	if v := e.Snapshot(); v.Queued != 1 {
		t.Fatalf("%d calls are queued, want 1", v.Queued)
	}
	k.last().send(toyRequest{peer: k.last(), ticket: ticketOf(e, queued[0])}.frame("rguessed"))
	if err := queued[0].Wait(); !errors.Is(err, ErrUnsolicited) || slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("the queued call: %v, %q", err, queued[0].Reply())
	}
	queued[0].Release()
	checkBalanced(t, e)
}

// Two sockets share the calls, and each keeps their order.
func TestSeveralSockets(t *testing.T) {
	testkit.NoLeaks(t)
	var mu sync.Mutex
	peers := map[*toyPeer]int{}
	s := startToy(t, &toyServer{network: "unix", handle: func(r toyRequest) {
		mu.Lock()
		peers[r.peer]++
		mu.Unlock()
		r.reply(r.body)
	}})
	e := s.engine(func(c *Config) { c.Sockets = 3 })
	testkit.Eventually(t, 5*time.Second, func() error {
		if n := e.Snapshot().Connected; n != 3 {
			return fmt.Errorf("%d sockets are connected", n)
		}
		return nil
	})
	var wg sync.WaitGroup
	for g := range 10 {
		wg.Go(func() {
			for i := range 200 {
				if err := s.echo(t.Context(), e, fmt.Sprintf("r%d/%d", g, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	if len(peers) != 3 {
		t.Errorf("%d of 3 sockets were used", len(peers))
	}
	checkBalanced(t, e)
}

// A repeated call sends the same frame, and a reply is valid until Release.
func TestCallsMayBeRepeated(t *testing.T) {
	testkit.NoLeaks(t)
	s := startToy(t, &toyServer{})
	e := s.engine(nil)
	c := s.newCall(e, "rtwice"+strings.Repeat("x", 200))
	frame := bytes.Clone(c.Frame)
	for range 3 {
		if err := e.Do(t.Context(), c); err != nil || !bytes.Equal(c.Reply(), frame) {
			t.Fatalf("%q, %v", c.Reply(), err)
		}
	}
	reply := c.Reply()
	for range 100 {
		if err := s.echo(t.Context(), e, "rother"+strings.Repeat("y", 200)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(reply, frame) {
		t.Error("the reply changed before Release")
	}
	c.Release()
}
