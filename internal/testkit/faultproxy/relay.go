package faultproxy

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// chunkSize is the maximum number of bytes per read: a few segments of the loopback interface.
	chunkSize = 32 << 10
	// queueLen bounds what a delayed link holds: 64 chunks are 2 MiB, about as much as the socket
	// buffers of a long path hold.
	queueLen = 64
)

// relay is one client connection and the corresponding connection to the server.
type relay struct {
	// Immutable after serve.
	p              *Proxy
	client, server *net.TCPConn
	done           chan struct{} // closed by the first of close and reset

	once sync.Once
}

// close ends both connections with FIN, reset with RST. They report whether the relay was still
// open.
func (r *relay) close() bool {
	return r.end(func(c *net.TCPConn) {
		// Closing a socket with unread bytes sends RST; if a FIN is sent before it, the peer still
		// reads EOF.
		_ = c.CloseWrite() // fails only when the peer has gone
		c.Close()
	})
}

func (r *relay) reset() bool { return r.end(func(c *net.TCPConn) { reset(c) }) }

func (r *relay) end(how func(*net.TCPConn)) (first bool) {
	r.once.Do(func() {
		first = true
		close(r.done)
		how(r.client)
		how(r.server)
	})
	return first
}

// reset closes a connection with RST: lingering for zero seconds makes close(2)
// drop the connection instead of finishing it.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails only on a connection that has ended already
	}
	c.Close()
}

// link moves the bytes of one direction.
type link struct {
	Link
	relay *relay
	src   *net.TCPConn
	dst   *net.TCPConn
	rand  *rand.Rand
	total *atomic.Int64
	// toServer reports whether this is the direction from the client to the server.
	toServer bool

	// Owned by forward.
	sent      int64 // bytes forwarded
	swallow   bool
	nextWrite time.Time // when the rate allows the next byte
}

// chunk is a piece of data to be forwarded at due. If data is nil, it is the end of the stream.
type chunk struct {
	data []byte
	due  time.Time
}

// run reads on this goroutine and forwards on another, so that a delay does not delay the reading
// of later data.
func (l *link) run() {
	held := 1
	if l.Delay > 0 || l.Jitter > 0 {
		held = queueLen
	}
	queue := make(chan chunk, held)
	forwarded := make(chan struct{})
	// Ends at the end of the queue, of the stream or of the relay; waited for below.
	go func() {
		defer close(forwarded)
		l.forward(queue)
	}()
	l.read(queue, forwarded)
	close(queue)
	<-forwarded
}

func (l *link) read(queue chan<- chunk, forwarded <-chan struct{}) {
	var last time.Time
	for {
		buf := make([]byte, chunkSize)
		n, err := l.src.Read(buf)
		// The delay starts here. Jitter never makes bytes overtake each other.
		due := time.Now().Add(l.Delay)
		if l.Jitter > 0 {
			due = due.Add(time.Duration(l.rand.Int64N(int64(l.Jitter) + 1)))
		}
		if due.Before(last) {
			due = last
		}
		last = due
		if n > 0 && !send(queue, chunk{buf[:n], due}, forwarded) {
			return
		}
		if err != nil {
			if err != io.EOF {
				// One side was reset or closed, so the other is reset, too.
				l.relay.reset()
				return
			}
			send(queue, chunk{nil, due}, forwarded)
			return
		}
	}
}

func send(queue chan<- chunk, c chunk, forwarded <-chan struct{}) bool {
	select {
	case queue <- c:
		return true
	case <-forwarded:
		return false
	}
}

// forward writes the chunks at their times and triggers the faults between them.
func (l *link) forward(queue <-chan chunk) {
	if !l.fire() { // triggers faults before the first byte
		return
	}
	for c := range queue {
		if !l.wait(time.Until(c.due)) {
			return
		}
		if c.data == nil {
			if !l.swallow {
				_ = l.dst.CloseWrite() // fails only when the receiver has gone
			}
			return
		}
		if !l.forwardBytes(c.data) {
			return
		}
	}
}

// forwardBytes reports whether the link continues.
func (l *link) forwardBytes(b []byte) bool {
	for len(b) > 0 {
		if l.swallow {
			return true
		}
		if !l.waitResumed() {
			return false
		}
		n := l.segment(len(b))
		if l.BytesPerSecond > 0 && !l.throttle(n) {
			return false
		}
		if _, err := l.dst.Write(b[:n]); err != nil {
			l.relay.reset()
			return false
		}
		l.sent += int64(n)
		l.total.Add(int64(n))
		b = b[n:]
		if !l.fire() {
			return false
		}
	}
	return true
}

// segment returns how many of n bytes go into the next write.
func (l *link) segment(n int) int {
	if l.Chop > 0 {
		n = min(n, l.Chop)
	}
	if l.BytesPerSecond > 0 {
		// Ten writes a second keep the rate of a slow link even.
		n = min(n, max(1, l.BytesPerSecond/10))
	}
	if len(l.Faults) > 0 {
		n = int(min(int64(n), l.Faults[0].After-l.sent))
	}
	return n
}

// throttle waits until the rate allows the next n bytes.
func (l *link) throttle(n int) bool {
	now := time.Now()
	if l.nextWrite.Before(now) {
		l.nextWrite = now
	}
	l.nextWrite = l.nextWrite.Add(time.Duration(n) * time.Second / time.Duration(l.BytesPerSecond))
	return l.wait(l.nextWrite.Sub(now))
}

// fire triggers all faults that are due at this position in the stream, and reports whether the
// link continues.
func (l *link) fire() bool {
	for len(l.Faults) > 0 && l.Faults[0].After <= l.sent {
		f := l.Faults[0]
		l.Faults = l.Faults[1:]
		if f.Do.String() != "unknown" {
			l.relay.p.faults[f.Do].Add(1)
		}
		switch f.Do {
		case Cut:
			l.relay.close()
			return false
		case Reset:
			l.relay.reset()
			return false
		case HalfClose:
			_ = l.dst.CloseWrite() // fails only when the receiver has gone
			l.swallow, l.Faults = true, nil
		case Blackhole:
			l.swallow, l.Faults = true, nil
		case Stall:
			if f.For == 0 {
				<-l.relay.done
				return false
			}
			if !l.wait(f.For) {
				return false
			}
		}
	}
	return true
}

// waitResumed waits while the whole proxy is stalled.
func (l *link) waitResumed() bool {
	for {
		stalled := l.relay.p.stall(l.toServer)
		if stalled == nil {
			return true
		}
		select {
		case <-stalled:
		case <-l.relay.done:
			return false
		}
	}
}

// wait sleeps and reports whether the relay is still open.
func (l *link) wait(d time.Duration) bool {
	if d <= 0 {
		select {
		case <-l.relay.done:
			return false
		default:
			return true
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.relay.done:
		return false
	}
}
