package tarantool

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// DefaultAddr is the address of the zero Options.
const DefaultAddr = "127.0.0.1:3301"

// AuthMethod is the method of authentication.
type AuthMethod string

// The methods.
const (
	// AuthAuto is the method that the server requires, or chap-sha1 if it requires none.
	AuthAuto AuthMethod = ""
	// AuthCHAPSHA1 proves knowledge of the password without sending it.
	AuthCHAPSHA1 AuthMethod = box.AuthSHA1
	// AuthPAPSHA256 sends the password, so it needs TLS or a Unix socket. It is supported by
	// Tarantool Enterprise 2.11.
	AuthPAPSHA256 AuthMethod = box.AuthSHA256
)

// Options configure a [Client]. The zero value is usable. Options may be copied; a client keeps its
// own copy.
type Options struct {
	// Addr is host:port, or the path of a Unix socket if it starts with a slash. If empty, it
	// defaults to DefaultAddr. A host name is resolved again whenever a connection is opened.
	Addr string
	// User and Password authenticate every connection. Without a user, the user is guest.
	User, Password string
	// Credentials, if set, is called instead whenever a connection is opened, so that credentials
	// can change while the client is running. It must be safe for concurrent use and honor ctx.
	Credentials func(ctx context.Context) (user, password string, err error)
	// Auth is the method of authentication.
	Auth AuthMethod
	// TLS, if set, encrypts connections. If its ServerName is empty, the host of Addr is used.
	TLS *tls.Config

	// Sockets is the number of connections for requests that are answered immediately. If zero, it
	// defaults to 1, which gathers requests best. If the server has several threads for
	// connections, or a small readahead, several connections are faster.
	Sockets int
	// Window bounds the requests that are at the server at a time, except those that may take long.
	// If zero, it defaults to 8,192; if negative, there is no bound. Further requests wait in the
	// client, where they can be canceled unsent. The bound grows with the round trip, because
	// requests in transit are not yet at the server. A Window of 512 keeps a client below the 768
	// requests at which the server stops reading from every connection (box.cfg.net_msg_max). Then
	// other clients wait a quarter of the time, and a client with thousands of requests in flight
	// has two thirds of its throughput.
	Window int
	// MaxBlocking bounds the requests in flight that may take long: see
	// [ProcedureRequest.Blocking]. They use other connections than the requests of Window. If zero,
	// it defaults to 512. Further requests wait in the client.
	MaxBlocking int
	// Timeout bounds a request from its start to its end, including retries, regardless of its
	// context. If zero, only the context bounds it.
	Timeout time.Duration
	// DialTimeout bounds opening a connection, including name resolution, TLS and greeting. If
	// zero, it defaults to 5 s.
	DialTimeout time.Duration
	// StallTimeout is how long a server that owes replies may be silent before the connection is
	// closed. If zero, it defaults to 5 s; if negative, there is no limit. A server that is only
	// executing slow calls answers pings, so its connection is not closed.
	StallTimeout time.Duration
	// NoWait makes Connect return immediately, before there is a connection, so that a program can
	// start while the server is down. Requests then wait for a connection, as after the loss of
	// one. OnEvent reports failed attempts. A [Pool] has its own PoolOptions.NoWait.
	NoWait bool
	// FailFast makes requests fail immediately, as NotSent, while there is no connection.
	// Otherwise they wait for one, at most for DialTimeout.
	FailFast bool
	// WaitWhenFull makes requests that exceed MaxCalls or MaxBytes wait for room until their
	// context ends. Otherwise they fail immediately, as Overloaded.
	WaitWhenFull bool
	// MaxCalls bounds the requests queued and in flight. If zero, it defaults to 65,536; the
	// maximum is 1,048,575 for each connection. Requests that a server still answers after it has
	// announced its shutdown are counted in addition, for MaxBytes as well: the sum is at most 2.3
	// times the bound.
	MaxCalls int
	// MaxBytes bounds the memory of requests queued and in flight, in bytes: each counts its bytes
	// twice, because it is copied, and 640 bytes more. If zero, it defaults to 64 MiB.
	MaxBytes int
	// MaxReply bounds the length of a message from the server, in bytes. A longer one closes the
	// connection. If zero, it defaults to 256 MiB.
	MaxReply int
	// Limits bound the memory of decoded replies.
	Limits Limits
	// Backoff is the first pause between attempts to connect and between retries of a request; the
	// pause doubles and is jittered. If zero, it defaults to 20 ms. MaxBackoff bounds the pause. If
	// zero, it defaults to 2 s.
	Backoff, MaxBackoff time.Duration
	// Retries is the maximum number of times that a failed request is sent again, if that cannot
	// execute it twice. If zero, it defaults to 3; if negative, requests are not retried.
	Retries int

	// Observer, if set, is notified of every request.
	Observer Observer
	// Requests that take at least SlowThreshold are reported to OnSlow, on the caller's goroutine.
	// Both must be set.
	SlowThreshold time.Duration
	OnSlow        func(Observation)
	// OnEvent, if set, is notified when connections are opened and closed. It is called on the
	// goroutine that maintains the connection and must not block.
	OnEvent func(Event)
	// Dialer, if set, opens connections instead of package net. Network is "tcp" or "unix". If TLS
	// is set, it is used over the connection that Dialer returns.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Limits bound the memory of decoded replies: a nil is one byte of a reply, and may become a struct
// of hundreds of bytes. A call whose reply exceeds a limit fails with [ErrLimit]; other calls are
// not affected. Fields that are zero have defaults.
type Limits struct {
	// Elements is the maximum number of values in all arrays and maps of a reply together; a map of
	// n pairs counts as 2n. Values that are skipped do not count. The default is 16,777,216.
	Elements int
	// Decoded is the maximum memory of the values of a reply, in bytes: of the destination, and of
	// slices, maps, strings and the like in it. The default is 1 GiB.
	Decoded int
}

// decoding returns the limits of decoders.
func (o *Options) decoding() iproto.Limits {
	return iproto.Limits{Elements: o.Limits.Elements, Bytes: o.Limits.Decoded}
}

// String describes the options without the password.
func (o Options) String() string { return o.login().Describe(o.scheme(), o.addr()) }

// GoString returns the same as String, so that %#v does not show the password either.
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

func (o *Options) network() string { return driver.Network(o.Addr) }

func (o *Options) endpoint() *driver.Endpoint {
	return &driver.Endpoint{Addr: o.addr(), TLS: o.TLS, Dialer: o.Dialer}
}

func (o *Options) login() *driver.Login {
	return &driver.Login{User: o.User, Password: o.Password, Credentials: o.Credentials}
}

const (
	mostBlocking   = 1 << 16
	normalBlocking = 512
	normalWindow   = 8192
)

// window returns the bound for the engine, for which 0 means none.
func (o *Options) window() int { return max(cmp.Or(o.Window, normalWindow), 0) }

// check returns the first error in the options, or nil.
func (o *Options) check() error {
	const check driver.Check = "tarantool"
	if err := check.Addr(o.addr()); err != nil {
		return err
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
	if err := check.Numbers(
		driver.Number{Name: "sockets", Value: o.Sockets, Max: 1024},
		driver.Number{Name: "max blocking", Value: o.MaxBlocking, Max: mostBlocking},
		driver.Number{Name: "max calls", Value: o.MaxCalls, Max: math.MaxInt32},
		driver.Number{Name: "max bytes", Value: o.MaxBytes, Max: math.MaxInt},
		driver.Number{Name: "max reply", Value: o.MaxReply, Max: math.MaxInt32},
		driver.Number{Name: "limit of elements", Value: o.Limits.Elements, Max: math.MaxInt32},
		driver.Number{Name: "limit of decoded bytes", Value: o.Limits.Decoded, Max: math.MaxInt},
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
	return check.Slow(o.SlowThreshold, o.OnSlow)
}
