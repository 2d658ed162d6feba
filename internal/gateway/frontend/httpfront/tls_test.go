package httpfront

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// listenTLS serves clear text at the first of the server's addresses and TLS at the returned one.
// change, if not nil, gets the listener below TLS.
func listenTLS(t testing.TB, f *fixture, config Config, change ...func(net.Listener) net.Listener) (s *Server, secure string, trust *tls.Config) {
	t.Helper()
	server, trust := testkit.SelfSigned(t, &x509.Certificate{DNSNames: []string{"example.com"}}).Configs()
	server.NextProtos = []string{"h2", "http/1.1"}
	var listeners []net.Listener
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
	}
	secure = listeners[1].Addr().String()
	for _, wrap := range change {
		listeners[1] = wrap(listeners[1])
	}
	listeners[1] = loop.Secure(listeners[1], server)
	return listen(t, f, config, listeners...), secure, trust
}

// clientOf returns a client of one protocol of HTTP over TLS.
func clientOf(t testing.TB, trust *tls.Config, http2 bool) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: http2, DisableCompression: true}
	if !http2 {
		transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// TestTLS: HTTP/1 and HTTP/2 over TLS, and clear text at another listener, get the same
// answers.
func TestTLS(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		f := newFixture(t, jsonOrigin)
		s, secure, trust := listenTLS(t, f, by.config(Config{}))
		want := askText(t, s, "GET", "/depts/7000")
		_, want, _ = strings.Cut(want, "\r\n\r\n")
		for _, http2 := range []bool{false, true} {
			client := clientOf(t, trust, http2)
			var asking sync.WaitGroup
			for range 8 {
				asking.Go(func() {
					for range 50 {
						answer, err := client.Get("https://" + secure + "/depts/7000")
						if err != nil {
							t.Error(err)
							return
						}
						got, err := io.ReadAll(answer.Body)
						answer.Body.Close()
						if err != nil || string(got) != want || (answer.ProtoMajor == 2) != http2 {
							t.Errorf("got %s, %d bytes, %v, want %d bytes", answer.Proto, len(got), err, len(want))
							return
						}
					}
				})
			}
			asking.Wait()
			answer, err := client.Post("https://"+secure+"/depts/7000", "text/plain", strings.NewReader("body"))
			if err != nil || answer.StatusCode != http.StatusMethodNotAllowed {
				t.Fatalf("POST: got %v, %v, want 405", answer, err)
			}
			answer.Body.Close()
			client.CloseIdleConnections()
		}
		testkit.Eventually(t, patience, func() error {
			if n := s.Connections(); n != 0 {
				return fmt.Errorf("%d connections are open, want 0", n)
			}
			return nil
		})
	})
}

// TestHTTP2Idles: bytes on an HTTP/2 connection between requests do not count as the start of
// a head, and the connection ends after the idle timeout.
func TestHTTP2Idles(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		f := newFixture(t, jsonOrigin)
		_, secure, trust := listenTLS(t, f, by.config(Config{ConnConfig: frontend.ConnConfig{IdleTimeout: 2 * time.Second}, HeaderTimeout: 300 * time.Millisecond}))
		c := dialHTTP2(t, secure, trust)
		for stream := uint32(1); stream <= 3; stream += 2 { // before the first request, and after it
			c.frame(6, 0, 0, make([]byte, 8)) // PING
			time.Sleep(time.Second)           // three times the limit of a head
			c.get(stream, "/depts/1500")
			if !c.awaitEnd(stream) {
				t.Fatalf("before stream %d the connection was closed after the time for a head", stream)
			}
		}
		start := time.Now()
		if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
		if took := time.Since(start); took < time.Second {
			t.Errorf("the idle connection was closed after %v, want 2s", took)
		}
	})
}

// TestHTTP2Drains: a request that loads is answered while the server shuts down, and the
// client is told that the connection ends.
func TestHTTP2Drains(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		loading, goOn := make(chan struct{}), make(chan struct{})
		f := newFixture(t, func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
			close(loading)
			<-goOn
			return jsonOrigin(ctx, r, id)
		})
		s, secure, trust := listenTLS(t, f, by.config(Config{}))
		client := clientOf(t, trust, true)
		done := make(chan error, 1)
		go func() { // ends with the answer
			answer, err := client.Get("https://" + secure + "/depts/1500")
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
			done <- err
		}()
		<-loading
		down := make(chan error, 1)
		go func() { // ends with Shutdown
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			down <- s.Shutdown(ctx)
		}()
		time.Sleep(100 * time.Millisecond)
		close(goOn)
		if err := <-done; err != nil {
			t.Errorf("the request in flight: %v, want an answer", err)
		}
		if err := <-down; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

// TestTLSLimits: connections over TLS count toward the number of connections, and those that
// never finish a handshake are closed to make room for others and end in time.
func TestTLSLimits(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		f := newFixture(t, jsonOrigin)
		s, secure, trust := listenTLS(t, f, by.config(Config{ConnConfig: frontend.ConnConfig{MaxConnections: 20}, HeaderTimeout: 2 * time.Second}))
		for range 40 { // silent
			c, err := net.Dial("tcp", secure)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		client := clientOf(t, trust, true)
		answer, err := client.Get("https://" + secure + "/depts/1500")
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("next to silent connections: %v, %v, want 200", answer, err)
		}
		answer.Body.Close()
		if n := s.Connections(); n > 20 {
			t.Errorf("%d connections are open, want at most 20", n)
		}
		if a := askOnce(t, s, "GET", "/depts/1500"); a.StatusCode != http.StatusOK {
			t.Errorf("clear text next to TLS: %d, want 200", a.StatusCode)
		}
	})
}

// TestRapidReset: a client that opens streams and resets them immediately cannot make the
// gateway do more than it may have in flight (CVE-2023-44487).
func TestRapidReset(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		goOn := make(chan struct{})
		f := newFixture(t, func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
			if len(id) > 4 {
				<-goOn
			}
			return jsonOrigin(ctx, r, id)
		})
		defer close(goOn)
		s, secure, trust := listenTLS(t, f, by.config(Config{}))
		askOnce(t, s, "GET", "/depts/1500") // in memory from here on
		c := dialHTTP2(t, secure, trust)
		before := runtime.NumGoroutine()
		go io.Copy(io.Discard, c) // ends with the connection
		for i := range 20_000 {
			if c.get(uint32(2*i+1), fmt.Sprintf("/depts/%d", 10_000+i)) != nil || c.frame(3, 0, uint32(2*i+1), make([]byte, 4)) != nil {
				break // it was closed, which is right
			}
		}
		if n := runtime.NumGoroutine() - before; n > 4*streamsAtOnce {
			t.Errorf("%d goroutines more than before, want at most %d", n, 4*streamsAtOnce)
		}
		if a := askOnce(t, s, "GET", "/depts/1500"); a.StatusCode != http.StatusOK {
			t.Errorf("another client: %d, want 200", a.StatusCode)
		}
	})
}

// TestEndlessContinuation: fields that never end are cut at the limit of a head
// (CVE-2023-45288).
func TestEndlessContinuation(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		f := newFixture(t, jsonOrigin)
		s, secure, trust := listenTLS(t, f, by.config(Config{MaxHeader: 8 << 10}))
		c := dialHTTP2(t, secure, trust)
		go io.Copy(io.Discard, c) // ends with the connection
		c.frame(1, 0, 1, headOf("/depts/1500"))
		field := append([]byte{0, 1, 'x', 100}, strings.Repeat("y", 100)...)
		block := []byte(strings.Repeat(string(field), 100))
		sent := 0
		for ; sent < 64<<20; sent += len(block) {
			if c.frame(9, 0, 1, block) != nil {
				break
			}
		}
		if sent >= 64<<20 {
			t.Error("64 MiB of fields were accepted, want the connection closed")
		}
		if a := askOnce(t, s, "GET", "/depts/1500"); a.StatusCode != http.StatusOK {
			t.Errorf("another client: %d, want 200", a.StatusCode)
		}
	})
}

// TestStalledStreams: streams without a window for their answers are aborted.
func TestStalledStreams(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		f := newFixture(t, jsonOrigin)
		s, secure, trust := listenTLS(t, f, by.config(Config{ConnConfig: frontend.ConnConfig{RequestTimeout: 500 * time.Millisecond, StallTimeout: 500 * time.Millisecond}}))
		c := dialHTTP2(t, secure, trust)
		c.frame(4, 0, 0, []byte{0, 4, 0, 0, 0, 0}) // SETTINGS_INITIAL_WINDOW_SIZE 0
		go io.Copy(io.Discard, c)                  // ends with the connection
		for i := range streamsAtOnce {
			c.get(uint32(2*i+1), "/depts/1500")
		}
		testkit.Eventually(t, patience, func() error {
			if n := s.handler.streams.Load(); n == 0 {
				return errors.New("no request has come")
			}
			return nil
		})
		testkit.Eventually(t, patience, func() error {
			if n := s.handler.streams.Load(); n > 0 {
				return fmt.Errorf("%d streams are kept, want none", n)
			}
			return nil
		})
	})
}

// TestStreamsAreBounded: beyond the bound of all connections an HTTP/2 request is refused,
// and a later one is answered.
func TestStreamsAreBounded(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		s, secure, trust := listenTLS(t, newFixture(t, jsonOrigin), by.config(Config{}))
		client := clientOf(t, trust, true)
		ask := func(want int) {
			t.Helper()
			answer, err := client.Get("https://" + secure + "/depts/1500")
			if err != nil || answer.StatusCode != want {
				t.Fatalf("got %v, %v, want %d", answer, err, want)
			}
			answer.Body.Close()
		}
		s.handler.streams.Add(maxStreams)
		ask(http.StatusServiceUnavailable)
		s.handler.streams.Add(-maxStreams)
		ask(http.StatusOK)
		testkit.Eventually(t, patience, func() error {
			if n := s.handler.streams.Load(); n != 0 {
				return fmt.Errorf("%d streams are counted after all, want 0", n)
			}
			return nil
		})
	})
}

// http2Conn sends HTTP/2 frame by frame (RFC 9113).
type http2Conn struct {
	net.Conn
	r *bufio.Reader
}

func dialHTTP2(t testing.TB, addr string, trust *tls.Config) *http2Conn {
	t.Helper()
	trust = trust.Clone()
	trust.NextProtos = []string{"h2"}
	c, err := tls.Dial("tcp", addr, trust)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	h := &http2Conn{Conn: c, r: bufio.NewReader(c)}
	io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	h.frame(4, 0, 0, nil)
	return h
}

func (c *http2Conn) frame(kind, flags byte, stream uint32, payload []byte) error {
	b := make([]byte, 9, 9+len(payload))
	b[0], b[1], b[2], b[3], b[4] = byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags
	binary.BigEndian.PutUint32(b[5:], stream)
	_, err := c.Write(append(b, payload...))
	return err
}

// headOf returns the fields of a GET (RFC 7541): indexed ones, and two literals.
func headOf(path string) []byte {
	b := append([]byte{0x82, 0x87, 0x04, byte(len(path))}, path...)
	return append(append(b, 0x01, 11), "example.com"...)
}

// get requests a path in a stream.
func (c *http2Conn) get(stream uint32, path string) error {
	return c.frame(1, 0x5, stream, headOf(path)) // END_STREAM, END_HEADERS
}

// awaitEnd reads until a stream, or any if it is 0, has ended. It returns false if
// the connection ended.
func (c *http2Conn) awaitEnd(stream uint32) bool {
	return c.await(func(kind, flags byte, id uint32) bool {
		return kind <= 1 && flags&1 != 0 && (stream == 0 || id == stream)
	})
}

// awaitFrame reads until a frame of that kind arrives. It returns false if the connection
// ended.
func (c *http2Conn) awaitFrame(kind byte) bool {
	return c.await(func(came, _ byte, _ uint32) bool { return came == kind })
}

func (c *http2Conn) await(it func(kind, flags byte, stream uint32) bool) bool {
	for {
		var head [9]byte
		if _, err := io.ReadFull(c.r, head[:]); err != nil {
			return false
		}
		length := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, c.r, length); err != nil {
			return false
		}
		if it(head[3], head[4], binary.BigEndian.Uint32(head[5:])) {
			return true
		}
	}
}
