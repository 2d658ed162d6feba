package gateway_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	bigint "math/big"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// rotated is a client that sends requests without a pause while certificates
// change.
type rotated struct {
	name   string
	serial atomic.Int64 // of the server's certificate, seen last
	asked  atomic.Int64
	// ask sends one request and returns the serial number from the handshake.
	ask func() (int64, error)
	// leave closes the kept connection, so that the next request does another handshake. If nil,
	// each request has its own connection.
	leave func()
}

func (i *identified) rotatedHTTP(name string, http2, keeps bool, trust *tls.Config) *rotated {
	transport := &http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: http2, DisableKeepAlives: !keeps && !http2}
	i.t.Cleanup(transport.CloseIdleConnections)
	c := &http.Client{Transport: transport, Timeout: 2 * patience}
	r := &rotated{name: name, ask: func() (int64, error) {
		answer, err := c.Get("https://" + i.http + "/web/1")
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK || (answer.ProtoMajor == 2) != http2 {
			return 0, fmt.Errorf("%s %s, %w", answer.Proto, answer.Status, err)
		}
		if !keeps {
			transport.CloseIdleConnections()
		}
		return answer.TLS.PeerCertificates[0].SerialNumber.Int64(), nil
	}}
	if keeps {
		r.leave = transport.CloseIdleConnections
	}
	return r
}

func (i *identified) rotatedRedis(name string, keeps bool, trust *tls.Config) *rotated {
	var kept *tls.Conn
	end := func() {
		if kept != nil {
			kept.Close()
			kept = nil
		}
	}
	i.t.Cleanup(end)
	r := &rotated{name: name, ask: func() (int64, error) {
		if kept == nil {
			var err error
			if kept, err = tls.Dial("tcp", i.redis, trust.Clone()); err != nil {
				return 0, err
			}
		}
		serial := kept.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
		if _, err := io.WriteString(kept, "STRLEN web:1\r\n"); err != nil {
			return 0, err
		}
		b := make([]byte, 64)
		n, err := kept.Read(b)
		if err != nil || !strings.HasPrefix(string(b[:n]), ":") || !strings.HasSuffix(string(b[:n]), "\r\n") {
			return 0, fmt.Errorf("%q, %w", b[:n], err)
		}
		if !keeps {
			end()
		}
		return serial, nil
	}}
	if keeps {
		r.leave = end
	}
	return r
}

// TestCertificateChangesUnderLoad: no request fails while the files of a certificate are
// replaced, and each client sees the new one with its next connection.
func TestCertificateChangesUnderLoad(t *testing.T) {
	testkit.NoLeaks(t)
	i := serveIdentified(t, nil)
	trust := i.trusting(i.authority.Issue(t, web(t)))
	clients := []*rotated{
		i.rotatedHTTP("HTTP/1.1, reconnecting", false, false, trust), i.rotatedHTTP("HTTP/2, reconnecting", true, false, trust), i.rotatedRedis("Redis, reconnecting", false, trust),
		i.rotatedHTTP("HTTP/1.1, kept", false, true, trust), i.rotatedHTTP("HTTP/2, kept", true, true, trust), i.rotatedRedis("Redis, kept", true, trust),
	}
	done := make(chan struct{})
	var rotations atomic.Int64 // how often kept connections have been left
	var asking sync.WaitGroup
	for _, c := range clients {
		asking.Go(func() { // ends with done
			left := int64(0)
			for {
				select {
				case <-done:
					return
				default:
				}
				serial, err := c.ask()
				if err != nil {
					t.Errorf("%s, after %d requests: %v", c.name, c.asked.Load(), err)
					return
				}
				c.asked.Add(1)
				c.serial.Store(serial)
				if n := rotations.Load(); c.leave != nil && n != left {
					left = n
					c.leave()
				}
			}
		})
	}
	defer asking.Wait()
	defer close(done)
	for serial := int64(100); serial < 102; serial++ {
		i.authority.Issue(t, &x509.Certificate{SerialNumber: bigint.NewInt(serial), DNSNames: []string{"localhost"}}).Write(t, i.dir, "server")
		wait := func(kept bool) {
			t.Helper()
			testkit.Eventually(t, 3*patience, func() error { // files are checked every five seconds
				var errs []error
				for _, c := range clients {
					if got := c.serial.Load(); got != serial && (c.leave != nil) == kept {
						errs = append(errs, fmt.Errorf("%s has seen certificate %d after %d requests, want %d", c.name, got, c.asked.Load(), serial))
					}
				}
				if t.Failed() {
					return nil
				}
				return errors.Join(errs...)
			})
		}
		wait(false)
		rotations.Add(1)
		wait(true)
	}
}
