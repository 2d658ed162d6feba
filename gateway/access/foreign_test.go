package access

import (
	"os/exec"
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
	g, _ := newGate(t, nil)
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

// What OpenSSL 3 made: openssl genpkey for both keys, openssl dgst -sha256 -sign
// over header and payload, and for ES256 r and s taken out of their DER. The
// private keys are gone.
const (
	opensslSet = `{
 "keys": [
  {
   "kty": "RSA",
   "kid": "r",
   "alg": "RS256",
   "use": "sig",
   "e": "AQAB",
   "n": "oJq4MUQb-_WygR01w9ALQDI0SCUqc8eJFYqUCRXWdAoOIxYFjP3nsuRllkCjUenVp9nlcdAkfx5Ysehe-Z5NtgYAIIcPt1KcmWnl5omUFG_lgFqLDaFvWs8slpPbDECvGmnc6ezOSYSaij6FyyFrK4iIs_5d5htZl_xNghdtgxPrzydJaFnx9Z3qNQdwc98uwarvff8u9UgC4Ls-PfVpL3wnVc2G6TnraiTicD8bPvoN2Vero-g9YD24wnnffcMqF1XAxz_PRb4OVj4VppReyrBBO62n9f0AF4Zeb83GodDXLke7cNqQ3Tpn2Nr6waDgSeEEf3snemk7UZubB0nYBQ"
  },
  {
   "kty": "EC",
   "kid": "e",
   "crv": "P-256",
   "x": "VgQAbpt_p1lvSB0JsS1sW61DLONxps2A0Qth_8rGpw4",
   "y": "FsWUTywGZSQ7wcwgsdhfpsyevTYnI1r0pHY3ULx3vlg"
  }
 ]
}`
	opensslRS256 = "eyJhbGciOiJSUzI1NiIsImtpZCI6InIifQ." +
		"eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjoic2xpcHN0cmVhbSIsInN1YiI6Im9wZW5zc2wiLCJleHAiOjE3NjczMjMzNDV9." +
		"R3Tk-iiZEU-0_4kFL9AiH_xZKxuKJyuItjo_gqab2mTyNFWcBYE5DB84XbSPkiYYt6XFWuoHmGtFEjIFRzp7CRjDATLllzTiYoEu" +
		"Gy4kRAe2RdcnJx7EcbGpsFIps_kJKP-ICB5MMYzUB_cSC8bGqfT-oqC3u2B41vx1Ic00NDP0Oau6I2nPjy7_JDjQgXHRrNUIDbJa" +
		"KTMrX5FtREXXb1RpxxyUU7yfrVSyBXl-u2m2pwTDvJxu1WSmPRdvqh1_eLis8ezImOu8w-fIfJhw2QmmXlvgL2f05VEq9lvDcrRP" +
		"qmUOKY4ZbBZRADWLfF1W0QivBYN_XupxVK_UElVjyQ"
	opensslES256 = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImUifQ." +
		"eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjoic2xpcHN0cmVhbSIsInN1YiI6Im9wZW5zc2wiLCJleHAiOjE3NjczMjMzNDV9." +
		"NleKn-g4usBhhr-NzaRmYsZ7JOxLG817wRwUUoX9W2O1ZO9cCO5VldNjG0jLCLas49z8eoMHCsm0Uwl1wvjMFw"
)

// TestTokensOfOpenSSL: keys and signatures that Go had no part in.
func TestTokensOfOpenSSL(t *testing.T) {
	g, _ := newGate(t, func(c *Config) { c.JWKSFile = tempFile(t, "jwks.json", []byte(opensslSet)) })
	for _, token := range []string{opensslRS256, opensslES256} {
		accepted(t, g, withToken(token), "jwt:openssl")
		i := strings.LastIndexByte(token, '.') - 1
		refused(t, g, withToken(token[:i-4]+"AAAA"+token[i:]), 401, "signature")
		refused(t, g, withToken(token[:i+2]+strings.Repeat("A", len(token)-i-2)), 401, "signature")
	}
}
