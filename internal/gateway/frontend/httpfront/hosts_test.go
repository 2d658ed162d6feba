package httpfront

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// hostsOfListeners are values of Host, and whether a listener for the name docs.example accepts
// them.
var hostsOfListeners = []struct {
	host string
	ok   bool
}{
	{"localhost", true}, {"localhost:8080", true}, {"LocalHost", true}, {"localhost.", true}, {"app.localhost:1", true},
	{"127.0.0.1", true}, {"127.0.0.1:8080", true}, {"192.0.2.1:80", true}, {"[::1]", true}, {"[::1]:8080", true}, {"[2001:db8::1]", true},
	{"docs.example", true}, {"docs.example:8080", true}, {"DOCS.example.", true},
	{"evil.example", false}, {"evil.example:8080", false}, {"localhost.evil.example", false}, {"127.0.0.1.evil.example", false},
	{"evil-localhost", false}, {"evil.localhost.example", false}, {"a.docs.example", false}, {"docs.example.evil.example", false},
	{"docs.exampl", false}, {"docs.example..", false}, {"localhost..", false}, {"127.1", false}, {"2130706433", false}, {"h", false},
	{"[evil.example]", false}, {"[127.0.0.1]", false}, {"::1", false}, {"1:2:3", false}, {strings.Repeat("a", 64) + ".docs.example", false},
	{strings.Repeat("a.", 200) + "localhost", false},
}

// TestHostRule checks values one by one.
func TestHostRule(t *testing.T) {
	rule := newHostRule([]string{"Docs.Example"})
	for _, test := range append(hostsOfListeners, []struct {
		host string
		ok   bool
	}{{"", true}, {"localhost:", true}, {"localhost:x", false}, {":80", false}, {".", false}, {"[", false}, {"[::1", false}, {"[::1]x", false}}...) {
		if got := rule.accepts(test.host); got != test.ok {
			t.Errorf("Host %q: accepted %v, want %v", test.host, got, test.ok)
		}
	}
	if n := testing.AllocsPerRun(100, func() { rule.accepts("docs.example:8080"); rule.accepts("127.0.0.1:8080") }); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
	for _, length := range []int{maxRememberedHost, maxRememberedHost + 1} {
		host := strings.Repeat("a", length)
		if k := rule.remember(host); (k != nil) != (length <= maxRememberedHost) || k != nil && rule.remember(strings.Clone(host)) != k {
			t.Errorf("a Host of %d bytes is remembered as %v", length, k)
		}
	}
}

// ask1 sends a request on an open connection and returns the status and the body.
func ask1(t *testing.T, c net.Conn, r *bufio.Reader, method, text string) (status int, body string) {
	t.Helper()
	io.WriteString(c, text)
	a, err := readAnswer(r, method)
	if err != nil {
		t.Fatalf("%.60q: %v", text, err)
	}
	b, _ := io.ReadAll(a.Body)
	return a.StatusCode, string(b)
}

// TestHosts: a listener that compares names refuses others with 421 for every target, and other
// listeners answer. One connection sends all requests, so that the effect of its remembered Host
// shows.
func TestHosts(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		for _, test := range []struct {
			name    string
			hosts   Hosts
			address string
			checked bool
		}{
			{"loopback", Hosts{Names: []string{"docs.example"}, Loopback: true}, "127.0.0.1:0", true},
			{"every interface", Hosts{Loopback: true}, "0.0.0.0:0", false},
			{"every interface by name", Hosts{Names: []string{"docs.example"}, Loopback: true, Elsewhere: true}, "0.0.0.0:0", true},
			{"unix", Hosts{Loopback: true}, "unix:", false},
			{"unix by name", Hosts{Names: []string{"docs.example"}, Elsewhere: true}, "unix:", true},
			{"nothing", Hosts{}, "127.0.0.1:0", false},
		} {
			t.Run(test.name, func(t *testing.T) {
				network, address := "tcp", test.address
				if address == "unix:" {
					network, address = "unix", filepath.Join(t.TempDir(), "s")
				}
				listeners, err := loop.Listen(network, address, 2)
				if err != nil {
					t.Fatal(err)
				}
				if by.engine == EngineNetHTTP {
					for _, l := range listeners[1:] {
						l.Close()
					}
					listeners = listeners[:1]
				}
				f := newConfigured(t, jsonOrigin, ServiceConfig{Hosts: test.hosts}, nil)
				s := listen(t, f, by.config(Config{}), listeners...)
				c, err := net.Dial(network, s.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				r := bufio.NewReader(c)
				for _, h := range hostsOfListeners {
					for _, what := range []string{"GET /depts/300", "HEAD /depts/300", "OPTIONS /depts/300", "GET /depts?key=300&key=0", "GET /nowhere", "GET /openapi.json"} {
						method, _, _ := strings.Cut(what, " ")
						status, body := ask1(t, c, r, method, what+" HTTP/1.1\r\nHost: "+h.host+"\r\n\r\n")
						refused := status == http.StatusMisdirectedRequest
						if status == http.StatusBadRequest {
							t.Fatalf("%s with Host %q: %d", what, h.host, status)
						}
						if refused != (test.checked && !h.ok) {
							t.Errorf("%s with Host %q: %d", what, h.host, status)
						}
						if refused && method == "GET" && (!strings.Contains(body, "http.hosts") || !strings.Contains(body, "http.trusted_proxies")) {
							t.Errorf("%s with Host %q: %q names no way out", what, h.host, body)
						}
					}
				}
			})
		}
	})
}

// TestHostsOfOtherForms: the authority of an absolute target counts, HTTP/1.0 may go without Host,
// and requests that net/http answers follow the same rules.
func TestHostsOfOtherForms(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		f := newConfigured(t, jsonOrigin, ServiceConfig{Hosts: Hosts{Names: []string{"docs.example"}, Loopback: true}}, nil)
		s := listen(t, f, by.config(Config{}))
		for text, want := range map[string]int{
			"GET http://docs.example/depts/300 HTTP/1.1\r\nHost: evil.example\r\n":                 200,
			"GET http://evil.example/depts/300 HTTP/1.1\r\nHost: docs.example\r\n":                 421,
			"GET /depts/300 HTTP/1.0\r\n":                                                          200,
			"GET /depts/300 HTTP/1.1\r\nHost:\r\n":                                                 200,
			"GET /depts/300 HTTP/1.0\r\nHost: evil.example\r\n":                                    421,
			"GET /depts/300 HTTP/1.0\r\nHost: docs.example\r\n":                                    200,
			"POST /depts/300 HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1\r\n\r\nx":         421,
			"GET /depts/300 HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: docs.example\r\n":  421,
			"GET /depts/300 HTTP/1.1\r\nHost: evil.example\r\nConnection: TE\r\nTE: x\r\n":         421,
			"GET /depts/300 HTTP/1.1\r\nHost: docs.example\r\nConnection: TE\r\nTE: x\r\n":         200,
			"GET /depts/300 HTTP/1.1\r\nHost: docs.example\r\nHost: docs.example\r\n":              400,
			"OPTIONS /depts/300 HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n": 421,
			"GET //evil.example/depts/300 HTTP/1.1\r\nHost: docs.example\r\n":                      404,
			"GET /depts/300 HTTP/1.1\r\nHost: docs.example, evil.example\r\n":                      400,
		} {
			c := dial(t, s)
			method, _, _ := strings.Cut(text, " ")
			if got, _ := ask1(t, c, bufio.NewReader(c), method, text+"\r\n"); got != want {
				t.Errorf("%q: %d, want %d", text, got, want)
			}
			c.Close()
		}
	})
}

// TestHostsOverHTTP2: in HTTP/2 the name is in :authority.
func TestHostsOverHTTP2(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		f := newConfigured(t, jsonOrigin, ServiceConfig{Hosts: Hosts{Names: []string{"docs.example"}, Loopback: true}}, nil)
		_, secure, trust := listenTLS(t, f, by.config(Config{}))
		for _, http2 := range []bool{false, true} {
			client := clientOf(t, trust, http2)
			for host, want := range map[string]int{"docs.example": 200, "evil.example": 421, secure: 200} {
				r, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+secure+"/depts/300", nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Host = host
				a, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				a.Body.Close()
				if a.StatusCode != want || (a.ProtoMajor == 2) != http2 {
					t.Errorf("%s with Host %s: %d, want %d", a.Proto, host, a.StatusCode, want)
				}
			}
		}
	})
}

// TestHostsAgainstNetHTTP: the loop treats Host exactly as net/http does.
func TestHostsAgainstNetHTTP(t *testing.T) {
	config := ServiceConfig{Hosts: Hosts{Names: []string{"docs.example"}, Loopback: true}, CORS: CORS{Origins: []string{"https://app.example"}}}
	var all []string
	for _, h := range hostsOfListeners {
		for _, version := range []string{"1.0", "1.1"} {
			for _, line := range []string{"GET /depts/300", "HEAD /depts/300", "OPTIONS *", "POST /depts/300", "GET http://evil.example/depts/300", "GET /depts?key=300"} {
				all = append(all, fmt.Sprintf("%s HTTP/%s\r\nHost: %s\r\nX-Request-Id: odd\r\n\r\n", line, version, h.host))
			}
		}
	}
	last := strings.ReplaceAll(lastRequest, "Host: h", "Host: docs.example")
	eachLoop(t, func(t *testing.T, by way) {
		subject := listen(t, newConfigured(t, jsonOrigin, config, nil), by.config(Config{}))
		reference := listen(t, newConfigured(t, jsonOrigin, config, nil), ways[1].config(Config{}))
		for _, s := range []*Server{subject, reference} {
			askOnce(t, s, "GET", "http://docs.example/depts/300")
		}
		var checks sync.WaitGroup
		places := make(chan struct{}, 16)
		for _, text := range all {
			places <- struct{}{}
			checks.Go(func() {
				defer func() { <-places }()
				checkMeaning(t, subject, reference, []byte(text+last))
			})
		}
		checks.Wait()
	})
}

// TestHostsAfterReload: a name that is removed from the list is refused on connections that have used
// it, and one that is added is accepted.
func TestHostsAfterReload(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		var log logBuffer
		config := ServiceConfig{Hosts: Hosts{Names: []string{"old.example"}, Loopback: true}, Log: log.logger()}
		f := newConfigured(t, jsonOrigin, config, nil)
		s := listen(t, f, by.config(Config{}))
		c := dial(t, s)
		defer c.Close()
		r := bufio.NewReader(c)
		want := func(host string, want int) {
			t.Helper()
			for range 2 {
				if status, _ := ask1(t, c, r, "GET", "GET /depts/300 HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); status != want {
					t.Errorf("Host %s: %d, want %d", host, status, want)
				}
			}
		}
		want("old.example", 200)
		want("new.example", 421)
		want("old.example", 200)
		config.Hosts.Names = []string{"new.example"}
		next, err := f.service.Next([]frontend.Resource{{Name: "depts", Columns: *f.service.resources.List[0].Columns()}}, config)
		if err != nil {
			t.Fatal(err)
		}
		s.Swap(next)
		want("old.example", 421)
		want("new.example", 200)
		refused := int64(0)
		next.EachThrottled(func(rule string, n int64) {
			if rule == "host" {
				refused = n
			}
		})
		if refused != 4 {
			t.Errorf("%d refusals are counted, want 4", refused)
		}
		text := log.String()
		if n := strings.Count(text, "a request is refused because of its Host"); n != 1 {
			t.Errorf("%d lines in the log, want 1:\n%s", n, text)
		}
		for _, part := range []string{"host=new.example", "client=127.0.0.1", "http.hosts", "http.trusted_proxies"} {
			if !strings.Contains(text, part) {
				t.Errorf("the log does not say %s:\n%s", part, text)
			}
		}
	})
}
