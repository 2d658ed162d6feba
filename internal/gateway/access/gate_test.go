package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// start is the time of the tests' clocks.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// clock is set by tests.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(start.UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

// Private keys of the tests' issuer: generating them takes most of a test's time.
var (
	rsaKey   = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	otherRSA = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	ecKey    = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	ec384Key = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)) })
	ec521Key = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)) })
	edKey    = sync.OnceValue(func() ed25519.PrivateKey { _, k, err := ed25519.GenerateKey(rand.Reader); return must(k, err) })
	octKey   = []byte("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// keySetJSON writes the public parts as a key set.
func keySetJSON(t testing.TB, keys ...jose.JSONWebKey) []byte {
	t.Helper()
	data, err := json.MarshalIndent(jose.JSONWebKeySet{Keys: keys}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// issuerKeys are one of each kind, under the names of their algorithms.
func issuerKeys() []jose.JSONWebKey {
	return []jose.JSONWebKey{
		{KeyID: "rsa", Key: &rsaKey().PublicKey},
		{KeyID: "ec", Key: &ecKey().PublicKey},
		{KeyID: "ec384", Key: &ec384Key().PublicKey},
		{KeyID: "ec521", Key: &ec521Key().PublicKey},
		{KeyID: "ed", Key: edKey().Public()},
		{KeyID: "oct", Key: octKey},
	}
}

func tempFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	testkit.WriteAtOnce(t, path, data)
	return path
}

const webKey = "slk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// keysText is a key file with the key of "web".
func keysText(t testing.TB) []byte {
	t.Helper()
	line, err := KeyLine("web", webKey)
	if err != nil {
		t.Fatal(err)
	}
	return []byte("# keys\n" + line + "\n")
}

// newGate opens a gate that knows webKey and the issuer's keys, and never checks
// its files by itself.
func newGate(t testing.TB, change func(*Config)) (*Gate, *clock) {
	t.Helper()
	cfg := Config{
		KeysFile: tempFile(t, "keys.txt", keysText(t)),
		JWKSFile: tempFile(t, "jwks.json", keySetJSON(t, issuerKeys()...)),
		Issuer:   "https://issuer.example", Audience: "slipstream", Reload: -1,
	}
	if change != nil {
		change(&cfg)
	}
	c := newClock()
	cfg.Now = c.now
	g, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g, c
}

// claimSet is a payload that is valid for five minutes, with changes. A nil value
// omits a claim.
func claimSet(changes map[string]any) map[string]any {
	c := map[string]any{
		"iss": "https://issuer.example", "aud": "slipstream", "sub": "alice",
		"iat": start.Unix(), "exp": start.Add(5 * time.Minute).Unix(), "scope": "depts:read orders:read",
	}
	for k, v := range changes {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	return c
}

// sign makes a token with go-jose.
func sign(t testing.TB, alg jose.SignatureAlgorithm, key any, kid string, payload any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithType("JWT")
	if kid != "" {
		options.WithHeader("kid", kid)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	data, ok := payload.(string)
	if !ok {
		data = string(must(json.Marshal(payload)))
	}
	signed, err := signer.Sign([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return must(signed.CompactSerialize())
}

func withToken(token string) Credentials { return Credentials{Authorization: "Bearer " + token} }

// refused checks a refusal: status and a part of the detail, that the challenge
// is a well-formed field value, and that nothing of the token is in either.
func refused(t testing.TB, g *Gate, c Credentials, status int, detail string) {
	t.Helper()
	caller, refusal := g.Identify(context.Background(), c)
	if caller != nil || refusal == nil {
		t.Errorf("got caller %v, refusal %v, want a refusal with %q", caller, refusal, detail)
		return
	}
	if refusal.Status != status || !strings.Contains(refusal.Detail, detail) {
		t.Errorf("got %d %q, want %d %q", refusal.Status, refusal.Detail, status, detail)
	}
	checkChallenge(t, refusal)
}

func checkChallenge(t testing.TB, r *Refusal) {
	t.Helper()
	if r.Status == 401 && r.Challenge == "" {
		t.Errorf("a 401 without a challenge: %q", r.Detail)
	}
	for _, c := range []byte(r.Detail) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			t.Errorf("detail %q holds %q, which no quoted string of RFC 6750 may", r.Detail, c)
		}
	}
	if strings.Contains(r.Challenge, "error=") && !strings.HasSuffix(r.Challenge, `, error_description="`+r.Detail+`"`) {
		t.Errorf("challenge %q does not end with the detail %q", r.Challenge, r.Detail)
	}
	if r.Challenge != "" && !strings.HasPrefix(r.Challenge, challengeBearer) && r.Challenge != challengeKey {
		t.Errorf("got challenge %q, want the scheme Bearer or ApiKey and the realm", r.Challenge)
	}
}

func accepted(t testing.TB, g *Gate, c Credentials, name string) *Caller {
	t.Helper()
	caller, refusal := g.Identify(context.Background(), c)
	if refusal != nil {
		t.Errorf("got refusal %d %q, want caller %q", refusal.Status, refusal.Detail, name)
		return nil
	}
	if caller == nil || caller.Name() != name || caller.ID() == 0 {
		t.Errorf("got caller %+v, want %q and an ID", caller, name)
	}
	return caller
}

func TestZeroGateKnowsNobody(t *testing.T) {
	g, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for _, c := range []Credentials{{}, {APIKey: webKey}, {Authorization: "Basic eDp5"}, {Duplicate: true}} {
		if caller, refusal := g.Identify(context.Background(), c); caller != nil || refusal != nil {
			t.Errorf("%+v: got %v, %v, want neither", c, caller, refusal)
		}
	}
}

func TestIdentify(t *testing.T) {
	g, _ := newGate(t, nil)
	token := sign(t, jose.RS256, rsaKey(), "rsa", claimSet(nil))
	if caller, refusal := g.Identify(context.Background(), Credentials{}); caller != nil || refusal != nil {
		t.Errorf("no credentials: got %v, %v, want neither", caller, refusal)
	}
	key := accepted(t, g, Credentials{APIKey: webKey}, "key:web")
	alice := accepted(t, g, withToken(token), "jwt:alice")
	again := accepted(t, g, Credentials{Authorization: "bearer   " + token}, "jwt:alice")
	if key.ID() == alice.ID() || alice.ID() != again.ID() {
		t.Errorf("IDs: key %d, alice %d, alice again %d", key.ID(), alice.ID(), again.ID())
	}
	both := Credentials{APIKey: webKey, Authorization: "Bearer " + token}
	if accepted(t, g, both, "jwt:alice") != alice {
		t.Error("the same token is another caller if it comes with a key")
	}
	refused(t, g, Credentials{APIKey: webKey[1:], Authorization: "Bearer " + token}, 401, "API key is not known")
	refused(t, g, Credentials{APIKey: webKey, Authorization: "Bearer " + token[1:]}, 401, "token")
	both.Duplicate = true
	refused(t, g, both, 400, "more than once")
	for _, c := range []struct {
		credentials Credentials
		status      int
		detail      string
	}{
		{Credentials{APIKey: webKey[:len(webKey)-1]}, 401, "API key is not known"},
		{Credentials{APIKey: webKey + "A"}, 401, "API key is not known"},
		{Credentials{APIKey: "x"}, 401, "API key is not known"},
		{Credentials{APIKey: strings.Repeat("x", 257)}, 401, "longer than 256"},
		{Credentials{Authorization: "Basic eDp5"}, 401, "expected Authorization: Bearer"},
		{Credentials{Authorization: " "}, 401, "expected Authorization: Bearer"},
		{Credentials{Authorization: "Bearer"}, 400, "one token"},
		{Credentials{Authorization: "Bearer "}, 400, "one token"},
		{withToken(token + " " + token), 400, "one token"},
		{withToken(token + ", Bearer " + token), 400, "one token"},
		{withToken(token + ","), 400, "one token"},
		{Credentials{Authorization: token}, 401, "expected Authorization: Bearer"},
	} {
		refused(t, g, c.credentials, c.status, c.detail)
	}
}

func TestHalfAGate(t *testing.T) {
	keys, _ := newGate(t, func(c *Config) { c.JWKSFile = "" })
	refused(t, keys, withToken("a.b.c"), 401, "tokens are not accepted here")
	accepted(t, keys, Credentials{APIKey: webKey}, "key:web")
	tokens, _ := newGate(t, func(c *Config) { c.KeysFile = "" })
	refused(t, tokens, Credentials{APIKey: webKey}, 401, "API keys are not accepted here")
	accepted(t, tokens, withToken(sign(t, jose.ES256, ecKey(), "ec", claimSet(nil))), "jwt:alice")
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.KeysFile += "x" }, "keys.txtx"},
		{func(c *Config) { c.JWKSFile = filepath.Dir(c.JWKSFile) }, "it is a directory; expected a regular file"},
		{func(c *Config) { c.Algorithms = []string{"RS256", "none"} }, `"none"`},
		{func(c *Config) { c.Algorithms = []string{"RSA-OAEP"} }, `"RSA-OAEP"`},
		{func(c *Config) { c.Leeway = 2 * time.Hour }, "at most 1h"},
	} {
		cfg := Config{KeysFile: tempFile(t, "keys.txt", keysText(t)), JWKSFile: tempFile(t, "jwks.json", keySetJSON(t, issuerKeys()...)), Log: slog.Default()}
		c.change(&cfg)
		g, err := Open(cfg)
		if err == nil {
			g.Close()
			t.Errorf("opened, want an error with %q", c.want)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
}
