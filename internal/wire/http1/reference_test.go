package http1

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// describe returns the contents of a head on one line, without missing fields.
func describe(h *Head) string {
	var text strings.Builder
	connection := "close"
	if h.KeepAlive {
		connection = "keep"
	}
	fmt.Fprintf(&text, "%s %s 1.%d %s", h.Method, h.Target, h.Minor, connection)
	for _, f := range []struct {
		name  string
		value []byte
	}{
		{"Host", h.Host}, {"If-Match", h.IfMatch}, {"If-None-Match", h.IfNoneMatch}, {"Accept-Encoding", h.AcceptEncoding},
		{"Authorization", h.Authorization}, {"X-Api-Key", h.APIKey}, {"Origin", h.Origin}, {"Access-Control-Request-Method", h.RequestMethod}, {"X-Request-Id", h.RequestID},
		{"Traceparent", h.Traceparent}, {"User-Agent", h.UserAgent}, {"Referer", h.Referer},
	} {
		if f.value != nil {
			fmt.Fprintf(&text, " %s=%q", f.name, f.value)
		}
	}
	for _, line := range h.Forwarded {
		fmt.Fprintf(&text, " X-Forwarded-For=%q", line)
	}
	if h.Ranged {
		text.WriteString(" ranged")
	}
	if h.RepeatedCredentials {
		text.WriteString(" repeated")
	}
	return text.String()
}

// heard is the request that a net/http handler received, in the format of describe, and what that
// format cannot express.
type heard struct {
	text    string
	trouble []string
}

func hear(r *http.Request) (h heard) {
	complain := func(format string, args ...any) { h.trouble = append(h.trouble, fmt.Sprintf(format, args...)) }
	if r.ContentLength != 0 || r.TransferEncoding != nil {
		complain("a body of %d bytes, transfer encodings %q", r.ContentLength, r.TransferEncoding)
	}
	if body, err := io.ReadAll(r.Body); len(body) > 0 || err != nil {
		complain("the body is %q, %v", body, err)
	}
	if r.ProtoMajor != 1 {
		complain("version %s", r.Proto)
	}
	var text strings.Builder
	connection := "keep"
	if r.Close {
		connection = "close"
	}
	fmt.Fprintf(&text, "%s %s 1.%d %s", r.Method, r.RequestURI, r.ProtoMinor, connection)
	if r.Host != "" {
		fmt.Fprintf(&text, " Host=%q", r.Host)
	}
	for _, name := range []string{
		"If-Match", "If-None-Match", "Accept-Encoding", "Authorization", "X-Api-Key", "Origin", "Access-Control-Request-Method", "X-Request-Id", "Traceparent",
		"User-Agent", "Referer",
	} {
		lines := r.Header[name]
		if len(lines) == 0 {
			continue
		}
		fmt.Fprintf(&text, " %s=%q", name, lines[0])
		switch name {
		case "Authorization", "X-Api-Key", "User-Agent", "Referer":
		default:
			if len(lines) > 1 {
				complain("%d lines of %s", len(lines), name)
			}
		}
	}
	for _, line := range r.Header["X-Forwarded-For"] {
		fmt.Fprintf(&text, " X-Forwarded-For=%q", line)
	}
	if r.Header["Range"] != nil {
		text.WriteString(" ranged")
	}
	if len(r.Header["Authorization"]) > 1 || len(r.Header["X-Api-Key"]) > 1 {
		text.WriteString(" repeated")
	}
	if r.Header["Expect"] != nil {
		complain("Expect is there")
	}
	if lines := r.Header["Upgrade"]; lines != nil && (len(lines) > 1 || !strings.EqualFold(lines[0], "h2c")) {
		complain("Upgrade is there: %q", lines)
	}
	h.text = text.String()
	return h
}

// checkAgainstNetHTTP checks that in, which Scan has accepted, has the meaning in net/http that h
// states.
func checkAgainstNetHTTP(t *testing.T, in []byte, h *Head) {
	t.Helper()
	source := bytes.NewReader(in)
	buffered := bufio.NewReader(source)
	r, err := http.ReadRequest(buffered)
	if err != nil {
		t.Fatalf("%q: accepted, http.ReadRequest says %v", in, err)
	}
	if left := source.Len() + buffered.Buffered(); left != 0 {
		t.Fatalf("%q: http.ReadRequest leaves %d bytes of the head", in, left)
	}
	want := describe(h)
	if got := hear(r); got.text != want || got.trouble != nil {
		t.Fatalf("%q:\n     Scan %s\nnet/http %s %q", in, want, got.text, got.trouble)
	}

	// The server receives another request after this one.
	const second = "GET /second HTTP/1.1\r\nHost: second\r\n\r\n"
	got, out := serve(append(bytes.Clone(in), second...))
	calls := 1
	if h.KeepAlive {
		calls = 2
	}
	if len(got) != calls {
		t.Fatalf("%q: the server's handler was called %d times, want %d; it sent %q", in, len(got), calls, out)
	}
	if got[0].text != want || got[0].trouble != nil {
		t.Fatalf("%q:\n  Scan %s\nserver %s %q", in, want, got[0].text, got[0].trouble)
	}
	if calls == 2 && got[1].text != `GET /second 1.1 keep Host="second"` {
		t.Fatalf("%q: the server's second request is %s", in, got[1].text)
	}
}

// serve lets a net/http server read in from a connection, and returns the calls of its handler and
// the bytes that it sent.
func serve(in []byte) (calls []heard, out string) {
	c := &memoryConn{in: bytes.NewReader(in), closed: make(chan struct{})}
	server := http.Server{
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			calls = append(calls, hear(r))
		}),
		ErrorLog: log.New(io.Discard, "", 0),
	}
	// Serve returns when the listener reports that there is no second connection, which it does
	// when the first one is closed.
	_ = server.Serve(&oneListener{conn: c})
	return calls, c.out.String()
}

// The comparison with net/http is useful only if it detects differences.
func TestReferenceBites(t *testing.T) {
	const second = "GET /second HTTP/1.1\r\nHost: second\r\n\r\n"
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", []string{`GET / 1.1 keep Host="a"`, `GET /second 1.1 keep Host="second"`}},
		{"GET / HTTP/1.0\r\n\r\n", []string{`GET / 1.0 close`}},
		{"GET / HTTP/1.1\r\n\r\n", nil},
		{"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", nil},
		{"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", nil},
		{"GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n", nil},
		// The second head becomes part of this one, and its first line is not a valid field.
		{"GET / HTTP/1.1\r\nHost: a\r\n", nil},
	} {
		calls, out := serve([]byte(c.in + second))
		var got []string
		for _, call := range calls {
			got = append(got, call.text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: the handler heard %q, want %q; the server sent %q", c.in, got, c.want, out)
		}
	}
	calls, _ := serve([]byte("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\nOrigin: x\r\nOrigin: y\r\n\r\nhi"))
	if len(calls) != 1 || len(calls[0].trouble) != 4 {
		t.Errorf("got %q, want four complaints: length, body, origins, expectation", calls)
	}
}

type oneListener struct{ conn *memoryConn }

func (l *oneListener) Accept() (net.Conn, error) {
	if c := l.conn; !c.given {
		c.given = true
		return c, nil
	}
	<-l.conn.closed
	return nil, net.ErrClosed
}

func (l *oneListener) Close() error   { return nil }
func (l *oneListener) Addr() net.Addr { return &net.TCPAddr{} }

// memoryConn is a connection whose client has already sent everything.
type memoryConn struct {
	in     *bytes.Reader
	out    bytes.Buffer
	given  bool
	closed chan struct{}
	once   sync.Once
}

func (c *memoryConn) Read(p []byte) (int, error)       { return c.in.Read(p) }
func (c *memoryConn) Write(p []byte) (int, error)      { return c.out.Write(p) }
func (c *memoryConn) Close() error                     { c.once.Do(func() { close(c.closed) }); return nil }
func (c *memoryConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *memoryConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *memoryConn) SetDeadline(time.Time) error      { return nil }
func (c *memoryConn) SetReadDeadline(time.Time) error  { return nil }
func (c *memoryConn) SetWriteDeadline(time.Time) error { return nil }
