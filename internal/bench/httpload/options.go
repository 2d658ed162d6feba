package httpload

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
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

	// Statuses are those of right responses: "200,404" or "2xx". Empty: 2xx and 3xx.
	Statuses string
	// Connections is how many there will be: many need several source addresses.
	Connections int
}

// New returns the target of a request. Errors say which option is wrong.
func New(o Options) (*Target, error) {
	u, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	method := cmp.Or(o.Method, http.MethodGet)
	if !isToken(method) || method == http.MethodConnect {
		return nil, fmt.Errorf("method %q; expected one such as GET or POST", method)
	}
	t := &Target{
		bodyless: method == http.MethodHead, fresh: o.Fresh, timeout: o.Timeout,
		repeatable: slices.Contains([]string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"}, method),
	}
	t.name = method + " " + u.Scheme + "://" + u.Host + u.EscapedPath()
	if u.RawQuery != "" {
		t.name += "?…"
	}
	if t.right, err = parseStatuses(o.Statuses); err != nil {
		return nil, err
	}
	if t.request, err = o.request(u, method); err != nil {
		return nil, err
	}
	if err := o.dial(u, &t.endpoint); err != nil {
		return nil, err
	}
	if u.Scheme == "https" {
		t.endpoint.TLS = o.tls(u)
	} else if o.TLS != nil {
		return nil, errors.New("a certificate or server name for a URL without TLS; expected https://")
	}
	t.endpoint.Timeout, t.endpoint.Control = o.Timeout, o.Control
	t.endpoint.Sources = o.sources(&t.endpoint)
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

// request returns the request as it is sent.
func (o *Options) request(u *url.URL, method string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", method, u.RequestURI())
	host := u.Host
	var rest strings.Builder
	authorized := false
	for _, line := range o.Fields {
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !ok || !isToken(name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, fmt.Errorf("header %q; expected one such as \"Accept: text/html\"", name)
		}
		switch strings.ToLower(name) {
		case "host":
			host = value
			continue
		case "content-length", "transfer-encoding", "connection":
			return nil, fmt.Errorf("header %s is written by the generator", name)
		case "authorization":
			authorized = true
		}
		rest.WriteString(name + ": " + value + "\r\n")
	}
	b.WriteString("Host: " + host + "\r\n")
	user := o.User
	if password, ok := u.User.Password(); user == "" && ok {
		user = u.User.Username() + ":" + password
	}
	switch {
	case user != "" && authorized:
		return nil, errors.New("both a user and a header Authorization; expected one of them")
	case user != "" && !strings.Contains(user, ":"):
		return nil, errors.New("a user without a password; expected user:password")
	case user != "":
		b.WriteString("Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user)) + "\r\n")
	}
	b.WriteString(rest.String())
	if o.Fresh {
		b.WriteString("Connection: close\r\n")
	}
	if len(o.Body) > 0 || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(o.Body))
	}
	b.WriteString("\r\n")
	b.Write(o.Body)
	return b.Bytes(), nil
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

// statuses are those of right responses; bit i of word i/64 is that of 100+i.
type statuses [8]uint64

func (s *statuses) has(status int) bool {
	i := status - 100
	return i >= 0 && i < 64*len(s) && s[i/64]&(1<<(i%64)) != 0
}

func (s *statuses) add(from, to int) {
	for i := from - 100; i <= to-100; i++ {
		s[i/64] |= 1 << (i % 64)
	}
}

func parseStatuses(text string) (s statuses, err error) {
	if text == "" {
		s.add(200, 399)
		return s, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		class, isClass := strings.CutSuffix(strings.ToLower(word), "xx")
		n, err := strconv.Atoi(class)
		switch {
		case err == nil && isClass && n >= 2 && n <= 5:
			s.add(100*n, 100*n+99)
		case err == nil && !isClass && n >= 200 && n <= 599:
			s.add(n, n)
		default:
			return s, fmt.Errorf("status %q; expected one such as 404, or 2xx", word)
		}
	}
	return s, nil
}

// isToken reports whether text is a token (RFC 9110, section 5.6.2).
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}
