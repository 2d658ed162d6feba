package rpcload

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/slipstream-go/slipstream/bench/internal/floor"
)

// The floor is the minimum for a client with two connections and goroutines, and for a server that
// sends back the bytes that it receives: frames with a length, an index, a number and a text. It
// has no functions, sleeps, timeouts, contexts, limits, reconnections, or texts longer than
// floorRoom, so it is of no practical use.
const (
	floorConnections = 2
	floorHead        = 4 + 4 + 8
	floorRoom        = 1 << 20 // of reading
)

// ServeFloor runs the server of the floor.
func ServeFloor(s Serving) (net.Addr, error) { return serveFloor(s, floor.Echo) }

// ServeThriftFloor is the minimum for a server of framed Thrift in the binary protocol with
// third-party clients: it converts each call with one struct as its first argument to an answer
// with the same struct as its result. It does not parse the struct, and trusts its input.
func ServeThriftFloor(s Serving) (net.Addr, error) { return serveFloor(s, answerThrift) }

// thriftHead is the size of the head of a framed message without the name of its function: the length of the frame,
// version and type, and the length of the name; the name and four bytes of the sequence id follow.
const thriftHead = 4 + 4 + 4

// answerThrift converts the calls in in to their answers.
func answerThrift(in []byte, answers [][]byte) (consumed int, _ [][]byte, err error) {
	for len(in)-consumed >= thriftHead {
		b := in[consumed:]
		size := 4 + int(binary.BigEndian.Uint32(b))
		field := thriftHead + int(binary.BigEndian.Uint32(b[8:])) + 4
		if size < field+3 || field < 0 {
			return consumed, answers, errors.New("a message that is not a call with an argument")
		}
		if len(b) < size {
			break
		}
		b[7] = 2                      // the type of an answer
		b[field+1], b[field+2] = 0, 0 // the field id of a result
		consumed += size
	}
	if consumed > 0 {
		answers = append(answers, in[:consumed])
	}
	return consumed, answers, nil
}

func serveFloor(s Serving, answer floor.Answerer) (net.Addr, error) {
	if s.TLS != nil {
		return nil, errors.ErrUnsupported
	}
	l, err := net.Listen("tcp", s.Address)
	if err != nil {
		return nil, err
	}
	// Ends with the process.
	server, err := floor.Serve(l.(*net.TCPListener), answer, floor.Options{})
	if err != nil {
		return nil, err
	}
	return server.Addr(), nil
}

type floorClient struct {
	// Immutable after OpenFloor.
	all     []*floorConn
	readers sync.WaitGroup

	next atomic.Uint32
}

// OpenFloor returns the client of the floor.
func OpenFloor(ctx context.Context, s Setting) (Client, error) {
	if s.TLS != nil {
		return nil, errors.ErrUnsupported
	}
	f := new(floorClient)
	for range floorConnections {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Address)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		c := &floorConn{conn: conn, calls: make([]floorCall, s.Callers), wake: make(chan struct{}, 1), ended: make(chan struct{})}
		for i := range c.calls {
			c.calls[i].wake = make(chan struct{}, 1)
			c.free = append(c.free, uint32(i))
		}
		f.all = append(f.all, c)
		// Both are ended by Close, which waits.
		f.readers.Go(c.read)
		f.readers.Go(c.write)
	}
	return f, nil
}

// Echo implements [Client].
func (f *floorClient) Echo(_ context.Context, text string, number int64) (string, int64, error) {
	return f.all[f.next.Add(1)%floorConnections].echo(text, number)
}

// Sleep implements [Client].
func (f *floorClient) Sleep(context.Context, int32) (int32, error) { return 0, errors.ErrUnsupported }

// Close implements [Client].
func (f *floorClient) Close() error {
	var errs []error
	for _, c := range f.all {
		errs = append(errs, c.conn.Close())
	}
	f.readers.Wait()
	return errors.Join(errs...)
}

// A floorConn is one connection.
type floorConn struct {
	// Immutable after OpenFloor.
	conn  net.Conn
	calls []floorCall
	wake  chan struct{} // of the writer; capacity 1
	ended chan struct{} // closed by the reader when there are no more answers

	mu sync.Mutex
	// Guarded by mu.
	out     []byte
	writing bool
	free    []uint32 // indexes of calls
}

// A floorCall is a slot for one call. It is owned by the caller and, between sending and waking, by
// the reader.
type floorCall struct {
	wake   chan struct{}
	text   string
	number int64
}

var errFloor = errors.New("floor: the connection has ended")

func (c *floorConn) echo(text string, number int64) (string, int64, error) {
	c.mu.Lock()
	place := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	c.out = binary.BigEndian.AppendUint32(c.out, uint32(floorHead+len(text)))
	c.out = binary.BigEndian.AppendUint32(c.out, place)
	c.out = binary.BigEndian.AppendUint64(c.out, uint64(number))
	c.out = append(c.out, text...)
	first := !c.writing
	c.writing = true
	c.mu.Unlock()
	if first {
		c.wake <- struct{}{}
	}
	call := &c.calls[place]
	select {
	case <-call.wake:
	case <-c.ended:
		return "", 0, errFloor
	}
	text, number = call.text, call.number
	c.mu.Lock()
	c.free = append(c.free, place)
	c.mu.Unlock()
	return text, number, nil
}

func (c *floorConn) write() {
	var taken []byte
	for {
		select {
		case <-c.wake:
		case <-c.ended:
			return
		}
		runtime.Gosched() // other goroutines can add their calls now
		for {
			c.mu.Lock()
			if len(c.out) == 0 {
				c.writing = false
				c.mu.Unlock()
				break
			}
			taken, c.out = c.out, taken[:0]
			c.mu.Unlock()
			if _, err := c.conn.Write(taken); err != nil {
				return
			}
		}
	}
}

func (c *floorConn) read() {
	defer close(c.ended)
	b := make([]byte, floorRoom)
	have := 0
	for {
		n, err := c.conn.Read(b[have:])
		if err != nil {
			return
		}
		have += n
		rest := b[:have]
		for len(rest) >= floorHead {
			size := int(binary.BigEndian.Uint32(rest))
			place := int(binary.BigEndian.Uint32(rest[4:]))
			if size < floorHead || size > floorRoom || place >= len(c.calls) {
				return
			}
			if len(rest) < size {
				break
			}
			call := &c.calls[place]
			call.number, call.text = int64(binary.BigEndian.Uint64(rest[8:])), string(rest[floorHead:size])
			call.wake <- struct{}{}
			rest = rest[size:]
		}
		have = copy(b, rest)
	}
}
