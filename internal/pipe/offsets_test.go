package pipe

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// threeCalls returns three calls with different bodies.
func threeCalls(s *toyServer, e *Engine) (cs []*Call, bodies []string) {
	bodies = []string{"rone", "rtwo is longer " + strings.Repeat("x", 70), "r3"}
	for _, b := range bodies {
		cs = append(cs, s.newCall(e, b))
	}
	return cs, bodies
}

// The connection is reset at every offset of either direction, with reads of every small size: a caller gets
// its own reply or an error, the error says to the byte whether the request may have been executed, and the
// next connection works.
func TestResetAtEveryOffset(t *testing.T) {
	testkit.NoLeaks(t)
	for _, tickets := range []bool{false, true} {
		probe := &toyServer{tickets: tickets}
		cs, _ := threeCalls(probe, &Engine{})
		total, starts := 0, []int{}
		for _, c := range cs {
			starts = append(starts, total)
			total += len(c.Frame)
		}
		for _, up := range []bool{true, false} {
			greeting := len("hello")
			if !up {
				greeting = len("ok")
			}
			for offset := 1; offset <= total; offset++ {
				s := startToy(t, &toyServer{tickets: tickets, faults: func(dial int) faults {
					f := faults{chunk: 1 + offset%7}
					switch {
					case dial > 0:
					case up:
						f.resetUp = greeting + offset
					default:
						f.resetDown = greeting + offset
					}
					return f
				}})
				e := s.engine(nil)
				cs, bodies := threeCalls(s, e)
				e.DoAll(t.Context(), cs)
				for i, c := range cs {
					checkReset(t, s, c, fmt.Sprintf("tickets %v, up %v, offset %d, call %d", tickets, up, offset, i), bodies[i], up && starts[i] >= offset)
				}
				if err := s.echo(t.Context(), e, "rnext"); err != nil {
					t.Errorf("the next call: %v", err)
				}
				checkBalanced(t, e)
				e.Close()
				if t.Failed() {
					return
				}
			}
		}
	}
}

func checkReset(t *testing.T, s *toyServer, c *Call, name, body string, unsent bool) {
	t.Helper()
	switch err := c.Err(); {
	case err == nil && s.replyOf(c) != body:
		t.Errorf("%s: sent %q, got %q", name, body, s.replyOf(c))
	case err == nil && unsent:
		t.Errorf("%s: the call succeeded, but its request was not sent", name)
	case err != nil && (slipstream.OutcomeOf(err) == slipstream.NotSent) != unsent:
		t.Errorf("%s: %v, want unsent: %v", name, err, unsent)
	}
	c.Release()
}

// The replies, with a push between them, arrive in two reads, split at every byte, and in one-byte reads.
func TestSplitAtEveryByte(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		k := startHolding(t, network, tickets)
		pushes := make(chan string, 1000)
		e := k.engine(func(c *Config) {
			c.OnPush = func(_ Pin, f []byte) { pushes <- toyScanner{tickets: tickets}.body(f) }
		})
		for at := 1; ; at++ {
			cs, bodies := threeCalls(k.toyServer, e)
			done := make(chan error, 1)
			go func() { done <- e.DoAll(t.Context(), cs) }()
			k.arrived(len(cs))
			k.mu.Lock()
			var all []byte
			for i, r := range k.seen {
				all = append(all, r.frame(r.body)...)
				if i == 0 {
					all = append(all, r.frame("ppush")...)
				}
			}
			k.seen = nil
			k.mu.Unlock()
			if at == len(all) {
				for _, b := range all { // one byte at a time
					k.last().send([]byte{b})
				}
			} else {
				k.last().send(all[:at])
				if at%4 == 0 {
					time.Sleep(200 * time.Microsecond)
				}
				k.last().send(all[at:])
			}
			if err := <-done; err != nil {
				t.Fatalf("split at %d: %v", at, err)
			}
			for i, c := range cs {
				if got := k.replyOf(c); got != bodies[i] {
					t.Errorf("split at %d: sent %q, got %q", at, bodies[i], got)
				}
				c.Release()
			}
			if got := <-pushes; got != "ppush" {
				t.Errorf("split at %d: the push is %q", at, got)
			}
			if at == len(all) {
				break
			}
		}
		checkBalanced(t, e)
	})
}

// A server that dies at any byte of its reply, which a lone caller reads: the call may have been executed, and
// the next call succeeds.
func TestLoneReaderCutAtEveryByte(t *testing.T) {
	systemSockets(t, func(t *testing.T, network string, tickets bool) {
		var cut atomic.Int64
		s := startToy(t, &toyServer{network: network, tickets: tickets, handle: func(r toyRequest) {
			if r.body != "rcut" {
				r.reply(r.body)
				return
			}
			f := r.frame("rcut")
			n := min(int(cut.Load()), len(f))
			if r.peer.send(f[:n]); n < len(f) {
				r.peer.reset()
			}
		}})
		e := s.engine(soloSoon)
		for n := range 17 {
			cut.Store(int64(n))
			freeRole(t, s, e)
			err := s.echo(t.Context(), e, "rcut")
			if whole := len("rcut") + 4; !tickets && n >= whole || tickets && n >= whole+8 {
				if err != nil {
					t.Errorf("a whole reply: %v", err)
				}
				continue
			}
			var timeout net.Error
			if slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || errors.As(err, &timeout) && timeout.Timeout() {
				t.Errorf("cut after %d bytes: %v", n, err)
			}
		}
		checkBalanced(t, e)
	})
}
