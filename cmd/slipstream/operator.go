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

// operator asks an admin listener. The zero value is not usable.
type operator struct {
	name      string // of the listener, for messages
	base      string // URL, without a slash at the end
	token     string // "": none
	transport *http.Transport
}

// operatorAt asks at host:port, "unix:" and the path of a socket, or a URL.
func operatorAt(at string) operator {
	// Not the default transport: a proxy of the environment is not asked.
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

// prober asks the listener of a configuration that says whether the gateway lives: that of admin,
// or that of metrics if the other wants a certificate.
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

// secure makes a probe speak TLS where its listener does.
func (o *operator) secure(t config.TLS) {
	if t == (config.TLS{}) {
		return
	}
	o.base = "https" + strings.TrimPrefix(o.base, "http")
	// Nothing secret is sent, to an address of this machine. A certificate that was renewed a
	// moment ago, or has expired, must not make a gateway that serves look dead.
	o.transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
}

// get asks for a page.
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

// maxToken is more than a file with a token has.
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
