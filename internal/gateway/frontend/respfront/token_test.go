package respfront

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Secrets of the tests' issuer, and the set of the first.
var (
	secret      = []byte("0123456789abcdef0123456789abcdef")
	otherSecret = []byte("fedcba9876543210fedcba9876543210")
)

func keySet(secrets ...[]byte) string {
	var keys []string
	for i, s := range secrets {
		keys = append(keys, fmt.Sprintf(`{"kty":"oct","kid":"k%d","k":%q}`, i, base64.RawURLEncoding.EncodeToString(s)))
	}
	return `{"keys":[` + strings.Join(keys, ",") + `]}`
}

// token is one of alice, signed with HS256 and the key k0.
func token(key []byte, expires time.Time, claims string) string {
	b64 := base64.RawURLEncoding.EncodeToString
	text := b64([]byte(`{"alg":"HS256","kid":"k0"}`)) + "." + b64([]byte(fmt.Sprintf(`{"sub":"alice","aud":"shop","exp":%d%s}`, expires.Unix(), claims)))
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return text + "." + b64(h.Sum(nil))
}

const mayReadBlobs = `,"scope":"blobs:read"`

// tokenGate returns a gate with the secret, and the file of its set.
func tokenGate(t *testing.T, change func(*access.Config)) (*access.Gate, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(file, []byte(keySet(secret)), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := access.Config{JWKSFile: file, Audience: "shop", Reload: -1, Leeway: -1}
	if change != nil {
		change(&cfg)
	}
	g, err := access.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g, file
}

// TestTokens: a token is a password, its claims decide as over HTTP, and commands after a slow
// login in a pipeline are answered after it and with its rights.
func TestTokens(t *testing.T) {
	testkit.NoLeaks(t)
	hour := time.Now().Add(time.Hour)
	good, poor := token(secret, hour, mayReadBlobs), token(secret, hour, "")
	seen := 0
	fresh := func() string { seen++; return token(secret, hour, mayReadBlobs+fmt.Sprintf(`,"n":%d`, seen)) }
	gate, _ := tokenGate(t, nil)
	bothBackends(t, echo, Config{RequestConfig: frontend.RequestConfig{Gate: gate}, Users: users(), RequireAuth: true}, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		c.expect([][2]string{
			{"GET depts:0", textNotLoggedIn},
			{"AUTH " + token(otherSecret, hour, mayReadBlobs), "-WRONGPASS the signature of the token is wrong"},
			{"AUTH " + token(secret, time.Now().Add(-time.Hour), mayReadBlobs), "-WRONGPASS the token has expired at *"},
			{"AUTH " + strings.Replace(good, ".", "..", 1), textBadPass},
			{"AUTH x.y.z", "-WRONGPASS the token *"},
			{"AUTH bob " + good, textBadPass},
			{"AUTH Alice " + good, textBadPass},
			{"GET depts:0", textNotLoggedIn},
			{"AUTH " + poor, "+OK"},
			{"GET depts:0", "$-1"},
			{"GET blobs:00", "-NOPERM *"},
			{"AUTH " + good, "+OK"},
			{"GET blobs:00", bulk(`{"id":"00"}`)},
			{"AUTH " + token(otherSecret, hour, ""), "-WRONGPASS *"},
			{"GET blobs:00", bulk(`{"id":"00"}`)}, // a failed login does not end the present one
			{"RESET", "+RESET"},
			{"GET blobs:00", textNotLoggedIn},
			{"AUTH alice " + fresh(), "+OK"},
			{"RESET", "+RESET"},
			{"HELLO 3 AUTH default " + fresh() + " SETNAME shop", "%7*"},
			{"CLIENT GETNAME", bulk("shop")},
			{"GET depts:0", "_"},
			{"AUTH web " + webPassword, "+OK"},
			{"GET blobs:00", bulk(`{"id":"00"}`)},
		})
		c = f.dial(t)
		c.send("GET depts:0\r\nAUTH " + fresh() + "\r\nGET blobs:00\r\nRESET\r\nGET blobs:00\r\nHELLO 2 AUTH alice " + fresh() + "\r\nGET blobs:01\r\n")
		for i, want := range []string{textNotLoggedIn, "+OK", bulk(`{"id":"00"}`), "+RESET", textNotLoggedIn, "*14*", bulk(`{"id":"01"}`)} {
			if got := c.reply(); !matches(got, want) {
				t.Errorf("answer %d of the pipeline: %q, want %q", i+1, got, want)
			}
		}
	})
}

// matches compares as expect does.
func matches(got, want string) bool {
	if prefix, ok := strings.CutSuffix(want, "*"); ok {
		return strings.HasPrefix(got, prefix)
	}
	return got == want
}

// walled has a session and a clock for both the gate and the cache.
type walled struct {
	t    *testing.T
	f    *fixture
	x    *session
	wall time.Time
	at   time.Duration
}

func (w *walled) say(after time.Duration, text, want string) {
	w.t.Helper()
	w.wall, w.at = w.wall.Add(after), w.at+after
	c := &fakeConn{at: w.at}
	w.x.data(c, []byte(text+"\r\n"))
	if got := strings.TrimSuffix(string(c.take()), "\r\n"); !matches(strings.ReplaceAll(got, "\r\n", "\n"), want) {
		w.t.Errorf("%.40s after %v: %q, want %q", text, after, got, want)
	}
}

// TestTokensExpireOnOpenConnections: a token ends its login when it expires, not at the next
// check of the keys.
func TestTokensExpireOnOpenConnections(t *testing.T) {
	w := &walled{t: t, wall: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)}
	gate, _ := tokenGate(t, func(c *access.Config) { c.Now = func() time.Time { return w.wall }; c.Leeway = 10 * time.Second })
	w.f = newFixture(t, echo, Config{RequestConfig: frontend.RequestConfig{Gate: gate}, RequireAuth: true})
	w.x, w.at = w.f.session(), w.f.cache.Now()
	minute := token(secret, w.wall.Add(time.Minute), mayReadBlobs)
	blob := "$11\n{\"id\":\"00\"}"
	w.say(0, "AUTH "+minute, "+OK")
	w.say(time.Second, "GET blobs:00", blob)
	w.say(67*time.Second, "GET blobs:00", blob)
	w.say(2*time.Second-1, "GET blobs:00", blob) // of the leeway
	w.say(1, "GET blobs:00", textNotLoggedIn)
	w.say(0, "AUTH "+minute, "-WRONGPASS the token has expired*")
}

// TestTokensOfRemovedKeys: removing a key from the set ends the connections of its tokens, and
// so does another gate that requires another audience; a set that keeps the key does not.
func TestTokensOfRemovedKeys(t *testing.T) {
	w := &walled{t: t, wall: time.Now()}
	gate, file := tokenGate(t, func(c *access.Config) { c.Reload = 5 * time.Millisecond })
	w.f = newFixture(t, echo, Config{RequestConfig: frontend.RequestConfig{Gate: gate}, RequireAuth: true})
	w.x, w.at = w.f.session(), w.f.cache.Now()
	replace := func(set string, keys int) {
		t.Helper()
		reloads := gate.Stats().Reloads
		if err := os.WriteFile(file+".new", []byte(set), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, 30*time.Second, func() error {
			if s := gate.Stats(); s.Reloads == reloads || s.TokenKeys != keys {
				return errors.New("the set was not loaded")
			}
			return nil
		})
	}
	login := token(secret, time.Now().Add(time.Hour), mayReadBlobs)
	blob := "$11\n{\"id\":\"00\"}"
	w.say(0, "AUTH "+login, "+OK")
	w.say(0, "GET blobs:00", blob)
	replace(keySet(secret, otherSecret), 2)
	w.say(checkKeyEvery, "GET blobs:00", blob)
	replace(keySet(otherSecret), 1)
	w.say(checkKeyEvery-1, "GET blobs:00", blob) // looked up less than 5 s ago
	w.say(1, "GET blobs:00", textNotLoggedIn)

	replace(keySet(secret), 1)
	w.say(0, "AUTH "+login, "+OK")
	w.say(0, "GET blobs:00", blob)
	other, _ := tokenGate(t, func(c *access.Config) { c.Audience = "another" })
	same, _ := tokenGate(t, nil)
	for _, next := range []struct {
		gate *access.Gate
		want string
	}{{same, "$-1"}, {other, textNotLoggedIn}} {
		v, err := w.f.server.Next(nil, Config{RequestConfig: frontend.RequestConfig{Gate: next.gate}, RequireAuth: true})
		if err != nil {
			t.Fatal(err)
		}
		w.f.server.Swap(v)
		want := next.want
		if want == "$-1" {
			want = "-ERR *" // there are no resources anymore, but the client is known
		}
		w.say(0, "GET depts:0", want)
	}
}

// TestTokensAreBoundedAsOverHTTP: wrong ones count as failed logins of the address and toward its
// rate; a token that cannot be checked does not count as a wrong password.
func TestTokensAreBoundedAsOverHTTP(t *testing.T) {
	gate, _ := tokenGate(t, nil)
	rate := limit.New(limit.Config{Rate: 0.001, Burst: 200})
	f := newFixture(t, echo, Config{RequestConfig: frontend.RequestConfig{Gate: gate, ClientLimit: rate}, RequireAuth: true})
	at := f.cache.Now()
	say := func(text string) string {
		x := f.server.open(1, netip.MustParseAddrPort("192.0.2.7:1"))
		c := &fakeConn{at: at}
		x.data(c, []byte(text+"\r\n"))
		return string(c.take())
	}
	hour := time.Now().Add(time.Hour)
	for i := range 18 { // each counts as a command, and ten for the wrong signature
		if got := say("AUTH " + token(otherSecret, hour, fmt.Sprintf(`,"n":%d`, i))); !strings.HasPrefix(got, "-WRONGPASS the signature") {
			t.Fatalf("wrong token %d: %q", i, got)
		}
	}
	if checks := gate.Stats().SignatureChecks; checks != 18 {
		t.Errorf("%d signatures were checked, want 18", checks)
	}
	for range 2 {
		say("PING")
	}
	if got := say("AUTH " + token(secret, hour, "")); !strings.HasPrefix(got, "-ERR too many commands from this address") {
		t.Errorf("after 18 wrong signatures: %q, want them counted", got)
	}

	f = newFixture(t, echo, Config{RequestConfig: frontend.RequestConfig{Gate: gate}, RequireAuth: true})
	at = f.cache.Now()
	for i := range loginBurst {
		if got := say("AUTH " + token(otherSecret, hour, fmt.Sprintf(`,"m":%d`, i))); !strings.HasPrefix(got, "-WRONGPASS") {
			t.Fatalf("wrong token %d: %q", i, got)
		}
	}
	checks := gate.Stats().SignatureChecks
	if got := say("AUTH " + token(secret, hour, `,"new":1`)); !strings.HasPrefix(got, "-ERR too many failed logins") || gate.Stats().SignatureChecks != checks {
		t.Errorf("after %d wrong tokens: %q, want a refusal without a check", loginBurst, got)
	}

	without, err := access.Open(access.Config{JWKSURL: "http://127.0.0.1:1/none", Audience: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(without.Close)
	f = newFixture(t, echo, Config{RequestConfig: frontend.RequestConfig{Gate: without}, RequireAuth: true})
	at = f.cache.Now()
	for range loginBurst + 1 {
		if got := say("AUTH " + token(secret, hour, "")); !strings.HasPrefix(got, "-OVERLOADED the keys that sign tokens are not known yet") {
			t.Fatalf("without a key set: %q", got)
		}
	}
}

// A session keeps no token, only its claims and a fingerprint of the key.
func TestSessionsKeepNoToken(t *testing.T) {
	gate, _ := tokenGate(t, nil)
	f := newFixture(t, echo, Config{RequestConfig: frontend.RequestConfig{Gate: gate}, RequireAuth: true})
	x, c := f.session(), &fakeConn{at: f.cache.Now()}
	login := token(secret, time.Now().Add(time.Hour), mayReadBlobs)
	x.data(c, []byte("AUTH "+login+"\r\n"))
	if got := string(c.take()); got != "+OK\r\n" {
		t.Fatal(got)
	}
	_, signature, _ := strings.Cut(login[strings.Index(login, ".")+1:], ".")
	if text := fmt.Sprintf("%+v %+v", x.hash, *x.caller.Load()); strings.Contains(text, signature) || x.by != byToken || x.hash != [32]byte{} {
		t.Errorf("the session holds %s", text)
	}
}
