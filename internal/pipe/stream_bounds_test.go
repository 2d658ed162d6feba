package pipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream"
)

// A stream that is not read delays no call of its connection, and ends when its bound is reached: the frames
// that it holds can be received, then the error is returned, and the server gets a reset. The next frame is the
// first one that is lost.
func TestSlowReaderEndsOnlyItsStream(t *testing.T) {
	for _, size := range []int{100, 20_000} {
		virtual(t, func(t *testing.T) {
			k := startStreamToy(t, &streamToy{on: ignoreStream}, "")
			e := k.engine(func(c *Config) { c.Streams.ReceiveBytes = 64 << 10 })
			slow, quick := mustOpen(t, e), mustOpen(t, e)
			time.Sleep(time.Second) // otherwise they would count as young
			frame := "d" + strings.Repeat("x", size)
			fit := (64 << 10) / (len(appendToyTicket(nil, frame)) + partCost)
			for i := range fit {
				k.of(slow)[0].reply(frame)
				k.of(quick)[0].reply(frame)
				if took := virtualEcho(t, e, "rx"); took != 0 {
					t.Fatalf("after %d frames, a call took %v", i, took)
				}
				expectToy(t, quick, frame)
			}
			synctest.Wait()
			if v := e.Snapshot(); v.StreamOverflows != 0 || v.Streams != 2 {
				t.Fatalf("%d overflows, %d streams, want 0 and 2", v.StreamOverflows, v.Streams)
			}
			for range 100 {
				k.of(slow)[0].reply(frame)
			}
			k.of(quick)[0].reply("d!")
			virtualEcho(t, e, "rx")
			expectToy(t, quick, "d!")
			synctest.Wait()
			if v := e.Snapshot(); v.StreamOverflows != 1 || v.Streams != 1 || v.Late != 100 || v.Reconnects != 0 {
				t.Errorf("%d overflows, %d streams, %d late, %d reconnects", v.StreamOverflows, v.Streams, v.Late, v.Reconnects)
			}
			if got := k.kinds(slow); got != "ox" {
				t.Errorf("the server got %q", got)
			}
			for range fit {
				expectToy(t, slow, frame)
			}
			if _, err := slow.Recv(t.Context()); !errors.Is(err, ErrStreamOverflow) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
				t.Errorf("Recv: %v", err)
			}
			k.of(slow)[0].reply("edone")
			k.of(quick)[0].reply("edone")
			expectToy(t, quick, "edone")
			slow.Close()
			quick.Close()
			checkStreamsBalanced(t, e)
		})
	}
}

// Small frames take little more memory than their bytes, so the memory of an inbox is bounded.
func TestInboxIsCompact(t *testing.T) {
	for _, size := range []int{1, 12, 500, 513, 2000, 5000} {
		var in inbox
		b := make([]byte, size)
		for in.held+size+partCost <= 64<<10 {
			in.add(b)
		}
		memory, seen := cap(in.frames)*48, map[*byte]bool{}
		in.endChunk()
		for _, f := range in.frames {
			if f.free != nil && !seen[&f.free[:1][0]] {
				seen[&f.free[:1][0]] = true
				memory += cap(f.free)
			}
		}
		if memory > 2*(64<<10) {
			t.Errorf("frames of %d bytes take %d bytes of memory, the bound is twice %d", size, memory, 64<<10)
		}
		for range in.frames {
			if got := in.take(); len(got) != size {
				t.Fatalf("take returned %d bytes, want %d", len(got), size)
			}
			in.giveBack()
		}
		if in.held != 0 || in.chunk != nil || !in.empty() {
			t.Errorf("an empty inbox holds %d bytes", in.held)
		}
	}
}

// The last frame of a stream always fits, like the reply to a call.
func TestLastFrameFits(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{on: ignoreStream}, "")
		e := k.engine(func(c *Config) { c.Streams.ReceiveBytes = 200 })
		st := mustOpen(t, e)
		synctest.Wait()
		last := "e" + strings.Repeat("x", 1000)
		k.of(st)[0].reply("d1")
		k.of(st)[0].reply("d2")
		k.of(st)[0].reply(last)
		synctest.Wait()
		expectToy(t, st, "d1", "d2", last)
		if _, err := st.Recv(t.Context()); err != io.EOF {
			t.Errorf("Recv: %v", err)
		}
		checkStreamsBalanced(t, e)
	})
}

// The total that streams may receive is bounded: a stream that does not fit is refused, or waits.
func TestStreamsShareABound(t *testing.T) {
	for _, waits := range []bool{false, true} {
		virtual(t, func(t *testing.T) {
			k := startStreamToy(t, &streamToy{}, "")
			e := k.engine(func(c *Config) {
				c.Streams = StreamConfig{ReceiveBytes: 1000, MaxBytes: 3500}
				c.WaitWhenFull = waits
			})
			open := []*Stream{mustOpen(t, e), mustOpen(t, e), mustOpen(t, e)}
			time.AfterFunc(time.Minute, open[1].Close)
			began := time.Now()
			st, err := openToy(t.Context(), e)
			switch {
			case waits && (err != nil || time.Since(began) != time.Minute):
				t.Errorf("OpenStream that waits: %v after %v", err, time.Since(began))
			case !waits && (slipstream.OutcomeOf(err) != slipstream.Overloaded || time.Since(began) != 0):
				t.Errorf("OpenStream without room: %v after %v", err, time.Since(began))
			}
			if st != nil {
				open = append(open, st)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := openToy(ctx, e); !errors.Is(err, context.DeadlineExceeded) || slipstream.OutcomeOf(err) != slipstream.Overloaded {
					t.Errorf("OpenStream with a context that ends: %v", err)
				}
			}
			for _, st := range open {
				st.Close()
			}
			synctest.Wait()
			checkStreamsBalanced(t, e)
		})
	}
}

// A server with flow control sends as fast as Recv is called, at most its window ahead. At most one frame with
// credit for it is queued.
func TestCreditFollowsRecv(t *testing.T) {
	const window, frames, size = 8 << 10, 400, 500
	virtual(t, func(t *testing.T) {
		var mu sync.Mutex
		more := sync.NewCond(&mu)
		credit, granted := window, 0
		frame := "d" + strings.Repeat("x", size)
		whole := len(appendToyTicket(nil, frame))
		k := startStreamToy(t, &streamToy{on: func(r toyRequest) {
			mu.Lock()
			defer mu.Unlock()
			switch r.body[0] {
			case 'o':
				go func() { // ends when all is sent
					for range frames {
						mu.Lock()
						for credit < whole {
							more.Wait()
						}
						credit -= whole
						mu.Unlock()
						r.reply(frame)
					}
					r.reply("edone")
				}()
			case 'c':
				n, _ := strconv.Atoi(r.body[1:])
				credit += n
				granted++
				more.Broadcast()
			}
		}}, "")
		e := k.engine(func(c *Config) {
			withToyCredit(c, 0, window)
			c.Streams.ReceiveBytes = 2 * window
		})
		st := mustOpen(t, e)
		for i := range frames {
			if i%50 == 0 {
				time.Sleep(time.Second) // the server sends what its credit allows
				st.mu.Lock()
				held := st.inbox.held - partCost*(len(st.inbox.frames)-st.inbox.first)
				st.mu.Unlock()
				if held > window || held < window/2 {
					t.Errorf("%d bytes were sent ahead, the window is %d", held, window)
				}
			}
			expectToy(t, st, frame)
		}
		expectToy(t, st, "edone")
		st.Close()
		checkStreamsBalanced(t, e)
		mu.Lock() // the last frame with credit may still be arriving
		defer mu.Unlock()
		if limit := frames*whole/(window/creditShare) + 1; granted > limit || granted == 0 {
			t.Errorf("%d frames with credit, want at most %d", granted, limit)
		}
	})
}

// For a server that sends and does not read, no queue of credit frames builds up.
func TestCreditIsQueuedOnce(t *testing.T) {
	virtual(t, func(t *testing.T) {
		read := make(chan struct{})
		k := startStreamToy(t, &streamToy{on: func(r toyRequest) {
			if r.body[0] == 'o' {
				go func() { // ends when all is sent
					for range 1000 {
						r.reply("d" + strings.Repeat("x", 1000))
					}
					<-read
					r.reply("eend")
				}()
				<-read
			}
		}}, "")
		k.faults = func(int) faults { return faults{room: 100} }
		e := k.engine(func(c *Config) {
			withToyCredit(c, 0, 1000)
			c.Streams.ReceiveBytes = 4 << 20
		})
		st := mustOpen(t, e)
		for range 1000 {
			expectToy(t, st, "d"+strings.Repeat("x", 1000))
		}
		// Some frames fit into the connection, and one is being written.
		if n := len(k.of(st)); n > 1 {
			t.Fatalf("the server has read %d frames", n)
		}
		if v := e.Snapshot(); v.Queued+v.Outstanding > 3 {
			t.Errorf("%d frames are queued, %d in flight", v.Queued, v.Outstanding)
		}
		close(read)
		expectToy(t, st, "eend")
		st.Close()
		checkStreamsBalanced(t, e)
	})
}

// Send waits while the server gives no credit, as long as its context allows. A frame that was not sent can be
// sent again.
func TestSendWaitsForCredit(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{on: func(r toyRequest) {
			if r.body[0] == 'x' {
				r.reply("ereset")
			}
		}}, "")
		frame := "d" + strings.Repeat("x", 87)
		e := k.engine(func(c *Config) { withToyCredit(c, 250, 0) }) // two frames and a half
		st, other := mustOpen(t, e), mustOpen(t, e)
		for range 2 {
			if err := sendToy(t.Context(), st, frame); err != nil {
				t.Fatal(err)
			}
		}
		c := toyFrame(e, frame)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := st.Send(ctx, c)
		if !errors.Is(err, context.DeadlineExceeded) || slipstream.OutcomeOf(err) != slipstream.NotSent || time.Since(began) != time.Second {
			t.Fatalf("Send without credit: %v after %v", err, time.Since(began))
		}
		if virtualEcho(t, e, "rx") != 0 || sendToy(t.Context(), other, frame) != nil {
			t.Error("a stream without credit blocks others")
		}
		time.AfterFunc(time.Minute, func() { k.of(st)[0].reply("c49") })
		time.AfterFunc(2*time.Minute, func() { k.of(st)[0].reply("c1") })
		began = time.Now()
		if err := st.Send(t.Context(), c); err != nil || time.Since(began) != 2*time.Minute {
			t.Errorf("Send with credit: %v after %v", err, time.Since(began))
		}
		synctest.Wait()
		if got := k.kinds(st); got != "oddd" {
			t.Errorf("the server got %q", got)
		}
		// Ending a stream wakes the goroutine that waits in Send.
		time.AfterFunc(time.Second, st.Close)
		if err := sendToy(t.Context(), st, frame); !errors.Is(err, ErrStreamClosed) {
			t.Errorf("Send: %v", err)
		}
		other.Close()
		synctest.Wait()
		checkStreamsBalanced(t, e)
	})
}

// If the server does not read, Send waits: a stream queues no more than its bound, all streams of a connection
// no more than theirs, and each gets its turn.
func TestSendWaitsForRoom(t *testing.T) {
	const streams, each = 8, 40
	virtual(t, func(t *testing.T) {
		read := make(chan struct{})
		k := startStreamToy(t, &streamToy{on: func(r toyRequest) {
			if <-read; r.body[0] == 'e' {
				r.reply("eend")
			}
		}}, "")
		k.faults = func(int) faults { return faults{room: 100} }
		e := k.engine(func(c *Config) {
			c.Streams.SendBytes, c.Streams.SocketBytes = 10_000, 30_000
			c.StallTimeout, c.IdlePing = -1, -1
		})
		frame := "d" + strings.Repeat("x", 1000)
		var sent [streams]int
		var mu sync.Mutex
		var wg sync.WaitGroup
		var all []*Stream
		for i := range streams {
			st := mustOpen(t, e)
			all = append(all, st)
			wg.Go(func() {
				for range each {
					if err := sendToy(t.Context(), st, frame); err != nil {
						t.Error(err)
					}
					mu.Lock()
					sent[i]++
					mu.Unlock()
				}
				if err := sendToy(t.Context(), st, "eend"); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Minute)
		s := all[0].socket
		s.mu.Lock()
		unsent := s.streams.unsent
		for i, st := range all {
			if st.sending.unsent > 10_000 {
				t.Errorf("stream %d has %d bytes unsent", i, st.sending.unsent)
			}
		}
		s.mu.Unlock()
		if unsent > 30_000 || unsent < 25_000 {
			t.Errorf("%d bytes are unsent, the bound is 30,000", unsent)
		}
		go func() { // ends when all is read
			for range streams * (each + 2) {
				time.Sleep(time.Second)
				read <- struct{}{}
			}
		}()
		time.Sleep(streams * each / 2 * time.Second)
		mu.Lock()
		for i, n := range sent {
			if n < 5 { // each waits for at most one frame of each other stream
				t.Errorf("stream %d has sent %d frames, all have sent %v", i, n, sent)
			}
		}
		mu.Unlock()
		wg.Wait()
		for _, st := range all {
			expectToy(t, st, "eend")
			if got := k.kinds(st); got != "o"+strings.Repeat("d", each)+"e" {
				t.Errorf("the server got %q", got)
			}
			st.Close()
		}
		checkStreamsBalanced(t, e)
	})
}

// A frame that is larger than the bounds is sent when nothing else is queued.
func TestLargeFramesOfStreams(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{}, "")
		e := k.engine(func(c *Config) {
			c.Streams = StreamConfig{SendBytes: 1000, SocketBytes: 2000, ReceiveBytes: 8 << 20}
		})
		st := mustOpen(t, e)
		for i := range 10 {
			frame := "d" + strings.Repeat(string(rune('a'+i)), 300_000)
			if err := sendToy(t.Context(), st, frame); err != nil {
				t.Fatal(err)
			}
			expectToy(t, st, frame)
		}
		st.Close()
		synctest.Wait()
		checkStreamsBalanced(t, e)
	})
}

// Small frames that many streams send at the same time are sent together, as far as the scheduler runs the streams at
// the same time.
func TestFramesOfManyStreamsLeaveTogether(t *testing.T) {
	const streams, attempts = 200, 20
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{}, "")
		e := k.engine(nil)
		for i := range attempts {
			var all []*Stream
			for range streams {
				all = append(all, mustOpen(t, e))
			}
			time.Sleep(time.Second)
			before := e.Snapshot().Writes
			var wg sync.WaitGroup
			for _, st := range all {
				wg.Go(func() {
					if err := sendToy(t.Context(), st, "eend"); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			for _, st := range all {
				expectToy(t, st, "eend")
			}
			writes := e.Snapshot().Writes - before
			t.Logf("%d frames were sent with %d writes", streams, writes)
			if writes <= streams/4 {
				return
			}
			if i == attempts-1 {
				t.Errorf("%d writes for %d frames", writes, streams)
			}
			for _, st := range all {
				st.Close()
			}
		}
	})
}

// With a window, streams take at most half of it, so that they never block calls.
func TestStreamsLeaveCallsTheirWindow(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{}, "")
		e := k.engine(func(c *Config) { c.Traits.FirstDepth = 8 })
		for range 4 {
			mustOpen(t, e)
		}
		if _, err := openToy(t.Context(), e); slipstream.OutcomeOf(err) != slipstream.Overloaded {
			t.Errorf("OpenStream beyond half of the window: %v", err)
		}
		time.Sleep(time.Second) // otherwise they would count as young
		for i := range 100 {
			if took := virtualEcho(t, e, fmt.Sprint("r", i)); took != 0 {
				t.Errorf("a call took %v", took)
			}
		}
	})
}

// Close does not modify the frame that the receiver uses, even if others share its memory.
func TestCloseLeavesTheFrameInUse(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{on: ignoreStream}, "")
		e := k.engine(nil)
		for taken := 1; taken <= 4; taken++ {
			st := mustOpen(t, e)
			time.Sleep(time.Second) // otherwise the frame would wait for earlier ones, which are young
			for i := range 4 {
				k.of(st)[0].reply(fmt.Sprint("d", i))
			}
			synctest.Wait()
			expectToy(t, st, []string{"d0", "d1", "d2"}[:taken-1]...)
			b, err := st.Recv(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			st.Close()
			if got, want := (toyScanner{tickets: true}).body(b), fmt.Sprint("d", taken-1); got != want {
				t.Errorf("after Close the frame is %q, want %q", got, want)
			}
			if b, err := st.Recv(t.Context()); !errors.Is(err, ErrStreamClosed) {
				t.Errorf("Recv after Close: %q, %v", b, err)
			}
		}
	})
}
