package httpload

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A response that arrives while no request is in flight is counted at the end of the window. At its
// start it is not counted, and only the connection is lost. A notification that a connection is
// closed is not a response.
//
// mutant: httpload-late-duplicate-unseen
func TestDuplicatesThatComeLate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system cannot detect bytes that wait at a connection")
	}
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	authority := testkit.NewAuthority(t)
	secure, _ := authority.Issue(t, &x509.Certificate{DNSNames: []string{"a.example"}}).Configs()
	for name, tc := range map[string]struct {
		scheme, late string
		duplicates   uint64
	}{
		"response":           {"http", ok, 1},
		"something":          {"http", "x", 1},
		"notice":             {"http", "HTTP/1.0 408 Request Time-out\r\n\r\n", 0},
		"response over TLS":  {"https", ok, 1},
		"end of TLS":         {"https", "", 0},
		"notice over TLS":    {"https", "HTTP/1.1 408 Request Timeout\r\n\r\n", 0},
		"two responses, TLS": {"https", ok + ok, 1},
	} {
		t.Run(name, func(t *testing.T) {
			goOn := make(chan struct{})
			server := testkit.Serve(t, func(conn net.Conn, n int) {
				if tc.scheme == "https" {
					conn = tls.Server(conn, secure)
				}
				in := bufio.NewReader(conn)
				for {
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
					if _, err := io.WriteString(conn, ok); err != nil {
						return
					}
					select {
					case <-goOn: // the response to the request has been read
					case <-t.Context().Done():
						return
					}
					if tc.late == "" {
						_ = conn.Close()
						return
					}
					if _, err := io.WriteString(conn, tc.late); err != nil {
						return
					}
				}
			})
			target, err := New(Options{URL: tc.scheme + "://" + server.Addr, TLS: configOf(tc.scheme, authority.Pool), Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			c, err := target.NewCaller(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			counter := target.Counters()[0]
			window := func() {
				if err := c.Do(t.Context()); err != nil {
					t.Fatal(err)
				}
				goOn <- struct{}{}
				await(t, target.callers[0].conn.Net())
				if _, err := counter.Read(t.Context()); err != nil {
					t.Fatal(err)
				}
				if tc.late != "" && target.callers[0].open {
					t.Fatal("the connection was not closed")
				}
			}
			window() // the warm-up
			window()
			if tally := target.Tally(); tally.Duplicates != tc.duplicates || tally.Opened != 1 || tally.Statuses[200] != 1 {
				t.Errorf("%+v, want %d duplicates and a new connection", tally, tc.duplicates)
			}
		})
	}
}

func configOf(scheme string, pool *x509.CertPool) *tls.Config {
	if scheme == "http" {
		return nil
	}
	return &tls.Config{RootCAs: pool, ServerName: "a.example"}
}

// await waits until bytes have arrived on a connection.
func await(t *testing.T, conn net.Conn) {
	t.Helper()
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	var b [1]byte
	testkit.Eventually(t, 30*time.Second, func() error {
		if peek(conn.(syscall.Conn), b[:]) == 0 {
			return errors.New("no bytes have arrived")
		}
		return nil
	})
}
