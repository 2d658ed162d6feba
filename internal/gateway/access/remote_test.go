package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// issuer is a server of a key set over TLS.
type issuer struct {
	*httptest.Server
	ca      string // file
	answers atomic.Pointer[http.HandlerFunc]
	asked   atomic.Int64
}

func newIssuer(t *testing.T, first http.HandlerFunc) *issuer {
	t.Helper()
	s := &issuer{}
	s.answers.Store(&first)
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		(*s.answers.Load())(w, r)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(s.Close)
	s.ca = tempFile(t, "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return s
}

func (s *issuer) serve(f http.HandlerFunc) { s.answers.Store(&f) }

func text(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }
}

// gate opens a gate that fetches from the issuer as often as the tests need.
func (s *issuer) gate(t *testing.T, change func(*Config)) *Gate {
	t.Helper()
	g, _ := newGate(t, func(c *Config) {
		c.JWKSFile, c.JWKSURL, c.CAFile = "", s.URL+"/keys", s.ca
		c.Refresh, c.fetchGap = time.Hour, time.Millisecond
		if change != nil {
			change(c)
		}
	})
	return g
}

// eventually waits until the stats of a gate satisfy a condition.
func eventually(t *testing.T, g *Gate, what string, holds func(Stats) bool) {
	t.Helper()
	testkit.Eventually(t, 30*time.Second, func() error {
		if s := g.Stats(); !holds(s) {
			return fmt.Errorf("%s: %+v, trouble %q", what, s, g.Trouble())
		}
		return nil
	})
}

func fetched(s Stats) bool { return !s.Fetched.IsZero() }

// TestFetchedKeys: until the set is there, tokens get 503 and API keys are accepted; then tokens
// are checked with it. A server whose certificate is not trusted is not used.
func TestFetchedKeys(t *testing.T) {
	testkit.NoLeaks(t)
	closed := make(chan struct{})
	s := newIssuer(t, func(w http.ResponseWriter, _ *http.Request) {
		<-closed
		_, _ = w.Write(keySetJSON(t, issuerKeys()...))
	})
	g := s.gate(t, nil)
	token := withToken(sign(t, jose.RS256, rsaKey(), "rsa", claimSet(nil)))
	refused(t, g, token, 503, "not known yet")
	if _, refusal, ok := g.IdentifyAtOnce(token); !ok || refusal != refusedNoSet {
		t.Errorf("on an event loop: %v, %v", refusal, ok)
	}
	accepted(t, g, Credentials{APIKey: webKey}, "key:web")
	if why := g.Trouble(); !strings.Contains(why, "have not been fetched yet") {
		t.Errorf("the trouble is %q", why)
	}
	close(closed)
	eventually(t, g, "fetched", fetched)
	accepted(t, g, token, "jwt:alice")
	if why := g.Trouble(); why != "" {
		t.Errorf("the trouble is %q, want none", why)
	}

	stranger := s.gate(t, func(c *Config) { c.CAFile = "" })
	eventually(t, stranger, "a failure", func(s Stats) bool { return s.FetchFailures > 0 })
	if why := stranger.Trouble(); !strings.Contains(why, "certificate") {
		t.Errorf("the trouble is %q, want that of the certificate", why)
	}
	refused(t, stranger, token, 503, "not known yet")
}

// TestDiscovery: the document says where the set is, and whose tokens are accepted.
func TestDiscovery(t *testing.T) {
	set := keySetJSON(t, issuerKeys()...)
	var document atomic.Pointer[string]
	s := newIssuer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/tenant/.well-known/openid-configuration":
			fmt.Fprint(w, *document.Load())
		case "/certs":
			_, _ = w.Write(set)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	own := s.URL + "/tenant"
	open := func(text string) *Gate {
		t.Helper()
		document.Store(&text)
		return s.gate(t, func(c *Config) { c.JWKSURL, c.Discovery, c.Issuer = "", own, "" })
	}
	g := open(fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q,"x":[1]}`, own, s.URL+"/certs"))
	eventually(t, g, "discovered", fetched)
	accepted(t, g, withToken(sign(t, jose.ES256, ecKey(), "ec", claimSet(map[string]any{"iss": own}))), "jwt:alice")
	refused(t, g, withToken(sign(t, jose.ES256, ecKey(), "ec", claimSet(nil))), 401, "another issuer")

	for document, want := range map[string]string{
		fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q}`, own+"/", s.URL+"/certs"):              "is that of the issuer",
		fmt.Sprintf(`{"jwks_uri":%q}`, s.URL+"/certs"):                                   "is that of the issuer",
		fmt.Sprintf(`{"issuer":%q}`, own):                                                "jwks_uri is missing",
		fmt.Sprintf(`{"issuer":%q,"jwks_uri":"http://192.0.2.1/certs"}`, own):            "is not https",
		fmt.Sprintf(`{"issuer":%q,"jwks_uri":"http://127.0.0.1:1/certs"}`, own):          "not https",
		fmt.Sprintf(`{"issuer":%q,"jwks_uri":"file:///etc/passwd"}`, own):                "expected https",
		fmt.Sprintf(`{"issuer":%q,"jwks_uri":"https://u:p@login.example/"}`, own):        "name or password",
		fmt.Sprintf(`{"issuer":%q,"issuer":%q,"jwks_uri":%q}`, own, own, s.URL+"/certs"): "twice",
		`[]`: "not a discovery document",
		fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q,"x":%q}`, own, s.URL+"/certs", strings.Repeat("x", 70_000)): "larger than 65536",
	} {
		g := open(document)
		eventually(t, g, "a failure", func(s Stats) bool { return s.FetchFailures > 0 })
		if why := g.Trouble(); !strings.Contains(why, want) {
			t.Errorf("%.100s: the trouble is %q, want %q", document, why, want)
		}
	}
}

// TestHostileIssuers: whatever the server sends instead of a set, the last good one stays, memory
// and time are bounded, and the next good one is used.
func TestHostileIssuers(t *testing.T) {
	testkit.NoLeaks(t)
	good := keySetJSON(t, issuerKeys()...)
	elsewhere := newIssuer(t, text(keySetJSON(t, jose.JSONWebKey{KeyID: "rsa", Key: &otherRSA().PublicKey})))
	var many []jose.JSONWebKey
	for i := range 257 {
		many = append(many, jose.JSONWebKey{KeyID: strconv.Itoa(i), Key: octKey})
	}
	slow := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(" ")); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-time.After(10 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
	}
	// A gate that reads more than it has to would wait for data that never comes.
	large := func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(make([]byte, 1<<20+1))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // otherwise the body would end properly
	}
	for _, c := range []struct {
		name, want string
		answer     http.HandlerFunc
	}{
		{"large body", "larger than 1048576", large},
		{"slow body", "did not arrive in time", slow},
		{"no answer", "deadline", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"large head", "header", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 100<<10)) }},
		{"redirect", "redirects are not followed", http.RedirectHandler(elsewhere.URL, http.StatusFound).ServeHTTP},
		{"500", "status 500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); _, _ = w.Write(good) }},
		{"204", "status 204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }},
		{"huge set", "at most 256", text(keySetJSON(t, many...))},
		{"cut", "EOF", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			_, _ = w.Write(good)
		}},
		{"empty", "not a key set", text(nil)},
		{"a page", "not a key set", text([]byte("<html>"))},
		{"no keys", "no key", text([]byte(`{"keys":[]}`))},
		{"a private key", "private key", text(keySetJSON(t, jose.JSONWebKey{KeyID: "rsa", Key: rsaKey()}))},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := &logText{}
			s := newIssuer(t, text(good))
			g := s.gate(t, func(cfg *Config) {
				cfg.Refresh, cfg.fetchTime = time.Millisecond, 300*time.Millisecond
				cfg.Log = slog.New(slog.NewTextHandler(log, nil))
			})
			defer g.Close()
			eventually(t, g, "fetched", fetched)
			s.serve(c.answer)
			failed := g.Stats().FetchFailures // a busy machine may have been too slow for the good one
			eventually(t, g, "two failures", func(s Stats) bool { return s.FetchFailures >= failed+2 })
			// On a busy machine some fetches end at another step than the one that is tested here.
			eventually(t, g, c.want, func(Stats) bool {
				why := g.remote.trouble.Load()
				return why != nil && strings.Contains(*why, c.want)
			})
			if g.Trouble() != "" {
				t.Errorf("not ready because of %q, although a set is there", g.Trouble())
			}
			accepted(t, g, withToken(sign(t, jose.RS256, rsaKey(), "rsa", claimSet(nil))), "jwt:alice")
			// One line per minute, and another one only after a successful fetch.
			if n, most := log.count("cannot be fetched"), 1+log.count("keys of tokens fetched"); n < 1 || n > most {
				t.Errorf("%d lines about failures in the log, want 1 to %d", n, most)
			}
			s.serve(text(keySetJSON(t, jose.JSONWebKey{KeyID: "new", Key: &otherRSA().PublicKey})))
			eventually(t, g, "the next set", func(s Stats) bool { return s.TokenKeys == 1 })
			accepted(t, g, withToken(sign(t, jose.RS256, otherRSA(), "new", claimSet(nil))), "jwt:alice")
		})
	}
	if n := elsewhere.asked.Load(); n != 0 {
		t.Errorf("the target of a redirect was requested %d times", n)
	}
}

// TestFetchedRotationUnderLoad: if an issuer signs with a key as soon as its set contains it, and
// drops the previous one, no valid token is refused.
func TestFetchedRotationUnderLoad(t *testing.T) {
	testkit.NoLeaks(t)
	var mu sync.RWMutex // guards key, kid and shared, a token that all clients send
	key, kid := ecKey(), "0"
	shared := sign(t, jose.ES256, key, kid, claimSet(nil))
	s := newIssuer(t, text(keySetJSON(t, jose.JSONWebKey{KeyID: kid, Key: &key.PublicKey})))
	g := s.gate(t, nil)
	eventually(t, g, "fetched", fetched)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var served [4]atomic.Int64
	for i := range served {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				mu.RLock()
				c := withToken(shared)
				if n%2 == 1 {
					c = withToken(sign(t, jose.ES256, key, kid, claimSet(nil)))
				}
				c.Client = uint64(i)
				accepted(t, g, c, "jwt:alice")
				mu.RUnlock()
				served[i].Add(1)
			}
		})
	}
	for round := range 5 {
		next := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
		mu.Lock()
		key, kid = next, strconv.Itoa(round+1)
		shared = sign(t, jose.ES256, key, kid, claimSet(nil))
		set := keySetJSON(t, jose.JSONWebKey{KeyID: kid, Key: &next.PublicKey})
		s.serve(func(w http.ResponseWriter, _ *http.Request) {
			for range 200 { // until several wait, or are refused, which the test would see
				g.remote.mu.Lock()
				n := g.remote.awaiting
				g.remote.mu.Unlock()
				if n > 1 {
					break
				}
				time.Sleep(time.Millisecond)
			}
			_, _ = w.Write(set)
		})
		mu.Unlock()
		for i := range served {
			before := served[i].Load()
			testkit.Eventually(t, 30*time.Second, func() error {
				if n := served[i].Load(); n < before+5 {
					return fmt.Errorf("client %d had %d tokens checked since the rotation", i, n-before)
				}
				return nil
			})
		}
	}
	cancel()
	all.Wait()
	if st := g.Stats(); st.Refusals != 0 || st.Fetches < 6 {
		t.Errorf("%d refusals after %d fetches, want none after six", st.Refusals, st.Fetches)
	}
}

// TestUnknownKidsFetchSeldom: however many tokens have unknown kids, the issuer is queried only once
// in a while; waiting tokens are bounded, and delay no other client.
func TestUnknownKidsFetchSeldom(t *testing.T) {
	testkit.NoLeaks(t)
	s := newIssuer(t, text(keySetJSON(t, issuerKeys()...)))
	g := s.gate(t, func(c *Config) { c.fetchGap = time.Hour })
	eventually(t, g, "fetched", fetched)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var crowded atomic.Int64
	const more = 40
	for i := range maxAwaitingClient + more {
		c := withToken(forge(`{"alg":"HS256","kid":"x`+strconv.Itoa(i)+`"}`, "{}", octKey))
		c.Client = 7
		all.Go(func() {
			switch _, refusal := g.Identify(ctx, c); refusal {
			case refusedCrowded:
				crowded.Add(1)
			case refusedLate:
			default:
				t.Errorf("refused with %+v", refusal)
			}
		})
	}
	testkit.Eventually(t, 30*time.Second, func() error {
		g.remote.mu.Lock()
		defer g.remote.mu.Unlock()
		if g.remote.awaiting != maxAwaitingClient || crowded.Load() != more {
			return fmt.Errorf("%d tokens wait, %d were refused", g.remote.awaiting, crowded.Load())
		}
		return nil
	})
	accepted(t, g, withToken(sign(t, jose.RS256, rsaKey(), "rsa", claimSet(nil))), "jwt:alice")
	other := make(chan error)
	patient, give := context.WithCancel(ctx)
	go func() { other <- g.remote.await(patient, 8) }() // ends with give, and the test waits for it
	testkit.Eventually(t, 30*time.Second, func() error {
		g.remote.mu.Lock()
		defer g.remote.mu.Unlock()
		if g.remote.clients[8] != 1 {
			return errors.New("another client does not wait")
		}
		return nil
	})
	give()
	if err := <-other; !errors.Is(err, context.Canceled) {
		t.Errorf("another client: %v, want that it waited", err)
	}
	cancel()
	all.Wait()
	if n := s.asked.Load(); n != 1 {
		t.Errorf("the issuer was queried %d times, want once", n)
	}
	if g.remote.awaiting != 0 || len(g.remote.clients) != 0 {
		t.Errorf("%d still wait, of %d clients", g.remote.awaiting, len(g.remote.clients))
	}
}

// TestInherit: the gate after a reload begins with the set of the previous one.
func TestInherit(t *testing.T) {
	s := newIssuer(t, text(keySetJSON(t, issuerKeys()...)))
	first := s.gate(t, nil)
	eventually(t, first, "fetched", fetched)
	s.serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	second := s.gate(t, nil)
	second.Inherit(first)
	first.Close()
	third := s.gate(t, nil)
	third.Inherit(second)
	token := withToken(sign(t, jose.RS256, rsaKey(), "rsa", claimSet(nil)))
	accepted(t, third, token, "jwt:alice")
	if third.Trouble() != "" || !third.Stats().Fetched.Equal(first.Stats().Fetched) {
		t.Errorf("trouble %q, fetched at %v", third.Trouble(), third.Stats().Fetched)
	}
	other := s.gate(t, func(c *Config) { c.JWKSURL = s.URL + "/other" })
	other.Inherit(first)
	other.Inherit(nil)
	refused(t, other, token, 503, "not known yet")
}

func TestRemoteConfigurations(t *testing.T) {
	pem := tempFile(t, "ca.pem", []byte("no certificate"))
	for _, c := range []struct{ url, ca, want string }{
		{"http://login.example/keys", "", "is not https"},
		{"ftp://login.example/keys", "", "is not https"},
		{"https:///keys", "", "no host"},
		{"https://login.example/keys#x", "", "fragment"},
		{"https://name:secret@login.example/keys", "", "name or password"},
		{"https://login.example:x/", "", "is not a URL"},
		{"https://login.example/keys", pem, "no certificate in PEM"},
		{"https://login.example/keys", pem + "x", "ca.pemx"},
	} {
		for _, cfg := range []Config{{JWKSURL: c.url, CAFile: c.ca}, {Discovery: c.url, CAFile: c.ca}} {
			g, err := Open(cfg)
			if err == nil {
				g.Close()
			}
			if cfg.Discovery != "" && c.want == "fragment" {
				continue // which is in the middle of the message
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%+v: %v, want an error with %q", cfg, err, c.want)
			}
		}
	}
	for _, u := range []string{"http://127.0.0.1:1/keys", "http://[::1]:1/", "http://localhost:1/"} {
		if err := trustedURL(u); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
}
