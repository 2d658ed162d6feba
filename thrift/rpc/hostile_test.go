package rpc_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// For a length that a client claims, nothing is allocated before the bytes have arrived.
func TestClaimedLengthsTakeNoMemory(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(new(calculator)))
	starts := map[string]string{
		"a frame":         "\x00\xff\xff\x00\x80\x01\x00\x01\x00\x00\x00\x04echo\x00\x00\x00\x00\x0b\x00\x01\x00\xff\xf0\x00",
		"a string":        "\x80\x01\x00\x01\x00\x00\x00\x04echo\x00\x00\x00\x00\x0b\x00\x01\x00\xff\xf0\x00",
		"a compact frame": "\x00\xff\xff\x00\x82\x21\x00\x04echo\x18\xff\xff\x03",
		"a header":        "\x00\xff\xff\x00\x10\x00\x00\x01\x00\x00\x00\x01\xff\xff\x00\x00",
	}
	growth := testkit.HeapGrowth(t)
	const each = 100
	for name, start := range starts {
		for range each {
			c, err := net.Dial("tcp", s.Addr().String())
			if err != nil {
				t.Fatal(name, err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, start); err != nil {
				t.Fatal(name, err)
			}
		}
	}
	p := dial(t, s, frame.Format{Transport: frame.Framed})
	p.send("ping", 1, &calc.BasePingArgs{})
	p.reply(1, &calc.BasePingResult{})
	if n, most := growth(), int64(each*len(starts)*32<<10); n > most {
		t.Errorf("%d connections that claim 16 MiB each take %d bytes; want at most %d", each*len(starts), n, most)
	}
}

// The counts that arguments claim are checked against their size.
func TestHostileArguments(t *testing.T) {
	s := serve(t, rpc.ServerConfig{MaxMemory: 1 << 20}, calc.NewCalculatorService(new(calculator)))
	growth := testkit.HeapGrowth(t)
	p := dial(t, s, frame.Format{Transport: frame.Framed})
	for seq, body := range []string{
		"\x0f\x00\x02\x0c\x7f\xff\xff\xff\x00",
		"\x0f\x00\x02\x0c\xff\xff\xff\xff\x00",
		"\x0f\x00\x02\x0c\x00\x00\xff\xf0" + strings.Repeat("\x08\x00\x01\x00\x00\x00\x01\x00", 0xfff0) + "\x00",
		"\x0c\x00\x01\x08\x00\x01\x00\x00",
		strings.Repeat("\x0c\x00\x09", 100) + strings.Repeat("\x00", 101),
	} {
		b := append([]byte{0, 0, 0, 0}, thrift.AppendMessage(nil, "move", thrift.Call, int32(seq))...)
		b = append(b, body...)
		binary.BigEndian.PutUint32(b, uint32(len(b)-4))
		if _, err := p.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, e := p.exception(int32(seq)); e.Kind != thrift.ProtocolError || !strings.Contains(e.Message, "arguments of move") {
			t.Errorf("%.20x: %v", body, e)
		}
	}
	if n := growth(); n > 16<<20 {
		t.Errorf("hostile arguments take %d bytes", n)
	}
}

// Handlers see the certificates of clients.
func TestMutualTLS(t *testing.T) {
	authority := testkit.NewAuthority(t)
	server := authority.Issue(t, &x509.Certificate{DNSNames: []string{"rpc.test"}})
	client := authority.Issue(t, &x509.Certificate{DNSNames: []string{"client.test"}})
	h := new(calculator)
	names := make(chan string, 1)
	h.seen = func(ctx context.Context) {
		p, _ := rpc.PeerOf(ctx)
		names <- p.TLS.PeerCertificates[0].DNSNames[0]
	}
	s := serve(t, rpc.ServerConfig{TLS: &tls.Config{Certificates: []tls.Certificate{server.Certificate}, ClientCAs: authority.Pool, ClientAuth: tls.RequireAndVerifyClientCert}},
		calc.NewCalculatorService(h))
	config := &tls.Config{RootCAs: authority.Pool, ServerName: "rpc.test", Certificates: []tls.Certificate{client.Certificate}}
	eachFormat(t, func(t *testing.T, f frame.Format) {
		c, err := tls.Dial("tcp", s.Addr().String(), config)
		if err != nil {
			t.Fatal(err)
		}
		p := newPeer(t, c, f)
		p.send("ping", 1, &calc.BasePingArgs{})
		if p.reply(1, &calc.BasePingResult{}); <-names != "client.test" {
			t.Error("the handler saw another certificate")
		}
		text := strings.Repeat("x", 1<<20)
		p.send("echo", 2, &calc.CalculatorEchoArgs{Text: text})
		var r calc.CalculatorEchoResult
		if p.reply(2, &r); r.Success.V != text {
			t.Errorf("%d bytes", len(r.Success.V))
		}
	})
	stranger := &tls.Config{RootCAs: authority.Pool, ServerName: "rpc.test"}
	c, err := tls.Dial("tcp", s.Addr().String(), stranger)
	if err == nil {
		defer c.Close()
		c.SetReadDeadline(time.Now().Add(patience))
		if _, err = c.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("a client without a certificate: %v", err)
		}
	}
}

// farListener makes its connections look as if they came from another machine.
type farListener struct{ net.Listener }

type farConn struct{ net.Conn }

func (l farListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return farConn{c}, nil
}

func (farConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// The limit on connections per address is that of the configuration, and does not apply to trusted
// proxies.
func TestServerLimitsConnectionsPerAddress(t *testing.T) {
	authority := testkit.NewAuthority(t)
	server := authority.Issue(t, &x509.Certificate{DNSNames: []string{"rpc.test"}})
	for _, c := range []struct {
		name    string
		proxies []netip.Prefix
		works   bool
	}{
		{"client", nil, false},
		{"other proxy", []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}, false},
		{"trusted proxy", []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			testkit.NoLeaks(t)
			s, err := rpc.NewServer(rpc.ServerConfig{
				MaxPerAddress: 2, TrustedProxies: c.proxies,
				TLS: &tls.Config{Certificates: []tls.Certificate{server.Certificate}},
			}, calc.NewCalculatorService(new(calculator)))
			if err != nil {
				t.Fatal(err)
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Serve(farListener{l}); err != nil {
				t.Fatal(err)
			}
			defer func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				if err := s.Shutdown(ctx); err != nil {
					t.Error(err)
				}
			}()
			works := func() bool {
				conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: authority.Pool, ServerName: "rpc.test"})
				if err != nil {
					return false
				}
				p := newPeer(t, conn, frame.Format{Transport: frame.Framed})
				if _, err := p.Write(p.encode("ping", thrift.Call, 1, &calc.BasePingArgs{})); err != nil {
					return false
				}
				conn.SetReadDeadline(time.Now().Add(patience))
				_, err = conn.Read(make([]byte, 1))
				return err == nil
			}
			if !works() || !works() {
				t.Fatal("the first two connections do not work")
			}
			if got := works(); got != c.works {
				t.Errorf("a third connection works: %v, want %v", got, c.works)
			}
		})
	}
}
