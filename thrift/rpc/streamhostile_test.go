package rpc_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/chat"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// streamPeer is one end of a stream connection that reads and writes frames.
type streamPeer struct {
	testing.TB
	net.Conn
	read *bufio.Reader
	last []byte
}

func dialStreams(t testing.TB, s *rpc.Server) *streamPeer {
	t.Helper()
	c, err := net.Dial(s.Addr().Network(), s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return newStreamPeer(t, c)
}

func newStreamPeer(t testing.TB, c net.Conn) *streamPeer {
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(2 * patience))
	return &streamPeer{TB: t, Conn: c, read: bufio.NewReader(c)}
}

func (p *streamPeer) send(frames ...[]byte) {
	p.Helper()
	for _, b := range frames {
		if _, err := p.Write(b); err != nil {
			p.Fatal(err)
		}
	}
}

// reply sends frames to a client that may have disconnected.
func (p *streamPeer) reply(frames ...[]byte) {
	for _, b := range frames {
		_, _ = p.Write(b)
	}
}

// next returns the next frame.
func (p *streamPeer) next() (f frame.Stream, err error) {
	head := make([]byte, 4)
	if _, err = io.ReadFull(p.read, head); err != nil {
		return f, err
	}
	p.last = append(head, make([]byte, binary.BigEndian.Uint32(head))...)
	if _, err = io.ReadFull(p.read, p.last[4:]); err != nil {
		return f, err
	}
	return frame.OpenStream(p.last)
}

// await returns the stream's next frame other than meta frames.
func (p *streamPeer) await(stream int32) frame.Stream {
	p.Helper()
	for {
		f, err := p.next()
		if err != nil {
			p.Fatal(err)
		}
		if f.Info.Seq == stream && f.Kind >= frame.StreamData {
			return f
		}
	}
}

// awaitClosed reads until the connection ends.
func (p *streamPeer) awaitClosed() {
	p.Helper()
	for {
		if _, err := p.next(); err != nil {
			if e := net.Error(nil); errors.As(err, &e) && e.Timeout() {
				p.Error("the connection was not closed")
			}
			return
		}
	}
}

// A streamFrame describes a frame that a test sends.
type streamFrame struct {
	id      int32
	kind    byte
	method  string
	keys    []string // names and values
	payload []byte
}

func (f streamFrame) bytes() []byte {
	w := frame.BeginStream(nil, f.id, f.kind)
	if f.method != "" {
		w.Int(frame.KeyToMethod, f.method)
		w.String(frame.KeyService, "Chat")
	}
	for i := 0; i < len(f.keys); i += 2 {
		w.String(f.keys[i], f.keys[i+1])
	}
	b, err := w.End()
	if err != nil {
		panic(err)
	}
	b = append(b, f.payload...)
	if err := frame.EndMessage(b, 0, 0); err != nil {
		panic(err)
	}
	return b
}

// opening returns the frame that opens a stream of Chat. window is empty for a client without flow control.
func opening(id int32, method, window string) []byte {
	f := streamFrame{id: id, kind: frame.StreamHeader, method: method}
	if window != "" {
		f.keys = []string{"slipstream-window", window}
	}
	return f.bytes()
}

func message(id int32, m *chat.Message) []byte {
	return streamFrame{id: id, kind: frame.StreamData, payload: m.AppendThrift(nil)}.bytes()
}

func exceptionIn(t testing.TB, f frame.Stream) (e thrift.ApplicationException) {
	t.Helper()
	var m thrift.Message
	body := thrift.ReadMessage(f.Payload, 0, &m)
	var r thrift.Reader
	if _, err := r.Read(f.Payload, body, &e); err != nil || m.Type != thrift.Exception {
		t.Errorf("a frame of kind %c has no exception: %v", f.Kind, err)
	}
	return e
}

// noStreams waits until all handlers have returned and the server holds no memory for streams.
func noStreams(t testing.TB, s *rpc.Server) {
	t.Helper()
	testkit.Eventually(t, patience, func() error {
		if n := s.Stats().Streams; n != 0 {
			return fmt.Errorf("%d streams are open", n)
		}
		if n := rpc.HeldLarge(s); n != 0 {
			return fmt.Errorf("the server holds %d bytes for streams", n)
		}
		return nil
	})
}

// A malformed frame ends the connection and all of its streams.
func TestMalformedFramesOfStreams(t *testing.T) {
	h := newChatter()
	s := serve(t, rpc.ServerConfig{MaxMessage: 1 << 20}, chat.NewChatService(h))
	data := message(1, &chat.Message{})
	change := func(at int, to ...byte) []byte {
		b := append([]byte(nil), data...)
		copy(b[at:], to)
		return b
	}
	for name, b := range map[string][]byte{
		"a call":              callOf("echo"),
		"a kind of 6":         change(23, '6'),
		"no kind":             change(19, 0, 28),
		"a long kind":         streamFrame{id: 1, kind: frame.StreamData, payload: nil}.bytes()[:23],
		"another protocol":    change(14, 0x11),
		"transforms":          change(15, 1),
		"a header too large":  change(12, 0xFF, 0xFF),
		"no header":           change(12, 0, 0),
		"a claimed length":    change(0, 0x7F, 0xFF, 0xFF, 0xFF),
		"a length too small":  change(0, 0, 0, 0, 4),
		"not the magic":       change(4, 0x20),
		"a stream twice":      opening(1, "talk", ""),
		"a stream with ID 0":  opening(0, "talk", ""),
		"a block of kind 0x7": change(16, 7),
	} {
		t.Run(name, func(t *testing.T) {
			before := s.Stats().Malformed
			p := dialStreams(t, s)
			p.send(opening(1, "talk", "100000"), message(1, &chat.Message{Text: "wait"}))
			<-h.began
			p.send(b)
			if name == "a long kind" { // the rest never arrives
				p.Close()
			}
			if err := <-h.ended; err == nil {
				t.Error("the handler has ended without a cause")
			}
			p.awaitClosed()
			if name != "a long kind" {
				awaitMalformed(t, s, before+1)
			}
		})
	}
	noStreams(t, s)
}

// callOf returns a call with a header.
func callOf(name string) []byte {
	w := frame.BeginHeader(nil, 0, 5, false)
	b, _ := w.End()
	b = append(thrift.AppendMessage(b, name, thrift.Call, 5), thrift.TypeStop)
	_ = frame.EndMessage(b, 0, 0)
	return b
}

// A connection that began with a call cannot open streams.
func TestStreamAfterACall(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(newChatter()))
	p := dialStreams(t, s)
	p.send(callOf("nothing"), opening(1, "talk", ""))
	p.awaitClosed()
	awaitMalformed(t, s, 1)
}

// awaitMalformed waits until a server has counted n malformed messages.
func awaitMalformed(t *testing.T, s *rpc.Server, n uint64) {
	t.Helper()
	testkit.Eventually(t, patience, func() error {
		if got := s.Stats().Malformed; got != n {
			return fmt.Errorf("%d malformed messages, want %d", got, n)
		}
		return nil
	})
}

// Frames for streams that are not open are dropped; other streams continue.
func TestFramesOfUnknownStreams(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(newChatter()))
	p := dialStreams(t, s)
	p.send(opening(1, "talk", ""))
	for i := range int32(2000) {
		for _, kind := range []byte{frame.StreamMeta, frame.StreamData, frame.StreamTrailer, frame.StreamReset} {
			p.send(streamFrame{id: i - 1000 + 1<<20, kind: kind, payload: []byte{0}}.bytes())
		}
	}
	p.send(message(1, &chat.Message{Number: 5}))
	if f := p.await(1); f.Kind != frame.StreamData {
		t.Errorf("got a frame of kind %c", f.Kind)
	}
	p.send(streamFrame{id: 1, kind: frame.StreamTrailer}.bytes())
	if f := p.await(1); f.Kind != frame.StreamTrailer || len(f.Payload) != 0 {
		t.Errorf("got a frame of kind %c with %q", f.Kind, f.Payload)
	}
	noStreams(t, s)
}

// A server limits its open streams, in total and per connection, and refuses further ones. A stream that was reset
// counts until its handler has returned.
func TestBoundsOfStreams(t *testing.T) {
	for name, config := range map[string]rpc.ServerConfig{"server": {Streams: rpc.StreamLimits{Max: 10}}, "connection": {MaxConnCalls: 10}} {
		t.Run(name, func(t *testing.T) {
			h := newChatter()
			h.talk = func(*talk) error { <-h.gate; return nil }
			s := serve(t, config, chat.NewChatService(h))
			p := dialStreams(t, s)
			for i := range int32(10) {
				p.send(opening(i+1, "talk", "1000"), streamFrame{id: i + 1, kind: frame.StreamReset}.bytes())
				if f := p.await(i + 1); f.Kind != frame.StreamReset {
					t.Errorf("a reset was answered by %c", f.Kind)
				}
			}
			for i := range int32(1000) {
				p.send(opening(i+100, "talk", "1000"))
				f := p.await(i + 100)
				if e := exceptionIn(t, f); f.Kind != frame.StreamTrailer || e.Kind != rpc.KindRefused || f.Info.String("slipstream-refused") == nil {
					t.Fatalf("stream %d: %c, %v", i+100, f.Kind, &e)
				}
			}
			if n := s.Stats(); n.Streams != 10 || n.Refused != 1000 {
				t.Errorf("%d streams, %d refused", n.Streams, n.Refused)
			}
			close(h.gate)
			noStreams(t, s)
			p.send(opening(5000, "talk", ""))
			if f := p.await(5000); f.Kind != frame.StreamTrailer || len(f.Payload) > 0 {
				t.Errorf("a stream after the others have ended: %c, %q", f.Kind, f.Payload)
			}
		})
	}
}

// A client whose window never opens makes only its own handler wait: the bytes that the server holds are bounded, and
// other streams of the connection continue.
func TestWindowThatNeverOpens(t *testing.T) {
	h := newChatter()
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(h))
	p := dialStreams(t, s)
	for i := range int32(20) {
		p.send(opening(i+1, "watch", "2000"), message(i+1, &chat.Message{Number: 1 << 40, Blob: make([]byte, 1000)}))
		for _, credit := range []string{"", "0", "-1", "x", "99999999999999999999"} {
			p.send(streamFrame{id: i + 1, kind: frame.StreamMeta, keys: []string{"slipstream-credit", credit}}.bytes())
		}
		if f := p.await(i + 1); f.Kind != frame.StreamData {
			t.Fatalf("got %c", f.Kind)
		}
	}
	p.send(opening(100, "talk", "2000"))
	for i := range 100 { // other streams may send one message each
		p.send(message(100, &chat.Message{Number: int64(i)}), streamFrame{id: 100, kind: frame.StreamMeta, keys: []string{"slipstream-credit", "200"}}.bytes())
		f, err := p.next()
		for err == nil && (f.Info.Seq == 0 || f.Kind == frame.StreamMeta) {
			f, err = p.next()
		}
		if err != nil || f.Info.Seq != 100 {
			t.Fatalf("message %d: got one of stream %d, %v", i, f.Info.Seq, err)
		}
	}
	for i := range int32(20) {
		p.send(streamFrame{id: i + 1, kind: frame.StreamReset}.bytes())
	}
	p.send(streamFrame{id: 100, kind: frame.StreamTrailer}.bytes())
	noStreams(t, s)
}

// A client without flow control that sends more than the handler receives loses that stream only.
func TestClientThatSendsTooMuch(t *testing.T) {
	h := newChatter()
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(h))
	p := dialStreams(t, s)
	p.send(opening(1, "collect", ""), message(1, &chat.Message{Text: "wait"}), opening(2, "talk", ""))
	<-h.began
	growth := testkit.HeapGrowth(t)
	large := message(1, &chat.Message{Blob: make([]byte, 10<<10)})
	for range 2000 { // 20 MB
		p.send(large)
	}
	f := p.await(1)
	if e := exceptionIn(t, f); f.Kind != frame.StreamReset || e.Kind != 12011 {
		t.Errorf("got %c, %v", f.Kind, &e)
	}
	if err := <-h.ended; !errors.Is(err, rpc.ErrStreamOverflow) {
		t.Errorf("the handler has ended because of %v", err)
	}
	p.send(message(2, &chat.Message{Number: 5}))
	if f := p.await(2); f.Kind != frame.StreamData {
		t.Errorf("the other stream: %c", f.Kind)
	}
	if n := growth(); n > 8<<20 {
		t.Errorf("the heap has grown by %d bytes", n)
	}
}

// When a client's data ends at any byte, its handlers end.
func TestStreamsCutAnywhere(t *testing.T) {
	h := newChatter()
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(h))
	var all []byte
	for _, b := range [][]byte{
		opening(1, "talk", "10000"), message(1, &chat.Message{Text: "a"}), opening(2, "collect", ""), message(2, &chat.Message{Text: "wait"}),
		streamFrame{id: 1, kind: frame.StreamMeta, keys: []string{"slipstream-credit", "50"}}.bytes(), streamFrame{id: 1, kind: frame.StreamTrailer}.bytes(),
		streamFrame{id: 2, kind: frame.StreamReset}.bytes(),
	} {
		all = append(all, b...)
	}
	for n := 1; n <= len(all); n += 3 {
		p := dialStreams(t, s)
		p.send(all[:n])
		if n%2 == 0 {
			p.Close()
		} else if err := p.Conn.(*net.TCPConn).CloseWrite(); err != nil { // it still reads
			t.Fatal(err)
		}
	}
	noStreams(t, s)
}

// If a client opens streams and does not read, the output that waits for it is bounded, and its connection is closed.
func TestStreamsOfAClientThatDoesNotRead(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(newChatter()))
	p := dialStreams(t, s)
	growth := testkit.HeapGrowth(t)
	for i := range int32(50) {
		p.send(opening(i+1, "watch", ""), message(i+1, &chat.Message{Number: 1 << 40, Blob: make([]byte, 10<<10)}))
	}
	// The server stops reading while too much waits to be written, so some streams may not be opened before it closes
	// the connection.
	testkit.Eventually(t, patience, func() error {
		if n := growth(); n > 16<<20 {
			t.Fatalf("the heap has grown by %d bytes", n)
		}
		if v := s.Stats(); v.Streams != 50 && v.Done == 0 {
			return fmt.Errorf("%d streams", v.Streams)
		}
		return nil
	})
	time.Sleep(100 * time.Millisecond) // the handlers send as much as they can
	if n := growth(); n > 16<<20 {
		t.Errorf("the heap has grown by %d bytes", n)
	}
	p.Close()
	noStreams(t, s)
}

// The header of the frame that opens a stream bounds its keys, and a stream whose deadline has passed is refused.
func TestOpeningFrames(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(newChatter()))
	p := dialStreams(t, s)
	keys := []string{}
	for i := range 50 {
		keys = append(keys, "RPC_TRANSIT_"+strconv.Itoa(i), strings.Repeat("x", 5000))
	}
	p.send(streamFrame{id: 1, kind: frame.StreamHeader, method: "talk", keys: keys}.bytes(), message(1, &chat.Message{Number: 5}))
	if f := p.await(1); f.Kind != frame.StreamData {
		t.Errorf("with large metadata: %c", f.Kind)
	}
	for i, method := range []string{"echo", "nothing", strings.Repeat("x", 60_000)} {
		p.send(opening(int32(i+2), method, ""))
		f := p.await(int32(i + 2))
		if e := exceptionIn(t, f); f.Kind != frame.StreamTrailer || e.Kind != thrift.UnknownMethod || len(e.Message) > 500 {
			t.Errorf("%.10s: %c, %v", method, f.Kind, &e)
		}
	}
}

// The memory of all streams is bounded: the connections that hold the most are closed.
func TestMemoryOfAllStreamsIsBounded(t *testing.T) {
	testkit.NoLeaks(t)
	h := newChatter()
	s, err := rpc.NewServerWith(rpc.ServerConfig{}, 4<<20, chat.NewChatService(h))
	if err != nil {
		t.Fatal(err)
	}
	listen(t, s)
	small := dialStreams(t, s)
	small.send(opening(1, "talk", ""))
	for range 4 {
		p := dialStreams(t, s)
		for i := range int32(4) {
			p.send(opening(i+1, "collect", ""), message(i+1, &chat.Message{Text: "wait"}))
			<-h.began
			for range 90 { // 900 KB, of 1 MiB that it may have
				p.reply(message(i+1, &chat.Message{Blob: make([]byte, 10<<10)}))
			}
		}
	}
	for range 4 { // the streams of at least one connection
		if err := <-h.ended; !errors.Is(err, rpc.ErrStreamLost) {
			t.Errorf("a handler has ended because of %v", err)
		}
	}
	small.send(message(1, &chat.Message{Number: 5}))
	if f := small.await(1); f.Kind != frame.StreamData {
		t.Errorf("a stream that holds little: %c", f.Kind)
	}
	close(h.gate)
}
