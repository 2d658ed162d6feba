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

// Options specifies which requests to send, and where. URL must be set; the zero value of every
// other field is valid.
type Options struct {
	URL    string   // http or https; http if it has no scheme
	Method string   // if empty, GET
	Fields []string // header lines "Name: value"; Host replaces that of the URL
	Body   []byte
	// User is user:password for basic authentication. If empty, that of the URL is used, if it has
	// one.
	User    string
	Timeout time.Duration // of a request and of opening a connection; if 0, requests have none, and opening has 30 s

	Fresh      bool   // use a new connection for each request
	UnixSocket string // path of the socket to connect to instead
	// ConnectTo is the host:port to connect to instead, or host:port:host:port, where the first two
	// must be those of the URL, or empty.
	ConnectTo string

	// Control, if set, is the Control function of the [net.Dialer].
	Control func(network, address string, c syscall.RawConn) error

	// TLS is the configuration for https URLs. If nil, the default is used. If ServerName is empty,
	// it is the host of the URL.
	TLS *tls.Config

	// HTTP2 requests HTTP/2 over connections with TLS, and PriorKnowledge over connections in clear
	// text.
	HTTP2, PriorKnowledge bool
	// Streams is how many callers share an HTTP/2 connection; 0 means one.
	Streams int

	// Statuses are the statuses of right responses, such as "200,404" or "2xx". If empty, they are
	// 2xx and 3xx.
	Statuses string
	// Connections is the number of connections: a large number needs several source addresses.
	Connections int

	// Mix lists several requests with weights, instead of a single one. Their paths replace that of
	// the URL.
	Mix []mix.Operation
	// Replay, if not nil, is a file whose requests are sent in order, instead of a single one. The
	// path of the URL is then not used.
	Replay *replay.File
	// Keys are the keys that replace __key__ in the path, the query, the headers and the body of
	// requests. Its seed also determines the order of the requests of Mix.
	Keys clientload.Keys
}

// New returns a target for the requests of the options. An error says which option is wrong.
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

// parseURL parses a URL. Errors do not contain the URL, since it may contain a password.
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

// dial determines where connections lead to.
func (o *Options) dial(u *url.URL, e *Endpoint) error {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	e.Network, e.Address = "tcp", net.JoinHostPort(u.Hostname(), port)
	switch {
	case o.UnixSocket != "" && o.ConnectTo != "":
		return errors.New("both a unix socket and another address to connect to; expected only one of them")
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

// connectTo parses an address in one of its two forms.
func connectTo(text, host, port string) (string, error) {
	if h, p, err := net.SplitHostPort(text); err == nil && h != "" && p != "" {
		return text, nil
	}
	if parts := strings.SplitN(text, ":", 3); len(parts) == 3 && (parts[0] == "" || parts[0] == host) && (parts[1] == "" || parts[1] == port) {
		if h, p, err := net.SplitHostPort(parts[2]); err == nil && h != "" && p != "" {
			return parts[2], nil
		}
	}
	return "", fmt.Errorf("the address %q to connect to; expected host:port, or %s:%s:host:port", text, host, port)
}

// tls returns the TLS configuration of connections.
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
	// freshSources is how many source addresses are used if each request has a new connection: a
	// port cannot be reused for a minute.
	freshSources = 64
)

// sources returns how many source addresses the connections need. Only the addresses 127.0.0.0/8
// are available.
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
