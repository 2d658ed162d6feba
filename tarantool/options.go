package tarantool

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

	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// DefaultAddr is the server that the zero Options name.
const DefaultAddr = "127.0.0.1:3301"

// AuthMethod is how a password is proven.
type AuthMethod string

// The methods.
const (
	// AuthAuto is what the server says, or else chap-sha1.
	AuthAuto AuthMethod = ""
	// AuthCHAPSHA1 proves the password without sending it.
	AuthCHAPSHA1 AuthMethod = box.AuthSHA1
	// AuthPAPSHA256 sends the password, so it needs TLS or a Unix socket. Tarantool
	// Enterprise 2.11.
	AuthPAPSHA256 AuthMethod = box.AuthSHA256
)

// Options say how a [Client] reaches its server. The zero value works. Options may be copied;
// a client keeps a copy of its own.
type Options struct {
	// Addr is host:port, or the path of a Unix socket if it begins with a slash. Empty:
	// DefaultAddr. A host name is resolved again whenever a connection is opened.
	Addr string
	// User and Password authenticate every connection. Without a user the server takes
	// the connection for one of guest.
	User, Password string
	// Credentials, if set, is asked instead of User and Password whenever a connection is
	// opened. It must be safe for concurrent use and honour ctx.
	Credentials func(ctx context.Context) (user, password string, err error)
	// Auth is how the password is proven.
	Auth AuthMethod
	// TLS, if set, encrypts connections. An empty ServerName is taken from Addr.
	TLS *tls.Config

	// Sockets is the number of connections for requests that are answered at once. 0: one,
	// which gathers best. A server with several threads for connections, or with a small
	// readahead, serves several faster.
	Sockets int
	// Window bounds the requests that the server has at a time, of those that do not say
	// they may take long. 0: 8,192; negative: no bound. More of them wait here, where they can
	// be given up unsent. The bound grows with the round trip: requests on their way are not
	// yet with the server. One of 512 keeps a client below the 768 at which the server stops
	// to read all connections (box.cfg.net_msg_max): others wait a quarter of the
	// time for theirs, and a client with thousands of requests at a time has two thirds of its
	// throughput.
	Window int
	// MaxBlocking bounds the requests under way that said they may take long: see
	// [ProcedureRequest.Blocking]; their connections are others than those of Window. 0: 512.
	// More of them wait here.
	MaxBlocking int
	// Timeout bounds a request from its start to its end, repetitions included, whatever its
	// context says. 0: only the context bounds it.
	Timeout time.Duration
	// DialTimeout bounds the opening of a connection: name resolution, TLS and greeting. 0: 5 s.
	DialTimeout time.Duration
	// StallTimeout is how long a server that owes replies may be silent before the
	// connection is given up. 0: 5 s; negative: for ever. A server that only has slow calls
	// to do is pinged, and answers that.
	StallTimeout time.Duration
	// FailFast fails requests at once, as NotSent, while there is no connection. Otherwise
	// they wait for one, at most DialTimeout.
	FailFast bool
	// WaitWhenFull makes requests that exceed MaxCalls or MaxBytes wait for room until their
	// context ends. Otherwise they fail at once, as Overloaded.
	WaitWhenFull bool
	// MaxCalls bounds the requests queued and under way. 0: 65,536; at most 1,048,575 a
	// connection.
	MaxCalls int
	// MaxBytes bounds the memory of requests queued and under way, in bytes: each counts its
	// bytes twice, because it is copied, and 640 beside. 0: 64 MiB.
	MaxBytes int
	// MaxReply bounds a message of the server, in bytes. One that is longer closes the
	// connection. 0: 256 MiB.
	MaxReply int
	// Limits bound what a reply may become when it is decoded.
	Limits Limits
	// Backoff is the first pause between attempts to connect and between repetitions of a
	// request; it doubles and is jittered. 0: 20 ms. MaxBackoff bounds it. 0: 2 s.
	Backoff, MaxBackoff time.Duration
	// Retries is how often a request that failed is sent again if that cannot execute it
	// twice. 0: 3; negative: never.
	Retries int

	// OnEvent, if set, is told when connections come and go. It is called on the goroutine
	// that keeps the connection and must not block.
	OnEvent func(Event)
	// Dialer, if set, opens connections instead of package net. Network is "tcp" or "unix".
	// TLS, if set, is spoken over what it returns.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Limits bound what a reply may become when it is decoded: a nil is one byte of a reply, and may
// become a struct of hundreds of bytes. The call whose reply exceeds one fails with an error that is
// [ErrLimit]; others are not affected. A zero field has its default.
type Limits struct {
	// Elements is the number of values in all arrays and maps of a reply together; a map of n
	// pairs counts 2n. Values that are skipped do not count. 0: 16,777,216.
	Elements int
	// Decoded is the memory that the values of a reply may take, in bytes: what the
	// destination points to, and slices, maps, strings and the like in it. 0: 1 GiB.
	Decoded int
}

// decoding returns the limits of decoders.
func (o *Options) decoding() iproto.Limits {
	return iproto.Limits{Elements: o.Limits.Elements, Bytes: o.Limits.Decoded}
}

// String describes the options without the password.
func (o Options) String() string {
	var b strings.Builder
	b.WriteString(o.scheme() + "://")
	switch {
	case o.Credentials != nil:
		b.WriteString("(credentials)@")
	case o.User != "":
		b.WriteString(o.User + ":***@")
	}
	b.WriteString(o.addr())
	return b.String()
}

// GoString is String, so that %#v shows no password either.
func (o Options) GoString() string { return "tarantool.Options(" + o.String() + ")" }

func (o *Options) scheme() string {
	switch {
	case o.network() == "unix":
		return "tarantool+unix"
	case o.TLS != nil:
		return "tarantool+tls"
	}
	return "tarantool"
}

func (o *Options) addr() string { return cmp.Or(o.Addr, DefaultAddr) }

func (o *Options) network() string {
	if strings.HasPrefix(o.Addr, "/") {
		return "unix"
	}
	return "tcp"
}

const (
	mostBlocking   = 1 << 16
	normalBlocking = 512
	normalWindow   = 8192
)

// window returns the bound for the engine, whose 0 is none.
func (o *Options) window() int { return max(cmp.Or(o.Window, normalWindow), 0) }

// check returns the first thing that is wrong.
func (o *Options) check() error {
	if o.network() == "tcp" {
		host, port, err := net.SplitHostPort(o.addr())
		if err != nil || host == "" || port == "" {
			return fmt.Errorf("tarantool: address %q, expected host:port or the path of a Unix socket", o.addr())
		}
	}
	switch o.Auth {
	case AuthAuto, AuthCHAPSHA1:
	case AuthPAPSHA256:
		if o.TLS == nil && o.network() != "unix" {
			return errors.New("tarantool: pap-sha256 sends the password, so it needs TLS or a Unix socket")
		}
	default:
		return fmt.Errorf("tarantool: authentication by %q, expected %s, %s or nothing", o.Auth, AuthCHAPSHA1, AuthPAPSHA256)
	}
	if o.User == "" && o.Password != "" && o.Credentials == nil {
		return errors.New("tarantool: a password without a user")
	}
	for _, n := range []struct {
		name        string
		value, most int
	}{
		{"sockets", o.Sockets, 1024}, {"max blocking", o.MaxBlocking, mostBlocking}, {"max calls", o.MaxCalls, math.MaxInt32},
		{"max bytes", o.MaxBytes, math.MaxInt}, {"max reply", o.MaxReply, math.MaxInt32},
		{"limit of elements", o.Limits.Elements, math.MaxInt32}, {"limit of decoded bytes", o.Limits.Decoded, math.MaxInt},
	} {
		if n.value < 0 || n.value > n.most {
			return fmt.Errorf("tarantool: %s %d, expected 0 (the default) to %d", n.name, n.value, n.most)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"timeout", o.Timeout}, {"dial timeout", o.DialTimeout}, {"backoff", o.Backoff}, {"max backoff", o.MaxBackoff},
	} {
		if d.value < 0 {
			return fmt.Errorf("tarantool: %s %v is negative", d.name, d.value)
		}
	}
	return nil
}

// credentials returns what the next connection authenticates with. A panic of the user's
// function must not end the goroutine that keeps a connection.
func (o *Options) credentials(ctx context.Context) (user, password string, err error) {
	if o.Credentials == nil {
		return o.User, o.Password, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("credentials panicked: %v", p)
		}
	}()
	user, password, err = o.Credentials(ctx)
	if err != nil {
		return "", "", fmt.Errorf("credentials: %w", err)
	}
	return user, password, nil
}
