package admin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipstream-go/slipstream/internal/gateway/audit"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// events collects the events of the audit log.
type events struct {
	mu  sync.Mutex
	all []audit.Event
}

func (e *events) add(one audit.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, one)
}

// take returns the events since the last call.
func (e *events) take() (all []audit.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all, e.all = e.all, nil
	return all
}

var (
	loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9100}
	network  = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 9), Port: 9100}
	socket   = &net.UnixAddr{Net: "unix", Name: "/run/admin.sock"}
)

// newGuarded makes a server with every page, whose token is "right".
func newGuarded() (*Server, *events) {
	e := new(events)
	return New(Config{
		Metrics: prometheus.NewRegistry(), Effective: func() []byte { return []byte("origin: {}\n") }, Purger: new(purges), Reloader: new(reloads),
		Figures: func() Figures { return Figures{} },
		Token:   func(token string) (string, bool) { return "ops", token == "right" },
		Line:    func() int { return 12 },
		Audit:   e.add,
	}), e
}

// closedPages are all pages for which other machines need a token.
var closedPages = [][2]string{{"GET", "/"}, {"GET", "/config"}, {"POST", "/purge?resource=depts"}, {"GET", "/reload"}, {"POST", "/reload"},
	{"GET", "/debug/pprof/"}, {"GET", "/debug/pprof/heap"}, {"GET", "/debug/pprof/cmdline"}, {"POST", "/debug/pprof/symbol"}, {"GET", "/dashboard.json"},
	{"GET", "/dashboard/dashboard.js"}, {"GET", "/nothing"}, {"GET", "/metrics/"}, {"GET", "//metrics"}, {"GET", "/live/../config"}}

// TestDoor: callers of this machine may do everything, others read three pages and need a token
// for the rest.
func TestDoor(t *testing.T) {
	for _, test := range []struct {
		name, peer string
		at         net.Addr
		local      bool
	}{
		{"loopback", "127.0.0.1:4", loopback, true},
		{"loopback, IPv6", "[::1]:4", &net.TCPAddr{IP: net.IPv6loopback, Port: 9100}, true},
		{"loopback, IPv4 in IPv6", "[::ffff:127.0.0.1]:4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1).To16(), Port: 9100}, true},
		{"unix socket", "@", socket, true},
		{"network", "192.0.2.1:4", network, false},
		{"network to loopback", "192.0.2.1:4", loopback, false},
		{"loopback to an address of the network", "127.0.0.1:4", network, false},
		{"own address", "192.0.2.9:4", network, false},
		{"no peer", "", loopback, false},
		{"nothing known", "127.0.0.1:4", nil, false},
		{"a name", "localhost:4", loopback, false},
	} {
		s, _ := newGuarded()
		for _, page := range []string{"/metrics", "/live", "/ready"} {
			if w := askFrom(s, test.peer, test.at, "GET", page); w.Code != 200 {
				t.Errorf("%s: GET %s: %d, want 200", test.name, page, w.Code)
			}
		}
		for _, page := range closedPages {
			w := askFrom(s, test.peer, test.at, page[0], page[1])
			if (w.Code != 401) != test.local {
				t.Errorf("%s: %s %s: %d", test.name, page[0], page[1], w.Code)
			}
			if test.local {
				continue
			}
			var problem struct {
				Status int
				Detail string
			}
			if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || problem.Status != 401 || !strings.Contains(problem.Detail, "line 12: admin: add token: ") {
				t.Errorf("%s: %s %s: %s, want a problem that names the line", test.name, page[0], page[1], w.Body)
			}
			if got := w.Header().Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer ") {
				t.Errorf("%s: WWW-Authenticate %q", test.name, got)
			}
			if w := askFrom(s, test.peer, test.at, page[0], page[1], "Authorization", "bearer right"); w.Code == 401 || w.Code == 429 {
				t.Errorf("%s: %s %s with the token: %d %s", test.name, page[0], page[1], w.Code, w.Body)
			}
		}
	}
}

// TestTokenIsNeeded: wrong tokens are refused, and after a few of them an address must wait, but
// not another one.
func TestTokenIsNeeded(t *testing.T) {
	for _, header := range []string{"", "right", "Basic right", "Bearer", "Bearer ", "Bearer wrong", "Bearer right.", "Bearer right right", "Bearerright"} {
		s, e := newGuarded()
		if w := askFrom(s, "192.0.2.1:4", network, "GET", "/config", "Authorization", header); w.Code != 401 {
			t.Errorf("%q: %d, want 401", header, w.Code)
		}
		if got := e.take(); len(got) != 1 || got[0].Event != audit.LoginFailed || got[0].Rule != ruleToken || got[0].Peer != "192.0.2.1:4" || got[0].Detail != "GET /config" {
			t.Errorf("%q: events %+v", header, got)
		}
	}
	s, _ := newGuarded()
	twice := httptest.NewRequest("GET", "http://192.0.2.9:9100/config", nil)
	twice.Header["Authorization"] = []string{"Bearer right", "Bearer right"}
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, twice); w.Code != 401 {
		t.Errorf("two tokens: %d, want 401", w.Code)
	}
	if w := askFrom(New(Config{Effective: func() []byte { return nil }}), "192.0.2.1:4", network, "GET", "/config", "Authorization", "Bearer "); w.Code != 401 ||
		!strings.Contains(w.Body.String(), "(admin: add token") {
		t.Errorf("without tokens: %d %s", w.Code, w.Body)
	}
	for range wrongBurst {
		askFrom(s, "192.0.2.2:4", network, "GET", "/config", "Authorization", "Bearer wrong")
	}
	if w := askFrom(s, "192.0.2.2:5", network, "GET", "/config", "Authorization", "Bearer right"); w.Code != 429 || w.Header().Get("Retry-After") == "" {
		t.Errorf("after %d wrong tokens: %d, Retry-After %q", wrongBurst, w.Code, w.Header().Get("Retry-After"))
	}
	if w := askFrom(s, "192.0.2.2:5", network, "GET", "/live"); w.Code != 200 {
		t.Errorf("/live after wrong tokens: %d", w.Code)
	}
	if w := askFrom(s, "192.0.2.3:5", network, "GET", "/config", "Authorization", "Bearer right"); w.Code != 200 {
		t.Errorf("from another address: %d", w.Code)
	}
}

// TestCertificateCounts: a verified certificate gives full access, any other none.
func TestCertificateCounts(t *testing.T) {
	uri, _ := url.Parse("spiffe://shop.example/ops")
	for want, c := range map[string]*x509.Certificate{
		"certificate:spiffe://shop.example/ops": {URIs: []*url.URL{uri}, DNSNames: []string{"ops.example"}},
		"certificate:ops.example":               {DNSNames: []string{"ops.example"}, Subject: pkix.Name{CommonName: "ops"}},
		"certificate:ops@shop.example":          {EmailAddresses: []string{"ops@shop.example"}},
		"certificate:192.0.2.7":                 {IPAddresses: []net.IP{net.IPv4(192, 0, 2, 7)}},
		"certificate:CN=ops":                    {Subject: pkix.Name{CommonName: "ops"}},
		"certificate:serial 7":                  {SerialNumber: big.NewInt(7)},
	} {
		for _, verified := range []bool{true, false} {
			s, e := newGuarded()
			r := httptest.NewRequest("POST", "http://192.0.2.9:9100/purge?resource=depts", nil)
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}}
			if verified {
				r.TLS.VerifiedChains = [][]*x509.Certificate{{c}}
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			got := e.take()
			if len(got) != 1 || (w.Code == 200) != verified || (got[0].Rule == want) != verified {
				t.Errorf("%s, verified %v: %d, %+v", want, verified, w.Code, got)
			}
		}
	}
}

// TestMetricsListener: it has three pages, for any caller.
func TestMetricsListener(t *testing.T) {
	s, e := newGuarded()
	h := http.HandlerFunc(s.serveMetrics)
	for _, page := range []string{"/metrics", "/live", "/ready"} {
		if w := askFrom(h, "192.0.2.1:4", network, "GET", page); w.Code != 200 || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("GET %s: %d", page, w.Code)
		}
		if w := askFrom(h, "192.0.2.1:4", network, "POST", page); w.Code != 405 {
			t.Errorf("POST %s: %d, want 405", page, w.Code)
		}
	}
	for _, page := range closedPages {
		for _, peer := range []string{"127.0.0.1:4", "192.0.2.1:4"} {
			if w := askFrom(h, peer, loopback, page[0], page[1], "Authorization", "Bearer right"); w.Code == 200 {
				t.Errorf("%s %s of %s: 200", page[0], page[1], peer)
			}
		}
	}
	if w := askFrom(h, "127.0.0.1:4", loopback, "GET", "http://evil.example/metrics"); w.Code != 421 {
		t.Errorf("a foreign name: %d, want 421", w.Code)
	}
	if got := e.take(); len(got) != 0 {
		t.Errorf("events %+v", got)
	}
}

// TestProfilesOff: there are no profiles, and the answer names the key.
func TestProfilesOff(t *testing.T) {
	off := false
	s := New(Config{NoProfiles: func() bool { return off }})
	for _, off = range []bool{false, true} {
		for _, page := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/pprof/symbol"} {
			w := ask(s, "GET", page)
			if (w.Code == 200) == off || off && (w.Code != 404 || !strings.Contains(w.Body.String(), "admin: { profiles: true }")) {
				t.Errorf("off %v: %s: %d %.100s", off, page, w.Code, w.Body)
			}
		}
		for _, page := range []string{"/debug/pprof/profile?seconds=x", "/debug/pprof/trace?seconds=x"} {
			if w := ask(s, "GET", page); (w.Code == 404) != off {
				t.Errorf("off %v: %s: %d", off, page, w.Code)
			}
		}
	}
}

// TestAuditEvents: every purge, reload and profile is recorded with peer and rule, and requests
// that only read are not.
func TestAuditEvents(t *testing.T) {
	s, e := newGuarded()
	for _, test := range []struct {
		method, target, token string
		at                    net.Addr
		want                  []audit.Event
	}{
		{"POST", "/purge?resource=depts&key=42", "", loopback, []audit.Event{{Event: "purge", Rule: "loopback", Outcome: "done", Resource: "depts", Key: []string{"42"}}}},
		{"POST", "/purge?resource=depts", "", socket, []audit.Event{{Event: "purge", Rule: "unix", Peer: "unix:/run/admin.sock", Outcome: "done", Resource: "depts"}}},
		{"POST", "/purge?resource=nope", "right", network, []audit.Event{{Event: "purge", Rule: "token:ops", Outcome: "refused", Resource: "nope", Detail: ErrUnknownResource.Error()}}},
		{"POST", "/reload", "", loopback, []audit.Event{{Event: "reload", Rule: "loopback", Outcome: "refused", Detail: "wrong"}}},
		{"GET", "/debug/pprof/heap", "", loopback, []audit.Event{{Event: "profile", Rule: "loopback", Outcome: "done", Detail: "/debug/pprof/heap"}}},
		{"GET", "/debug/pprof/trace?seconds=0.001", "right", network, []audit.Event{{Event: "profile", Rule: "token:ops", Outcome: "done", Detail: "/debug/pprof/trace?seconds=0.001"}}},
		{"GET", "/config", "wrong", network, []audit.Event{{Event: "login_failed", Rule: "token", Outcome: "refused", Detail: "GET /config"}}},
		{"POST", "/purge?resource=depts", "", network, []audit.Event{{Event: "login_failed", Rule: "none", Outcome: "refused", Detail: "POST /purge"}}},
		{"GET", "/reload", "", loopback, nil}, {"GET", "/debug/pprof/", "", loopback, nil}, {"GET", "/config", "right", network, nil}, {"GET", "/metrics", "", network, nil},
	} {
		peer := "127.0.0.1:4"
		switch test.at {
		case socket:
			peer = "@"
		case network:
			peer = "192.0.2.1:4"
		}
		var header []string
		if test.token != "" {
			header = []string{"Authorization", "Bearer " + test.token}
		}
		askFrom(s, peer, test.at, test.method, test.target, header...)
		for i := range test.want {
			test.want[i].Listener = "admin"
			if test.at != socket {
				test.want[i].Peer = peer
			}
		}
		got, _ := json.Marshal(e.take())
		want, _ := json.Marshal(test.want)
		if string(got) != string(want) {
			t.Errorf("%s %s: events\n%s, want\n%s", test.method, test.target, got, want)
		}
	}
}

// farConn is a connection that claims to come from another machine.
type farConn struct{ net.Conn }

func (farConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5} }

type farListener struct{ net.Listener }

func (l farListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return farConn{c}, nil
}

// TestRemoteConnectionsAreBounded: other machines can use some connections, but operators on this one
// can always connect; a slot is free again when one closes.
func TestRemoteConnectionsAreBounded(t *testing.T) {
	testkit.NoLeaks(t)
	near, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	far, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := newGuarded()
	ended := make(chan error, 1)
	// Ends with Shutdown, awaited below.
	go func() { ended <- s.Serve(near, farListener{far}) }()
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := errors.Join(s.Shutdown(ctx), <-ended); err != nil {
			t.Error(err)
		}
	}()
	transport := &http.Transport{DisableKeepAlives: true}
	live := func(l net.Listener) error {
		answer, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get("http://" + l.Addr().String() + "/live")
		if err == nil {
			answer.Body.Close()
		}
		return err
	}
	var idle []net.Conn
	for range maxRemote {
		c, err := net.Dial("tcp", far.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		idle = append(idle, c)
	}
	// Connections are accepted one after the other, and this one is the last.
	if err := live(far); err == nil {
		t.Errorf("a connection in addition to %d was accepted", maxRemote)
	}
	if err := live(near); err != nil {
		t.Errorf("this machine is locked out: %v", err)
	}
	idle[0].Close()
	testkit.Eventually(t, 10*time.Second, func() error { return live(far) })
}

// TestComplaints: messages of net/http go to the log, except for handshakes: those that fail because
// of a certificate are failed logins, the others are dropped.
func TestComplaints(t *testing.T) {
	var told strings.Builder
	e := new(events)
	s := New(Config{Audit: e.add, Log: slog.New(slog.NewTextHandler(&told, nil))})
	s.http.ErrorLog.Print("http: TLS handshake error from [2001:db8::1]:5: EOF")
	s.http.ErrorLog.Print("http: TLS handshake error from [2001:db8::1]:5: tls: client didn't provide a certificate")
	if got := e.take(); told.Len() > 0 || len(got) != 1 || got[0].Peer != "[2001:db8::1]:5" || got[0].Rule != "certificate" || got[0].Detail != "tls: client didn't provide a certificate" {
		t.Errorf("events %+v, log %s", got, told.String())
	}
	s.metrics.ErrorLog.Print("http: panic serving")
	if got := e.take(); len(got) != 0 || !strings.Contains(told.String(), "panic serving") {
		t.Errorf("events %+v, log %s", got, told.String())
	}
}
