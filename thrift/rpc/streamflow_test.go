package rpc_test

import (
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
	"github.com/slipstream-go/slipstream/thrift/internal/chat"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// A handler that does not receive makes only its own client wait. No message is lost.
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
		fast.Close()
		noStreams(t, s)
	})
}

// A client that does not receive makes only its own handler wait.
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

// Sending a message that does not fit in the window is an error, and the stream continues.
func TestMessagesLargerThanTheWindow(t *testing.T) {
	s := serve(t, rpc.ServerConfig{Streams: rpc.StreamLimits{Window: 10 << 10}, MaxMessage: 1 << 20}, chat.NewChatService(newChatter()))
	_, c := openStreams(t, s, rpc.StreamConfig{Limits: rpc.StreamLimits{Window: 100 << 10}})
	st, err := c.Talk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, size := range []int{11 << 10, 99 << 10, 2 << 20} {
		if size < firstCredit { // allowed before the window is known
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

// openLarge receives a response of the given size.
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

// A server that shuts down notifies its clients, which then open streams elsewhere, and waits for the open streams.
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
	// The next server gets the address as soon as the first one stops listening.
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
	testkit.Eventually(t, patience, func() error { // until the client has been notified
		var err error
		if other, err = c.Talk(t.Context()); err != nil {
			return err
		}
		echo(other, 2)
		if second.Stats().Streams == 0 {
			other.Close()
			return errors.New("a stream was opened on the server that is shutting down")
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

// If Shutdown runs out of time, it ends the streams.
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

// A client opens at most the configured number of streams, and an observer is notified of each.
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

// Without a server, a client fails immediately or after a timeout, as configured.
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

// observations is an observer that sends each observation to a channel.
type observations chan slipstream.Observation

func (c observations) Observe(o slipstream.Observation) { c <- o }
