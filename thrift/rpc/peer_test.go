package rpc_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// patience is how long a test waits for a condition.
const patience = 30 * time.Second

// calculator is the handler used by the tests.
type calculator struct {
	forgotten atomic.Int64
	running   atomic.Int64
	gate      chan struct{} // Fail("wait") waits for it
	seen      func(ctx context.Context)
}

func (c *calculator) Ping(ctx context.Context) error {
	if c.seen != nil {
		c.seen(ctx)
	}
	return nil
}

func (c *calculator) Add(_ context.Context, a, b int32) (int32, error) {
	if sum := int64(a) + int64(b); sum != int64(int32(sum)) {
		return 0, fmt.Errorf("wrapped: %w", &calc.Overflow{What: fmt.Sprint(sum)})
	}
	return a + b, nil
}

func (c *calculator) Move(_ context.Context, p *calc.Point, by []calc.Point) (*calc.Point, error) {
	if p == nil {
		return nil, nil
	}
	for _, one := range by {
		p.X, p.Y = p.X+one.X, p.Y+one.Y
	}
	return p, nil
}

func (c *calculator) Echo(_ context.Context, text string) (string, error) { return text, nil }

func (c *calculator) Numbers(_ context.Context, count int32) (all []int64, err error) {
	for i := range count {
		all = append(all, int64(i))
	}
	return all, nil
}

func (c *calculator) Counts(_ context.Context, words []string) (map[string]int32, error) {
	all := make(map[string]int32)
	for _, w := range words {
		all[w]++
	}
	return all, nil
}

func (c *calculator) Forget(_ context.Context, id int64) error {
	c.forgotten.Add(id)
	return nil
}

func (c *calculator) Fail(ctx context.Context, how string) error {
	switch kind, text, _ := strings.Cut(how, " "); kind {
	case "wait":
		c.running.Add(1)
		defer c.running.Add(-1)
		select {
		case <-c.gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	case "panic":
		panic(text)
	case "status":
		return &rpc.StatusError{Code: 7, Message: text, Details: map[string]string{"a": "b"}}
	case "kitex":
		return fmt.Errorf("wrapped: %w", kitexStatus(text))
	case "protocol":
		return &thrift.ApplicationException{Kind: thrift.ProtocolError, Message: text}
	case "refuse":
		return &thrift.ApplicationException{Kind: rpc.KindRefused, Message: text}
	}
	return errors.New(how)
}

// kitexStatus is an application status with Kitex's interface.
type kitexStatus string

func (s kitexStatus) Error() string             { return "biz error: " + string(s) }
func (kitexStatus) BizStatusCode() int32        { return 7 }
func (s kitexStatus) BizMessage() string        { return string(s) }
func (kitexStatus) BizExtra() map[string]string { return map[string]string{"a": "b"} }

// clock is the handler of another service with a function of the same name.
type clock struct{}

func (clock) Now(context.Context) (int64, error) { return 17, nil }

func (clock) Echo(_ context.Context, text string) (string, error) { return "clock: " + text, nil }

// formats lists all combinations of transports and protocols.
var formats = []frame.Format{
	{Transport: frame.Buffered}, {Transport: frame.Framed}, {Transport: frame.Header}, {Transport: frame.HeaderFramed},
	{Transport: frame.Buffered, Compact: true}, {Transport: frame.Framed, Compact: true}, {Transport: frame.Header, Compact: true}, {Transport: frame.HeaderFramed, Compact: true},
}

// serve starts a server.
func serve(t *testing.T, config rpc.ServerConfig, services ...*rpc.Service) *rpc.Server {
	t.Helper()
	testkit.NoLeaks(t)
	return serveToo(t, config, services...)
}

// serveToo starts another server.
func serveToo(t *testing.T, config rpc.ServerConfig, services ...*rpc.Service) *rpc.Server {
	t.Helper()
	s, err := rpc.NewServer(config, services...)
	if err != nil {
		t.Fatal(err)
	}
	return listen(t, s)
}

// listen makes a server serve until the end of the test.
func listen(t *testing.T, s *rpc.Server) *rpc.Server {
	t.Helper()
	if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = s.Shutdown(ctx) // some tests have already called it
	})
	return s
}

// peer is a client that reads and writes messages.
type peer struct {
	*testing.T
	net.Conn
	format   frame.Format
	anyOrder bool
	keys     []string // names and values in headers
	timeout  string
	scanner  frame.Scanner
	in       []byte
	read     *bufio.Reader
}

func dial(t *testing.T, s *rpc.Server, f frame.Format) *peer {
	t.Helper()
	c, err := net.Dial(s.Addr().Network(), s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return newPeer(t, c, f)
}

func newPeer(t *testing.T, c net.Conn, f frame.Format) *peer {
	t.Cleanup(func() { c.Close() })
	return &peer{T: t, Conn: c, format: f, scanner: frame.Scanner{Max: 64 << 20}, read: bufio.NewReader(c)}
}

// encode returns a call.
func (p *peer) encode(name string, kind thrift.MessageType, seq int32, args thrift.Struct) []byte {
	p.Helper()
	var b []byte
	inner := 0
	if p.format.HasHeader() {
		flags := uint16(0)
		if p.anyOrder {
			flags = frame.FlagAnyOrder
		}
		w := frame.BeginHeader(nil, flags, seq, p.format.Compact)
		if p.timeout != "" {
			w.Int(frame.KeyTimeout, p.timeout)
		}
		for i := 0; i < len(p.keys); i += 2 {
			w.String(p.keys[i], p.keys[i+1])
		}
		var err error
		if b, err = w.End(); err != nil {
			p.Fatal(err)
		}
		inner = len(b)
	}
	if p.format.Transport == frame.Framed || p.format.Transport == frame.HeaderFramed {
		b = append(b, 0, 0, 0, 0)
	}
	if p.format.Compact {
		b = args.(thrift.CompactStruct).AppendCompact(thrift.AppendCompactMessage(b, name, kind, seq))
	} else {
		b = args.AppendThrift(thrift.AppendMessage(b, name, kind, seq))
	}
	if p.format.Transport == frame.HeaderFramed {
		_ = frame.EndMessage(b, inner, 0)
	}
	if p.format.Transport != frame.Buffered {
		_ = frame.EndMessage(b, 0, 0)
	}
	return b
}

func (p *peer) send(name string, seq int32, args thrift.Struct) {
	p.Helper()
	if _, err := p.Write(p.encode(name, thrift.Call, seq, args)); err != nil {
		p.Fatal(err)
	}
}

// answer is a message from a server.
type answer struct {
	thrift.Message
	info   frame.Info
	result []byte // the struct
	format frame.Format
}

// next returns the next answer, or an error if the connection has ended.
func (p *peer) next() (answer, error) {
	p.Helper()
	p.SetReadDeadline(time.Now().Add(patience))
	for {
		if len(p.in) > 0 {
			n, whole, err := p.scanner.Size(p.in)
			if err != nil {
				p.Fatal(err)
			}
			if whole {
				m, err := frame.Open(bytes.Clone(p.in[:n]))
				if err != nil {
					p.Fatal(err)
				}
				p.in = p.in[n:]
				a := answer{info: m.Info, format: m.Format}
				next := 0
				if m.Compact {
					next = thrift.ReadCompactMessage(m.Payload, 0, &a.Message)
				} else {
					next = thrift.ReadMessage(m.Payload, 0, &a.Message)
				}
				if next < 0 {
					p.Fatal(thrift.Err(next, 0))
				}
				a.result = m.Payload[next:]
				return a, nil
			}
		}
		more := make([]byte, 64<<10)
		n, err := p.read.Read(more)
		p.in = append(p.in, more[:n]...)
		if n == 0 && err != nil {
			return answer{}, err
		}
	}
}

// decode decodes the struct of an answer.
func (p *peer) decode(a answer, to thrift.Struct) {
	p.Helper()
	var r thrift.Reader
	var err error
	if a.format.Compact {
		_, err = r.ReadCompact(a.result, 0, to.(thrift.CompactStruct))
	} else {
		_, err = r.Read(a.result, 0, to)
	}
	if err != nil {
		p.Fatal(err)
	}
}

// reply decodes the reply to the call with sequence ID seq.
func (p *peer) reply(seq int32, to thrift.Struct) {
	p.Helper()
	a, err := p.next()
	if err != nil {
		p.Fatal(err)
	}
	if a.Type != thrift.Reply || a.Seq != seq || a.format != p.format || p.format.HasHeader() && a.info.Seq != seq {
		p.Fatalf("got %+v in format %v; want reply %d in %v", a, a.format, seq, p.format)
	}
	p.decode(a, to)
}

// control waits for a message that does not answer a call and has the given key.
func (p *peer) control(key string) {
	p.Helper()
	if a, err := p.next(); err != nil || a.Seq != 0 || string(a.info.String(key)) != "1" {
		p.Fatalf("got %+v, %v; want a message that does not answer a call, with the key %s", a, err, key)
	}
}

// exception returns the exception that answers a call.
func (p *peer) exception(seq int32) (answer, *thrift.ApplicationException) {
	p.Helper()
	a, err := p.next()
	if err != nil {
		p.Fatal(err)
	}
	if a.Type != thrift.Exception || a.Seq != seq {
		p.Fatalf("got %+v; want the exception %d", a, seq)
	}
	e := new(thrift.ApplicationException)
	p.decode(a, e)
	return a, e
}

// ended waits for the end of the connection.
func (p *peer) ended() {
	p.Helper()
	if a, err := p.next(); err == nil {
		p.Fatalf("got %+v; want the end of the connection", a)
	} else if !errors.Is(err, io.EOF) {
		p.Fatal(err)
	}
}

// eachFormat runs a test with each transport and protocol.
func eachFormat(t *testing.T, test func(t *testing.T, f frame.Format)) {
	for _, f := range formats {
		t.Run(f.String(), func(t *testing.T) { test(t, f) })
	}
}
