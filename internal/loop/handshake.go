package loop

import (
	"context"
	"crypto/tls"
	"errors"
	"hash/maphash"
	"net"
	"sync"

	"github.com/slipstream-go/slipstream/internal/fair"
)

// maxHandshake bounds the number of bytes that a peer may send before its handshake is complete. A
// chain of four certificates with RSA keys of 4,096 bits takes 8 KiB.
const maxHandshake = 64 << 10

var errLongHandshake = errors.New("loop: the peer sent more than 64 KiB without completing the handshake")

// handshakes bounds how many handshakes are computed at the same time: a signature takes 50 us with
// P-256 and 1 ms with RSA, so a flood of handshakes would take most of the processors. A handshake
// that waits for its peer holds no place. Handshakes that wait for a free place are queued by
// address, and the addresses take turns.
type handshakes struct {
	seed maphash.Seed // immutable

	mu sync.Mutex
	// Guarded by mu.
	free  int
	queue fair.Queue[chan struct{}]
}

func newHandshakes(places int) *handshakes {
	return &handshakes{seed: maphash.MakeSeed(), free: places}
}

// take waits for a place. It cannot be interrupted: each handshake ahead of it holds its place no
// longer than a signature takes, even if its connection has ended.
func (h *handshakes) take(client uint64) {
	h.mu.Lock()
	if h.free > 0 {
		h.free--
		h.mu.Unlock()
		return
	}
	ready := make(chan struct{})
	h.queue.Push(client, ready)
	h.mu.Unlock()
	<-ready
}

// give releases a place, which goes to the next waiting handshake.
func (h *handshakes) give() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ready, ok := h.queue.Pop(); ok {
		close(ready)
	} else {
		h.free++
	}
}

// shakingConn is the connection below TLS. During the handshake, which a single goroutine does, it
// releases the place while it waits for the peer.
type shakingConn struct {
	net.Conn
	// Immutable after adopt.
	all    *handshakes
	client uint64 // the address
	// Owned by the goroutine of the handshake, and not changed after it.
	over bool
	left int  // bytes that the peer may still send
	has  bool // it has a place
}

// Read implements [net.Conn].
func (c *shakingConn) Read(p []byte) (int, error) {
	if c.over {
		return c.Conn.Read(p)
	}
	c.rest()
	if c.left == 0 {
		return 0, errLongHandshake
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	if err == nil {
		c.all.take(c.client)
		c.has = true
	}
	return n, err
}

// Write implements [net.Conn]. When a handshake writes, it has finished computing and reads next.
func (c *shakingConn) Write(p []byte) (int, error) {
	if !c.over {
		c.rest()
	}
	return c.Conn.Write(p)
}

// rest releases the place.
func (c *shakingConn) rest() {
	if c.has {
		c.has = false
		c.all.give()
	}
}

// shake does the handshake of a connection over c. Closing the connection ends it.
func (c *shakingConn) shake(t *tls.Conn) error {
	err := t.HandshakeContext(context.Background())
	c.rest()
	c.over = true
	return err
}
