package tarantool

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/pipe"
)

// Calls that may take long declare that (Blocking) and use a lane of dedicated connections. A
// server reads a connection into two buffers of box.cfg.readahead bytes, 16,320 by default. It
// reuses a buffer when all requests in it are answered, and it stops reading from every connection
// at 768 requests in flight. So a long call holds up all requests that do not fit into these
// buffers after it. Nothing is sent on a connection whose requests fill more than half a buffer: a
// connection of the lane carries at most 64 requests, and 8 KiB since it was last idle. The lane
// carries at most 512 requests, and the rest wait in the client.

// Bounds of a connection of the blocking lane.
const (
	laneBytes    = 8 << 10
	laneRequests = 64
	laneIdle     = time.Minute // idle time after which a connection is closed, unless it is the only one
)

// blockingLane contains the connections for requests that may take long.
type blockingLane struct {
	// Immutable.
	client *Client
	tokens chan struct{} // one for each request that may be in flight; sent by callers that enter

	mu sync.Mutex
	// Guarded by mu.
	connections []*laneConnection
	closed      bool
}

// laneConnection is a connection of the lane.
type laneConnection struct {
	// Immutable.
	lane   *blockingLane
	engine *pipe.Engine

	// Guarded by lane.mu.
	requests  int // number of requests in flight
	bytes     int // number of bytes sent since no request was in flight
	idleSince time.Time
}

func newBlockingLane(c *Client) *blockingLane {
	return &blockingLane{client: c, tokens: make(chan struct{}, cmp.Or(c.opts.MaxBlocking, normalBlocking))}
}

// enter waits until a request of the given size may be sent, and finds a connection for it.
func (l *blockingLane) enter(ctx context.Context, size int) (*laneConnection, error) {
	if l.isClosing() {
		return nil, l.closedError()
	}
	select {
	case l.tokens <- struct{}{}:
	default:
		if !l.client.opts.WaitWhenFull && l.client.opts.FailFast {
			return nil, l.client.fail.With("", slipstream.Overloaded, ErrOverloaded)
		}
		select {
		case l.tokens <- struct{}{}:
		case <-ctx.Done():
			return nil, l.client.fail.With("", slipstream.NotSent, ctx.Err())
		case <-l.client.closing:
			return nil, l.closedError()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.isClosing() {
		<-l.tokens
		return nil, l.closedError()
	}
	for _, k := range l.connections {
		if k.requests < laneRequests && (k.requests == 0 || k.bytes+size <= laneBytes) {
			k.requests++
			k.bytes += size
			return k, nil
		}
	}
	cfg := l.client.engineConfig()
	// A new connection of the lane is not connected yet, so with FailFast its requests would always
	// fail.
	cfg.Sockets, cfg.WaitWhenFull, cfg.FailFast = 1, true, false
	k := &laneConnection{lane: l, engine: pipe.New(cfg), requests: 1, bytes: size}
	l.connections = append(l.connections, k)
	return k, nil
}

// isClosing reports whether Close or Shutdown was called. Shutdown closes the lane itself only
// when the requests on other connections have ended.
func (l *blockingLane) isClosing() bool {
	select {
	case <-l.client.closing:
		return true
	default:
		return false
	}
}

func (l *blockingLane) closedError() error {
	return l.client.fail.With("", slipstream.Closed, ErrClosed)
}

// leave ends a request on its connection. Connections that have been idle for long are closed.
func (k *laneConnection) leave() {
	l := k.lane
	var idle []*laneConnection
	l.mu.Lock()
	k.requests--
	if k.requests == 0 {
		k.bytes, k.idleSince = 0, time.Now()
	}
	if !l.closed {
		kept := l.connections[:0]
		for i, other := range l.connections {
			if i > 0 && other.requests == 0 && time.Since(other.idleSince) > laneIdle {
				idle = append(idle, other)
			} else {
				kept = append(kept, other)
			}
		}
		clear(l.connections[len(kept):])
		l.connections = kept
	}
	l.mu.Unlock()
	<-l.tokens
	for _, other := range idle {
		other.engine.Close()
	}
}

// all returns the connections, and prevents new ones.
func (l *blockingLane) all() []*laneConnection {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.connections
}

func (l *blockingLane) close() error {
	var err error
	for _, k := range l.all() {
		err = errors.Join(err, k.engine.Close())
	}
	return err
}

func (l *blockingLane) shutdown(ctx context.Context) error {
	var err error
	for _, k := range l.all() {
		err = errors.Join(err, k.engine.Shutdown(ctx))
	}
	return err
}
