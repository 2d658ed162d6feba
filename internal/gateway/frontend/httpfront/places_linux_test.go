package httpfront

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A connection may be silent for IdleTimeout before its first request, which is more than the
// time to send a head. The same holds after a TLS handshake.
func TestFirstRequestMayBeLate(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		f := newFixture(t, jsonOrigin)
		const head = 200 * time.Millisecond
		s, secure, trust := listenTLS(t, f, by.config(Config{ConnConfig: frontend.ConnConfig{IdleTimeout: time.Minute}, HeaderTimeout: head}))
		trust.NextProtos = []string{"http/1.1"}
		var conns []net.Conn
		for _, addr := range []string{s.Addr().String(), secure} {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if addr == secure {
				x := tls.Client(c, trust)
				if err := x.HandshakeContext(t.Context()); err != nil {
					t.Fatal(err)
				}
				c = x
			}
			conns = append(conns, c)
		}
		ends := func(addr, text string) {
			t.Helper()
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, text); err != nil {
				t.Fatal(err)
			}
			c.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("a connection that has sent %q is not closed", text)
			}
		}
		ends(s.Addr().String(), "GET /depts/1500 HT")
		ends(secure, "")
		ends(secure, "\x16\x03\x01")
		time.Sleep(5 * head) // the others are older than that limit as well
		for _, c := range conns {
			mustServe(t, c)
		}
	})
}

// A connection that never sends a request is closed after IdleTimeout.
func TestNoRequestAtAll(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		s := listen(t, newFixture(t, jsonOrigin), by.config(Config{ConnConfig: frontend.ConnConfig{IdleTimeout: 200 * time.Millisecond}}))
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetReadDeadline(time.Now().Add(patience))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a silent connection: %v, want its end", err)
		}
		c.Close()
		testkit.Eventually(t, patience, func() error {
			if st, _ := s.EngineStats(); st.Closes["unproven"] != 1 {
				return fmt.Errorf("closed by reason: %v, want one as unproven", st.Closes)
			}
			return nil
		})
	})
}

// With only net/http the limit on connections of an address also holds. That of event loops is
// tested where the address of a socket can be faked.
func TestConnectionsPerAddressOverNetHTTP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := listen(t, newFixture(t, jsonOrigin), Config{ConnConfig: frontend.ConnConfig{MaxPerAddress: 2}, Engine: EngineNetHTTP}, farListener{l})
	first, second := dial(t, s), dial(t, s)
	defer second.Close()
	mustServe(t, first)
	mustServe(t, second)
	third := dial(t, s)
	third.SetReadDeadline(time.Now().Add(patience))
	if _, err := third.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a third connection of the address: %v, want its end", err)
	}
	third.Close()
	if st, looped := s.EngineStats(); looped || st.Backend != "net/http" || st.Closes["address"] != 1 {
		t.Errorf("the figures say %+v, want one closed for its address", st)
	}
	first.Close()
	testkit.Eventually(t, patience, func() error { // once the end of the first has been seen
		c := dial(t, s)
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		io.WriteString(c, requestText("GET", "/depts/1500"))
		_, err := readAnswer(bufio.NewReader(c), "GET")
		return err
	})
	mustServe(t, second)
}

// Connections of a trusted proxy are counted one by one when slots are freed, so those of an
// address with many are closed before them.
func TestRoomIsNotMadeByProxies(t *testing.T) {
	const places, proxied, crowd = 24, 12, 12
	eachServer(t, func(t *testing.T, by way) {
		s := listen(t, newFixture(t, jsonOrigin), by.config(Config{
			ConnConfig: frontend.ConnConfig{MaxConnections: places, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.77/32")}},
		}))
		connect := func(ip string) net.Conn {
			t.Helper()
			c := dialFrom(t, ip, s.Addr().String())
			t.Cleanup(func() { c.Close() })
			mustServe(t, c)
			return c
		}
		var stay []net.Conn
		for range proxied {
			stay = append(stay, connect("127.0.0.77"))
		}
		for range crowd {
			connect("127.0.0.66")
		}
		for i := range 4 {
			stay = append(stay, connect(fmt.Sprintf("127.0.3.%d", i+1)))
		}
		for _, c := range stay {
			mustServe(t, c)
		}
		testkit.Eventually(t, patience, func() error { // on a slow machine some are accepted later
			if st, _ := s.EngineStats(); st.Closes["room-address"] < 4 {
				return fmt.Errorf("closed by reason: %v, want 4 or more of the address with most", st.Closes)
			}
			return nil
		})
	})
}

// One address has all slots, and each of its connections leaves an answer unread. New clients are
// served, and idle ones stay.
func TestRoomIsMadeByThoseThatLeaveBytes(t *testing.T) {
	const places, idle = 40, 5
	eachServer(t, func(t *testing.T, by way) {
		s := listen(t, newFixture(t, jsonOrigin), by.config(Config{ConnConfig: frontend.ConnConfig{MaxConnections: places, Large: loop.NewLargeBudget(1 << 40), StallTimeout: time.Hour}}), smallListeners(t)...)
		connect := func(ip string) net.Conn {
			t.Helper()
			c := dialFrom(t, ip, s.Addr().String())
			t.Cleanup(func() { c.Close() })
			return c
		}
		var honest []net.Conn
		for i := range idle {
			c := connect(fmt.Sprintf("127.0.1.%d", i+1))
			mustServe(t, c)
			honest = append(honest, c)
		}
		time.Sleep(1100 * time.Millisecond) // idle ones may make room from then on
		for range places {
			if _, err := io.WriteString(connect("127.0.0.66"), requestText("GET", "/depts/3000000")); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 10 {
			c := connect(fmt.Sprintf("127.0.3.%d", i+1))
			mustServe(t, c)
			honest = append(honest, c)
		}
		for _, c := range honest {
			mustServe(t, c)
		}
		// On a slow machine some of the crowd make room before their request is answered, or are accepted later.
		testkit.Eventually(t, patience, func() error {
			st, _ := s.EngineStats()
			if n := st.Closes["room-crowd"]; n == 0 || n+st.Closes["room-unproven"]+st.Closes["room-address"] < 10 {
				return fmt.Errorf("closed by reason: %v, want 10 or more of the address with most, some of them in use", st.Closes)
			}
			return nil
		})
	})
}
