package loop_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// loopback is the certificate of the tests' servers.
var loopback struct {
	once sync.Once
	*testkit.Issued
}

// tlsConfigs returns the two sides of a certificate for 127.0.0.1, which is always the same.
func tlsConfigs(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	loopback.once.Do(func() {
		loopback.Issued = testkit.SelfSigned(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	})
	return loopback.Configs()
}

// TestTLSBesideClearText: a server serves both at once.
func TestTLSBesideClearText(t *testing.T) {
	for _, b := range []loop.Backend{loop.Auto, loop.Goroutines} {
		t.Run(b.String(), func(t *testing.T) {
			y := newToy(t, mode{"tls", b, true}, nil)
			secure, err := loop.Listen("tcp", "127.0.0.1:0", 1)
			if err != nil {
				t.Fatal(err)
			}
			clear, err := loop.Listen("tcp", "127.0.0.1:0", 2)
			if err != nil {
				t.Fatal(err)
			}
			y.addr = secure[0].Addr().String()
			server, _ := tlsConfigs(t)
			if err := y.server.Serve(append(clear, loop.Secure(secure[0], server))...); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(y.stop)
			one := y.dial()
			one.send("in secret\nsecure\n")
			one.want("in secret\ntrue\n")
			raw, err := net.Dial("tcp", clear[0].Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close()
			y.mode.tls = false
			other := y.client(raw)
			other.send("in the clear\nsecure\n")
			other.want("in the clear\nfalse\n")
			if n := y.server.Stats().Connections; n != 2 {
				t.Errorf("%d connections, want 2", n)
			}
			select {
			case err := <-y.shutdown(10 * time.Second):
				t.Fatalf("Shutdown returned %v before its connections", err)
			default:
			}
			one.Close()
			other.Close()
		})
	}
}

// A peer that does not complete its handshake is disconnected like one that does not complete a
// request.
func TestTLSHandshakeIsBounded(t *testing.T) {
	y := startToy(t, mode{"tls", loop.Auto, true}, func(c *loop.Config) { c.PartialTimeout = 500 * time.Millisecond })
	nc, err := net.Dial("tcp", y.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := y.ended(); !isReason(err, loop.ErrPartial) {
		t.Errorf("silent handshake: %v, want %v", err, loop.ErrPartial)
	}
	other, err := net.Dial("tcp", y.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := y.ended(); !isReason(err, loop.ErrReset) {
		t.Errorf("no handshake at all: %v, want %v", err, loop.ErrReset)
	}
	// A peer that has completed its handshake may be silent for longer.
	c := y.dial()
	if err := c.Conn.(*tls.Conn).Handshake(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	c.send("still there\n")
	c.want("still there\n")
}

// TestSlowHandshakes: peers that stop in the middle of a handshake do not block other handshakes,
// and an endless chain of certificates is not read completely.
func TestSlowHandshakes(t *testing.T) {
	for _, b := range []loop.Backend{loop.Auto, loop.Goroutines} {
		t.Run(b.String(), func(t *testing.T) {
			y := newToy(t, mode{"tls", b, true}, nil)
			all, err := loop.Listen("tcp", "127.0.0.1:0", 1)
			if err != nil {
				t.Fatal(err)
			}
			y.addr = all[0].Addr().String()
			asking, long := tlsConfigs(t)
			asking.ClientAuth = tls.RequestClientCert
			if err := y.server.Serve(loop.Secure(all[0], asking)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(y.stop)
			hello := testkit.ClientHello(t)
			var slow []net.Conn
			for range 64 {
				c, err := net.Dial("tcp", y.addr)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if _, err := c.Write(hello[:len(hello)/2]); err != nil {
					t.Fatal(err)
				}
				slow = append(slow, c)
			}
			one := y.dial()
			one.send("beside them\n")
			one.want("beside them\n")
			for _, c := range slow {
				c.Close()
			}
			for range slow {
				y.ended()
			}
			pair := asking.Certificates[0]
			chain := tls.Certificate{Certificate: [][]byte{pair.Certificate[0]}, PrivateKey: pair.PrivateKey}
			for size := 0; size < 200<<10; size += len(pair.Certificate[0]) { // package tls takes 256 KiB
				chain.Certificate = append(chain.Certificate, pair.Certificate[0])
			}
			long.Certificates = []tls.Certificate{chain}
			raw, err := net.Dial("tcp", y.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close()
			c := tls.Client(raw, long)
			c.SetDeadline(time.Now().Add(10 * time.Second))
			_ = c.Handshake() // in TLS 1.3, it returns when the chain has been sent
			if err := y.ended(); !isReason(err, loop.ErrReset) || !strings.Contains(err.Error(), "64 KiB") {
				t.Errorf("a chain of 200 KiB: %v, want the error of the limit on handshakes", err)
			}
		})
	}
}
