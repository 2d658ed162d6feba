//go:build linux

package clients

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// Third-party reverse proxies are in front of the gateway, with their defaults and
// configured to keep connections.

// proxyBurst is how many requests an address may send to the gateway through proxies.
const proxyBurst = 400

// TestPlainProxies: responses through nginx and HAProxy are right, and each client is limited by
// its own address.
func TestPlainProxies(t *testing.T) {
	for _, start := range []struct {
		name string
		do   func(t *testing.T, upstream string) (closing, keeping string)
	}{{"nginx", startNginx}, {"haproxy", startHAProxy}} {
		t.Run(start.name, func(t *testing.T) {
			g := startPlain(t, "trusted_proxies: [127.0.0.1]", fmt.Sprintf("limits: { client: { rate: 0.001, burst: %d } }", proxyBurst))
			closing, keeping := start.do(t, g.address)
			// The address of the proxy itself has not reached its limit, so the steps can be
			// prepared with direct requests from it.
			steps := g.plainSteps(t)
			for i, proxy := range []string{closing, keeping} {
				t.Run([]string{"closing", "keeping"}[i], func(t *testing.T) {
					g.onLoop(t, 0, func() int { return g.throughProxy(t, proxy, steps, 10*i) })
				})
			}
		})
	}
}

// throughProxy sends requests from three addresses, the first of which is 127.0.0.(2+offset), and
// returns how many it has sent.
func (g *plainGateway) throughProxy(t *testing.T, proxy string, steps []step, offset int) int {
	own, greedy, other := machine(t, 2+offset), machine(t, 3+offset), machine(t, 4+offset)
	var group sync.WaitGroup
	const workers = 4
	for range workers {
		group.Go(func() {
			for i := range steps {
				steps[i].judge(t, own.send(t, proxy, &steps[i]))
			}
		})
	}
	group.Wait()
	// A client that claims another address is still limited by the one that the proxy sees.
	flood := step{name: "flood", method: "GET", path: order, fields: []string{"X-Forwarded-For: 192.0.2.1"}}
	for range proxyBurst {
		if got := greedy.send(t, proxy, &flood); got.status != 200 {
			t.Fatalf("within its burst a client gets status %d", got.status)
		}
	}
	if got := greedy.send(t, proxy, &flood); got.status != 429 || got.fields["retry-after"] == "" {
		t.Errorf("after its burst a client gets status %d, Retry-After %q; want 429", got.status, got.fields["retry-after"])
	}
	if got := other.send(t, proxy, &flood); got.status != 200 {
		t.Errorf("another client gets status %d, want 200", got.status)
	}
	return workers*len(steps) + proxyBurst + 2
}

// foreignMachine is a client with its own loopback address.
type foreignMachine struct{ transport *http.Transport }

func machine(t *testing.T, host int) *foreignMachine {
	d := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(host))}}
	m := &foreignMachine{&http.Transport{DialContext: d.DialContext, MaxIdleConnsPerHost: 8}}
	t.Cleanup(m.transport.CloseIdleConnections)
	return m
}

func (m *foreignMachine) send(t *testing.T, base string, s *step) answered {
	r, err := http.NewRequestWithContext(t.Context(), s.method, base+s.path, nil)
	if err != nil {
		t.Error(err)
		return answered{}
	}
	for _, f := range s.fields {
		if name, value, _ := strings.Cut(f, ": "); f != "Accept-Encoding: gzip" { // the transport sends this field and decodes
			r.Header.Set(name, value)
		}
	}
	rsp, err := m.transport.RoundTrip(r)
	if err != nil {
		t.Errorf("%s: %v", s.name, err)
		return answered{}
	}
	defer rsp.Body.Close()
	body, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Errorf("%s: %v", s.name, err)
	}
	return observed(rsp.StatusCode, rsp.Header, body)
}

// startNginx starts an nginx whose first address forwards with the defaults of nginx, HTTP/1.0 and
// a connection for each request, and whose second address keeps connections.
func startNginx(t *testing.T, upstream string) (closing, keeping string) {
	dir, a, b := t.TempDir(), testkit.FreePort(t), testkit.FreePort(t)
	var temporary strings.Builder
	for _, of := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&temporary, "  %s_temp_path %s;\n", of, filepath.Join(dir, of))
	}
	config := filepath.Join(dir, "nginx.conf")
	blackbox.Write(t, config, fmt.Sprintf(`daemon off;
master_process off;
pid %s/pid;
error_log stderr warn;
events { worker_connections 256; }
http {
  access_log off;
%s  upstream gateway { server %s; keepalive 16; }
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
  server {
    listen 127.0.0.1:%d;
    location / { proxy_pass http://%[3]s; }
  }
  server {
    listen 127.0.0.1:%[5]d;
    location / {
      proxy_pass http://gateway;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
  }
}
`, dir, temporary.String(), upstream, a, b))
	startProxy(t, "nginx", []string{"-e", "stderr", "-p", dir, "-c", config}, a, b)
	return loopback(a), loopback(b)
}

// startHAProxy does the same as startNginx for HAProxy, which keeps connections by default.
func startHAProxy(t *testing.T, upstream string) (closing, keeping string) {
	a, b := testkit.FreePort(t), testkit.FreePort(t)
	config := blackbox.WriteFile(t, "haproxy.cfg", fmt.Sprintf(`global
  maxconn 256
defaults
  mode http
  timeout connect 5s
  timeout client 20s
  timeout server 20s
  option forwardfor
frontend closing
  bind 127.0.0.1:%d
  default_backend closing
backend closing
  option httpclose
  server gateway %[3]s
frontend keeping
  bind 127.0.0.1:%[2]d
  default_backend keeping
backend keeping
  http-reuse always
  server gateway %[3]s
`, a, b, upstream))
	startProxy(t, "haproxy", []string{"-db", "-f", config}, a, b)
	return loopback(a), loopback(b)
}

func loopback(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }

// startProxy waits until it listens on its ports.
func startProxy(t *testing.T, name string, args []string, ports ...int) {
	t.Helper()
	testkit.Start(t, testkit.Command{Path: installed(t, name), Args: args, Ready: listening(ports...)})
}

// listening waits until something accepts connections on all ports of this machine.
func listening(ports ...int) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, port := range ports {
			var d net.Dialer
			c, err := d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				return err
			}
			c.Close()
		}
		return nil
	}
}
