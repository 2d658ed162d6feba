package pipe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

// faults configures the faults of an in-memory connection. Offsets count the bytes from the client to the
// server (up) and back (down), including the greeting.
type faults struct {
	// resetUp and resetDown reset the connection when that many bytes have been written; if 0,
	// never. Bytes that were not read by then are lost.
	resetUp, resetDown int
	// chunk is the maximum number of bytes that one read returns, on either side. If 0, there is no limit.
	chunk int
	// room is the number of bytes that a direction buffers before writers wait. If 0, it is 64 KiB.
	room int
}

// memConn is one end of an in-memory connection.
type memConn struct {
	link            *memLink
	read, write     *memHalf
	readBy, writeBy memDeadline
}

// memLink is a connection: one lock, two directions.
type memLink struct {
	mu       sync.Mutex
	changed  *sync.Cond
	faults   faults
	up, down memHalf
	err      error // set by Reset or Close
}

type memHalf struct {
	data   []byte
	passed int // bytes that were written
	cut    int // the connection is reset when this many bytes have been written
}

type memDeadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *memDeadline) over() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func newMemLink(f faults) (client, server *memConn) {
	if f.room == 0 {
		f.room = 64 << 10
	}
	l := &memLink{faults: f}
	l.changed = sync.NewCond(&l.mu)
	l.up.cut, l.down.cut = f.resetUp, f.resetDown
	client = &memConn{link: l, read: &l.down, write: &l.up}
	server = &memConn{link: l, read: &l.up, write: &l.down}
	return client, server
}

func (c *memConn) Read(p []byte) (int, error) {
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		switch {
		case c.readBy.over():
			return 0, os.ErrDeadlineExceeded
		case len(c.read.data) > 0:
			n := len(p)
			if l.faults.chunk > 0 {
				n = min(n, l.faults.chunk)
			}
			n = copy(p[:n], c.read.data)
			c.read.data = c.read.data[n:]
			l.changed.Broadcast()
			return n, nil
		case l.err != nil:
			return 0, l.err
		case len(p) == 0:
			return 0, nil
		}
		l.changed.Wait()
	}
}

func (c *memConn) Write(p []byte) (n int, err error) {
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for n < len(p) {
		switch {
		case l.err != nil:
			if l.err == io.EOF {
				return n, syscall.EPIPE
			}
			return n, l.err
		case c.writeBy.over():
			return n, os.ErrDeadlineExceeded
		}
		limit := min(len(p)-n, l.faults.room-len(c.write.data))
		if c.write.cut > 0 {
			limit = min(limit, c.write.cut-c.write.passed)
		}
		if limit > 0 {
			c.write.data = append(c.write.data, p[n:n+limit]...)
			c.write.passed += limit
			n += limit
		}
		if c.write.cut > 0 && c.write.passed >= c.write.cut {
			// Only the bytes of the other direction are lost, because a server that has read a request may have
			// executed it.
			l.reset()
			continue
		}
		l.changed.Broadcast()
		if n < len(p) {
			l.changed.Wait()
		}
	}
	return n, nil
}

// reset ends the connection for both sides. The caller holds mu.
func (l *memLink) reset() {
	if l.err == nil {
		l.err = syscall.ECONNRESET
		l.down.data = nil
	}
	l.changed.Broadcast()
}

// Reset ends the connection like a peer that has crashed.
func (c *memConn) Reset() {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.link.reset()
}

// Passed returns the number of bytes written to this end.
func (c *memConn) Passed() int {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	return c.write.passed
}

func (c *memConn) Close() error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.link.err == nil {
		c.link.err = io.EOF
	}
	c.link.changed.Broadcast()
	return nil
}

func (c *memConn) set(d *memDeadline, at time.Time) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	d.at = at
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if wait := time.Until(at); !at.IsZero() && wait > 0 {
		d.timer = time.AfterFunc(wait, c.link.changed.Broadcast)
	}
	c.link.changed.Broadcast()
}

func (c *memConn) SetReadDeadline(t time.Time) error  { c.set(&c.readBy, t); return nil }
func (c *memConn) SetWriteDeadline(t time.Time) error { c.set(&c.writeBy, t); return nil }
func (c *memConn) SetDeadline(t time.Time) error {
	c.set(&c.readBy, t)
	c.set(&c.writeBy, t)
	return nil
}
func (c *memConn) LocalAddr() net.Addr  { return &net.UnixAddr{Name: "memory"} }
func (c *memConn) RemoteAddr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func TestMemConn(t *testing.T) {
	a, b := newMemLink(faults{chunk: 3, room: 5})
	want := bytes.Repeat([]byte("0123456789"), 20)
	go func() { a.Write(want); a.Close() }()
	if err := iotest.TestReader(io.MultiReader(b), want); err != nil {
		t.Error(err)
	}
	a, b = newMemLink(faults{resetUp: 4})
	if n, err := a.Write(want); n != 4 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("write across the reset: %d, %v", n, err)
	}
	if got, err := io.ReadAll(b); string(got) != "0123" || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the server read %q, %v", got, err)
	}
	a, _ = newMemLink(faults{room: 5})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { t.Error("deadlines do not work"); a.Close() })
	a.SetDeadline(time.Now().Add(5 * time.Millisecond))
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read past the deadline: %v", err)
	}
	if n, err := a.Write(want); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write past the deadline: %d, %v", n, err)
	}
	stop()
}
