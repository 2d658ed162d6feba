package rpc_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// stock is a server that behaves like those of other implementations: it processes one call of a connection at a time,
// and answers in order.
type stock struct {
	// handle returns the answer to a call, or nil for none. It is called by a goroutine for each connection.
	handle func(c *stockCall) []byte
	nagle  bool // small replies are held back until earlier ones have been acknowledged
	// serves is the maximum number of connections that are served at a time; 0 means no limit.
	serves int

	addr        string // chosen if empty
	calls       atomic.Int64
	connections atomic.Int64 // number of accepted connections
	deepest     atomic.Int64 // the largest number of calls received at a time

	listener net.Listener // set by startStock

	mu   sync.Mutex
	last map[net.Conn]int64 // guarded by mu: for each open connection, the value of calls at its last call
}

// open returns the open connections, longest idle first.
func (s *stock) open() []net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Keys(s.last), func(a, b net.Conn) int { return cmp.Compare(s.last[a], s.last[b]) })
}

// idle waits until there are n connections of which one has had no calls for some time while the others have, and
// returns that one.
func (s *stock) idle(t *testing.T, n int) (c net.Conn) {
	t.Helper()
	testkit.Eventually(t, patience, func() error {
		all := s.open()
		if len(all) != n {
			return fmt.Errorf("%d connections, want %d", len(all), n)
		}
		c = all[0]
		s.mu.Lock()
		defer s.mu.Unlock()
		if quiet := s.last[all[1]] - s.last[c]; quiet < 200 {
			return fmt.Errorf("the other connections have had only %d calls since the last call on the longest idle one", quiet)
		}
		return nil
	})
	return c
}

// stockCall is a call that a stock server has received.
type stockCall struct {
	thrift.Message
	format  frame.Format
	info    frame.Info
	args    []byte
	conn    net.Conn
	nth     int64  // number of the call on its connection
	waiting []byte // bytes received after the call
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
func startStock(t testing.TB, s *stock) *stock {
	t.Helper()
	if s.addr == "" { // if addr is set, the client of the previous server at addr may outlive this server
		testkit.NoLeaks(t)
	}
	l, err := net.Listen("tcp", cmp.Or(s.addr, "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	s.addr, s.listener, s.last = l.Addr().String(), l, make(map[net.Conn]int64)
	var threads chan struct{}
	if s.serves > 0 {
		threads = make(chan struct{}, s.serves)
	}
	var all sync.WaitGroup
	closed := make(chan struct{})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.last[c] = s.calls.Load()
			s.mu.Unlock()
			s.connections.Add(1)
			c.(*net.TCPConn).SetNoDelay(!s.nagle)
			all.Go(func() {
				defer func() {
					s.mu.Lock()
					delete(s.last, c)
					s.mu.Unlock()
					c.Close()
				}()
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
		for _, c := range s.open() {
			c.Close()
		}
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
		s.mu.Lock()
		s.last[c] = s.calls.Add(1)
		s.mu.Unlock()
		s.deeper(in)
		if b := s.handle(k); b != nil {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	}
}

// deeper counts the calls that have been received but not handled.
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
