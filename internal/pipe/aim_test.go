package pipe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// splitting is a toy protocol whose replies have a head with their kind, a body, and a tail.
type splitting struct {
	Protocol
	tickets bool
}

// tailLen is the length of the tail.
const tailLen = 3

func (p splitting) NewScanner() Scanner {
	return &splitScanner{toyScanner: toyScanner{tickets: p.tickets}}
}

type splitScanner struct {
	toyScanner
	from, n int
	ticket  uint64
	skipped bool
}

func (s *splitScanner) Scan(b []byte) (Frame, error) {
	if s.skipped {
		if len(b) < tailLen {
			return Frame{Len: tailLen, Verdict: More}, nil
		}
		s.skipped = false
		if string(b[:tailLen]) != tail {
			return Frame{}, fmt.Errorf("the tail is %q", b[:tailLen])
		}
		return Frame{Len: tailLen, Ticket: s.ticket}, nil
	}
	f, err := s.toyScanner.Scan(b)
	s.n = 0
	if s.from = 5; s.tickets {
		s.from = 13
	}
	switch {
	case err != nil || f.Verdict != More:
	case len(b) < s.from:
		f.Len = s.from
	case b[s.from-1] == 'r':
		s.n = f.Len - s.from - tailLen
		if s.tickets {
			s.ticket = binary.BigEndian.Uint64(b[4:])
		}
	}
	return f, err
}

func (s *splitScanner) Body() (from, n int, ticket uint64) { return s.from, max(s.n, 0), s.ticket }
func (s *splitScanner) SkipBody()                          { s.skipped = true }

const tail = "end"

// wantedBody returns the body, n bytes long, of the reply to a request for n bytes.
func wantedBody(n int) string { return sizedBody(n)[1:] }

// splitServer starts a server that answers "r<n>,..." with a body of n bytes.
func splitServer(t *testing.T, network string, tickets bool, change func(*Config)) (*toyServer, *Engine) {
	s := startToy(t, &toyServer{network: network, tickets: tickets, faults: func(int) faults { return faults{room: 4 << 20} }, handle: func(r toyRequest) {
		var n int
		fmt.Sscanf(r.body, "r%d", &n)
		r.reply("r" + wantedBody(n) + tail)
	}})
	return s, s.engine(func(c *Config) {
		c.Protocol = splitting{c.Protocol, tickets}
		if change != nil {
			change(c)
		}
	})
}

// readInto returns the body that c has received, in room or in the reply.
func (s *toyServer) readInto(t *testing.T, c *Call, room []byte) string {
	t.Helper()
	reply := s.replyOf(c)
	if body := c.Placed(); body != nil {
		if len(body) > 0 && &body[0] != &room[0] || reply != "r"+tail {
			t.Fatalf("the reply is placed elsewhere, or the rest of it, %q, is wrong", reply)
		}
		return string(body)
	}
	return reply[1 : len(reply)-tailLen]
}

// Replies of every size are received whole and in order among others without a destination. Large replies are
// read into the caller's memory if they fit.
func TestRepliesAreReadIntoCallerMemory(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		r := testkit.Rand(t)
		s, e := splitServer(t, network, tickets, func(c *Config) { c.choices.SoloAfter = 4 })
		sock := socketAt(e, 0)
		placed, rounds := 0, 30
		if raceEnabled {
			rounds = 5
		}
		for range rounds {
			var cs []*Call
			var rooms [][]byte
			var sizes []int
			for range 1 + r.IntN(6) {
				n := []int{10, directReply + r.IntN(3*minRead), 70_000, growStep + r.IntN(growStep)}[r.IntN(4)]
				c := s.newCall(e, fmt.Sprintf("r%d,", n))
				room := make([]byte, []int{0, n - 1, n, n + 1_000}[r.IntN(4)])
				c.ReadInto(room)
				if err := e.Start(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				cs, rooms, sizes = append(cs, c), append(rooms, room), append(sizes, n)
			}
			for i, c := range cs {
				if err := c.Wait(); err != nil {
					t.Fatal(err)
				}
				if got := s.readInto(t, c, rooms[i]); got != wantedBody(sizes[i]) {
					t.Fatalf("the reply has %d bytes, want %d, or its bytes are wrong", len(got), sizes[i])
				}
				if c.Placed() != nil {
					if placed++; len(rooms[i]) < sizes[i] {
						t.Errorf("%d bytes were placed in a buffer of %d", sizes[i], len(rooms[i]))
					}
				} else if sizes[i] > 1<<20 && len(rooms[i]) >= sizes[i] {
					t.Errorf("%d bytes were not placed in a buffer of %d", sizes[i], len(rooms[i]))
				}
				c.Release()
			}
			if c := s.newCall(e, "r20000,"); e.Do(t.Context(), c) != nil || s.readInto(t, c, nil) != wantedBody(20_000) {
				t.Error("a lone call has a wrong reply")
			} else {
				c.Release()
			}
		}
		if placed == 0 {
			t.Error("no reply was placed")
		}
		checkBalanced(t, e)
		e.Close()
		if network != "" && sock.in.aim != nil && sock.in.aim.room != nil {
			t.Error("the socket retains the caller's memory")
		}
	})
}

// If a reply is read into the caller's memory, only the bytes that arrived together with its length
// are copied.
func TestPlacedRepliesAreNotCopied(t *testing.T) {
	const n, large = 50, 256 << 10
	for _, tickets := range []bool{false, true} {
		s, e := splitServer(t, "unix", tickets, func(c *Config) { c.choices.SoloAfter = -1 })
		sock := socketAt(e, 0)
		room := make([]byte, large)
		for range n {
			c := s.newCall(e, fmt.Sprintf("r%d,", large))
			c.ReadInto(room)
			if err := e.Do(t.Context(), c); err != nil || c.Placed() == nil {
				t.Fatalf("the reply was not placed: %v", err)
			}
			c.Release()
		}
		e.Close()
		if got := sock.in.copied; got > n*2*minRead {
			t.Errorf("tickets %v: %d bytes were copied for %d replies of %d, want at most %d each", tickets, got, n, large, 2*minRead)
		}
	}
}

// tricklingServer leaves requests for "rlarge" to the test, which answers them in parts.
type tricklingServer struct {
	*toyServer
	parts chan toyRequest
}

func startTrickling(t *testing.T, network string, tickets bool) *tricklingServer {
	s := &tricklingServer{parts: make(chan toyRequest, 1)}
	s.toyServer = startToy(t, &toyServer{network: network, tickets: tickets, faults: func(int) faults { return faults{room: 4 << 20} }, handle: func(r toyRequest) {
		if strings.HasPrefix(r.body, "rlarge") {
			s.parts <- r
			return
		}
		r.reply(r.body + tail)
	}})
	return s
}

// A call that is canceled at any byte of its reply ends soon, and its memory belongs to the caller again: it is
// not written to afterwards. The connection and later calls continue.
func TestCancelOfAPlacedReply(t *testing.T) {
	const size = 1 << 20
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		r := testkit.Rand(t)
		s := startTrickling(t, network, tickets)
		e := s.engine(func(c *Config) { c.Protocol, c.choices.SoloAfter = splitting{c.Protocol, tickets}, 2 })
		head := 5
		if tickets {
			head = 13
		}
		positions := []int{head, head + 1, minRead, directReply, size / 2, head + size - 1, head + size, head + size + 1, head + size + tailLen - 1}
		for range 12 {
			positions = append(positions, head+r.IntN(size))
		}
		var took latencies
		late := lateness()
		for i, at := range positions {
			deadline := i%3 == 2
			ctx, cancel := context.WithCancel(t.Context())
			if deadline {
				cancel()
				ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
			}
			room := make([]byte, size)
			c := s.newCall(e, "rlarge")
			c.ReadInto(room)
			ended := make(chan error, 1)
			go func() { ended <- e.Do(ctx, c) }() // ended by ctx; waited for below
			var q toyRequest
			select {
			case q = <-s.parts:
			case err := <-ended:
				t.Fatalf("the call ended before its request arrived: %v", err)
			}
			frame := q.frame("r" + wantedBody(size) + tail)
			q.peer.send(frame[:at])
			time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
			began := time.Now()
			if deadline {
				began, _ = ctx.Deadline()
			} else {
				cancel()
			}
			err := <-ended
			took = append(took, time.Since(began))
			cancel()
			if err == nil || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || c.Placed() != nil {
				t.Fatalf("at byte %d: %v", at, err)
			}
			c.Release()
			poison(room)
			q.peer.send(frame[at:])
			if err := s.echoSplit(t.Context(), e, fmt.Sprint("r", i)); err != nil {
				t.Fatalf("at byte %d: the next call: %v", at, err)
			}
			if !poisoned(room) {
				t.Fatalf("at byte %d: memory was written to after its call had ended", at)
			}
		}
		took.check(t, "cancel within a reply", late())
		checkBalanced(t, e)
		if v := e.Snapshot(); v.Reconnects != 0 {
			t.Errorf("%d reconnects, want 0", v.Reconnects)
		}
		e.Close()
	})
}

// A reply whose tail arrives in pieces, after the last read of its body, is received like any
// other. Here even one missing byte is enough for a dedicated buffer.
func TestTailInPieces(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		s := startTrickling(t, network, tickets)
		e := s.engine(func(c *Config) {
			c.Protocol, c.choices.SoloAfter, c.choices.DirectReply = splitting{c.Protocol, tickets}, -1, 1
		})
		sock := socketAt(e, 0)
		const size = directReply
		for round := range 4 {
			c := s.newCall(e, "rlarge")
			c.ReadInto(make([]byte, size))
			if err := e.Start(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			q := <-s.parts
			frame := q.frame("r" + wantedBody(size) + tail)
			at := len(frame) - tailLen
			sent := 0
			for _, upTo := range []int{at - 100, at + 1 + round%2, len(frame)} {
				before := sock.reads.Load()
				q.peer.send(frame[sent:upTo])
				sent = upTo
				testkit.Eventually(t, 5*time.Second, func() error {
					if sock.reads.Load() == before {
						return errors.New("the client has not read")
					}
					return nil
				})
			}
			if err := c.Wait(); err != nil {
				t.Fatal(err)
			}
			if got := c.Placed(); string(got) != wantedBody(size) {
				t.Errorf("%d of %d bytes were placed", len(got), size)
			}
			c.Release()
			if err := s.echoSplit(t.Context(), e, fmt.Sprint("r", round)); err != nil {
				t.Fatalf("the next call: %v", err)
			}
		}
		if v := e.Snapshot(); v.Reconnects != 0 {
			t.Errorf("%d reconnects, want 0", v.Reconnects)
		}
	})
}

// echoSplit makes a call with a small reply.
func (s *toyServer) echoSplit(ctx context.Context, e *Engine, body string) error {
	c := s.newCall(e, body)
	defer c.Release()
	if err := e.Do(ctx, c); err != nil {
		return err
	}
	if got := s.replyOf(c); got != body+tail {
		return fmt.Errorf("sent %q, got %q", body, got)
	}
	return nil
}

const poisonByte = 0xAA

func poison(b []byte) {
	for i := range b {
		b[i] = poisonByte
	}
}

func poisoned(b []byte) bool { return bytes.Count(b, []byte{poisonByte}) == len(b) }

// Calls whose replies arrive at full speed are canceled, and their connections fail, at random moments: each
// call ends once, a successful call has its whole reply, and its memory belongs to the caller afterwards.
func TestPlacedRepliesUnderFaults(t *testing.T) {
	for _, network := range []string{"", "unix", "tcp"} {
		for _, tickets := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/tickets=%v", network, tickets), func(t *testing.T) {
				testkit.NoLeaks(t)
				placedUnderFaults(t, network, tickets)
			})
		}
	}
}

func placedUnderFaults(t *testing.T, network string, tickets bool) {
	seed := testkit.Seed(t)
	s, e := splitServer(t, network, tickets, func(c *Config) { c.MaxBackoff = time.Millisecond })
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for g := range 4 {
		r := testkit.Fork(seed, uint64(g))
		wg.Go(func() {
			room := make([]byte, 600_000)
			for range 20 {
				placedOnce(t, s, e, r, room)
			}
		})
	}
	var breaker sync.WaitGroup
	breaker.Go(func() {
		r := testkit.Fork(seed, 99)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(r.IntN(20_000)) * time.Microsecond):
			}
			s.mu.Lock()
			if n := len(s.peers); n > 0 {
				s.peers[n-1].reset()
			}
			s.mu.Unlock()
		}
	})
	wg.Wait()
	close(stop)
	breaker.Wait()
	e.Close()
	checkBalanced(t, e)
}

func placedOnce(t *testing.T, s *toyServer, e *Engine, r *rand.Rand, room []byte) {
	n := directReply + r.IntN(len(room)-directReply)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(10_000))*time.Microsecond)
	defer cancel()
	c := s.newCall(e, fmt.Sprintf("r%d,", n))
	c.ReadInto(room)
	err := e.Do(ctx, c)
	if err == nil {
		if got := s.readInto(t, c, room); got != wantedBody(n) {
			t.Errorf("wrong reply of %d bytes", n)
		}
		c.Release()
		return
	}
	c.Release()
	poison(room)
	time.Sleep(time.Duration(r.IntN(2_000)) * time.Microsecond)
	if !poisoned(room) {
		t.Error("memory was written to after its call had ended")
	}
}

// While the reader writes to the memory of a call, neither a cancel, a deadline, the end of the
// connection, nor Close ends the call. Each of them does so after the reader has released it.
func TestNothingEndsACallThatIsFilled(t *testing.T) {
	for _, how := range []string{"cancel", "deadline", "failure", "close"} {
		for _, tickets := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/tickets=%v", how, tickets), func(t *testing.T) {
				testkit.NoLeaks(t)
				for attempts := 1; !endWhileFilled(t, how, tickets); attempts++ {
					if attempts == 10 {
						t.Fatal("the reader was late in every attempt")
					}
				}
			})
		}
	}
}

// endWhileFilled ends a call while the test holds it as the reader does, and reports whether the test held it
// all the time: a late reader may release it.
func endWhileFilled(t *testing.T, how string, tickets bool) (valid bool) {
	s := startTrickling(t, "", tickets)
	e := s.engine(func(c *Config) { c.Protocol, c.choices.SoloAfter = splitting{c.Protocol, tickets}, -1 })
	defer e.Close()
	ctx, cancel := context.WithCancel(t.Context())
	if how == "deadline" {
		cancel()
		ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
	}
	defer cancel()
	c := s.newCall(e, "rlarge")
	c.ReadInto(make([]byte, 100_000))
	if err := e.Start(ctx, c); err != nil {
		t.Fatal(err)
	}
	q := <-s.parts
	q.peer.send(q.frame("r" + wantedBody(100_000) + tail)[:60_000])
	sock := socketAt(e, 0)
	testkit.Eventually(t, 5*time.Second, func() error {
		if sock.reads.Load() == 0 {
			return errors.New("the client has not read yet")
		}
		return nil
	})
	fill := func(c *Call) (was *Call) {
		sock.mu.Lock()
		defer sock.mu.Unlock()
		was, sock.calls.filled = sock.calls.filled, c
		return was
	}
	for fill(c) != c { // until the reader waits for more
		time.Sleep(20 * time.Millisecond)
	}
	inTime := ctx.Err() == nil
	closed := make(chan struct{})
	go func() { // ends when the call has ended; waited for below
		defer close(closed)
		switch how {
		case "cancel":
			cancel()
		case "failure":
			sock.fail(io.ErrUnexpectedEOF)
		case "close":
			e.Close()
		}
	}()
	if at, ok := ctx.Deadline(); ok {
		time.Sleep(time.Until(at))
	}
	time.Sleep(50 * time.Millisecond)
	ended := c.ending.reached()
	valid = fill(nil) == c && inTime
	if ended && valid {
		t.Error("the call ended while the reader held its memory")
	}
	select {
	case <-sock.life.done:
		sock.finish() // as the reader does
	default:
	}
	if err := c.Wait(); err == nil {
		t.Error("the call succeeded, want an error")
	}
	c.Release()
	<-closed
	return valid
}

// A missing or wrong tail ends the connection and its calls.
func TestPlacedReplyWithAWrongTail(t *testing.T) {
	for _, network := range []string{"", "unix"} {
		s := startToy(t, &toyServer{network: network, handle: func(r toyRequest) { r.reply("r" + strings.Repeat("x", 100_000) + "END") }})
		e := s.engine(func(c *Config) { c.Protocol = splitting{c.Protocol, false} })
		c := s.newCall(e, "rx")
		c.ReadInto(make([]byte, 100_000))
		if err := e.Do(t.Context(), c); err == nil || !strings.Contains(err.Error(), "the tail is") {
			t.Error(err)
		}
		c.Release()
		checkBalanced(t, e)
	}
}
