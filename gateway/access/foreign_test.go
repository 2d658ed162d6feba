package access

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run runs a program in a folder and returns what it printed.
func run(t *testing.T, dir, stdin, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir, c.Stdin = dir, strings.NewReader(stdin)
	out, err := c.Output()
	if err != nil {
		if e, ok := err.(*exec.ExitError); ok {
			t.Fatalf("%s %v: %v %s", name, args, err, e.Stderr)
		}
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return string(out)
}

// TestTokensOfPython: tokens that Python's hmac signed, with another JSON writer.
func TestTokensOfPython(t *testing.T) {
	const script = `
import base64, hashlib, hmac, json, sys
def b64(b): return base64.urlsafe_b64encode(b).rstrip(b"=")
key, now = sys.argv[1].encode(), int(sys.argv[2])
for alg, h in ("HS256", hashlib.sha256), ("HS384", hashlib.sha384), ("HS512", hashlib.sha512):
    head = b64(json.dumps({"typ": "JWT", "alg": alg, "kid": "oct"}).encode())
    body = b64(json.dumps({"iss": "https://issuer.example", "aud": ["a", "slipstream"], "exp": now + 60.25,
        "sub": "J\u00fcrgen \U0001f600", "scope": "a b", "admin": True, "level": 3}, indent=2).encode())
    print((head + b"." + body + b"." + b64(hmac.new(key, head + b"." + body, h).digest())).decode())
`
	g, clock := newGate(t, nil)
	clock.at.Store(start.UnixNano())
	out := run(t, t.TempDir(), script, "python3", "-", string(octKey), "1767323045")
	tokens := strings.Fields(out)
	if len(tokens) != 3 {
		t.Fatalf("got %d tokens, want 3: %s", len(tokens), out)
	}
	rule := &Rule{Claims: map[string][]string{"scope": {"x", "b"}, "admin": {"true"}, "level": {"3"}}}
	for _, token := range tokens {
		c := accepted(t, g, withToken(token), "jwt:Jürgen_😀")
		if r := rule.Allows(c); r != nil {
			t.Errorf("got %q, want the rule to allow it", r.Detail)
		}
		refused(t, g, withToken(token[:len(token)-4]+"AAAA"), 401, "signature")
	}
}

// TestTokensOfOpenSSL: keys that OpenSSL made and a signature of its own. The key
// set is written by hand from the modulus that it prints.
func TestTokensOfOpenSSL(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "", "openssl", "genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "key.pem")
	const jwks = `
import base64, subprocess
out = subprocess.run(["openssl", "rsa", "-in", "key.pem", "-noout", "-modulus"], check=True, capture_output=True).stdout.decode()
n = bytes.fromhex(out.strip().split("=")[1])
print('{"keys":[{"e":"AQAB","kty":"RSA","kid":"o","n":"%s"}]}' % base64.urlsafe_b64encode(n).rstrip(b"=").decode())
`
	set := run(t, dir, jwks, "python3", "-")
	g, _ := newGate(t, func(c *Config) { c.JWKSFile = tempFile(t, "jwks.json", []byte(set)) })
	text := b64(`{"alg":"RS256","kid":"o"}`) + "." + b64(claimsJSON(t, nil))
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	signature := run(t, dir, "", "openssl", "dgst", "-sha256", "-sign", "key.pem", "text")
	accepted(t, g, withToken(text+"."+b64(signature)), "jwt:alice")
	refused(t, g, withToken(text[:len(text)-1]+"."+b64(signature)), 401, "")
}
