package pipe

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
)

// pingless is a protocol without a ping.
type pingless struct{ Protocol }

func (pingless) AppendPing(b []byte) []byte { return b }

// silentServer is a server in virtual time that ignores the requests on some of its connections.
type silentServer struct {
	mu    sync.Mutex
	dials int
	mute  func(dial int, body string) bool
	late  []toyRequest // unanswered
}

func (h *silentServer) engine(t *testing.T, tickets bool, change func(*Config)) *Engine {
	var servers sync.WaitGroup
	traits := toyTraits(tickets)
	kind := &toyServer{tickets: tickets}
	traits.AppendProbe = func(b []byte) []byte { return kind.appendRequest(b, "r!probe") }
	cfg := Config{Protocol: pingless{kind.protocol()}, Traits: traits, StallTimeout: time.Second, Dial: func(context.Context) (net.Conn, error) {
		client, server := newMemLink(faults{})
		h.mu.Lock()
		dial := h.dials
		h.dials++
		h.mu.Unlock()
		p := &toyPeer{conn: server, tickets: tickets}
		servers.Go(func() {
			p.serve(func(r toyRequest) {
				h.mu.Lock()
				defer h.mu.Unlock()
				if h.mute(dial, r.body) {
					h.late = append(h.late, r)
					return
				}
				r.reply(r.body)
			})
		})
		return client, nil
	}}
	change(&cfg)
	return connected(t, cfg, &servers)
}

// revive makes the server answer the requests it has ignored, and ignore no more of them.
func (h *silentServer) revive() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mute = func(int, string) bool { return false }
	for _, r := range h.late {
		r.reply(r.body)
	}
	h.late = nil
}

func (h *silentServer) start(t *testing.T, e *Engine) *Call {
	t.Helper()
	c := bubbleCall(e)
	if err := e.Start(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// A call may take any time: the server is probed on another connection, and if it is alive, the call continues.
func TestSlowCallsOfAServerWithoutPing(t *testing.T) {
	eachMatching(t, func(t *testing.T, tickets bool) {
		h := &silentServer{mute: func(dial int, body string) bool { return dial == 0 && body == "rx" }}
		e := h.engine(t, tickets, func(*Config) {})
		slow := h.start(t, e)
		time.Sleep(time.Minute)
		if v := e.Snapshot(); v.Probes < 10 || v.Stalls+v.Reconnects != 0 || v.Outstanding != 1 {
			t.Errorf("%d probes, %d stalls, %d reconnects, %d calls outstanding", v.Probes, v.Stalls, v.Reconnects, v.Outstanding)
		}
		h.start(t, e) // a new call is accepted
		h.revive()
		if err := slow.Wait(); err != nil {
			t.Error(err)
		}
		probes := e.Snapshot().Probes
		time.Sleep(time.Minute)
		if n := e.Snapshot().Probes; n > probes+1 {
			t.Errorf("%d probes while no call was outstanding", n-probes)
		}
	})
}

// In order, the calls after one that was given up wait for its reply. If nothing arrives for StallTimeout, the
// connection is closed, although the server answers probes. A call that is awaited keeps its connection open.
func TestGivenUpCallWithoutAReplyDoesNotBlockOthersForever(t *testing.T) {
	eachMatching(t, func(t *testing.T, tickets bool) {
		h := &silentServer{mute: func(dial int, body string) bool { return dial == 0 && body == "rx" }}
		e := h.engine(t, tickets, func(*Config) {})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		lost := bubbleCall(e)
		if err := e.Do(ctx, lost); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if v := e.Snapshot(); v.Stalls != 0 {
			t.Errorf("%d connections were closed while the call was awaited, want 0", v.Stalls)
		}
		time.Sleep(2 * time.Second) // the sweeper checks the stall timeout periodically
		if v := e.Snapshot(); tickets != (v.Stalls == 0) {
			t.Errorf("tickets %v: %d connections were closed after the call was given up", tickets, v.Stalls)
		}
		if c := bubbleCall(e); !tickets {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := e.Do(ctx, c); err != nil {
				t.Errorf("call on the next connection: %v", err)
			}
		}
	})
}

// emptyReads is a connection whose every other read returns no bytes and no error, which io.Reader allows.
type emptyReads struct {
	net.Conn
	reads int
}

func (c *emptyReads) Read(b []byte) (int, error) {
	if c.reads++; c.reads%2 == 1 {
		return 0, nil
	}
	return c.Conn.Read(b)
}

// Neither a read without bytes nor a connection that ends is an answer to a probe.
func TestProbeNeedsAReply(t *testing.T) {
	for _, ends := range []bool{false, true} {
		eachMatching(t, func(t *testing.T, tickets bool) {
			h := &silentServer{mute: func(int, string) bool { return true }}
			e := h.engine(t, tickets, func(c *Config) {
				dial := c.Dial
				c.Dial = func(ctx context.Context) (net.Conn, error) {
					conn, err := dial(ctx)
					if ends {
						time.AfterFunc(c.StallTimeout/2, func() { conn.Close() })
					}
					return &emptyReads{Conn: conn}, err
				}
			})
			if err := e.probe(); err == nil {
				t.Errorf("connections end: %v: a probe without a reply succeeded", ends)
			}
			h.revive()
			if err := e.probe(); err != nil {
				t.Errorf("connections end: %v: the probe that was answered: %v", ends, err)
			}
		})
	}
}

// A server that answers neither its calls nor the probe gets no new calls until data arrives from
// it. The calls in flight continue.
func TestSilentServerWithoutPingGetsNoNewCalls(t *testing.T) {
	for _, greets := range []bool{true, false} {
		for _, failFast := range []bool{true, false} {
			eachMatching(t, func(t *testing.T, tickets bool) {
				h := &silentServer{mute: func(int, string) bool { return true }}
				e := h.engine(t, tickets, func(c *Config) {
					c.FailFast = failFast
					dial, n := c.Dial, 0
					c.Dial = func(ctx context.Context) (net.Conn, error) {
						if n++; n > 1 && !greets {
							<-ctx.Done()
							return nil, ctx.Err()
						}
						return dial(ctx)
					}
				})
				old := h.start(t, e)
				time.Sleep(3 * time.Second)
				c := bubbleCall(e)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				err := e.Do(ctx, c)
				if slipstream.OutcomeOf(err) != slipstream.NotSent || failFast != errors.Is(err, ErrSilent) || !failFast && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("fail fast %v: %v", failFast, err)
				}
				if took := time.Since(began); failFast != (took == 0) {
					t.Errorf("fail fast %v: the call failed after %v", failFast, took)
				}
				c = bubbleCall(e)
				if err := e.StartFunc(context.Background(), c, pinged{}); !errors.Is(err, ErrSilent) || slipstream.OutcomeOf(err) != slipstream.NotSent {
					t.Errorf("call with a completer: %v", err)
				}
				if v := e.Snapshot(); v.Outstanding != 1 || v.Stalls+v.Reconnects != 0 {
					t.Errorf("%d outstanding, %d stalls, %d reconnects", v.Outstanding, v.Stalls, v.Reconnects)
				}
				time.AfterFunc(3*time.Second, h.revive)
				if !failFast {
					if err := e.Do(context.Background(), bubbleCall(e)); err != nil {
						t.Errorf("the call that waited: %v", err)
					}
				}
				if err := old.Wait(); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
				if err := e.Do(t.Context(), bubbleCall(e)); err != nil {
					t.Errorf("call after the server is back: %v", err)
				}
			})
		}
	}
}
