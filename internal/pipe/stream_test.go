package pipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Many streams, mixed with calls: each gets its own frames, in order, and then io.EOF.
func TestStreamsEchoAmongCalls(t *testing.T) {
	for _, network := range []string{"", "unix", "tcp"} {
		t.Run(network, func(t *testing.T) {
			testkit.NoLeaks(t)
			seed := testkit.Seed(t)
			k := startStreamToy(t, &streamToy{}, network)
			e := k.engine(func(c *Config) {
				c.Sockets = 2
				c.Streams.ReceiveBytes = 2 << 20
			})
			var wg sync.WaitGroup
			for i := range 20 {
				r := testkit.Fork(seed, uint64(i))
				frames := bodiesOf(i, 40, func() int { return r.IntN(1 << r.IntN(16)) })
				st := mustOpen(t, e)
				wg.Go(func() {
					for _, f := range frames {
						if err := sendToy(t.Context(), st, f); err != nil {
							t.Error(err)
						}
					}
					if err := sendToy(t.Context(), st, "eend"); err != nil {
						t.Error(err)
					}
				})
				wg.Go(func() {
					for _, f := range append(frames, "eend") {
						if got, err := recvToy(t.Context(), st); got != f || err != nil {
							t.Errorf("stream %d received %.40q, %v, want %.40q", i, got, err, f)
							break
						}
					}
					if _, err := st.Recv(t.Context()); err != io.EOF {
						t.Errorf("Recv after the last frame: %v", err)
					}
					st.Close()
				})
				wg.Go(func() {
					for j := range 50 {
						if err := k.echo(t.Context(), e, fmt.Sprint("r", i, j)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			checkStreamsBalanced(t, e)
		})
	}
}

// OpenStream fails if the protocol has no streams, and sends nothing.
func TestStreamsNeedTheProtocol(t *testing.T) {
	for _, tickets := range []bool{false, true} {
		s := startToy(t, &toyServer{tickets: tickets})
		e := s.engine(func(c *Config) {
			if !tickets {
				c.Traits.Streams = toyStreamTraits()
			}
		})
		st, err := openToy(t.Context(), e)
		if st != nil || !errors.Is(err, ErrNoStreams) || slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("tickets %v: %v, %v", tickets, st, err)
		}
		if n := e.Snapshot().Calls; n != 0 {
			t.Errorf("%d calls were queued", n)
		}
	}
}

// streamEnds are the ways to end a stream on this side.
var streamEnds = map[string]struct {
	cause error
	end   func(st *Stream, cancel context.CancelFunc)
}{
	"cancel":   {context.Canceled, func(_ *Stream, cancel context.CancelFunc) { cancel() }},
	"close":    {ErrStreamClosed, func(st *Stream, _ context.CancelFunc) { st.Close() }},
	"deadline": {context.DeadlineExceeded, func(*Stream, context.CancelFunc) {}},
}

// A stream that is ended on this side ends within 10 ms, the goroutines that wait for it get the error, and the
// server gets a reset frame. Its ticket is not reused until the last frame arrives. Frames that arrive later
// are dropped and counted.
func TestStreamsEndFromThisSide(t *testing.T) {
	for name, way := range streamEnds {
		for _, bits := range []int{32, 64} {
			t.Run(fmt.Sprint(name, bits), func(t *testing.T) {
				virtual(t, func(t *testing.T) {
					k := startStreamToy(t, &streamToy{on: ignoreStream}, "")
					e := k.engine(func(c *Config) { use32BitTickets(c); c.Traits.TicketBits = bits })
					const due = time.Minute
					ctx, cancel := context.WithTimeout(t.Context(), due)
					defer cancel()
					st, err := openToy(ctx, e)
					if err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					k.of(st)[0].reply("dearly")
					expectToy(t, st, "dearly")
					began := time.Now()
					if name != "deadline" {
						time.AfterFunc(due/2, func() { way.end(st, cancel) })
					}
					_, err = st.Recv(t.Context())
					took := time.Since(began)
					if !errors.Is(err, way.cause) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
						t.Errorf("Recv: %v", err)
					}
					want := due
					if name != "deadline" {
						want = due / 2
					}
					if took < want || took > want+10*time.Millisecond {
						t.Errorf("the stream ended after %v, want %v", took, want)
					}
					if again := sendToy(t.Context(), st, "dlate"); !errors.Is(again, way.cause) {
						t.Errorf("Send: %v", again)
					}
					st.Close()
					synctest.Wait()
					if got := k.kinds(st); got != "ox" {
						t.Errorf("the server got %q", got)
					}
					lateFrames(t, k, e, st)
				})
			})
		}
	}
}

// lateFrames checks the ticket of a stream that was given up and that the server has not ended.
func lateFrames(t *testing.T, k *streamToy, e *Engine, st *Stream) {
	if v := e.Snapshot(); v.Streams != 0 || v.StreamBytes != 0 || v.Outstanding != 1 {
		t.Errorf("%d streams, %d bytes reserved, %d tickets outstanding", v.Streams, v.StreamBytes, v.Outstanding)
	}
	for range 5 {
		virtualEcho(t, e, "rother")
		if next := mustOpen(t, e); next.ticket&slotMask == st.ticket&slotMask {
			t.Errorf("new ticket %#x, while %#x awaits its last frame", next.ticket, st.ticket)
		}
	}
	k.of(st)[0].reply("dlate")
	k.of(st)[0].reply("dlater")
	synctest.Wait()
	if v := e.Snapshot(); v.Late != 2 || v.Outstanding != 6 || v.Reconnects != 0 {
		t.Errorf("after two frames: %d late, %d outstanding, %d reconnects", v.Late, v.Outstanding, v.Reconnects)
	}
	k.of(st)[0].reply("elast")
	k.of(st)[0].reply("dtoo late")
	synctest.Wait()
	if v := e.Snapshot(); v.Late != 4 || v.Outstanding != 5 || v.Reconnects != 0 {
		t.Errorf("after the last frame: %d late, %d outstanding, %d reconnects", v.Late, v.Outstanding, v.Reconnects)
	}
	checkBalanced(t, e)
}

// If a stream ends before its opening frame was written, neither it nor its other frames are ever sent.
func TestUnsentStreamsAreNeverSent(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{on: ignoreStream}, "")
		e := k.engine(oneFactor)
		setRoundTrip(e, time.Second) // so that no ticket counts as slow
		var held []*Stream
		for range 8 { // sent in writes of 1, 1, 2 and 4 calls
			held = append(held, mustOpen(t, e))
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		st, err := openToy(ctx, e)
		if err != nil {
			t.Fatal(err)
		}
		if err := sendToy(ctx, st, "dx"); err != nil {
			t.Fatal(err)
		}
		if v := e.Snapshot(); v.Queued != 2 {
			t.Fatalf("%d calls are queued", v.Queued)
		}
		cancel()
		if _, err := st.Recv(t.Context()); !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("Recv: %v", err)
		}
		st.Close()
		k.of(held[0])[0].reply("edone")
		for i := range 20 {
			if err := sendToy(t.Context(), held[1], fmt.Sprint("d", i)); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(10 * time.Second)
		if got := k.of(st); len(got) != 0 {
			t.Errorf("the server got %d frames", len(got))
		}
		if v := e.Snapshot(); v.NeverWritten != 2 || v.Queued != 0 {
			t.Errorf("%d calls were never written, %d are queued", v.NeverWritten, v.Queued)
		}
		checkBalanced(t, e)
	})
}

// A stream ends with its socket: earlier frames are received, then the cause. Send fails, and the next stream
// uses another connection.
func TestStreamsEndWithTheirSocket(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{}, "")
		e := k.engine(nil)
		st := mustOpen(t, e)
		for _, f := range []string{"d1", "d2", "d3"} {
			if err := sendToy(t.Context(), st, f); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		expectToy(t, st, "d1")
		k.last().reset()
		expectToy(t, st, "d2", "d3")
		_, err := st.Recv(t.Context())
		if slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || err == nil || err == io.EOF {
			t.Errorf("Recv: %v", err)
		}
		if sent := sendToy(t.Context(), st, "d4"); !errors.Is(sent, errors.Unwrap(err)) {
			t.Errorf("Send: %v, Recv: %v", sent, err)
		}
		if _, again := st.Recv(t.Context()); again != err {
			t.Errorf("second Recv: %v", again)
		}
		next := mustOpen(t, e)
		if err := sendToy(t.Context(), next, "eend"); err != nil {
			t.Fatal(err)
		}
		expectToy(t, next, "eend")
		next.Close()
		st.Close()
		checkStreamsBalanced(t, e)
	})
}

// The server may end a stream while the client sends: Send fails with ErrStreamEnded, and Recv returns every frame.
func TestServerEndsAStream(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{on: func(r toyRequest) {
			if r.body == "d3" {
				r.reply("d!")
				r.reply("eenough")
			}
		}}, "")
		e := k.engine(nil)
		st := mustOpen(t, e)
		var err error
		for i := 0; err == nil; i++ {
			err = sendToy(t.Context(), st, fmt.Sprint("d", i))
			synctest.Wait()
		}
		if !errors.Is(err, ErrStreamEnded) || slipstream.OutcomeOf(err) != slipstream.Executed {
			t.Errorf("Send: %v", err)
		}
		expectToy(t, st, "d!", "eenough")
		if _, err := st.Recv(t.Context()); err != io.EOF {
			t.Errorf("Recv: %v", err)
		}
		st.Close()
		if _, err := st.Recv(t.Context()); err != io.EOF {
			t.Errorf("Recv after Close: %v", err)
		}
		if got := k.kinds(st); strings.Contains(got, "x") {
			t.Errorf("a stream that had ended was reset: %q", got)
		}
		checkStreamsBalanced(t, e)
	})
}

// Nothing is sent after CloseSend, with or without a frame, and frames are still received.
func TestNothingIsSentAfterCloseSend(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{on: ignoreStream}, "")
		e := k.engine(nil)
		for _, frame := range []bool{true, false} {
			st := mustOpen(t, e)
			want := "o"
			if frame {
				want = "oe"
				if err := sendToy(t.Context(), st, "eend"); err != nil {
					t.Fatal(err)
				}
			} else if err := st.CloseSend(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if err := sendToy(t.Context(), st, "dx"); !errors.Is(err, ErrSendClosed) || slipstream.OutcomeOf(err) != slipstream.NotSent {
				t.Errorf("Send: %v", err)
			}
			if err := st.CloseSend(t.Context(), nil); !errors.Is(err, ErrSendClosed) {
				t.Errorf("CloseSend: %v", err)
			}
			synctest.Wait()
			if got := k.kinds(st); got != want {
				t.Errorf("the server got %q, want %q", got, want)
			}
			k.of(st)[0].reply("d1")
			k.of(st)[0].reply("edone")
			expectToy(t, st, "d1", "edone")
			st.Close()
		}
		checkStreamsBalanced(t, e)
	})
}

// Shutdown opens no new streams and waits for the open ones, which continue. Close ends them.
func TestShutdownWaitsForStreams(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{}, "")
		e := k.engine(nil)
		st := mustOpen(t, e)
		done := make(chan error, 1)
		go func() { done <- e.Shutdown(t.Context()) }()
		time.Sleep(time.Second)
		if _, err := openToy(t.Context(), e); !errors.Is(err, ErrClosed) || slipstream.OutcomeOf(err) != slipstream.Closed {
			t.Errorf("OpenStream during Shutdown: %v", err)
		}
		for _, f := range []string{"d1", "eend"} {
			if err := sendToy(t.Context(), st, f); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
			expectToy(t, st, f)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Close ends open streams, and so does Shutdown when its context ends.
func TestCloseEndsStreams(t *testing.T) {
	for _, shutdown := range []bool{false, true} {
		virtual(t, func(t *testing.T) {
			k := startStreamToy(t, &streamToy{on: ignoreStream}, "")
			e := k.engine(nil)
			st := mustOpen(t, e)
			synctest.Wait()
			k.of(st)[0].reply("d1")
			got := make(chan error, 1)
			go func() {
				_, err := st.Recv(t.Context())
				if err == nil {
					_, err = st.Recv(t.Context())
				}
				got <- err
			}()
			synctest.Wait()
			if shutdown {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := e.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Shutdown: %v", err)
				}
			} else {
				e.Close()
			}
			if err := <-got; !errors.Is(err, ErrClosed) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
				t.Errorf("Recv: %v", err)
			}
			if err := sendToy(t.Context(), st, "dx"); !errors.Is(err, ErrClosed) {
				t.Errorf("Send: %v", err)
			}
			st.Close()
			if v := e.Snapshot(); v.StreamBytes != 0 {
				t.Errorf("%d bytes are reserved", v.StreamBytes)
			}
		})
	}
}

// A stream on a retired connection continues, and calls use another one.
func TestRetiredConnectionKeepsItsStreams(t *testing.T) {
	for _, sockets := range []int{1, 2} {
		virtual(t, func(t *testing.T) {
			k := startStreamToy(t, &streamToy{}, "")
			e := k.engine(func(c *Config) { c.Sockets = sockets })
			time.Sleep(time.Second)
			st := mustOpen(t, e)
			(Pin{st.socket}).Retire()
			if err := sendToy(t.Context(), st, "d1"); err != nil {
				t.Error(err)
			}
			expectToy(t, st, "d1")
			if took := virtualEcho(t, e, "rx"); took > e.cfg.DialTimeout/2 {
				t.Errorf("a call waited for %v", took)
			}
			time.Sleep(2 * e.cfg.DialTimeout)
			if err := sendToy(t.Context(), st, "eend"); err != nil {
				t.Error(err)
			}
			expectToy(t, st, "eend")
			st.Close()
			time.Sleep(time.Second)
			if v := e.Snapshot(); v.Reconnects != 1 || v.Connected != sockets || v.Leaving != 0 {
				t.Errorf("%d reconnects, %d connected, %d leaving", v.Reconnects, v.Connected, v.Leaving)
			}
			checkStreamsBalanced(t, e)
		})
	}
}

// If too many retired connections of a place have streams, the streams of the last one end after DialTimeout,
// so that the next connection can be dialed. The other streams continue.
func TestStreamsOfTooManyRetiredConnections(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{}, "")
		e := k.engine(nil)
		var streams []*Stream
		for range maxRetired + 1 {
			time.Sleep(time.Second)
			st := mustOpen(t, e)
			(Pin{st.socket}).Retire()
			streams = append(streams, st)
		}
		if took := virtualEcho(t, e, "rx"); took < e.cfg.DialTimeout || took > 2*e.cfg.DialTimeout {
			t.Errorf("a call waited for %v", took)
		}
		last := streams[maxRetired]
		if _, err := last.Recv(t.Context()); !errors.Is(err, ErrRetired) {
			t.Errorf("Recv: %v", err)
		}
		last.Close()
		for _, st := range streams[:maxRetired] {
			if err := sendToy(t.Context(), st, "eend"); err != nil {
				t.Error(err)
			}
			expectToy(t, st, "eend")
			st.Close()
		}
		time.Sleep(time.Second)
		if v := e.Snapshot(); v.Reconnects != maxRetired+1 || v.Connected != 1 || v.Leaving != 0 {
			t.Errorf("%d reconnects, %d connected, %d leaving", v.Reconnects, v.Connected, v.Leaving)
		}
		checkStreamsBalanced(t, e)
	})
}

// An open stream does not await a reply: its silence is not a stall, and Config.Timeout does not end it.
func TestIdleStreamsAreNoStall(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{}, "")
		e := k.engine(func(c *Config) { c.IdlePing, c.Timeout = -1, time.Second })
		st := mustOpen(t, e)
		time.Sleep(time.Hour)
		if v := e.Snapshot(); v.Pings+v.Stalls+v.Reconnects != 0 || v.Streams != 1 {
			t.Errorf("%d pings, %d stalls, %d reconnects, %d streams", v.Pings, v.Stalls, v.Reconnects, v.Streams)
		}
		if err := sendToy(t.Context(), st, "eend"); err != nil {
			t.Error(err)
		}
		expectToy(t, st, "eend")
	})
}

// A call among open streams measures the round trip and counts as the first in flight. A stream measures
// nothing.
func TestRoundTripBesideStreams(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{}, "")
		e := k.engine(nil)
		s := socketAt(e, 0)
		writes := func(until uint64) { // every 16th write is measured
			for e.Snapshot().Writes&15 != until {
				virtualEcho(t, e, "rx")
			}
		}
		writes(0)
		st := mustOpen(t, e)
		time.Sleep(roundTripWindow)
		s.mu.Lock()
		if s.calls.probing {
			t.Error("a frame of a stream ended a measurement")
		}
		s.pace.trip = roundTrip{}
		s.mu.Unlock()
		for range 20 {
			virtualEcho(t, e, "rx")
		}
		if e.Snapshot().RoundTrip == 0 {
			t.Error("calls among streams measure nothing")
		}
		st.Close()
	})
}

// Close may be called at any time and by any goroutine, concurrently with Send and Recv.
func TestStreamsAreSafeForConcurrentUse(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	k := startStreamToy(t, &streamToy{}, "unix")
	e := k.engine(func(c *Config) {
		c.Streams = StreamConfig{ReceiveBytes: 20_000, SendBytes: 5_000, SocketBytes: 8_000}
	})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			r := testkit.Fork(seed, uint64(i))
			for range 30 {
				ctx, cancel := context.WithCancel(t.Context())
				st, err := openToy(ctx, e)
				if err != nil {
					t.Error(err)
					cancel()
					return
				}
				var users sync.WaitGroup
				for j := range 3 {
					body := "d" + strings.Repeat(string(rune('a'+j)), 1+r.IntN(3000))
					users.Go(func() {
						for sendToy(ctx, st, body) == nil {
						}
					})
				}
				frames, cancels := r.IntN(50), r.IntN(2) == 0
				users.Go(func() {
					for range frames {
						got, err := recvToy(ctx, st)
						if err == nil && got != "d"+strings.Repeat(got[1:2], len(got)-1) {
							t.Errorf("received %q", got)
						}
					}
					if cancels {
						cancel()
					}
					st.Close()
				})
				if r.IntN(3) == 0 {
					users.Go(st.Close)
				}
				users.Wait()
				cancel()
				st.Close()
			}
		})
	}
	wg.Wait()
	checkStreamsBalanced(t, e)
}
