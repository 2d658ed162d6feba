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
)

// DefaultAddr is the server that the zero Options name.
const DefaultAddr = "127.0.0.1:6379"

// Options say how a [Client] reaches its server. The zero value works. Options
// may be copied; a client keeps a copy of its own.
type Options struct {
	// Addr is host:port, or the path of a Unix socket if it begins with a
	// slash. Empty: DefaultAddr. A host name is resolved again whenever a
	// connection is opened.
	Addr string
	// Username and Password authenticate every connection. A password without
	// a user name authenticates the user "default".
	Username, Password string
	// Credentials, if set, is asked instead of Username and Password whenever a
	// connection is opened, so that credentials can change while the client
	// runs. It must be safe for concurrent use and honour ctx.
	Credentials func(ctx context.Context) (username, password string, err error)
	// DB is the number of the database that every connection selects.
	DB int
	// TLS, if set, encrypts connections. An empty ServerName is taken from Addr.
	TLS *tls.Config
	// ClientName is shown by CLIENT LIST. It must have no spaces or line breaks.
	ClientName string
	// OmitClientInfo leaves out CLIENT SETINFO, by which CLIENT LIST shows the
	// library: some proxies close a connection that sends it (twemproxy does, and
	// needs Protocol 2).
	OmitClientInfo bool
	// Protocol is 2 or 3, the version of the Redis serialization protocol.
	// 0: version 3, or 2 with servers that do not know HELLO.
	Protocol int

	// Sockets is the number of connections. 0: one, which gathers requests best.
	Sockets int
	// Timeout bounds a call from its start to its end, repetitions included,
	// whatever its context says. 0: only the context bounds it.
	Timeout time.Duration
	// DialTimeout bounds the opening of a connection: name resolution, TLS and
	// greeting. 0: 5 s.
	DialTimeout time.Duration
	// StallTimeout is how long a server that owes replies may be silent before
	// the connection is given up. 0: 5 s; negative: for ever. Commands known to
	// be slow extend it, see [Command.SlowFor].
	StallTimeout time.Duration
	// FailFast fails calls at once, as NotSent, while there is no connection.
	// Otherwise they wait for one, at most DialTimeout.
	FailFast bool
	// WaitWhenFull makes calls that exceed MaxCalls or MaxBytes wait for room
	// until their context ends. Otherwise they fail at once, as Overloaded.
	WaitWhenFull bool
	// MaxCalls bounds the calls queued and under way. 0: 65,536; at most 4,194,304
	// a connection.
	MaxCalls int
	// MaxExclusive bounds the connections that commands have for themselves, because they
	// wait at the server, and those of sessions. 0: 1,024. What exceeds it fails at once, as
	// Overloaded, or waits if WaitWhenFull is set.
	MaxExclusive int
	// SubscriptionBytes bounds the messages that wait to be received, of each subscription.
	// 0: 1 MiB.
	SubscriptionBytes int
	// MaxBytes bounds the memory of calls queued and under way, in bytes: every
	// call counts its request twice, because it is copied, and 640 beside.
	// 0: 64 MiB.
	MaxBytes int
	// Backoff is the first pause between attempts to connect and between
	// repetitions of a call; it doubles and is jittered. 0: 20 ms. MaxBackoff
	// bounds it. 0: 2 s.
	Backoff, MaxBackoff time.Duration
	// Retries is how often a call that failed is sent again if that cannot
	// execute it twice: see the package comment. 0: 3; negative: never.
	Retries int
	// Limits bound what a reply may make the client allocate.
	Limits Limits

	// Cache, if set, switches client-side caching on: see [Client.DoCached].
	Cache *CacheOptions

	// Observer, if set, is told of every call.
	Observer Observer
	// SlowThreshold and OnSlow: calls that take at least SlowThreshold are
	// reported to OnSlow. Both must be set. OnSlow is called on the caller's
	// goroutine, of [Client.DoFunc] on the reader's.
	SlowThreshold time.Duration
	OnSlow        func(Observation)
	// OnEvent, if set, is told when connections come and go. It is called on
	// the goroutine that keeps the connection and must not block.
	OnEvent func(Event)
	// Dialer, if set, opens connections instead of package net. Network is
	// "tcp" or "unix". TLS, if set, is spoken over what it returns.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Limits bound replies. A reply that exceeds one closes the connection, because
// what follows it cannot be trusted. A zero field has its default.
type Limits struct {
	// Bulk is the length of one string in bytes; 0: 512 MiB, which is Redis' own.
	Bulk int
	// Line is the length of a line, such as an error, in bytes; 0: 64 KiB.
	Line int
	// Elements is the number of elements of all aggregates of a reply together; a
	// map of n pairs counts 2n. 0: 1,048,576.
	Elements int
	// Depth is how deep aggregates may be nested; 0: 64; at most 1,024.
	Depth int
	// Frame is the length of a whole reply in bytes; 0: 1 GiB.
	Frame int
	// Streamed is the length of a string or aggregate that does not announce
	// its length, in bytes; 0: 16 MiB.
	Streamed int
}

// maxDepth keeps the recursion of decoding within a few hundred KiB of stack.
const maxDepth = 1024

// String describes the options without the password.
func (o Options) String() string {
	var b strings.Builder
	scheme := "redis://"
	switch {
	case o.network() == "unix":
		scheme = "unix://"
	case o.TLS != nil:
		scheme = "rediss://"
	}
	b.WriteString(scheme)
	if o.Credentials != nil {
		b.WriteString("(credentials)@")
	} else if o.Username != "" || o.Password != "" {
		b.WriteString(o.Username + ":***@")
	}
	b.WriteString(o.addr())
	if o.DB != 0 {
		fmt.Fprintf(&b, " database %d", o.DB)
	}
	return b.String()
}

// GoString is String, so that %#v shows no password either.
func (o Options) GoString() string { return "redis.Options(" + o.String() + ")" }

func (o *Options) addr() string { return cmp.Or(o.Addr, DefaultAddr) }

func (o *Options) network() string {
	if strings.HasPrefix(o.Addr, "/") {
		return "unix"
	}
	return "tcp"
}

// The defaults are those of the engine of shared connections.
const (
	defaultStall = 5 * time.Second
	defaultDial  = 5 * time.Second
)

// stallTimeout returns StallTimeout with its default; negative: for ever.
func (o *Options) stallTimeout() time.Duration { return cmp.Or(o.StallTimeout, defaultStall) }

func (o *Options) dialTimeout() time.Duration { return cmp.Or(o.DialTimeout, defaultDial) }

// check returns the first thing that is wrong.
func (o *Options) check() error {
	if o.network() == "tcp" {
		host, port, err := net.SplitHostPort(o.addr())
		if err != nil || port == "" {
			return fmt.Errorf("redis: address %q, expected host:port or the path of a Unix socket", o.addr())
		}
		if host == "" {
			return fmt.Errorf("redis: address %q has no host, expected host:port", o.addr())
		}
	}
	if o.Protocol != 0 && o.Protocol != 2 && o.Protocol != 3 {
		return fmt.Errorf("redis: protocol %d, expected 2 or 3, or 0 to choose", o.Protocol)
	}
	if o.DB < 0 {
		return fmt.Errorf("redis: database %d, expected a number from 0", o.DB)
	}
	if strings.ContainsFunc(o.ClientName, func(r rune) bool { return r < '!' || r > '~' }) {
		return fmt.Errorf("redis: client name %q, expected printable ASCII without spaces", o.ClientName)
	}
	if o.Username != "" && o.Password == "" && o.Credentials == nil {
		return errors.New("redis: a user name without a password")
	}
	for _, n := range []struct {
		name  string
		value int
		most  int
	}{
		{"sockets", o.Sockets, 1024}, {"max calls", o.MaxCalls, math.MaxInt32}, {"max exclusive", o.MaxExclusive, 1 << 20}, {"subscription bytes", o.SubscriptionBytes, math.MaxInt}, {"max bytes", o.MaxBytes, math.MaxInt},
		{"limit of a string", o.Limits.Bulk, math.MaxInt}, {"limit of a line", o.Limits.Line, math.MaxInt},
		{"limit of elements", o.Limits.Elements, math.MaxInt32}, {"limit of depth", o.Limits.Depth, maxDepth},
		{"limit of a reply", o.Limits.Frame, math.MaxInt}, {"limit of streamed data", o.Limits.Streamed, math.MaxInt},
	} {
		if n.value < 0 || n.value > n.most {
			return fmt.Errorf("redis: %s %d, expected 0 (the default) to %d", n.name, n.value, n.most)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"timeout", o.Timeout}, {"dial timeout", o.DialTimeout}, {"backoff", o.Backoff},
		{"max backoff", o.MaxBackoff}, {"slow threshold", o.SlowThreshold},
	} {
		if d.value < 0 {
			return fmt.Errorf("redis: %s %v is negative", d.name, d.value)
		}
	}
	if o.Cache != nil {
		if err := o.Cache.check(o.Protocol); err != nil {
			return err
		}
	}
	if (o.SlowThreshold > 0) != (o.OnSlow != nil) {
		return errors.New("redis: SlowThreshold and OnSlow are set only together")
	}
	return nil
}

// credentials returns what the next connection authenticates with. A panic of
// the user's function must not end the goroutine that keeps a connection.
func (o *Options) credentials(ctx context.Context) (user, password string, err error) {
	if o.Credentials == nil {
		return o.Username, o.Password, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("Credentials panicked: %v", p)
		}
	}()
	user, password, err = o.Credentials(ctx)
	if err != nil {
		return "", "", fmt.Errorf("credentials: %w", err)
	}
	return user, password, nil
}
