package httpfront

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// A way is one of the ways in which requests reach the service.
type way struct {
	name    string
	handler bool // called without a socket; the others are servers
	engine  Engine
	backend loop.Backend
}

// ways are all of them. What a client sees is the same.
var ways = []way{
	{name: "handler", handler: true},
	{name: "nethttp", engine: EngineNetHTTP},
	{name: "epoll", backend: loop.Epoll},
	{name: "goroutines", backend: loop.Goroutines},
}

// eachWay runs a test once for each way.
func eachWay(t *testing.T, test func(*testing.T, way)) { runWays(t, ways, test) }

// eachServer skips the way without a server.
func eachServer(t *testing.T, test func(*testing.T, way)) { runWays(t, ways[1:], test) }

// eachLoop is for behavior of servers with an event loop.
func eachLoop(t *testing.T, test func(*testing.T, way)) { runWays(t, ways[2:], test) }

func runWays(t *testing.T, list []way, test func(*testing.T, way)) {
	t.Helper()
	for _, by := range list {
		t.Run(by.name, func(t *testing.T) { test(t, by) })
	}
}

// config returns a configuration with the server of this way.
func (by way) config(config Config) Config {
	config.Engine, config.Backend = by.engine, by.backend
	return config
}

// over makes do send its requests to a server of this way.
func (f *fixture) over(t testing.TB, by way) *fixture {
	t.Helper()
	if !by.handler {
		s := listen(t, f, by.config(Config{ConnConfig: frontend.ConnConfig{RequestTimeout: patience}}))
		f.ask = func(method, target string, fields ...string) *http.Response {
			return askOnce(t, s, method, target, fields...)
		}
	}
	return f
}

// askOnce sends one request, unchanged, on a new connection.
func askOnce(t testing.TB, s *Server, method, target string, fields ...string) *http.Response {
	t.Helper()
	c := dial(t, s)
	defer c.Close()
	io.WriteString(c, requestText(method, target, fields...))
	answer, err := readAnswer(bufio.NewReader(c), method)
	if err != nil {
		t.Fatalf("%s %.80s: %v", method, target, err)
	}
	return answer
}

// askText returns the bytes of an answer.
func askText(t *testing.T, s *Server, method, target string) string {
	t.Helper()
	c := dial(t, s)
	defer c.Close()
	io.WriteString(c, strings.Replace(requestText(method, target), "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
	all, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(all), "Connection: close\r\n", "", 1)
}

// requestText is a request in HTTP/1.1; fields are alternating names and values.
func requestText(method, target string, fields ...string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s HTTP/1.1\r\nHost: h\r\n", method, target)
	for i := 0; i < len(fields); i += 2 {
		fmt.Fprintf(&text, "%s: %s\r\n", fields[i], fields[i+1])
	}
	text.WriteString("\r\n")
	return text.String()
}

// readAnswer reads one answer to its end. The body is then in memory.
func readAnswer(r *bufio.Reader, method string) (*http.Response, error) {
	answer, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("the body of a %s: %w", answer.Status, err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// patience is how long a test waits for what should happen immediately.
const patience = time.Minute

func dial(t testing.TB, s *Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	return c
}
