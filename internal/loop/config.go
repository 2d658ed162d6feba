package loop

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"time"
)

// Backend selects how a server waits for its connections.
type Backend uint8

// Backends.
const (
	Auto       Backend = iota // Epoll if the system has it
	Epoll                     // a few goroutines wait for all connections (Linux)
	Goroutines                // one goroutine waits for each connection
)

// String returns the backend's name in metrics and logs.
func (b Backend) String() string { return [...]string{"auto", "epoll", "goroutines"}[b] }

// Config configures a [Server]. The zero value of every field but New means its default.
type Config struct {
	// New returns the session of a connection that was accepted. It is required.
	New func(c *Conn) Session
	// Detached receives a connection that left the engine by [Conn.Detach], with the
	// bytes that were read from it and not consumed. It owns both and must not block. The
	// connection counts as open until it is closed. If nil, the connection is closed.
	Detached func(nc net.Conn, unread []byte)
	// Clock is read after each read(2) whose bytes are passed to a session: see [Conn.ReadAt]. If
	// nil, it is the time since New.
	Clock func() time.Duration

	Backend Backend
	// Loops is the number of goroutines that wait with epoll, and of lanes. If zero, there is
	// one for each processor.
	Loops int
	// MaxConnections bounds the open connections. If zero, it is [DefaultConnections]. To make
	// room for one more, an idle one is closed: see [Room]. If none is idle, the new one
	// waits in the kernel's queue.
	MaxConnections int
	// MaxPerAddress bounds the connections of one address; an IPv6 network of 64 bits counts
	// as one address. It does not apply to loopback, Unix sockets and Proxies. If zero,
	// there is no limit.
	MaxPerAddress int
	// Proxies are addresses that act for many clients: each of their connections counts
	// separately.
	Proxies []netip.Prefix
	// Handed has the open connections that Detached has received. If nil, they are not
	// closed to make room.
	Handed Source
	// Budget bounds the memory that connections hold, together with the other servers that
	// share it. If nil, the server has its own, of [DefaultBudget] bytes.
	Budget *Budget
	// Large bounds the bytes of large answers. If nil, the server has its own budget, of
	// [DefaultLarge] bytes.
	Large *Budget
	// MaxInput bounds how much of an incomplete request a session may leave unconsumed. A longer
	// one ends the connection with ErrTooLarge. Inputs announced with [Conn.Expect] are bounded by
	// the session and by Budget. If zero, it is 64 KiB.
	MaxInput int
	// MaxOutput is how many bytes may wait to be written before the session is Full
	// and reading stops. One answer may exceed it. If zero, it is 256 KiB.
	MaxOutput int
	// MaxPosts is how many tasks may wait for a connection: see [Conn.Post]. If zero, it
	// is 64.
	MaxPosts int
	// MaxDeferred is how many deferred answers a connection may have. If zero, it is 128.
	MaxDeferred int

	// ProveTimeout returns the time within which a connection must call [Conn.Prove] after it
	// was accepted. If it is nil or returns zero, there is no limit.
	ProveTimeout func() time.Duration
	// IdleTimeout ends a connection that sends no request. If zero, it is 60 s; if negative,
	// there is no limit.
	IdleTimeout time.Duration
	// PartialTimeout is the time within which a request must arrive, from its first byte. If zero,
	// it is 5 s. For expected inputs, see [Conn.Expect].
	PartialTimeout time.Duration
	// StallTimeout is how long answers may wait for a peer that reads less than 1 KiB
	// a second. If zero, it is 30 s.
	StallTimeout time.Duration
	// DrainGrace is how long connections may send requests after the server has begun to shut down.
	// Then connections in use are half-closed with their last answer, and others once they have
	// been quiet for that time. If zero, they are half-closed immediately.
	DrainGrace time.Duration

	// OnClose, if set, is notified of each connection's end; err is that of [Session.Closed].
	OnClose func(c *Conn, err error)
	// Log receives warnings and errors. If nil, nothing is logged.
	Log *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.New == nil {
		return c, errors.New("loop: Config.New is nil")
	}
	if c.Clock == nil {
		started := time.Now()
		c.Clock = func() time.Duration { return time.Since(started) }
	}
	switch {
	case c.Backend == Epoll && !hasEpoll:
		return c, errors.New("loop: the backend epoll is not available on " + runtime.GOOS)
	case c.Backend == Auto && hasEpoll:
		c.Backend = Epoll
	case c.Backend == Auto:
		c.Backend = Goroutines
	}
	for _, n := range []struct {
		field *int
		value int
	}{
		{&c.Loops, runtime.GOMAXPROCS(0)}, {&c.MaxConnections, DefaultConnections}, {&c.MaxInput, 64 << 10},
		{&c.MaxOutput, 256 << 10}, {&c.MaxDeferred, 128}, {&c.MaxPosts, 64},
	} {
		if *n.field <= 0 {
			*n.field = n.value
		}
	}
	if c.Budget == nil {
		c.Budget = NewBudget(0)
	}
	if c.Large == nil {
		c.Large = NewLargeBudget(DefaultLarge)
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = 60 * time.Second
	}
	if c.PartialTimeout <= 0 {
		c.PartialTimeout = 5 * time.Second
	}
	if c.StallTimeout <= 0 {
		c.StallTimeout = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// sweepInterval returns how often time limits are checked, and so their precision.
func (c *Config) sweepInterval() time.Duration {
	d := min(500*time.Millisecond, c.PartialTimeout/4, c.StallTimeout/4)
	if c.IdleTimeout > 0 {
		d = min(d, c.IdleTimeout/4)
	}
	return max(d, 5*time.Millisecond)
}
