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

// stock is a server as those of other implementations are: it works on one call of a connection at a time, and
// answers in order.
type stock struct {
	// handle returns the answer to a call, or nil for none. It is called by a goroutine for each connection.
	handle func(c *stockCall) []byte
	nagle  bool // small replies are held back until those before them were acknowledged
	// serves bounds the connections that are read at a time; 0 means that there is no limit.
	serves int

	addr        string // chosen if empty
	calls       atomic.Int64
	connections atomic.Int64 // that were accepted
	deepest     atomic.Int64 // the largest number of calls that were received together

	listener net.Listener // set by startStock

	mu   sync.Mutex
	last map[net.Conn]int64 // guarded by mu: of each open connection, the number of calls at its last one
}

// open returns the open connections, those that were idle for the longest time first.
func (s *stock) open() []net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Keys(s.last), func(a, b net.Conn) int { return cmp.Compare(s.last[a], s.last[b]) })
}

// idle waits until there are n connections, and all but one have had calls while that one had none, and returns it.
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
			return fmt.Errorf("the others have had only %d calls since the last one of the connection that has been idle for the longest time", quiet)
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
func startStock(t testing.TB, s *stock) *stock {
	t.Helper()
	if s.addr == "" { // otherwise the client of the server that had the address is still open when this one ends
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
