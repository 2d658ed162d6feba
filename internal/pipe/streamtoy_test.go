package pipe

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Streams of the toy protocol: A client sends 'o' to open a stream, 'd' for frames, 'e' for the last frame, 'x'
// to reset the stream, and 'c' with a number to give credit. The server sends 'd' frames, 'c', and any other
// kind as the last frame.

func toyStreamTraits() *StreamTraits {
	return &StreamTraits{AppendReset: func(b []byte, cause error) []byte { return appendToyTicket(b, "x"+cause.Error()) }}
}

// withToyCredit adds flow control in both directions: the client may send first bytes, and the server window
// bytes.
func withToyCredit(c *Config, first, window int) {
	s := c.Traits.Streams
	s.Credited, s.FirstCredit, s.Window = true, first, window
	s.AppendCredit = func(b []byte, n int) []byte { return appendToyTicket(b, "c"+strconv.Itoa(n)) }
	c.OnPush = func(from Pin, frame []byte) {
		if n, found := strings.CutPrefix((toyScanner{tickets: true}).body(frame), "c"); found {
			credit, _ := strconv.Atoi(n)
			from.Grant(binary.BigEndian.Uint64(frame[4:]), credit)
		}
	}
}

// streamToy is a server that echoes calls. It passes frames of streams to on, which defaults to echoing them.
type streamToy struct {
	*toyServer
	on func(r toyRequest)

	mu  sync.Mutex
	got map[uint64][]toyRequest // frames of streams, by ticket
}

func startStreamToy(t testing.TB, k *streamToy, network string) *streamToy {
	k.got = map[uint64][]toyRequest{}
	if k.on == nil {
		k.on = echoStream
	}
	k.toyServer = startToy(t, &toyServer{tickets: true, network: network, handle: func(r toyRequest) {
		if r.body[0] == 'r' {
			r.reply(r.body)
			return
		}
		k.mu.Lock()
		k.got[r.ticket] = append(k.got[r.ticket], r)
		k.mu.Unlock()
		k.on(r)
	}})
	return k
}

// echoStream sends frames back, and ends the stream when the client does.
func echoStream(r toyRequest) {
	switch r.body[0] {
	case 'd', 'e':
		r.reply(r.body)
	case 'x':
		r.reply("ereset")
	}
}

// ignoreStream does not answer.
func ignoreStream(toyRequest) {}

// engine returns a connected engine with streams.
func (k *streamToy) engine(change func(*Config)) *Engine {
	return k.toyServer.engine(func(c *Config) {
		c.Traits.Streams = toyStreamTraits()
		if change != nil {
			change(c)
		}
	})
}

// of returns the frames of a stream that have arrived.
func (k *streamToy) of(st *Stream) (all []toyRequest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append(all, k.got[st.ticket]...)
}

// kinds returns the kinds of the frames of a stream that have arrived.
func (k *streamToy) kinds(st *Stream) (kinds string) {
	for _, r := range k.of(st) {
		kinds += r.body[:1]
	}
	return kinds
}

func toyFrame(e *Engine, body string) *Call {
	c := e.Acquire()
	c.Frame = appendToyTicket(c.Frame[:0], body)
	return c
}

func openToy(ctx context.Context, e *Engine) (*Stream, error) {
	c := toyFrame(e, "open")
	st, err := e.OpenStream(ctx, c)
	if err != nil {
		c.Release()
	}
	return st, err
}

func mustOpen(t testing.TB, e *Engine) *Stream {
	t.Helper()
	st, err := openToy(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

func sendToy(ctx context.Context, st *Stream, body string) error {
	c := toyFrame(st.socket.engine, body)
	send := st.Send
	if body[0] == 'e' {
		send = st.CloseSend
	}
	err := send(ctx, c)
	if err != nil {
		c.Release()
	}
	return err
}

func recvToy(ctx context.Context, st *Stream) (string, error) {
	b, err := st.Recv(ctx)
	if err != nil {
		return "", err
	}
	return toyScanner{tickets: true}.body(b), nil
}

// expectToy receives frames and compares them with want.
func expectToy(t testing.TB, st *Stream, want ...string) {
	t.Helper()
	for _, w := range want {
		if got, err := recvToy(t.Context(), st); got != w || err != nil {
			t.Fatalf("received %.40q, %v, want %.40q", got, err, w)
		}
	}
}

// spare holds calls for use in bubbles, because the wake channel of a pooled call must not belong to a bubble.
var spare struct {
	mu    sync.Mutex
	calls []*Call
}

// virtual runs f in virtual time. There, calls that f waits for must be made with virtualEcho.
func virtual(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	for len(spare.calls) < 50_000 {
		spare.calls = append(spare.calls, calls.New().(*Call))
	}
	regular := calls.New
	defer func() { calls.New = regular }()
	calls.New = func() any {
		spare.mu.Lock()
		defer spare.mu.Unlock()
		last := len(spare.calls) - 1
		c := spare.calls[last]
		spare.calls = spare.calls[:last]
		return c
	}
	synctest.Test(t, f)
}

// virtualEcho makes one call in virtual time and returns how long it took.
func virtualEcho(t *testing.T, e *Engine, body string) time.Duration {
	t.Helper()
	c := &Call{ending: newEnding(), engine: e, Frame: appendToyTicket(nil, body)}
	began := time.Now()
	if err := e.Do(t.Context(), c); err != nil {
		t.Errorf("call among streams: %v", err)
	} else if got := (toyScanner{tickets: true}).body(c.Reply()); got != body {
		t.Errorf("sent %q, got %q", body, got)
	}
	return time.Since(began)
}

// checkStreamsBalanced fails the test unless all streams end and release everything they held.
func checkStreamsBalanced(t testing.TB, e *Engine) {
	t.Helper()
	testkit.Eventually(t, 5*time.Second, func() error {
		if v := e.Snapshot(); v.Streams != 0 || v.StreamBytes != 0 || v.Queued != 0 {
			return fmt.Errorf("%d streams are open, %d bytes reserved, %d calls queued", v.Streams, v.StreamBytes, v.Queued)
		}
		for i := range e.list.Load().sockets {
			s := socketAt(e, i)
			if s == nil {
				continue
			}
			s.mu.Lock()
			unsent, ready, live := s.streams.unsent, len(s.streams.ready), s.streams.live
			s.mu.Unlock()
			if unsent != 0 || ready != 0 || live != 0 {
				return fmt.Errorf("the socket still has %d bytes unsent, %d streams ready, %d live", unsent, ready, live)
			}
		}
		return nil
	})
	checkBalanced(t, e)
}

// bodiesOf returns n frames that differ from those of all other streams.
func bodiesOf(stream, n int, size func() int) (all []string) {
	for i := range n {
		body := fmt.Sprintf("d%d/%d:", stream, i)
		all = append(all, body+strings.Repeat(string(rune('a'+i%26)), size()))
	}
	return all
}
