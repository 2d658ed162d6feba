package rpc_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/rpc/internal/frame"
)

// stock is a server as those of other implementations are: it works on one call of a connection at a time, and
// answers in order.
type stock struct {
	// handle returns the answer to a call, or nil for none. It is called by a goroutine for each connection.
	handle func(c *stockCall) []byte
	nagle  bool // small replies are held back until those before them were acknowledged
	// serves bounds the connections that are read at a time; 0 means that there is no limit.
	serves int

	addr        string
	calls       atomic.Int64
	connections atomic.Int64 // that were accepted
	deepest     atomic.Int64 // the largest number of calls that were received together
}

// stockCall is a call that a stock server has received.
type stockCall struct {
	thrift.Message
	format  frame.Format
	info    frame.Info
	args    []byte
	conn    net.Conn
	nth     int64  // of the connection
	waiting []byte // what was received after it
}

// answer returns a message that answers the call.
func (c *stockCall) answer(t thrift.MessageType, v thrift.CompactStruct) []byte {
	return c.message(c.Seq, string(c.Name), t, v)
}

func (c *stockCall) message(seq int32, name string, t thrift.MessageType, v thrift.CompactStruct, keys ...string) []byte {
	var b []byte
	inner := 0
	if c.format.HasHeader() {
		w := frame.BeginHeader(nil, 0, seq, c.format.Compact)
		for i := 0; i < len(keys); i += 2 {
			w.String(keys[i], keys[i+1])
		}
		b, _ = w.End()
		inner = len(b)
	}
	if c.format.Transport == frame.Framed || c.format.Transport == frame.HeaderFramed {
		b = append(b, 0, 0, 0, 0)
	}
	if c.format.Compact {
		b = v.AppendCompact(thrift.AppendCompactMessage(b, name, t, seq))
	} else {
		b = v.AppendThrift(thrift.AppendMessage(b, name, t, seq))
	}
	if c.format.Transport == frame.HeaderFramed {
		_ = frame.EndMessage(b, inner, 0)
	}
	if c.format.Transport != frame.Buffered {
		_ = frame.EndMessage(b, 0, 0)
	}
	return b
}

// startStock starts a server.
func startStock(t *testing.T, s *stock) *stock {
	t.Helper()
	testkit.NoLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	var threads chan struct{}
	if s.serves > 0 {
		threads = make(chan struct{}, s.serves)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	closed := make(chan struct{})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			s.connections.Add(1)
			c.(*net.TCPConn).SetNoDelay(!s.nagle)
			all.Go(func() {
				defer c.Close()
				if threads != nil {
					select {
					case threads <- struct{}{}:
						defer func() { <-threads }()
					case <-closed:
						return
					}
				}
				s.serve(c)
			})
		}
	})
	t.Cleanup(func() {
		close(closed)
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return s
}

// serve serves a connection.
func (s *stock) serve(c net.Conn) {
	var scanner frame.Scanner
	var in []byte
	more := make([]byte, 64<<10)
	for nth := int64(0); ; {
		n, whole, err := scanner.Size(in)
		if err != nil {
			return
		}
		if len(in) == 0 || !whole {
			n, err := c.Read(more)
			if in = append(in, more[:n]...); err != nil && (n == 0 || !errors.Is(err, io.EOF)) {
				return
			}
			continue
		}
		m, err := frame.Open(bytes.Clone(in[:n]))
		if err != nil {
			return
		}
		in = in[n:]
		k := &stockCall{format: m.Format, info: m.Info, conn: c, nth: nth, waiting: in}
		nth++
		next := 0
		if m.Compact {
			next = thrift.ReadCompactMessage(m.Payload, 0, &k.Message)
		} else {
			next = thrift.ReadMessage(m.Payload, 0, &k.Message)
		}
		if next < 0 {
			return
		}
		k.args = m.Payload[next:]
		s.calls.Add(1)
		s.deeper(in)
		if b := s.handle(k); b != nil {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	}
}

// deeper counts the calls that were received and not handled.
func (s *stock) deeper(in []byte) {
	depth := int64(1)
	for len(in) > 0 && depth < 100 {
		var scanner frame.Scanner
		n, whole, err := scanner.Size(in)
		if err != nil || !whole {
			break
		}
		in = in[n:]
		depth++
	}
	for {
		now := s.deepest.Load()
		if depth <= now || s.deepest.CompareAndSwap(now, depth) {
			return
		}
	}
}
