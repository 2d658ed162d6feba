package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/slipstream-go/slipstream/gateway/config"
)

// operator sends requests to an admin listener. The zero value is not usable.
type operator struct {
	name      string // of the listener, for messages
	base      string // URL, without a slash at the end
	token     string // or ""
	transport *http.Transport
}

// operatorAt returns an operator for host:port, "unix:" and the path of a socket,
// or a URL.
func operatorAt(at string) operator {
	// Not the default transport: a proxy from the environment is not used.
	o := operator{name: at, base: strings.TrimSuffix(at, "/"), transport: &http.Transport{DisableKeepAlives: true}}
	switch path, local := strings.CutPrefix(at, "unix:"); {
	case local:
		o.base = "http://localhost"
		o.transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	case !strings.Contains(at, "://"):
		o.base = "http://" + at
	}
	return o
}

// prober returns the operator for probes: of the admin listener, or of the listener for metrics if
// the former requires a certificate.
func prober(cfg *config.Config) operator {
	l := cfg.Admin.Listener()
	if l.TLS.Clients != "" && cfg.Admin.Metrics.Address != "" {
		l = cfg.Admin.Metrics
	}
	if path := cfg.SocketPath(l); path != "" {
		o := operatorAt("unix:" + path)
		o.secure(l.TLS)
		return o
	}
	o := operatorAt(local(l.Address))
	o.secure(l.TLS)
	return o
}

// secure makes a probe use TLS if its listener does.
func (o *operator) secure(t config.TLS) {
	if t == (config.TLS{}) {
		return
	}
	o.base = "https" + strings.TrimPrefix(o.base, "http")
	// Nothing secret is sent, and only to an address of this machine. A certificate that was
	// just renewed, or has expired, must not make a serving gateway look dead.
	o.transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
}

// get requests a page.
func (o operator) get(ctx context.Context, page string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, o.base+page, nil)
	if err != nil {
		return nil, err
	}
	if o.token != "" {
		r.Header.Set("Authorization", "Bearer "+o.token)
	}
	return o.transport.RoundTrip(r)
}

// maxToken is more than the size of a file with a token.
const maxToken = 4 << 10

// readToken reads a token, as slipstream key new prints it, from a file.
func readToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if len(text) > maxToken || len(strings.Fields(token)) != 1 || strings.HasPrefix(token, "sha256:") {
		return "", fmt.Errorf("%s does not hold a token and nothing else; expected what slipstream key new prints to standard output", file)
	}
	return token, nil
}
