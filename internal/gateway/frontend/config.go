package frontend

import (
	"cmp"
	"log/slog"
	"net/netip"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/gateway/requestlog"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// ConnConfig configures the connections of a frontend of any protocol. Frontends embed it in their
// configuration. Timeouts and numbers of connections that are zero default to [loop.DefaultTimeout]
// and [loop.DefaultConnections].
type ConnConfig struct {
	// RequestTimeout bounds one request, including the wait for a load.
	RequestTimeout time.Duration
	// IdleTimeout closes a connection that sends no request. If negative, there is no limit;
	// over HTTP, the default applies.
	IdleTimeout time.Duration
	// StallTimeout closes the connection of a client that does not read its answers.
	StallTimeout time.Duration
	// MaxConnections bounds the open connections. At the limit an idle one is closed for a new
	// one; if there is none, the new one waits in the kernel's queue.
	MaxConnections int
	// MaxPerAddress bounds the connections of one address, as in [loop.Config]. If zero, there
	// is no limit.
	MaxPerAddress int
	// TrustedProxies act for many clients: their connections are counted one by one, and over HTTP
	// their X-Forwarded-For names the client.
	TrustedProxies []netip.Prefix
	// Budget bounds the memory that connections hold, together with other frontends. If nil,
	// the frontend has its own.
	Budget *loop.Budget
	// Large bounds the bytes of large answers (64 KiB and more) that are being written or wait
	// for their turn. If it is exceeded, connections of the address with the most pending bytes
	// are closed, and at one and a half times it such an answer is refused. The bytes are
	// references to documents, some of which the cache has dropped already. If nil, the frontend
	// has its own, of [loop.DefaultLarge].
	Large *loop.Budget
	// Workers answer requests that have to wait, together with those of other frontends. They must
	// not be closed before Shutdown has returned. If nil, the frontend has its own.
	Workers *loop.Workers
	// Backend is that of the engine. TLS and systems without epoll always use
	// [loop.Goroutines].
	Backend loop.Backend
	// Log receives what the engine and the frontend report. If nil, nothing is logged.
	Log *slog.Logger
}

// WithDefaults returns c with its defaults.
func (c ConnConfig) WithDefaults() ConnConfig {
	c.RequestTimeout = cmp.Or(max(c.RequestTimeout, 0), loop.DefaultTimeout)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, loop.DefaultTimeout)
	c.StallTimeout = cmp.Or(max(c.StallTimeout, 0), loop.DefaultTimeout)
	c.MaxConnections = cmp.Or(max(c.MaxConnections, 0), loop.DefaultConnections)
	if c.Budget == nil {
		c.Budget = loop.NewBudget(0)
	}
	if c.Large == nil {
		c.Large = loop.NewLargeBudget(loop.DefaultLarge)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Loop returns the configuration of an engine for the connections. The frontend adds the
// settings of its protocol.
func (c ConnConfig) Loop() loop.Config {
	return loop.Config{
		Backend:        c.Backend,
		MaxConnections: c.MaxConnections,
		MaxPerAddress:  c.MaxPerAddress,
		Proxies:        c.TrustedProxies,
		Budget:         c.Budget,
		Large:          c.Large,
		IdleTimeout:    c.IdleTimeout,
		StallTimeout:   c.StallTimeout,
		Log:            c.Log,
	}
}

// RequestConfig says which requests a frontend admits and where it reports them, for any
// protocol. A reload replaces it. The zero value admits everyone and only reports slow requests.
type RequestConfig struct {
	// Gate identifies callers by API keys and tokens. If nil, no credentials are accepted.
	Gate *access.Gate
	// ClientLimit and CallerLimit bound the requests of one address, and of one user, API key or
	// token subject. If nil, there is no limit.
	ClientLimit, CallerLimit *limit.Limiter
	// Requests receives a line for every request for documents and every failed login. If nil,
	// there are none. Its owner closes it after the last answer.
	Requests *requestlog.Log
	// LoginFailed is called for each request or login that is refused because of its
	// credentials: the client, which credentials ("key", "token" or "password"), and why. It
	// must not block. If nil, it is not called.
	LoginFailed func(client netip.Addr, rule, why string)
	// SlowerThan is the time above which a request is logged as slow. If zero, it defaults to
	// 1 s; if negative, none are.
	SlowerThan time.Duration
}

// WithDefaults returns c with its defaults.
func (c RequestConfig) WithDefaults() RequestConfig {
	c.SlowerThan = cmp.Or(c.SlowerThan, time.Second)
	return c
}
