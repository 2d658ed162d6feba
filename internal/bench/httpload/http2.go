package httpload

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// HTTP/2 is implemented by net/http, over connections that Conn opens. There, a request takes a
// goroutine, several allocations and locks: it costs several times as much as an HTTP/1.1 request
// of this package.

// maxStreams bounds the requests in flight on a connection.
const maxStreams = 10_000

// useHTTP2 makes the target use HTTP/2, if the options request it.
func (t *Target) useHTTP2(o *Options, u *url.URL) error {
	switch wanted := o.HTTP2 || o.PriorKnowledge; {
	case !wanted && o.Streams > 1:
		return fmt.Errorf("%d streams on a connection without HTTP/2", o.Streams)
	case !wanted:
		return nil
	case o.PriorKnowledge && u.Scheme != "http":
		return errors.New("HTTP/2 with prior knowledge over TLS, where HTTP/2 is negotiated; expected http://")
	case !o.PriorKnowledge && u.Scheme != "https":
		return errors.New("HTTP/2 without TLS, which would negotiate it; expected https://, or prior knowledge")
	case o.Fresh:
		return errors.New("HTTP/2 with a connection for each request; expected HTTP/1.1")
	case o.Streams < 0 || o.Streams > maxStreams:
		return fmt.Errorf("%d streams on a connection; expected 1 to %d", o.Streams, maxStreams)
	}
	t.streams = max(o.Streams, 1)
	t.name += " over HTTP/2"
	if t.streams > 1 {
		t.name += fmt.Sprintf(", %d streams on a connection", t.streams)
	}
	if u.Scheme == "https" {
		t.endpoint.TLS.NextProtos = []string{"h2"}
		t.endpoint.Secured = func(state tls.ConnectionState, _ bool) error {
			if state.NegotiatedProtocol != "h2" {
				return protocolError("the server does not speak HTTP/2: it negotiates the protocol %q", state.NegotiatedProtocol)
			}
			return nil
		}
	}
	for i := range t.requests {
		r := &t.requests[i]
		var err error
		if r.http2, r.body, err = newParser(u.Scheme).parse(r.bytes); err != nil {
			return err
		}
	}
	transport := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true, DialContext: opened, DialTLSContext: opened}
	transport.Protocols.SetHTTP2(true)
	transport.Protocols.SetUnencryptedHTTP2(true)
	for i := range t.connections {
		l := &link{transport: transport, scheme: u.Scheme, streams: t.streams}
		l.conn.Endpoint, l.conn.Index = &t.endpoint, i
		t.links = append(t.links, l)
	}
	return nil
}

// openedKey is the key of a connection in a context.
type openedKey struct{}

// opened passes connections that are already open to the transport.
func opened(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, ok := ctx.Value(openedKey{}).(net.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return conn, nil
}

// A link is an HTTP/2 connection that several callers share. It is reopened after it has ended.
type link struct {
	// Immutable after useHTTP2.
	transport *http.Transport
	scheme    string
	streams   int

	mu     sync.Mutex
	conn   Conn             // guarded by mu, except its method Close
	client *http.ClientConn // guarded by mu; nil if none has been opened yet
	count  uint64           // guarded by mu: the number of connections opened

	room atomic.Int64 // how many concurrent requests the server permits, as far as it is known

	endMu   sync.Mutex
	clients []*http.ClientConn // guarded by endMu: those that may have requests in flight
}

// ready returns the connection. It opens one if there is none or if the current one accepts no more
// requests.
func (l *link) ready(ctx context.Context) (*http.ClientConn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client != nil && l.usable(l.client) {
		return l.client, nil
	}
	client, err := l.open(ctx)
	if err != nil {
		return nil, load.WithKind("connect: "+load.ErrorKind(err), err)
	}
	l.client = client
	l.count++
	return client, nil
}

// open opens a connection. The previous one closes itself when its last request has ended.
func (l *link) open(ctx context.Context) (*http.ClientConn, error) {
	if err := l.conn.Open(ctx); err != nil {
		return nil, err
	}
	// The address is not used.
	client, err := l.transport.NewClientConn(context.WithValue(ctx, openedKey{}, l.conn.Net()), l.scheme, "127.0.0.1:80")
	if err != nil {
		l.conn.Hangup()
		return nil, err
	}
	l.room.Store(int64(l.streams))
	l.endMu.Lock()
	defer l.endMu.Unlock()
	l.clients = append(slices.DeleteFunc(l.clients, func(c *http.ClientConn) bool { return c.Err() != nil }), client)
	return client, nil
}

// usable reports whether a connection takes further requests. The server may have announced that it
// closes the connection (GOAWAY). If only the limit of concurrent requests is reached, a request
// waits.
func (l *link) usable(client *http.ClientConn) bool {
	if client.Err() != nil {
		return false
	}
	free, underWay := client.Available(), client.InFlight()
	if free > 0 {
		l.room.Store(int64(free + underWay))
		return true
	}
	return int64(underWay) >= min(l.room.Load(), int64(l.streams))
}

// close ends the connection with a reset. It ends all requests in flight, including those over
// earlier connections.
func (l *link) close() error {
	err := l.conn.Close()
	l.endMu.Lock()
	defer l.endMu.Unlock()
	for _, c := range l.clients {
		_ = c.Close()
	}
	l.clients = nil
	return err
}

// opened returns how many connections have been opened.
func (l *link) opened() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// A parser converts complete HTTP/1.1 requests to requests of net/http.
type parser struct {
	scheme string
	in     bytes.Reader
	buffer *bufio.Reader
}

func newParser(scheme string) *parser { return &parser{scheme: scheme, buffer: bufio.NewReader(nil)} }

// parse returns a request and its body.
func (p *parser) parse(message []byte) (*http.Request, []byte, error) {
	p.in.Reset(message)
	p.buffer.Reset(&p.in)
	r, err := http.ReadRequest(p.buffer)
	if err != nil {
		return nil, nil, load.WithKind("request", err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, nil, load.WithKind("request", err)
	}
	r.RequestURI, r.URL.Scheme, r.URL.Host, r.Body = "", p.scheme, r.Host, http.NoBody
	if r.Header["User-Agent"] == nil {
		r.Header["User-Agent"] = []string{""} // no User-Agent, instead of that of net/http
	}
	return r, body, nil
}

// asHTTP2 returns the request to be sent. Its header is shared with other requests.
func (c *caller) asHTTP2(ctx context.Context) (*http.Request, error) {
	r, body := c.request.http2, c.request.body
	if c.request.template != nil || c.target.sequel != nil {
		var err error
		if r, body, err = c.parser.parse(c.message); err != nil {
			return nil, err
		}
	}
	r = r.WithContext(ctx)
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return r, nil
}

// stream sends a request over the connection that the caller shares, and reads the response.
func (c *caller) stream(ctx context.Context) error {
	client, err := c.link.ready(ctx)
	if err != nil {
		return err
	}
	r, begun, err := c.roundTrip(ctx, client)
	if err != nil && !begun && c.request.repeatable && ctx.Err() == nil && !c.link.usable(client) {
		// As with HTTP/1.1, the server has closed the connection.
		if client, err = c.link.ready(ctx); err != nil {
			return err
		}
		r, _, err = c.roundTrip(ctx, client)
	}
	if err != nil {
		if load.ErrorKind(err) == "other" {
			err = load.WithKind("protocol", err)
		}
		return err
	}
	c.counts.add(&r)
	c.status, c.length = r.Status, r.Length
	if !c.request.right.has(r.Status) && r.Status != c.logged {
		return StatusError(r.Status)
	}
	return nil
}

// roundTrip sends a request and reads the response. begun reports whether its head has arrived.
func (c *caller) roundTrip(ctx context.Context, client *http.ClientConn) (r Response, begun bool, err error) {
	if timeout := c.target.timeout; timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	request, err := c.asHTTP2(ctx)
	if err != nil {
		return r, false, err
	}
	sent := time.Now()
	response, err := client.RoundTrip(request)
	if err != nil {
		return r, false, err
	}
	c.firstByte.Record(time.Since(sent))
	r.Status = response.StatusCode
	r.Length, err = io.Copy(io.Discard, response.Body)
	if closeErr := response.Body.Close(); err == nil {
		err = closeErr
	}
	return r, true, err
}
