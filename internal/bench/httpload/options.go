package httpload

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/clientload"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/internal/bench/replay"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Options say what to send where. URL must be set; the zero value of every other
// field works.
type Options struct {
	URL    string   // http or https; http if it has no scheme
	Method string   // empty: GET
	Fields []string // header lines "Name: value"; Host replaces that of the URL
	Body   []byte
	// User is user:password for basic authentication. Empty: that of the URL, if
	// it has one.
	User    string
	Timeout time.Duration // of a request and of opening a connection; 0: only the latter has one, 30 s

	Fresh      bool   // a connection for each request
	UnixSocket string // path of the socket to connect to instead
	// ConnectTo is host:port to connect to instead, or host:port:host:port, where
	// the first two must be those of the URL, or empty.
	ConnectTo string

	// Control, if set, is that of the [net.Dialer] of connections.
	Control func(network, address string, c syscall.RawConn) error

	// TLS is the configuration of connections to URLs with https. If nil, it is the
	// usual one. An empty ServerName is that of the URL.
	TLS *tls.Config

	// HTTP2 says that connections, which must be of TLS, speak HTTP/2, and PriorKnowledge that those in
	// clear text do.
	HTTP2, PriorKnowledge bool
	// Streams is how many callers share a connection of HTTP/2; 0: one.
	Streams int

	// Statuses are those of right responses: "200,404" or "2xx". Empty: 2xx and 3xx.
	Statuses string
	// Connections is how many there will be: many need several source addresses.
	Connections int

	// Mix are several requests by weight, in place of one. Their paths replace that of the URL.
	Mix []mix.Operation
	// Replay is the file whose requests are sent in their order, in place of one; nil: none. The path of
	// the URL is not used.
	Replay *replay.File
	// Keys are what __key__ stands for in the path, the query, the headers and the body of
	// requests. The order of the requests of Mix follows from its seed, too.
	Keys clientload.Keys
}

// New returns the target of a request, or of the requests of a mix. Errors say which option is
// wrong.
func New(o Options) (*Target, error) {
	u, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	t := &Target{streams: 1, fresh: o.Fresh, timeout: o.Timeout, keys: o.Keys, connections: max(o.Connections, 1), opening: new(Opening)}
	for range min(runtime.GOMAXPROCS(0), t.connections) {
		t.firstByte = append(t.firstByte, new(load.Buckets))
	}
	if o.Replay != nil {
		if t.sequel, t.name, err = o.newSequel(u); err != nil {
			return nil, err
		}
		t.requests = []request{t.sequel.get}
	} else if len(o.Mix) == 0 {
		one, name, err := o.newRequest(u)
		if err != nil {
			return nil, err
		}
		t.name, t.requests, t.weights = name, []request{one}, mix.WeightsOf(make([]mix.Operation, 1))
	} else if err := t.mix(&o, u); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(t.requests, func(r request) bool { return r.template != nil }) {
		t.chooses = true
		if err := checkKeys(&t.keys); err != nil {
			return nil, err
		}
	} else {
		t.keys = clientload.Keys{Count: 1, Distribution: clientload.Uniform, Seed: o.Keys.Seed}
	}
	if err := o.dial(u, &t.endpoint); err != nil {
		return nil, err
	}
	if u.Scheme == "https" {
		t.endpoint.TLS = o.tls(u)
	} else if o.TLS != nil {
		return nil, errors.New("a certificate or server name for a URL without TLS; expected https://")
	}
	t.endpoint.Timeout, t.endpoint.Control, t.endpoint.Opening = o.Timeout, o.Control, t.opening
	t.endpoint.Sources = o.sources(&t.endpoint)
	if err := t.useHTTP2(&o, u); err != nil {
		return nil, err
	}
	return t, nil
}

// parseURL reads a URL. Its errors do not show it, since it may hold a password.
func parseURL(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, fmt.Errorf("the URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "" {
		return nil, fmt.Errorf("the URL has scheme %q and host %q; expected one such as http://host:port/path", u.Scheme, u.Hostname())
	}
	return u, nil
}

// dial says where connections lead to.
func (o *Options) dial(u *url.URL, e *Endpoint) error {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	e.Network, e.Address = "tcp", net.JoinHostPort(u.Hostname(), port)
	switch {
	case o.UnixSocket != "" && o.ConnectTo != "":
		return errors.New("both a unix socket and another address to connect to; expected one of them")
	case o.UnixSocket != "":
		e.Network, e.Address = "unix", o.UnixSocket
	case o.ConnectTo != "":
		address, err := connectTo(o.ConnectTo, u.Hostname(), port)
		if err != nil {
			return err
		}
		e.Address = address
	}
	return nil
}

// connectTo reads an address in one of its two forms.
func connectTo(text, host, port string) (string, error) {
	if h, p, err := net.SplitHostPort(text); err == nil && h != "" && p != "" {
		return text, nil
	}
	if parts := strings.SplitN(text, ":", 3); len(parts) == 3 && (parts[0] == "" || parts[0] == host) && (parts[1] == "" || parts[1] == port) {
		if h, p, err := net.SplitHostPort(parts[2]); err == nil && h != "" && p != "" {
			return parts[2], nil
		}
	}
	return "", fmt.Errorf("%q to connect to; expected host:port, or %s:%s:host:port", text, host, port)
}

// tls returns the configuration of connections.
func (o *Options) tls(u *url.URL) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLS != nil {
		c = o.TLS.Clone()
	}
	c.ServerName = cmp.Or(c.ServerName, u.Hostname())
	c.NextProtos = []string{"http/1.1"}
	return c
}

const (
	// oneSource is how many connections share a source address.
	oneSource = 4096
	// freshSources is how many source addresses connections have that are closed
	// after each request: their ports rest for a minute.
	freshSources = 64
)

// sources returns how many source addresses the connections need. Only the
// addresses 127.0.0.0/8 are at hand.
func (o *Options) sources(e *Endpoint) int {
	host, _, err := net.SplitHostPort(e.Address)
	if ip := net.ParseIP(host); err != nil || e.Network != "tcp" || ip == nil || ip.To4() == nil || !ip.IsLoopback() || !manySources {
		return 0
	}
	n := 0
	if o.Connections > oneSource {
		n = (o.Connections + oneSource - 1) / oneSource
	}
	if o.Fresh {
		n = max(n, freshSources)
	}
	return min(n, 250)
}
