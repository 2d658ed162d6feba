package loop_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// takeDetached waits for a connection that leaves the engine and returns it.
func (y *toy) takeDetached() handed {
	y.t.Helper()
	select {
	case h := <-y.detached:
		_ = h.nc.SetDeadline(time.Now().Add(10 * time.Second))
		y.t.Cleanup(func() { h.nc.Close() })
		return h
	case <-time.After(patience):
		y.t.Fatal("no connection was detached within a minute")
		return handed{}
	}
}

// Detach while earlier answers are deferred, with the stream cut at every byte: the answers come
// first, and everything after the request reaches the new owner.
func TestDetachAtEveryByte(t *testing.T) {
	const script, rest = "hold a\nb\nlater 2 c\ndetach\n", "what\nfollows"
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		text := script + rest
		for at := range len(text) + 1 {
			c := y.dial()
			c.send(text[:at])
			if at > 0 && at < len(text) {
				time.Sleep(time.Millisecond)
			}
			c.send(text[at:])
			r := y.hold()
			time.Sleep(3 * time.Millisecond)
			if len(y.detached) > 0 {
				t.Fatalf("cut at %d: detached while an answer is owed", at)
			}
			r.finish()
			c.want("a\nb\nc\n")
			h := y.takeDetached()
			if err := y.ended(); err != nil {
				t.Fatalf("cut at %d: Closed(%v) at Detach, want nil", at, err)
			}
			got := make([]byte, len(rest))
			n := copy(got, h.unread)
			if len(h.unread) > len(rest) {
				t.Fatalf("cut at %d: unread %q, want at most %q", at, h.unread, rest)
			}
			if _, err := io.ReadFull(h.nc, got[n:]); err != nil || string(got) != rest {
				t.Fatalf("cut at %d: the new owner read %q, %v, want %q", at, got, err, rest)
			}
			if _, err := io.WriteString(h.nc, "hello\n"); err != nil {
				t.Fatal(err)
			}
			c.want("hello\n")
			if n := y.server.Stats().Connections; n != 1 {
				t.Fatalf("%d connections count as open, want the detached one", n)
			}
			h.nc.Close()
			h.nc.Close()
			if n := y.server.Stats().Connections; n != 0 {
				t.Fatalf("%d connections count as open after Close, want 0", n)
			}
			c.wantEnd()
			c.Close()
		}
	})
}

// An answer may detach the connection while nothing is read.
func TestDetachByAnAnswer(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		for range 20 {
			c := y.dial()
			c.send("hold detach\na\n")
			y.hold().finish()
			c.want("a\n") // appended before Detach
			h := y.takeDetached()
			c.send("more\n")
			got := make([]byte, 5)
			if _, err := io.ReadFull(io.MultiReader(bytes.NewReader(h.unread), h.nc), got); err != nil || string(got) != "more\n" {
				t.Fatalf("the new owner read %q, %v, want %q", got, err, "more\n")
			}
			h.nc.Close()
		}
	})
}

// If Config.Detached is nil, a detached connection is closed.
func TestDetachWithoutOwner(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.Detached = nil })
		c := y.dial()
		c.send("a\ndetach\n")
		c.want("a\n")
		c.wantEnd()
	})
}

// A peer that sends no more gets all its answers, whatever state they are in.
func TestHalfClosedPeersGetTheirAnswers(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.MaxDeferred, c.MaxOutput = 4, 10_000 })
		for _, s := range []struct{ script, answers string }{
			{"", ""},
			{"a\n", "a\n"},
			{"later 30 a\nb\n", "a\nb\n"},
			{"a\nincomplete", "a\n"},
			{"id 30 a\nb\n", "b\na\n"},
			{strings.Repeat("later 1 a\n", 50), strings.Repeat("a\n", 50)},
			{strings.Repeat("big 9000\n", 100), strings.Repeat(string(pattern[:9000]), 100)},
		} {
			c := y.dial()
			if s.script != "" {
				c.send(s.script)
			} else if m.tls {
				c.send("\n")
				c.want("\n")
			}
			c.closeWrite()
			c.want(s.answers)
			c.wantEnd()
			if err := y.ended(); err != nil {
				t.Errorf("%.20q: closed with %v, want nil", s.script, err)
			}
		}
	})
}

// End half-closes the connection after the last answer and reads what the peer still sends, so that
// no reset destroys the answers in flight.
func TestEndReadsOn(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		for _, script := range []string{"hold a\nb\nend\n", "hold a\nhold end\nb\n"} {
			c := y.dial()
			c.send(script)
			replies := []*toyReply{y.hold()}
			if strings.Contains(script, "hold end") {
				replies = append(replies, y.hold())
			}
			var wg sync.WaitGroup
			// When the connection ends below, the peer does not know it yet and keeps sending.
			sendOn := func() {
				for range 20 {
					if _, err := c.Write(bytes.Repeat([]byte("x"), 10_000)); err != nil {
						t.Errorf("%q: sending after the end: %v, want the bytes to be read", script, err)
						return
					}
					time.Sleep(time.Millisecond)
				}
			}
			if len(replies) == 1 { // otherwise what is sent now is still a request
				wg.Go(sendOn)
				time.Sleep(20 * time.Millisecond)
			}
			for i := range replies {
				replies[len(replies)-1-i].finish()
			}
			c.want("a\nb\n")
			if len(replies) > 1 {
				wg.Go(sendOn)
			}
			wg.Wait()
			c.wantEnd()
			c.Close()
			if err := y.ended(); err != nil {
				t.Errorf("%q: closed with %v, want nil", script, err)
			}
		}
	})
}

// The server does not wait for a peer that never closes its side.
func TestEndIsBounded(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		c := y.dial()
		start := time.Now()
		c.send("a\nend\n")
		c.want("a\n")
		c.wantEnd()
		if err := y.ended(); err != nil {
			t.Errorf("closed with %v, want nil", err)
		}
		if took := time.Since(start); took < 900*time.Millisecond || took > 5*time.Second {
			t.Errorf("closed after %v, want about 1 s", took)
		}
	})
}

// A flood after End is not read forever.
func TestEndBoundsAFlood(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		c := y.dial()
		c.send("end\n")
		start := time.Now()
		for time.Since(start) < 10*time.Second {
			if _, err := c.Write(pattern[:64<<10]); err != nil {
				break
			}
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("the flood was read for %v, want about 1 s", took)
		}
	})
}

func TestAbort(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		for _, script := range []string{"abort\n", "hold a\nabort\nb\n", "now abort\n"} {
			c := y.dial()
			c.send(script)
			err := y.ended()
			var e *loop.CloseError
			if !errors.Is(err, errToy) || !errors.As(err, &e) || e.Reason != loop.ReasonAborted {
				t.Errorf("%q: closed with %v, want the reason aborted and %v", script, err, errToy)
			}
			if b, err := c.r.ReadByte(); err == nil {
				t.Errorf("%q: got %q, want nothing", script, b)
			}
		}
	})
}

// A peer that resets the connection is distinguished from one that closes it.
func TestReset(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		c := y.dial()
		c.send("hold a\n")
		defer y.hold().finish()
		if err := c.raw.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		c.raw.Close()
		if err := y.ended(); !errors.Is(err, loop.ErrReset) {
			t.Errorf("closed with %v, want %v", err, loop.ErrReset)
		}
	})
}

// lockedBuffer is a log to which several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A panic in a session ends only its connection and is logged.
func TestPanics(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		var log lockedBuffer
		y := startToy(t, m, func(c *loop.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		other := y.dial()
		other.send("a\n")
		other.want("a\n")
		for i, script := range []string{"panic\n", "hold x\npanic\n", "now panic\n", "later 5 panic\n", "hold x\nnow panic\nid 3 panic\n"} {
			c := y.dial()
			c.send(script)
			if b, err := c.r.ReadByte(); err == nil {
				t.Errorf("%q: got %q, want nothing", script, b)
			}
			var e *loop.CloseError
			if err := y.ended(); !errors.As(err, &e) || e.Reason != loop.ReasonAborted || !strings.Contains(err.Error(), "panic: toy") {
				t.Errorf("%q: closed with %v, want aborted by the panic", script, err)
			}
			if n := strings.Count(log.String(), "panicked"); n < i+1 {
				t.Errorf("%q: %d lines in the log, want %d", script, n, i+1)
			}
		}
		other.send("b\n")
		other.want("b\n")
	})
}

// angry is a session that panics in one of the methods that the engine calls.
type angry struct{ where string }

func (a angry) Data(c *loop.Conn, in []byte) int {
	switch a.where {
	case "consumed":
		return len(in) + 1
	case "negative":
		return -1
	case "drop":
		c.Defer(angryReply{}).Complete()
		c.Abort(errToy)
	case "data and closed":
		panic("angry")
	case "detached":
		c.Detach()
	default:
		c.End()
	}
	return len(in)
}

func (a angry) Closed(*loop.Conn, error) {
	if strings.Contains(a.where, "closed") {
		panic("angry")
	}
}

type angryReply struct{}

func (angryReply) Write(*loop.Conn) {}
func (angryReply) Drop()            { panic("angry") }

// A panic in any method that the engine calls is recovered, and the connection's place is free
// again.
func TestPanicsEverywhere(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		for _, where := range []string{"new", "closed", "data and closed", "onclose", "detached", "drop", "consumed", "negative"} {
			t.Run(where, func(t *testing.T) {
				var log lockedBuffer
				testkit.NoLeaks(t)
				y := startToy(t, m, func(c *loop.Config) {
					c.Log = slog.New(slog.NewTextHandler(&log, nil))
					c.New = func(*loop.Conn) loop.Session {
						if where == "new" {
							panic("angry")
						}
						return angry{where}
					}
					c.OnClose = func(*loop.Conn, error) {
						if where == "onclose" {
							panic("angry")
						}
					}
					c.Detached = func(net.Conn, []byte) { panic("angry") }
				})
				for range 3 {
					c := y.dial()
					_, _ = io.WriteString(c, "x\n") // the server may have closed already
					_, _ = io.Copy(io.Discard, c)   // until the connection ends in any way
					c.Close()
				}
				testkit.Eventually(t, patience, func() error {
					if n := y.server.Stats().Connections; n != 0 {
						return fmt.Errorf("%d places in use, want 0", n)
					}
					if n := strings.Count(log.String(), "panicked"); n < 3 && where != "drop" {
						return fmt.Errorf("%d lines in the log, want 3", n)
					}
					return nil
				})
			})
		}
	})
}
