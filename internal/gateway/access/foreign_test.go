package access

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run runs a program in a directory and returns what it printed.
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

// TestTokensOfPython: tokens that Python signed with hmac, and encoded with its own
// JSON writer, are accepted.
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

// TestTokensOfOpenSSL: keys and signatures that were made without Go are accepted.
func TestTokensOfOpenSSL(t *testing.T) {
	g, _ := newGate(t, func(c *Config) { c.JWKSFile = tempFile(t, "jwks.json", []byte(opensslSet)) })
	for _, token := range []string{opensslRS256, opensslES256} {
		accepted(t, g, withToken(token), "jwt:openssl")
		i := strings.LastIndexByte(token, '.') - 1
		refused(t, g, withToken(token[:i-4]+"AAAA"+token[i:]), 401, "signature")
		refused(t, g, withToken(token[:i+2]+strings.Repeat("A", len(token)-i-2)), 401, "signature")
	}
}

// tokensOf has a program of another language print a key set and, each in a line, four
// valid tokens and one with a salt of the wrong length.
func tokensOf(t *testing.T, name, file, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(run(t, dir, "", name, file)), "\n")
	if len(lines) != 6 {
		t.Fatalf("got %d lines, want a key set, four tokens and an invalid one: %s", len(lines), lines)
	}
	g, _ := newGate(t, func(c *Config) { c.JWKSFile = tempFile(t, "jwks.json", []byte(lines[0])) })
	for _, token := range lines[1:5] {
		accepted(t, g, withToken(token), "jwt:abroad")
		i := strings.LastIndexByte(token, '.') - 1
		refused(t, g, withToken(token[:i-4]+"AAAA"+token[i:]), 401, "signature")
	}
	refused(t, g, withToken(lines[5]), 401, "signature")
}

// TestTokensOfNode: Node signs with EdDSA and PSS of OpenSSL.
func TestTokensOfNode(t *testing.T) {
	tokensOf(t, "node", "sign.js", `
const c = require("crypto");
const rsa = c.generateKeyPairSync("rsa", { modulusLength: 2048 }), ed = c.generateKeyPairSync("ed25519");
const jwk = (pair, kid) => ({ ...pair.publicKey.export({ format: "jwk" }), kid, use: "sig" });
console.log(JSON.stringify({ keys: [jwk(rsa, "r"), jwk(ed, "e")] }));
const b64 = (x) => Buffer.from(x).toString("base64url");
function token(alg, kid, sign) {
  const text = b64(JSON.stringify({ alg, kid, typ: "JWT" })) + "." + b64(JSON.stringify({ iss: "https://issuer.example", aud: "slipstream", sub: "abroad", exp: 1767323345 }));
  console.log(text + "." + b64(sign(Buffer.from(text))));
}
const pss = (hash, saltLength) => (text) => c.sign(hash, text, { key: rsa.privateKey, padding: c.constants.RSA_PKCS1_PSS_PADDING, saltLength });
token("EdDSA", "e", (text) => c.sign(null, text, ed.privateKey));
token("PS256", "r", pss("sha256", 32));
token("PS384", "r", pss("sha384", 48));
token("PS512", "r", pss("sha512", 64));
token("PS256", "r", pss("sha256", 20));
`)
}

// TestTokensOfJava: Java signs with its own library, which shares no code with
// OpenSSL.
func TestTokensOfJava(t *testing.T) {
	tokensOf(t, "java", "Sign.java", `
import java.math.BigInteger;
import java.security.*;
import java.security.interfaces.*;
import java.security.spec.*;
import java.util.*;
public class Sign {
  static String b64(byte[] b) { return Base64.getUrlEncoder().withoutPadding().encodeToString(b); }
  static byte[] number(BigInteger n) { byte[] b = n.toByteArray(); return b[0] == 0 ? Arrays.copyOfRange(b, 1, b.length) : b; }
  static void token(String alg, String kid, Signature s, PrivateKey key) throws Exception {
    String text = b64(("{\"kid\":\"" + kid + "\",\"alg\":\"" + alg + "\"}").getBytes()) + "."
      + b64("{\"sub\":\"abroad\",\"aud\":[\"slipstream\"],\"iss\":\"https://issuer.example\",\"exp\":1767323345}".getBytes());
    s.initSign(key);
    s.update(text.getBytes());
    System.out.println(text + "." + b64(s.sign()));
  }
  static Signature pss(String hash, int salt) throws Exception {
    Signature s = Signature.getInstance("RSASSA-PSS");
    s.setParameter(new PSSParameterSpec(hash, "MGF1", new MGF1ParameterSpec(hash), salt, 1));
    return s;
  }
  public static void main(String[] args) throws Exception {
    KeyPairGenerator g = KeyPairGenerator.getInstance("RSA");
    g.initialize(2048);
    KeyPair rsa = g.generateKeyPair(), ed = KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
    RSAPublicKey r = (RSAPublicKey) rsa.getPublic();
    EdECPoint p = ((EdECPublicKey) ed.getPublic()).getPoint();
    byte[] x = new byte[32], y = number(p.getY());
    for (int i = 0; i < y.length; i++) x[i] = y[y.length - 1 - i];
    if (p.isXOdd()) x[31] |= (byte) 0x80;
    System.out.println("{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"r\",\"n\":\"" + b64(number(r.getModulus())) + "\",\"e\":\"" + b64(number(r.getPublicExponent()))
      + "\"},{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"e\",\"x\":\"" + b64(x) + "\"}]}");
    token("EdDSA", "e", Signature.getInstance("Ed25519"), ed.getPrivate());
    token("PS256", "r", pss("SHA-256", 32), rsa.getPrivate());
    token("PS384", "r", pss("SHA-384", 48), rsa.getPrivate());
    token("PS512", "r", pss("SHA-512", 64), rsa.getPrivate());
    token("PS512", "r", pss("SHA-512", 20), rsa.getPrivate());
  }
}
`)
}
