package rpc_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// eachKind runs a test with a server that answers in any order, and with one that answers in order.
func eachKind(t *testing.T, test func(t *testing.T, transport rpc.Transport)) {
	for _, transport := range []rpc.Transport{rpc.TTHeader, rpc.Framed} {
		t.Run(transport.String(), func(t *testing.T) { test(t, transport) })
	}
}

// manyCalls makes small and large calls from several goroutines.
func manyCalls(t *testing.T, client *rpc.Client) {
	t.Helper()
	c := calc.NewCalculatorClient(client)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			for n := range 50 {
				text := fmt.Sprint(i, " ", n, strings.Repeat("x", n*n))
				if n == 49 {
					text = strings.Repeat(text, 100)
				}
				if got, err := c.Echo(t.Context(), text); got != text || err != nil {
					t.Errorf("sent %d bytes, got %d, %v", len(text), len(got), err)
					return
				}
			}
		})
	}
	all.Wait()
}

// A client presents its certificate, and trusts only the server named in its configuration.
func TestClientTLS(t *testing.T) {
	authority := testkit.NewAuthority(t)
	issue := func(name string) tls.Certificate {
		return authority.Issue(t, &x509.Certificate{DNSNames: []string{name}}).Certificate
	}
	seen := make(chan string, 1)
	h := &calculator{seen: func(ctx context.Context) {
		p, _ := rpc.PeerOf(ctx)
		seen <- p.TLS.PeerCertificates[0].DNSNames[0]
	}}
	s := serve(t, rpc.ServerConfig{TLS: &tls.Config{Certificates: []tls.Certificate{issue("rpc.test")}, ClientCAs: authority.Pool, ClientAuth: tls.RequireAndVerifyClientCert}},
		calc.NewCalculatorService(h))
	eachKind(t, func(t *testing.T, transport rpc.Transport) {
		config := rpc.ClientConfig{Addr: s.Addr().String(), Transport: transport,
			TLS: &tls.Config{RootCAs: authority.Pool, ServerName: "rpc.test", Certificates: []tls.Certificate{issue("client.test")}}}
		client := connect(t, config)
		if err := calc.NewCalculatorClient(client).Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if name := <-seen; name != "client.test" {
			t.Errorf("the handler saw %q", name)
		}
		manyCalls(t, client)
		for _, bad := range []struct {
			what, text string
			tls        *tls.Config
		}{
			{"another name", "rpc.test", &tls.Config{RootCAs: authority.Pool, ServerName: "other.test"}},
			{"another authority", "unknown authority", &tls.Config{RootCAs: testkit.NewAuthority(t).Pool, ServerName: "rpc.test"}},
			{"no client certificate", "certificate required", &tls.Config{RootCAs: authority.Pool, ServerName: "rpc.test"}},
			{"no TLS", "", nil},
		} {
			config.TLS, config.Timeout, config.DialTimeout, config.Retries = bad.tls, time.Second, time.Second, -1
			err := calc.NewCalculatorClient(connect(t, config)).Ping(t.Context())
			outcome := slipstream.OutcomeOf(err)
			if err == nil || !strings.Contains(err.Error(), bad.text) {
				t.Errorf("%s: %v", bad.what, err)
			}
			if wrong := bad.what == "another name" || bad.what == "another authority"; wrong && outcome != slipstream.NotSent {
				t.Errorf("%s: outcome %v, %v", bad.what, outcome, err)
			}
		}
	})
}

// A client of a Unix socket waits for the next server when the socket is removed.
func TestClientUnixSocket(t *testing.T) {
	eachKind(t, func(t *testing.T, transport rpc.Transport) {
		testkit.NoLeaks(t)
		path := filepath.Join(t.TempDir(), "s")
		listen := func() *rpc.Server {
			s, err := rpc.NewServer(rpc.ServerConfig{}, calc.NewCalculatorService(new(calculator)))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Listen("unix", path); err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := listen()
		client := connect(t, rpc.ClientConfig{Addr: path, Transport: transport, MaxBackoff: 20 * time.Millisecond})
		manyCalls(t, client)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		c := calc.NewCalculatorClient(client)
		if _, err := c.Add(short, 1, 2); slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("without a server: %v", err)
		}
		s = listen()
		if sum, err := c.Add(t.Context(), 1, 2); sum != 3 || err != nil {
			t.Errorf("the next server: %d, %v", sum, err)
		}
		client.Close()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}
