package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/driver"
)

// DefaultAddr is the address of the zero Options.
const DefaultAddr = "127.0.0.1:6379"

// Options configure a [Client]. The zero value is usable. Options may be copied; a client keeps its
// own copy.
type Options struct {
	// Addr is host:port, or the path of a Unix socket if it starts with a slash. If empty, it
	// defaults to DefaultAddr. A host name is resolved again whenever a connection is opened.
	Addr string
	// User and Password authenticate every connection. A password without a user
	// authenticates the user "default".
	User, Password string
	// Credentials, if set, is called instead whenever a connection is opened, so that credentials
	// can change while the client is running. It must be safe for concurrent use and honor ctx.
	Credentials func(ctx context.Context) (user, password string, err error)
	// DB is the number of the database that connections use.
	DB int
	// TLS, if set, encrypts connections. If its ServerName is empty, the host of Addr is used.
	TLS *tls.Config
	// ClientName is shown by CLIENT LIST. It must have no spaces or line breaks.
	ClientName string
	// OmitClientInfo omits CLIENT SETINFO, which makes CLIENT LIST show the library. Some proxies
	// close a connection that sends it: twemproxy does, and also needs Protocol 2.
	OmitClientInfo bool
	// Protocol is the version of the Redis serialization protocol: 2 or 3. If zero, it defaults to
	// 3, or to 2 with servers that do not know HELLO.
	Protocol int

	// Sockets is the number of connections. If zero, it defaults to 1, which gathers requests best.
	Sockets int
	// Timeout bounds a call from its start to its end, including retries, regardless of its
	// context. If zero, only the context bounds it.
	Timeout time.Duration
	// DialTimeout bounds opening a connection, including name resolution, TLS and greeting. If
	// zero, it defaults to 5 s.
	DialTimeout time.Duration
	// StallTimeout is how long a server that owes replies may be silent before the connection is
	// closed. If zero, it defaults to 5 s; if negative, there is no limit. Commands known to be
	// slow extend it; see [Command.SlowFor].
	StallTimeout time.Duration
	// NoWait makes Connect return immediately, before there is a connection, so that a program can
	// start while the server is down. Calls then wait for a connection, as after the loss of one.
	// OnEvent reports failed attempts.
	NoWait bool
	// FailFast makes calls fail immediately, as NotSent, while there is no
	// connection. Otherwise they wait for one, at most for DialTimeout.
	FailFast bool
	// WaitWhenFull makes calls that exceed MaxCalls or MaxBytes wait for room
	// until their context ends. Otherwise they fail immediately, as Overloaded.
	WaitWhenFull bool
	// MaxCalls bounds the calls queued and in flight. If zero, it defaults to 65,536; the maximum
	// is 4,194,304 for each connection.
	MaxCalls int
	// MaxExclusive bounds the dedicated connections of blocking commands and of sessions. If zero,
	// it defaults to 1,024. A call that exceeds it fails immediately, as Overloaded, or waits if
	// WaitWhenFull is set.
	MaxExclusive int
	// SubscriptionBytes bounds the messages of each subscription that wait to be received. If zero,
	// it defaults to 1 MiB.
	SubscriptionBytes int
	// MaxBytes bounds the memory of calls queued and in flight, in bytes: every call counts its
	// request twice, because it is copied, and 640 bytes more. If zero, it defaults to 64 MiB.
	MaxBytes int
	// Backoff is the first pause between attempts to connect and between retries of a call; the
	// pause doubles and is jittered. If zero, it defaults to 20 ms. MaxBackoff bounds the pause. If
	// zero, it defaults to 2 s.
	Backoff, MaxBackoff time.Duration
	// Retries is the maximum number of times that a failed call is sent again, if that cannot
	// execute it twice; see the package comment. If zero, it defaults to 3; if negative, calls are
	// not retried.
	Retries int
	// Limits bound the memory that a reply may make the client allocate.
	Limits Limits

	// Cache, if set, enables client-side caching: see [Client.DoCached].
	Cache *CacheOptions

	// Observer, if set, is notified of every call.
	Observer Observer
	// Calls that take at least SlowThreshold are reported to OnSlow. Both must be set. OnSlow is
	// called on the caller's goroutine, or for [Client.DoFunc] on the reading goroutine.
	SlowThreshold time.Duration
	OnSlow        func(Observation)
	// OnEvent, if set, is notified when connections are opened and closed. It is called on the
	// goroutine that maintains the connection and must not block.
	OnEvent func(Event)
	// Dialer, if set, opens connections instead of package net. Network is "tcp" or "unix". If TLS
	// is set, it is used over the connection that Dialer returns.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

	readOnly bool // the node may be a replica of a cluster, from which connections read
}

// Limits bound replies. A reply that exceeds one closes the connection, because what follows the
// reply cannot be trusted. Fields that are zero have defaults.
type Limits struct {
	// Bulk is the maximum length of a string in bytes. The default is 512 MiB, as in Redis.
	Bulk int
	// Line is the maximum length of a line, such as an error, in bytes. The default is 64 KiB.
	Line int
	// Elements is the maximum number of elements of all aggregates of a reply together; a map of n
	// pairs counts as 2n. The default is 1,048,576.
	Elements int
	// Depth is the maximum nesting depth of aggregates. The default is 64, and the maximum is
	// 1,024.
	Depth int
	// Frame is the maximum length of a whole reply in bytes. The default is 1 GiB.
	Frame int
	// Streamed is the maximum length of a string or aggregate that does not announce its length, in
	// bytes. The default is 16 MiB.
	Streamed int
}

// maxDepth keeps the recursion of decoding within a few hundred KiB of stack.
const maxDepth = 1024

// String describes the options without the password.
func (o Options) String() string {
	scheme := "redis"
	switch {
	case o.network() == "unix":
		scheme = "unix"
	case o.TLS != nil:
		scheme = "rediss"
	}
	text := o.login().Describe(scheme, o.addr())
	if o.DB != 0 {
		text += fmt.Sprintf(" database %d", o.DB)
	}
	return text
}

// GoString returns the same as String, so that %#v does not show the password either.
func (o Options) GoString() string { return "redis.Options(" + o.String() + ")" }

func (o *Options) addr() string { return cmp.Or(o.Addr, DefaultAddr) }

func (o *Options) network() string { return driver.Network(o.Addr) }

func (o *Options) endpoint() *driver.Endpoint {
	return &driver.Endpoint{Addr: o.addr(), TLS: o.TLS, Dialer: o.Dialer}
}

func (o *Options) login() *driver.Login {
	return &driver.Login{User: o.User, Password: o.Password, Credentials: o.Credentials}
}

// These are the defaults of the engine for shared connections.
const (
	defaultStall = 5 * time.Second
	defaultDial  = 5 * time.Second
)

// stallTimeout returns StallTimeout with its default. If negative, there is no limit.
func (o *Options) stallTimeout() time.Duration { return cmp.Or(o.StallTimeout, defaultStall) }

func (o *Options) dialTimeout() time.Duration { return cmp.Or(o.DialTimeout, defaultDial) }

// check returns the first error in the options, or nil.
func (o *Options) check() error {
	const check driver.Check = "redis"
	if err := check.Addr(o.addr()); err != nil {
		return err
	}
	if o.Protocol != 0 && o.Protocol != 2 && o.Protocol != 3 {
		return fmt.Errorf("redis: protocol %d, expected 2 or 3, or 0 to choose", o.Protocol)
	}
	if o.DB < 0 {
		return fmt.Errorf("redis: database %d, expected a number of at least 0", o.DB)
	}
	if strings.ContainsFunc(o.ClientName, func(r rune) bool { return r < '!' || r > '~' }) {
		return fmt.Errorf("redis: client name %q, expected printable ASCII without spaces", o.ClientName)
	}
	if o.User != "" && o.Password == "" && o.Credentials == nil {
		return errors.New("redis: a user without a password")
	}
	if err := check.Numbers(
		driver.Number{Name: "sockets", Value: o.Sockets, Max: 1024},
		driver.Number{Name: "max calls", Value: o.MaxCalls, Max: math.MaxInt32},
		driver.Number{Name: "max exclusive", Value: o.MaxExclusive, Max: 1 << 20},
		driver.Number{Name: "subscription bytes", Value: o.SubscriptionBytes, Max: math.MaxInt},
		driver.Number{Name: "max bytes", Value: o.MaxBytes, Max: math.MaxInt},
		driver.Number{Name: "limit of a string", Value: o.Limits.Bulk, Max: math.MaxInt},
		driver.Number{Name: "limit of a line", Value: o.Limits.Line, Max: math.MaxInt},
		driver.Number{Name: "limit of elements", Value: o.Limits.Elements, Max: math.MaxInt32},
		driver.Number{Name: "limit of depth", Value: o.Limits.Depth, Max: maxDepth},
		driver.Number{Name: "limit of a reply", Value: o.Limits.Frame, Max: math.MaxInt},
		driver.Number{Name: "limit of streamed data", Value: o.Limits.Streamed, Max: math.MaxInt},
	); err != nil {
		return err
	}
	if err := check.Durations(
		driver.Duration{Name: "timeout", Value: o.Timeout},
		driver.Duration{Name: "dial timeout", Value: o.DialTimeout},
		driver.Duration{Name: "backoff", Value: o.Backoff},
		driver.Duration{Name: "max backoff", Value: o.MaxBackoff},
		driver.Duration{Name: "slow threshold", Value: o.SlowThreshold},
	); err != nil {
		return err
	}
	if o.Cache != nil {
		if err := o.Cache.check(o.Protocol); err != nil {
			return err
		}
	}
	return check.Slow(o.SlowThreshold, o.OnSlow)
}
