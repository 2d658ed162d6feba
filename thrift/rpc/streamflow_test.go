package rpc_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/chat"
	"github.com/slipstream-go/slipstream/thrift/rpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/internal/frame"
)

// A handler that does not receive makes its client wait, and no other stream. Nothing is lost.
func TestSlowHandler(t *testing.T) {
	eachNetwork(t, func(t *testing.T, server rpc.ServerConfig, client rpc.StreamConfig) {
		server.Streams.Window = 100 << 10
		h := newChatter()
		s := serve(t, server, chat.NewChatService(h))
		_, c := openStreams(t, s, client)
		slow, err := c.Collect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer slow.Close()
		_ = slow.Send(t.Context(), &chat.Message{Text: "wait"})
		<-h.began
		var sent atomic.Int64
		done := make(chan error, 1)
		go func() { // ends with the test
			for range 5000 {
				if err := slow.Send(t.Context(), &chat.Message{Blob: make([]byte, 1000)}); err != nil {
					done <- err
					return
				}
				sent.Add(1)
			}
			done <- nil
		}()
		fast, err := c.Talk(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer fast.Close()
		for i := range int64(2000) {
			if err := fast.Send(t.Context(), &chat.Message{Number: i}); err != nil {
				t.Fatal(err)
			}
			if m, err := fast.Recv(t.Context()); err != nil || m.Number != i {
				t.Fatalf("%v, %v", m, err)
			}
		}
		if n := sent.Load(); n > 100 {
			t.Errorf("%d messages were sent to a handler that receives none; the window has room for 93", n)
		}
		close(h.gate)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if m, err := slow.CloseAndRecv(t.Context()); err != nil || m.Number != 5001 {
			t.Errorf("the handler has received %v, %v", m, err)
		}
	})
}

// A client that does not receive makes its handler wait, and no other stream.
func TestSlowReceiver(t *testing.T) {
	var reports atomic.Int64
	s := serve(t, rpc.ServerConfig{OnCall: func(r rpc.CallReport) {
		if r.Method == "watch" && r.Sent > 5000*1000 {
			reports.Add(1)
		}
	}}, chat.NewChatService(newChatter()))
	all, c := openStreams(t, s, rpc.StreamConfig{Limits: rpc.StreamLimits{Window: 50 << 10}})
	slow, err := c.Watch(t.Context(), &chat.Message{Number: 5000, Blob: make([]byte, 1000)})
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := slow.Recv(t.Context()); err != nil {
		t.Fatal(err)
	}
	fast, err := c.Talk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer fast.Close()
	for i := range int64(2000) {
		if err := fast.Send(t.Context(), &chat.Message{Number: i}); err != nil {
			t.Fatal(err)
		}
		if m, err := fast.Recv(t.Context()); err != nil || m.Number != i {
			t.Fatalf("%v, %v", m, err)
		}
	}
	n := int64(1)
	for m, err := range slow.All(t.Context()) {
		if err != nil || m.Number != n {
			t.Fatalf("message %d: %v, %v", n, m, err)
		}
		n++
	}
	if n != 5000 || all.Stats().Overflows != 0 {
		t.Errorf("%d messages, %d overflows", n, all.Stats().Overflows)
	}
	testkit.Eventually(t, patience, func() error {
		if reports.Load() != 1 {
			return errors.New("the end of the stream was not reported")
		}
		return nil
	})
}

// A message that does not fit into the window is an error at its sender, and the stream continues.
func TestMessagesLargerThanTheWindow(t *testing.T) {
	s := serve(t, rpc.ServerConfig{Streams: rpc.StreamLimits{Window: 10 << 10}, MaxMessage: 1 << 20}, chat.NewChatService(newChatter()))
	_, c := openStreams(t, s, rpc.StreamConfig{Limits: rpc.StreamLimits{Window: 100 << 10}})
	st, err := c.Talk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, size := range []int{11 << 10, 99 << 10, 2 << 20} {
		if size < firstCredit { // it is permitted before the window is known
			continue
		}
		err := st.Send(t.Context(), &chat.Message{Blob: make([]byte, size)})
		if _, ok := errors.AsType[*rpc.InvalidCallError](err); !ok || slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if err := st.Send(t.Context(), &chat.Message{Number: 5}); err != nil {
		t.Error(err)
	}
	if m, err := st.Recv(t.Context()); err != nil || m.Number != 5 {
		t.Errorf("%v, %v", m, err)
	}
	for size, fits := range map[int]bool{90 << 10: true, 101 << 10: false, 2 << 20: false} {
		watch, err := c.Watch(t.Context(), &chat.Message{Number: 1, Text: "large"})
		if err != nil {
			t.Fatal(err)
		}
		watch.Close()
		large, err := openLarge(t, c, size)
		if fits != (err == nil) || fits && len(large.Blob) != size {
			t.Errorf("a response of %d bytes: %v", size, err)
		}
	}
}

const firstCredit = 64 << 10

// openLarge receives a response of a size.
func openLarge(t *testing.T, c *chat.ChatStreamClient, size int) (*chat.Message, error) {
	t.Helper()
	h := newChatter()
	h.talk = func(s *talk) error { return s.Send(t.Context(), &chat.Message{Blob: make([]byte, size)}) }
	s := serveToo(t, rpc.ServerConfig{MaxMessage: 1 << 20}, chat.NewChatService(h))
	_, other := openStreams(t, s, rpc.StreamConfig{Limits: rpc.StreamLimits{Window: 100 << 10}})
	st, err := other.Talk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	return st.Recv(t.Context())
}

// fakeStreams starts a server of streams that knows frames, and returns a client.
func fakeStreams(t *testing.T, serve func(p *streamPeer)) *chat.ChatStreamClient {
	t.Helper()
	testkit.NoLeaks(t)
	l := testkit.Serve(t, func(c net.Conn, _ int) { serve(&streamPeer{TB: t, Conn: c, read: bufio.NewReader(c)}) })
	c, err := rpc.NewStreamClient(rpc.StreamConfig{Addr: l.Addr, Backoff: time.Millisecond, MaxBackoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return chat.NewChatStreamClient(c)
}

// Frames that no server sends end the connection with a typed error.
func TestHostileServersOfStreams(t *testing.T) {
	valid := message(1, &chat.Message{})
	for name, one := range map[string]struct {
		frames []byte
		want   error
	}{
		"a stream that was never opened": {message(77, &chat.Message{}), rpc.ErrUnsolicited},
		"the end of such a stream":       {streamFrame{id: 77, kind: frame.StreamTrailer}.bytes(), rpc.ErrUnsolicited},
		"no frame":                       {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), rpc.ErrUnreadable},
		"a reply":                        {callOf("talk"), rpc.ErrUnreadable},
		"another protocol":               {append(append(append([]byte(nil), valid[:14]...), 0x11), valid[15:]...), rpc.ErrUnreadable},
		"too large":                      {[]byte{0x7F, 0xFF, 0xFF, 0xFF, 0x10, 0, 0, 2}, rpc.ErrUnreadable},
		"nothing":                        {nil, io.ErrUnexpectedEOF},
		"a part of a frame":              {valid[:20], io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeStreams(t, func(p *streamPeer) {
				if _, err := p.next(); err == nil {
					_, _ = p.Write(one.frames)
				}
				if one.want == io.ErrUnexpectedEOF {
					return
				}
				p.awaitClosed()
			})
			st, err := c.Talk(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			_, err = st.Recv(t.Context())
			if !errors.Is(err, one.want) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
				t.Errorf("received %v", err)
			}
			if err := st.Send(t.Context(), &chat.Message{}); err == nil {
				t.Error("a message was sent on a stream that has ended")
			}
		})
	}
}

// A server without flow control that sends more than the program receives loses the stream, and no other one.
func TestServerThatSendsTooMuch(t *testing.T) {
	reset := make(chan thrift.ApplicationException, 1)
	c := fakeStreams(t, func(p *streamPeer) {
		one, err := p.next()
		if err != nil {
			return
		}
		id := one.Info.Seq
		large := message(id, &chat.Message{Blob: make([]byte, 10<<10)})
		for range 2000 { // 20 MB
			if _, err := p.Write(large); err != nil {
				return
			}
		}
		for {
			f, err := p.next()
			switch {
			case err != nil:
				return
			case f.Kind == frame.StreamReset && f.Info.Seq == id:
				reset <- exceptionIn(t, f)
				p.reply(streamFrame{id: id, kind: frame.StreamTrailer}.bytes())
			case f.Kind == frame.StreamData:
				p.reply(bytes.Clone(p.last))
			}
		}
	})
	growth := testkit.HeapGrowth(t)
	st, err := c.Talk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if e := <-reset; e.Kind != 12011 {
		t.Errorf("the reset says %v", &e)
	}
	if n := growth(); n > 8<<20 {
		t.Errorf("the heap has grown by %d bytes", n)
	}
	n := 0
	for _, err = range st.All(t.Context()) {
		if err != nil {
			break
		}
		n++
	}
	if !errors.Is(err, rpc.ErrStreamOverflow) || n < 90 || n > 110 {
		t.Errorf("%d messages, %v", n, err)
	}
	other, err := c.Talk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Send(t.Context(), &chat.Message{Number: 5}); err != nil {
		t.Error(err)
	}
	if m, err := other.Recv(t.Context()); err != nil || m.Number != 5 {
		t.Errorf("another stream: %v, %v", m, err)
	}
}

// A server whose window never opens makes Send wait until its context ends; the stream continues.
func TestServerWhoseWindowNeverOpens(t *testing.T) {
	c := fakeStreams(t, func(p *streamPeer) {
		p.reply(streamFrame{kind: frame.StreamMeta, keys: []string{"slipstream-window", "65536"}}.bytes())
		one, err := p.next()
		if err != nil {
			return
		}
		for {
			if f, err := p.next(); err != nil {
				return
			} else if f.Kind == frame.StreamTrailer {
				p.reply(streamFrame{id: one.Info.Seq, kind: frame.StreamTrailer}.bytes())
			}
		}
	})
	st, err := c.Talk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for i := 0; ; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := st.Send(ctx, &chat.Message{Blob: make([]byte, 1000)})
		cancel()
		if err == nil && i < 100 {
			continue
		}
		if !errors.Is(err, context.DeadlineExceeded) || slipstream.OutcomeOf(err) != slipstream.NotSent || i < 50 || i > 66 {
			t.Errorf("message %d: %v", i, err)
		}
		break
	}
	if err := st.CloseSend(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := st.Recv(t.Context()); err != io.EOF {
		t.Errorf("received %v", err)
	}
}

// A server that sends nothing has no flow control, as Kitex before its first response: after a while a stream sends
// without limit.
func TestServerThatSaysNothing(t *testing.T) {
	c := fakeStreams(t, func(p *streamPeer) {
		n := 0
		for {
			f, err := p.next()
			switch {
			case err != nil:
				return
			case f.Kind == frame.StreamData:
				n++
			case f.Kind == frame.StreamTrailer:
				p.reply(message(f.Info.Seq, &chat.Message{Number: int64(n)}), streamFrame{id: f.Info.Seq, kind: frame.StreamTrailer}.bytes())
				n = 0
			}
		}
	})
	for range 2 {
		st, err := c.Collect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		for range 5 {
			if err := st.Send(t.Context(), &chat.Message{Blob: make([]byte, 400<<10)}); err != nil {
				t.Fatal(err)
			}
		}
		if m, err := st.CloseAndRecv(t.Context()); err != nil || m.Number != 5 {
			t.Errorf("%v, %v", m, err)
		}
	}
}

// A server that ends tells its clients, which open streams elsewhere; it waits for those that it has.
func TestStreamsAndShutdown(t *testing.T) {
	h := newChatter()
	testkit.NoLeaks(t)
	first := serveToo(t, rpc.ServerConfig{}, chat.NewChatService(h))
	addr := first.Addr().String()
	_, c := openStreams(t, first, rpc.StreamConfig{DialTimeout: patience})
	st, err := c.Talk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	echo := func(st *rpc.BidiStreamingClient[chat.Message, chat.Message], i int64) {
		t.Helper()
		if err := st.Send(t.Context(), &chat.Message{Number: i}); err != nil {
			t.Fatal(err)
		}
		if m, err := st.Recv(t.Context()); err != nil || m.Number != i {
			t.Fatalf("%v, %v", m, err)
		}
	}
	echo(st, 1)
	ended := make(chan error, 1)
	go func() { ended <- first.Shutdown(context.Background()) }() // ends with the stream
	// The next server gets the address as soon as the first one does not listen anymore.
	var l net.Listener
	testkit.Eventually(t, patience, func() (err error) {
		l, err = net.Listen("tcp", addr)
		return err
	})
	second, err := rpc.NewServer(rpc.ServerConfig{}, chat.NewChatService(newChatter()))
	if err == nil {
		err = second.Serve(l)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Shutdown(context.Background()) }()
	var other *rpc.BidiStreamingClient[chat.Message, chat.Message]
	testkit.Eventually(t, patience, func() error { // until the client was told
		var err error
		if other, err = c.Talk(t.Context()); err != nil {
			return err
		}
		echo(other, 2)
		if second.Stats().Streams == 0 {
			other.Close()
			return errors.New("a stream was opened at the server that ends")
		}
		return nil
	})
	defer other.Close()
	for i := range int64(100) {
		echo(st, i)
	}
	select {
	case err := <-ended:
		t.Errorf("the server has ended before its stream: %v", err)
	default:
	}
	if err := st.CloseSend(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := st.Recv(t.Context()); err != io.EOF {
		t.Errorf("received %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the server has ended with %v", err)
	}
	other.Close()
}

// A server that is not given enough time ends its streams.
func TestShutdownThatCutsStreams(t *testing.T) {
	h := newChatter()
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(h))
	_, c := openStreams(t, s, rpc.StreamConfig{})
	st, err := c.Talk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	_ = st.Send(t.Context(), &chat.Message{Text: "wait"})
	<-h.began
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown returned %v", err)
	}
	if err := <-h.ended; !errors.Is(err, rpc.ErrStreamLost) {
		t.Errorf("the handler has ended because of %v", err)
	}
	if _, err := st.Recv(t.Context()); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("received %v", err)
	}
}

// A client has at most as many streams as configured, and an observer gets each of them.
func TestBoundsOfStreamClients(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(newChatter()))
	seen := make(chan slipstream.Observation, 10)
	all, c := openStreams(t, s, rpc.StreamConfig{Limits: rpc.StreamLimits{Max: 3}, Observer: observations(seen)})
	var open []*rpc.BidiStreamingClient[chat.Message, chat.Message]
	for range 3 {
		st, err := c.Talk(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, st)
	}
	if _, err := c.Talk(t.Context()); slipstream.OutcomeOf(err) != slipstream.Overloaded {
		t.Errorf("one stream too many: %v", err)
	}
	if n := all.Stats().Open; n != 3 {
		t.Errorf("%d streams", n)
	}
	for i, st := range open {
		if err := st.Send(t.Context(), &chat.Message{Text: []string{"a", "fail b", "c"}[i]}); err != nil {
			t.Error(err)
		}
		_, err := st.Recv(t.Context())
		st.Close()
		st.Close()
		o := <-seen
		if o.Op != "talk" || o.System != "thrift" || o.Requests != 1 || o.RequestBytes == 0 || (o.Err != nil) != (i == 1) || o.Err != nil && !errors.Is(err, o.Err) {
			t.Errorf("stream %d: %+v", i, o)
		}
	}
	st, err := c.Talk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	st.Close()
	if _, err := st.Recv(t.Context()); !errors.Is(err, rpc.ErrStreamClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := st.Send(t.Context(), &chat.Message{}); !errors.Is(err, rpc.ErrStreamClosed) {
		t.Errorf("after Close: %v", err)
	}
	_, err = c.Opener.Open(t.Context(), &rpc.StreamFunction{Service: "Chat", Name: strings.Repeat("x", 20<<10)})
	if _, ok := errors.AsType[*rpc.InvalidCallError](err); !ok {
		t.Errorf("a long name: %v", err)
	}
}

// A client whose server cannot be connected to fails as it is told.
func TestStreamsWithoutAServer(t *testing.T) {
	for _, fast := range []bool{false, true} {
		c, err := rpc.NewStreamClient(rpc.StreamConfig{Addr: "127.0.0.1:1", FailFast: fast, DialTimeout: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = chat.NewChatStreamClient(c).Talk(t.Context())
		if slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("%v", err)
		}
	}
	for _, config := range []rpc.StreamConfig{{}, {Addr: "x:1", Connections: -1}, {Addr: "x:1", Limits: rpc.StreamLimits{Window: -1}}, {Addr: "x:1", DialTimeout: -1}} {
		if c, err := rpc.NewStreamClient(config); err == nil {
			t.Errorf("%+v is valid", config)
			c.Close()
		}
	}
}

// observations is an observer that sends what it gets.
type observations chan slipstream.Observation

func (c observations) Observe(o slipstream.Observation) { c <- o }

// A server that ends at any byte of what it sends: the messages that arrived are received, and then an error with the
// outcome, or the regular end if that has arrived.
func TestStreamsCutByTheServer(t *testing.T) {
	transcript := func(id int32) (all []byte, frames []int) {
		for _, b := range [][]byte{
			streamFrame{kind: frame.StreamMeta, keys: []string{"slipstream-window", "65536"}}.bytes(),
			streamFrame{id: id, kind: frame.StreamHeader, keys: []string{"a", "b"}}.bytes(),
			message(id, &chat.Message{Number: 1}), message(id, &chat.Message{Number: 2}),
			streamFrame{id: id, kind: frame.StreamMeta, keys: []string{"slipstream-credit", "50"}}.bytes(),
			message(id, &chat.Message{Number: 3}), streamFrame{id: id, kind: frame.StreamTrailer}.bytes(),
		} {
			all = append(all, b...)
			frames = append(frames, len(all))
		}
		return all, frames
	}
	all, frames := transcript(1)
	var cut atomic.Int64
	c := fakeStreams(t, func(p *streamPeer) {
		one, err := p.next()
		if err != nil {
			return
		}
		b, _ := transcript(one.Info.Seq)
		p.reply(b[:cut.Load()])
	})
	for n := range len(all) + 1 {
		cut.Store(int64(n))
		st, err := c.Talk(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := int64(0)
		for _, at := range []int{frames[2], frames[3], frames[5]} {
			if n >= at {
				want++
			}
		}
		got := int64(0)
		var m *chat.Message
		for {
			if m, err = st.Recv(t.Context()); err != nil {
				break
			}
			if got++; m.Number != got {
				t.Errorf("cut at %d: message %d is %d", n, got, m.Number)
			}
		}
		ended := n == len(all)
		if got != want || ended != (err == io.EOF) || !ended && slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
			t.Errorf("cut at %d: %d messages, want %d; %v", n, got, want, err)
		}
		st.Close()
	}
}
