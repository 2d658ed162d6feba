package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestHostileHandshakes: connections that do not finish their handshake are not clients yet. There
// are no more of them than slots, they end in time, and a client that connects meanwhile is served.
func TestHostileHandshakes(t *testing.T) {
	testkit.NoLeaks(t)
	const places, hostile = 300, 700
	i := serveIdentified(t, func(c *config.Config) {
		c.HTTP.Limits.Connections, c.HTTP.Limits.HeaderTimeout = places, 3*time.Second
		c.Redis.Limits.Connections, c.Redis.Limits.LoginTimeout = places, 3*time.Second
	})
	hello := testkit.ClientHello(t)
	trust := i.trusting(i.authority.Issue(t, web(t)))
	var closing sync.WaitGroup
	defer closing.Wait()
	for _, target := range []string{i.http, i.redis} {
		for n := range hostile {
			c, err := net.Dial("tcp", target)
			if err != nil {
				t.Fatal(err)
			}
			closing.Go(func() { // ends when the gateway closes the connection
				defer c.Close()
				switch {
				case n%100 == 0: // a byte now and then
					for at := 0; ; at++ {
						if _, err := c.Write(hello[at%len(hello) : at%len(hello)+1]); err != nil {
							return
						}
						c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
						if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
							return
						}
						if at == 600 {
							t.Error("a handshake that sends a byte now and then is not cut off")
							return
						}
					}
				case n%3 == 0: // silent
				case n%3 == 1:
					_, _ = c.Write(hello[:len(hello)/2]) // fails if the gateway was faster
				default:
					_, _ = c.Write(hello)
				}
				c.SetReadDeadline(time.Now().Add(6 * patience))
				if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("a handshake that makes no progress is not cut off")
				}
			})
		}
	}
	for _, http2 := range []bool{false, true} {
		if status, text := i.ask(i.client(trust.Clone(), http2), "/web/1", "", false); status != http.StatusOK {
			t.Errorf("a client at the same time: %d %s", status, text)
		}
	}
	c := i.dialRedis(trust)
	if got := c.do("STRLEN web:1"); !strings.HasPrefix(got, ":") {
		t.Errorf("a client at the same time: %s", got)
	}
	c.Close()
	if most := i.gateway.ConnectionsOf(); most[0] > places || most[1] > places {
		t.Errorf("%v connections, want at most %d each", most, places)
	}
}

// TestWhatIsNoHandshake: other protocols, endless messages and other versions are refused on each
// port, and their cost does not last.
func TestWhatIsNoHandshake(t *testing.T) {
	testkit.NoLeaks(t)
	i := serveIdentified(t, nil)
	record := func(first []byte, size int) []byte { // of a handshake, in records of 16 KiB
		b := append([]byte{22, 3, 1, 0x40, 0}, first...)
		b = append(b, make([]byte, 16384-len(first))...)
		for len(b) < size {
			b = append(append(b, 22, 3, 1, 0x40, 0), make([]byte, 16384)...)
		}
		return b
	}
	for name, bytesOf := range map[string][]byte{
		"HTTP/1.1":              []byte("GET /everybody/1 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
		"HTTP/2":                []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
		"Redis":                 []byte("*1\r\n$4\r\nPING\r\n"),
		"SSL 2":                 {0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10},
		"zeros":                 make([]byte, 1<<10),
		"an endless hello":      record([]byte{1, 0xff, 0xff, 0xff, 3, 3}, 1<<20),
		"an endless chain":      record([]byte{11, 0xff, 0xff, 0xff, 3, 3}, 1<<20),
		"a record of 65,535":    append([]byte{22, 3, 1, 0xff, 0xff}, make([]byte, 65535)...),
		"a hello of TLS 1.0":    bytes.Replace(record([]byte{1, 0, 0, 42, 3, 1}, 0), []byte{22, 3, 1, 0x40, 0}, []byte{22, 3, 1, 0, 46}, 1)[:51],
		"renegotiation, before": {22, 3, 3, 0, 4, 0, 0, 0, 0},
	} {
		for _, target := range []string{i.http, i.redis} {
			c, err := net.Dial("tcp", target)
			if err != nil {
				t.Fatal(err)
			}
			c.SetDeadline(time.Now().Add(2 * patience))
			_, _ = c.Write(bytesOf) // fails if the gateway has closed the connection
			if text, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) || bytes.Contains(text, []byte("dept ")) || bytes.Contains(text, []byte("PONG")) {
				t.Errorf("%s: %q, %v, want the connection closed", name, text, err)
			}
			c.Close()
		}
	}
	trust := i.trusting(i.authority.Issue(t, web(t)))
	if status, _ := i.ask(i.client(trust, true), "/web/1", "", false); status != http.StatusOK {
		t.Errorf("afterwards: %d", status)
	}
	i.client(trust, true).CloseIdleConnections()
	testkit.Eventually(t, patience, func() error {
		if n := i.gateway.ConnectionsOf(); n[1] != 0 {
			return fmt.Errorf("%d connections for Redis are open", n[1])
		}
		return nil
	})
}
