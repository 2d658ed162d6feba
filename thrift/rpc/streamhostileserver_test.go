package rpc_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/chat"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// fakeStreams starts a server that reads and writes stream frames, and returns a client.
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

// Invalid frames from a server end the connection with a typed error.
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

// A server without flow control that sends more than the program receives loses that stream only.
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

// A server that sends nothing, as Kitex does until its first response, is assumed to have no flow control: after a
// while, a stream sends without limit.
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

// When the server's data ends at any byte, the client receives the complete messages, and then an error with the
// outcome, or io.EOF if the end of the stream has arrived.
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
