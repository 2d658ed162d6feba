package loop

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"time"
)

// Backend says how a server waits for its connections.
type Backend uint8

// Backends.
const (
	Auto       Backend = iota // Epoll where there is one
	Epoll                     // a few goroutines wait for all connections (Linux)
	Goroutines                // a goroutine waits for each
)

// String returns the backend's word in figures and logs.
func (b Backend) String() string { return [...]string{"auto", "epoll", "goroutines"}[b] }

// Config configures a [Server]. The zero value of every field but New means its default.
type Config struct {
	// New returns the session of a connection that was accepted. Required.
	New func(c *Conn) Session
	// Detached takes over a connection that left the engine by [Conn.Detach], with the
	// bytes that were read from it and not consumed, which are its own. It must not
	// wait. The connection counts as open until it is closed. Nil: it is closed.
	Detached func(nc net.Conn, unread []byte)
	// Clock is read after the read(2) that brought what is given to a session:
	// [Conn.ReadAt]. Default: the time since New.
	Clock func() time.Duration

	Backend Backend
	// Loops is how many goroutines wait with epoll, and how many lanes there are. Default: one
	// a processor.
	Loops int
	// MaxConnections bounds the open connections ([DefaultConnections]). For one more another one that
	// is idle is closed: see [MakeRoom]. If none is idle, the new one waits in the kernel's
	// queue.
	MaxConnections int
	// MaxPerAddress bounds the connections of one address, IPv6 networks of 64 bits
	// counting as one. It does not apply to loopback, unix sockets and Proxies. If zero,
	// there is no limit.
	MaxPerAddress int
	// Proxies are addresses that stand for many clients: their connections are counted
	// one by one.
	Proxies []netip.Prefix
	// Handed has the connections that left by Detached and are open. If nil, they are not
	// closed to make room.
	Handed Source
	// Budget bounds the memory that connections hold, together with the other servers that
	// share it. If nil, the server has its own, of [DefaultBudget].
	Budget *Budget
	// Large bounds the bytes of large answers. If nil, the server has its own, of
	// [DefaultLarge].
	Large *Budget
	// MaxInput bounds the start of a request that a session leaves (64 KiB); more end
	// the connection with ErrTooLarge. What [Conn.Expect] announces is bounded by the session
	// and by Budget.
	MaxInput int
	// MaxOutput is how many bytes may wait to be written before the session is Full
	// and reading stops (256 KiB). One answer may exceed it.
	MaxOutput int
	// MaxPosts is how many tasks may wait for a connection (64): see [Conn.Post].
	MaxPosts int
	// MaxDeferred is how many deferred answers a connection may have (128).
	MaxDeferred int

	// ProveTimeout returns how long after it was accepted a connection must have called
	// [Conn.Prove]; if zero, there is no limit. If nil, there is none.
	ProveTimeout func() time.Duration
	// IdleTimeout ends a connection that asks nothing (60 s). Negative: none.
	IdleTimeout time.Duration
	// PartialTimeout bounds the coming of a request, from its first byte (5 s). For an input
	// that is expected see [Conn.Expect].
	PartialTimeout time.Duration
	// StallTimeout is how long answers may wait for a peer that reads less than 1 KiB
	// a second (30 s).
	StallTimeout time.Duration
	// DrainGrace is how long idle connections may send one more request once the
	// server shuts down; then they are half-closed. Default: not at all.
	DrainGrace time.Duration

	// OnClose hears of each connection's end; err is what [Session.Closed] gets.
	OnClose func(c *Conn, err error)
	Log     *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.New == nil {
		return c, errors.New("loop: Config.New is missing")
	}
	if c.Clock == nil {
		started := time.Now()
		c.Clock = func() time.Duration { return time.Since(started) }
	}
	switch {
	case c.Backend == Epoll && !hasEpoll:
		return c, errors.New("loop: there is no epoll on " + runtime.GOOS)
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

// sweepInterval is how often time limits are looked at, and their precision.
func (c *Config) sweepInterval() time.Duration {
	d := min(500*time.Millisecond, c.PartialTimeout/4, c.StallTimeout/4)
	if c.IdleTimeout > 0 {
		d = min(d, c.IdleTimeout/4)
	}
	return max(d, 5*time.Millisecond)
}
