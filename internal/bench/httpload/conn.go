package httpload

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/internal/wire/http1"
)

// An Endpoint says where connections lead to and how they are opened.
type Endpoint struct {
	Network string      // "tcp" or "unix"; if empty, tcp
	Address string      // host:port, or a path
	TLS     *tls.Config // nil for clear text
	// Sources spreads the connections over that many loopback addresses, from
	// 127.0.0.2 up, because one address has only some 28,000 ports. If 0, no source address is chosen.
	Sources int
	// Control, if set, is the Control function of the [net.Dialer].
	Control func(network, address string, c syscall.RawConn) error
	// Timeout bounds the time for opening a connection, including the handshake. If 0, it is 30 s.
	Timeout time.Duration
	// Secured, if set, is called after each TLS handshake. An error closes the connection. again
	// reports that it is not the first handshake of the Conn.
	Secured func(state tls.ConnectionState, again bool) error
	// Opening, if set, records the time that opening connections takes.
	Opening *Opening
}

const (
	// defaultTimeout is the default timeout of an Endpoint.
	defaultTimeout = 30 * time.Second
	// MaxBody bounds the bodies that are kept.
	MaxBody = 64 << 20
	// maxHead bounds the heads of responses.
	maxHead = 64 << 10
	// bodyMemory provides buffers for bodies that are not kept and do not fit into the buffer of
	// the Conn.
	bodyMemory = 16 << 10
)

// A Conn is a connection that is reopened as often as necessary. It sends complete requests and
// reads the responses. All methods except Close must be called by one goroutine at a time.
type Conn struct {
	// Immutable after the first Open.
	Endpoint *Endpoint
	Index    int  // chooses the source address
	Keep     bool // whether bodies are kept, up to MaxBody
	Timed    bool // whether FirstByte is needed, at the cost of reading the clock for each request
	// OnHead, if set, is called with the head of each final response before its
	// body is read. An error ends Read.
	OnHead func(h *http1.ResponseHead) error

	// Guarded by mu, because Close may be called during a Read. The goroutine that
	// uses the Conn sets conn, and reads it without mu.
	mu     sync.Mutex
	conn   net.Conn // nil if none has been opened yet
	closed bool

	// Owned by the goroutine that uses the Conn.
	shaken bool       // a handshake has been completed
	buf    [4096]byte // usually has room for a whole response
	large  []byte     // replaces buf once a response did not fit
	have   int        // bytes read
	used   int        // of these, bytes that belong to responses already returned
	began  bool       // bytes have arrived since the last Send
	first  time.Time  // when they arrived, if the Conn is timed
	head   http1.ResponseHead
}

// A Response is what Read returns.
type Response struct {
	Status int
	Length int64 // bytes of the body, without the framing of chunks
	// Body is valid until the next Read. It is nil if it was not kept, because it came in chunks,
	// ended with the connection, or was too large for a Conn with Keep unset.
	Body  []byte
	Close bool // no further response will arrive over the connection
}

// Open opens a connection that replaces the previous one, which must be closed or broken.
func (c *Conn) Open(ctx context.Context) error {
	e := c.Endpoint
	timeout := e.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	dialer := net.Dialer{Timeout: timeout, KeepAlive: -1, Control: e.Control}
	if e.Sources > 0 {
		dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+c.Index%e.Sources))}
		dialer.Control = e.bind
	}
	network := e.Network
	if network == "" {
		network = "tcp"
	}
	began := time.Now()
	conn, err := e.connect(ctx, &dialer, network)
	if err != nil {
		return err
	}
	if err := c.keep(conn); err != nil {
		return err
	}
	if e.TLS != nil {
		if err := c.handshake(ctx, began.Add(timeout)); err != nil {
			_ = conn.Close()
			return err
		}
	}
	c.have, c.used = 0, 0
	return nil
}

// bind is the Control function for connections from several addresses.
func (e *Endpoint) bind(network, address string, c syscall.RawConn) error {
	if e.Control != nil {
		if err := e.Control(network, address, c); err != nil {
			return err
		}
	}
	return bindWithoutPort(network, address, c)
}

// keep makes conn the connection, or closes it if Close has been called.
func (c *Conn) keep(conn net.Conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = conn.Close()
		return net.ErrClosed
	}
	c.conn = conn
	return nil
}

// handshake does the TLS handshake of the connection.
func (c *Conn) handshake(ctx context.Context, until time.Time) error {
	below, began := c.conn, time.Now()
	conn := tls.Client(below, c.Endpoint.TLS)
	if err := c.keep(conn); err != nil {
		return err
	}
	if err := below.SetDeadline(until); err != nil {
		return err
	}
	if err := conn.HandshakeContext(ctx); err != nil {
		return load.WithKind("TLS handshake", err)
	}
	if o := c.Endpoint.Opening; o != nil {
		o.TLS.Record(time.Since(began))
	}
	if err := below.SetDeadline(time.Time{}); err != nil {
		return err
	}
	again := c.shaken
	c.shaken = true
	if c.Endpoint.Secured != nil {
		return c.Endpoint.Secured(conn.ConnectionState(), again)
	}
	return nil
}

// Net returns the connection that was opened last, or nil before the first.
func (c *Conn) Net() net.Conn { return c.conn }

// Hangup closes the connection as clients do: with a TLS close notification and without a reset.
// The Conn may be reopened.
func (c *Conn) Hangup() {
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

// Close ends the connection with a reset, so that a run over many connections leaves no ports in
// TIME_WAIT for the next one. It ends a Read in progress, and the Conn cannot be reopened. It is
// safe for concurrent use.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	conn := c.conn
	if conn == nil {
		return nil
	}
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	return conn.Close()
}

// Send sends requests. No bytes may have followed the responses read before: see Idle.
func (c *Conn) Send(requests []byte) error {
	c.began = false
	_, err := c.conn.Write(requests)
	return err
}

// Idle returns an error if bytes followed the last response. They belong to no
// request.
func (c *Conn) Idle() error {
	if n := c.Surplus(); n > 0 {
		return protocolError("%d unexpected bytes after the last response", n)
	}
	c.have, c.used = 0, 0
	return nil
}

// Reserve makes the buffer for responses at least n bytes large, so that the responses of a
// pipeline need few reads. It is called between responses.
func (c *Conn) Reserve(n int) {
	if len(c.memory()) < n {
		c.makeRoom(n - 1)
	}
}

func (c *Conn) memory() []byte {
	if c.large != nil {
		return c.large
	}
	return c.buf[:]
}

// Began reports whether bytes have arrived since the last Send.
func (c *Conn) Began() bool { return c.began }

// FirstByte returns when the first bytes since the last Send arrived, if the Conn is timed and they
// have arrived.
func (c *Conn) FirstByte() time.Time { return c.first }

// Read reads the response that follows the previous one. bodyless says that the request was a HEAD
// request. Interim responses are skipped.
func (c *Conn) Read(bodyless bool) (r Response, err error) {
	h, err := c.readHead()
	for ; err == nil && h.Status < 200; h, err = c.readHead() {
		if h.Status == 101 {
			return r, protocolError("the server switches to another protocol (status 101)")
		}
		c.used += h.Size
	}
	if err != nil {
		return r, err
	}
	if c.OnHead != nil {
		c.head = h // passing the address of a local variable would allocate it
		if err := c.OnHead(&c.head); err != nil {
			return r, err
		}
	}
	r.Status, r.Close = h.Status, h.Close
	switch {
	case bodyless || !h.HasBody():
		c.used += h.Size
	case h.Chunked:
		c.used += h.Size
		r.Length, err = c.passChunks()
	case h.Length < 0:
		c.used += h.Size
		r.Close = true
		r.Length, err = c.passAll()
	default:
		r.Length = h.Length
		r.Body, err = c.readBody(&h)
	}
	if c.used == c.have {
		c.have, c.used = 0, 0 // room for the next read
	}
	return r, err
}

// readHead reads until the head is complete. Some of it may have arrived together with the previous
// response.
func (c *Conn) readHead() (h http1.ResponseHead, err error) {
	if c.have > c.used {
		if h, err = http1.ParseResponseHead(c.memory()[c.used:c.have]); err != nil {
			return h, load.WithKind("protocol", err)
		} else if h.Size > 0 {
			return h, nil
		}
	}
	for {
		if c.have == len(c.memory()) {
			switch {
			case c.used > 0:
				c.makeRoom(0)
			case c.have > maxHead:
				return h, protocolError("a head of more than %d bytes", c.have)
			default:
				c.makeRoom(maxHead)
			}
		}
		n, readErr := c.conn.Read(c.memory()[c.have:])
		c.have += n
		if n > 0 && !c.began {
			c.began = true
			if c.Timed {
				c.first = time.Now()
			}
		}
		h, err = http1.ParseResponseHead(c.memory()[c.used:c.have])
		switch {
		case err != nil:
			return h, load.WithKind("protocol", err)
		case h.Size > 0:
			return h, nil
		case readErr != nil:
			return h, readErr
		}
	}
}

// readBody reads a body whose length is known.
func (c *Conn) readBody(h *http1.ResponseHead) ([]byte, error) {
	if h.Length > MaxBody && c.Keep {
		return nil, protocolError("a body of %d bytes; at most %d can be kept", h.Length, MaxBody)
	}
	if !c.Keep && h.Length > int64(len(c.memory())-h.Size) {
		c.used += h.Size
		return nil, c.passBody(h.Length)
	}
	size := h.Size + int(h.Length)
	if c.used+size > len(c.memory()) {
		c.makeRoom(size)
	}
	start, end := c.used, c.used+size
	for c.have < end {
		n, err := c.conn.Read(c.memory()[c.have:])
		c.have += n
		if c.have < end && err != nil {
			return nil, cutOff(int64(c.have-start-h.Size), h.Length, err)
		}
	}
	c.used = end
	return c.memory()[start+h.Size : end], nil
}

// cutOff returns the error for a body that ended early.
func cutOff(have, length int64, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("httpload: %d of %d bytes of the body: %w", have, length, err)
}

// makeRoom moves the unused bytes to the front of memory that has room for size bytes and one more,
// so that unexpected bytes are noticed.
func (c *Conn) makeRoom(size int) {
	rest := c.memory()[c.used:c.have]
	if size >= len(c.memory()) {
		c.large = make([]byte, size+1)
	}
	c.have, c.used = copy(c.memory(), rest), 0
}

// refill reads into the buffer, all of whose bytes have been used.
func (c *Conn) refill() error {
	if c.large == nil {
		c.large = make([]byte, bodyMemory)
	}
	n, err := c.conn.Read(c.large)
	c.have, c.used = n, 0
	if n > 0 {
		return nil
	}
	return err
}

// passBody reads and discards a body of length bytes, of which none have been used.
func (c *Conn) passBody(length int64) error {
	left := length
	for {
		part := min(left, int64(c.have-c.used))
		c.used, left = c.used+int(part), left-part
		if left == 0 {
			return nil
		}
		if err := c.refill(); err != nil {
			return cutOff(length-left, length, err)
		}
	}
}

// passChunks reads and discards a chunked body and returns its number of data bytes.
func (c *Conn) passChunks() (length int64, err error) {
	var chunks http1.ChunkScanner
	for {
		n, data, err := chunks.Scan(c.memory()[c.used:c.have])
		c.used, length = c.used+n, length+data
		switch {
		case err != nil:
			return length, load.WithKind("protocol", err)
		case chunks.Done:
			return length, nil
		}
		if err := c.refill(); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return length, fmt.Errorf("httpload: a chunked body, after %d bytes: %w", length, err)
		}
	}
}

// passAll reads and discards bytes until the server closes the connection.
func (c *Conn) passAll() (length int64, err error) {
	for {
		length += int64(c.have - c.used)
		c.used = c.have
		if err := c.refill(); err != nil {
			c.have, c.used = 0, 0
			if errors.Is(err, io.EOF) {
				return length, nil
			}
			return length, err
		}
	}
}
