package access

import (
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

func b64(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// forge makes a token by hand, signed with HMAC-SHA-256.
func forge(header, payload string, secret []byte) string {
	h := hmac.New(sha256.New, secret)
	text := b64(header) + "." + b64(payload)
	h.Write([]byte(text))
	return text + "." + b64(string(h.Sum(nil)))
}

// rehead replaces the header of a token and keeps the signature.
func rehead(token, header string) string {
	_, rest, _ := strings.Cut(token, ".")
	return b64(header) + "." + rest
}

// pss signs as PS256 does, with a salt of another length.
func pss(t testing.TB, salt int) string {
	t.Helper()
	text := b64(`{"alg":"PS256","kid":"rsa"}`) + "." + b64(claimsJSON(t, nil))
	hash := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPSS(rand.Reader, rsaKey(), crypto.SHA256, hash[:], &rsa.PSSOptions{SaltLength: max(salt, rsa.PSSSaltLengthAuto)})
	if salt == 0 { // which the library interprets as the longest one
		signature = pssWithoutSalt(rsaKey(), hash[:])
	}
	if err == nil { // it is right except for the salt
		err = rsa.VerifyPSS(&rsaKey().PublicKey, crypto.SHA256, hash[:], signature, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + b64(string(signature))
}

// pssWithoutSalt encodes and signs a hash by RFC 8017, section 9.1.1, with no salt and SHA-256.
func pssWithoutSalt(key *rsa.PrivateKey, hash []byte) []byte {
	length := (key.N.BitLen() - 1 + 7) / 8
	h := sha256.Sum256(append(make([]byte, 8), hash...))
	block := make([]byte, length-32-1)
	block[len(block)-1] = 1
	for i, counter := 0, uint32(0); i < len(block); counter++ {
		mask := sha256.Sum256(binary.BigEndian.AppendUint32(h[:len(h):len(h)], counter))
		for _, m := range mask[:min(32, len(block)-i)] {
			block[i] ^= m
			i++
		}
	}
	block[0] &= 0xff >> (8*length - (key.N.BitLen() - 1))
	encoded := append(append(block, h[:]...), 0xbc)
	signature := new(big.Int).Exp(new(big.Int).SetBytes(encoded), key.D, key.N)
	return signature.FillBytes(make([]byte, key.Size()))
}

// malleated adds the order of the group to the second half of an Ed25519 signature, which names
// the same point (RFC 8032, section 8.4).
func malleated(token string) string {
	i := strings.LastIndexByte(token, '.')
	signature := must(base64.RawURLEncoding.DecodeString(token[i+1:]))
	order, _ := new(big.Int).SetString("27742317777372353535851937790883648493", 10)
	order.Add(order, new(big.Int).Lsh(big.NewInt(1), 252))
	s := slices.Clone(signature[32:])
	slices.Reverse(s)
	sum := new(big.Int).Add(new(big.Int).SetBytes(s), order).FillBytes(make([]byte, 32))
	slices.Reverse(sum)
	return token[:i+1] + b64(string(signature[:32])+string(sum))
}

func claimsJSON(t testing.TB, changes map[string]any) string {
	t.Helper()
	_, rest, _ := strings.Cut(sign(t, jose.HS256, octKey, "", claimSet(changes)), ".")
	payload, _, _ := strings.Cut(rest, ".")
	return string(must(base64.RawURLEncoding.DecodeString(payload)))
}

// TestAlgorithms: a token of each algorithm is accepted with its key, with and
// without kid.
func TestAlgorithms(t *testing.T) {
	for _, c := range []struct {
		alg jose.SignatureAlgorithm
		key any
		kid string
	}{
		{jose.HS256, octKey, "oct"}, {jose.HS384, octKey, "oct"}, {jose.HS512, octKey, "oct"},
		{jose.RS256, rsaKey(), "rsa"}, {jose.RS384, rsaKey(), "rsa"}, {jose.RS512, rsaKey(), "rsa"},
		{jose.ES256, ecKey(), "ec"}, {jose.ES384, ec384Key(), "ec384"}, {jose.ES512, ec521Key(), "ec521"},
		{jose.PS256, rsaKey(), "rsa"}, {jose.PS384, rsaKey(), "rsa"}, {jose.PS512, rsaKey(), "rsa"}, {jose.EdDSA, edKey(), "ed"},
	} {
		t.Run(string(c.alg), func(t *testing.T) {
			g, _ := newGate(t, nil)
			accepted(t, g, withToken(sign(t, c.alg, c.key, c.kid, claimSet(nil))), "jwt:alice")
			accepted(t, g, withToken(sign(t, c.alg, c.key, "", claimSet(nil))), "jwt:alice")
			only, _ := newGate(t, func(cfg *Config) { cfg.Algorithms = []string{"ES256", "HS256"} })
			if token := withToken(sign(t, c.alg, c.key, c.kid, claimSet(nil))); c.alg == jose.ES256 || c.alg == jose.HS256 {
				accepted(t, only, token, "jwt:alice")
			} else {
				refused(t, only, token, 401, "algorithm of the token is not allowed")
			}
		})
	}
}

// TestForgedTokens: a token that is not signed with the right key and the right
// algorithm is refused, whatever its content.
func TestForgedTokens(t *testing.T) {
	g, _ := newGate(t, nil)
	payload := claimsJSON(t, nil)
	good := sign(t, jose.RS256, rsaKey(), "rsa", claimSet(nil))
	parts := strings.Split(good, ".")
	other := strings.Split(sign(t, jose.RS256, rsaKey(), "rsa", claimSet(map[string]any{"sub": "root"})), ".")
	der := must(x509.MarshalPKIXPublicKey(&rsaKey().PublicKey))
	for _, c := range []struct {
		name, token string
		detail      string
	}{
		{"another's key", sign(t, jose.RS256, otherRSA(), "rsa", claimSet(nil)), "signature of the token is wrong"},
		{"another's key, no kid", sign(t, jose.RS256, otherRSA(), "", claimSet(nil)), "signature of the token is wrong"},
		{"payload of another", parts[0] + "." + other[1] + "." + parts[2], "signature of the token is wrong"},
		{"half a signature", parts[0] + "." + parts[1] + "." + parts[2][:172], "signature of the token is wrong"},
		{"no signature", parts[0] + "." + parts[1] + ".", "not signed"},
		{"none", forge(`{"alg":"none"}`, payload, nil), "not signed"},
		{"nOnE", forge(`{"alg":"nOnE","kid":"oct"}`, payload, octKey), "not signed"},
		{"no algorithm", forge(`{"kid":"oct"}`, payload, octKey), "algorithm of the token is not allowed"},
		{"empty algorithm", forge(`{"alg":"","kid":"oct"}`, payload, octKey), "algorithm of the token is not allowed"},
		{"lower case", forge(`{"alg":"hs256","kid":"oct"}`, payload, octKey), "algorithm of the token is not allowed"},
		{"PS256 with a signature of RS256", b64(`{"alg":"PS256","kid":"rsa"}`) + "." + parts[1] + "." + parts[2], "signature of the token is wrong"},
		{"RS256 with a signature of PS256", rehead(sign(t, jose.PS256, rsaKey(), "rsa", claimSet(nil)), `{"alg":"RS256","kid":"rsa"}`), "signature of the token is wrong"},
		{"PS384 with a hash of PS256", rehead(sign(t, jose.PS256, rsaKey(), "rsa", claimSet(nil)), `{"alg":"PS384","kid":"rsa"}`), "signature of the token is wrong"},
		{"PS256 without a salt", pss(t, 0), "signature of the token is wrong"},
		{"PS256 with half a salt", pss(t, 16), "signature of the token is wrong"},
		{"PS256 with the longest salt", pss(t, 222), "signature of the token is wrong"},
		{"PS256 of another's key", sign(t, jose.PS256, otherRSA(), "rsa", claimSet(nil)), "signature of the token is wrong"},
		{"PS256 with the key of EdDSA", rehead(sign(t, jose.EdDSA, edKey(), "ed", claimSet(nil)), `{"alg":"PS256","kid":"ed"}`), "not known here, or not for this algorithm"},
		{"EdDSA with an RSA key", rehead(good, `{"alg":"EdDSA","kid":"rsa"}`), "not known here, or not for this algorithm"},
		{"EdDSA with an EC key", rehead(good, `{"alg":"EdDSA","kid":"ec"}`), "not known here, or not for this algorithm"},
		{"ES256 with the key of EdDSA", rehead(good, `{"alg":"ES256","kid":"ed"}`), "not known here, or not for this algorithm"},
		{"EdDSA, zeros", b64(`{"alg":"EdDSA","kid":"ed"}`) + "." + b64(payload) + "." + b64(strings.Repeat("\x00", 64)), "signature of the token is wrong"},
		{"EdDSA, half a signature", b64(`{"alg":"EdDSA","kid":"ed"}`) + "." + b64(payload) + "." + b64(strings.Repeat("\x01", 32)), "signature of the token is wrong"},
		{"EdDSA, a second signature by S + L", malleated(sign(t, jose.EdDSA, edKey(), "ed", claimSet(nil))), "signature of the token is wrong"},
		{"Ed25519 key as a secret", forge(`{"alg":"HS256","kid":"ed"}`, payload, edKey().Public().(ed25519.PublicKey)), "not known here, or not for this algorithm"},
		{"Ed25519 key as a secret, no kid", forge(`{"alg":"HS256"}`, payload, edKey().Public().(ed25519.PublicKey)), "signature of the token is wrong"},
		{"algorithm is a number", forge(`{"alg":256}`, payload, octKey), "header of the token"},
		{"RSA key as a secret, PEM", forge(`{"alg":"HS256","kid":"rsa"}`, payload, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), "not known here, or not for this algorithm"},
		{"RSA key as a secret, DER", forge(`{"alg":"HS256","kid":"rsa"}`, payload, der), "not known here, or not for this algorithm"},
		{"RSA key as a secret, N", forge(`{"alg":"HS256","kid":"rsa"}`, payload, rsaKey().N.Bytes()), "not known here, or not for this algorithm"},
		{"RSA key as a secret, no kid", forge(`{"alg":"HS256"}`, payload, der), "signature of the token is wrong"},
		{"RSA key for ES256", forge(`{"alg":"ES256","kid":"rsa"}`, payload, der), "not known here, or not for this algorithm"},
		{"curve of another algorithm", forge(`{"alg":"ES384","kid":"ec"}`, payload, der), "not known here, or not for this algorithm"},
		{"empty secret", forge(`{"alg":"HS256","kid":"oct"}`, payload, nil), "signature of the token is wrong"},
		{"unknown kid", forge(`{"alg":"HS256","kid":"old"}`, payload, octKey), "not known here"},
		{"kid traversal", forge(`{"alg":"HS256","kid":"../../../../dev/null"}`, payload, nil), "not known here"},
		{"kid of a statement", forge(`{"alg":"HS256","kid":"x' UNION SELECT 'oct"}`, payload, octKey), "not known here"},
		{"kid is a list", forge(`{"alg":"HS256","kid":["oct"]}`, payload, octKey), "header of the token"},
		{"zeros for ES256", b64(`{"alg":"ES256","kid":"ec"}`) + "." + b64(payload) + "." + b64(strings.Repeat("\x00", 64)), "signature of the token is wrong"},
		{"order of the curve for ES256", b64(`{"alg":"ES256","kid":"ec"}`) + "." + b64(payload) + "." + b64(strings.Repeat(string(ecKey().Params().N.Bytes()), 2)), "signature of the token is wrong"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, g, withToken(c.token), 401, c.detail) })
	}
}

// TestHeaders: some headers are refused although the signature is valid.
func TestHeaders(t *testing.T) {
	g, _ := newGate(t, nil)
	payload := claimsJSON(t, nil)
	for _, c := range []struct{ header, detail string }{
		{`{"alg":"HS256","kid":"oct","crit":["exp"],"exp":1}`, "crit"},
		{`{"alg":"HS256","kid":"oct","crit":[]}`, "crit"},
		{`{"alg":"HS256","kid":"oct","b64":false}`, "b64"},
		{`{"alg":"HS256","kid":"oct","b64":true,"crit":["b64"]}`, "crit"},
		{`{"alg":"HS256","kid":"oct","jwk":{"kty":"oct","k":"AAAA"}}`, "its own key"},
		{`{"alg":"HS256","kid":"oct","x5c":["AAAA"]}`, "its own key"},
		{`{"alg":"HS256","kid":"oct","cty":"JWT"}`, "another token"},
		{`{"alg":"HS256","kid":"oct","cty":"jwt"}`, "another token"},
		{`{"alg":"HS256","kid":"oct","enc":"A128GCM"}`, "encrypted"},
		{`{"alg":"none","alg":"HS256","kid":"oct"}`, "repeated members"},
		{`{"alg":"HS256","kid":"oct","kid":"oct"}`, "repeated members"},
		{`{"alg":"HS256","\u0061lg":"HS256","kid":"oct"}`, "repeated members"},
		{`{"alg":"HS256","kid":"oct"} {}`, "header of the token"},
		{`{"alg":"HS256","kid":"oct"`, "header of the token"},
		{`["HS256"]`, "header of the token"},
		{`null`, "header of the token"},
		{`{"alg":"HS256","kid":"oct","x":{"y":1}}`, "strings, numbers and Booleans"},
		{`{"alg":"HS256","kid":"oct","x":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}`, "strings, numbers and Booleans"},
		{`{"alg":"HS256","kid":"oct","x":"` + strings.Repeat("x", 2100) + `"}`, "at most 2 KiB"},
		{"{\"alg\":\"HS256\",\"kid\":\"oct\",\"x\":\"\xff\"}", "header of the token"},
	} {
		t.Run(c.header[:min(60, len(c.header))], func(t *testing.T) {
			refused(t, g, withToken(forge(c.header, payload, octKey)), 401, c.detail)
		})
	}
	for _, h := range []string{
		`{"alg":"HS256","kid":"oct","typ":"anything","jku":"https://evil.example/","x5u":"https://evil.example/","x5t":"AAAA"}`,
		` { "kid" : "\u006fct" , "alg" : "HS256" , "iat": 1, "x": true } `,
		`{"alg":"HS256","kid":""}`,
	} {
		accepted(t, g, withToken(forge(h, payload, octKey)), "jwt:alice")
	}
}

// TestOuterForm: text that does not look like a token is refused before it is
// parsed.
func TestOuterForm(t *testing.T) {
	g, _ := newGate(t, nil)
	good := sign(t, jose.HS256, octKey, "oct", claimSet(nil))
	for _, c := range []struct{ token, detail string }{
		{"x", "three parts"}, {"a.b", "three parts"}, {"a.b.c.d", "three parts"}, {"..", "three parts"},
		{".b.c", "three parts"}, {"a..c", "three parts"}, {"a.b.c.d.e", "encrypted"},
		{good + "=", "three parts"}, {good + "\n", "three parts"}, {good + "%", "three parts"},
		{strings.Replace(good, ".", "+.", 1), "three parts"}, {good + "\x00", "three parts"}, {good + "ä", "three parts"},
		{strings.Repeat("a", 8193), "longer than 8 KiB"}, {strings.Repeat("a", 9000), "longer than 8 KiB"},
		{strings.Repeat("a", 1<<20), "longer than 8 KiB"}, {strings.Repeat("a", 8192), "three parts"},
		{strings.Repeat(".", 8192), "three parts"}, {b64("{}") + ".a.a", "base64url"},
	} {
		refused(t, g, withToken(c.token), 401, c.detail)
	}
	// 43 digits hold 256 bits and 2 spare ones, which must be zero.
	last := strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", good[len(good)-1])
	for spare := 1; spare < 4; spare++ {
		twin := good[:len(good)-1] + string("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[last|spare])
		if twin != good {
			refused(t, g, withToken(twin), 401, "base64url")
		}
	}
	if n := g.Stats().SignatureChecks; n != 0 {
		t.Errorf("%d signatures were computed, want none", n)
	}
	accepted(t, g, withToken(good), "jwt:alice")
}

// TestClaims: a token with a valid signature is refused because of its claims.
func TestClaims(t *testing.T) {
	g, _ := newGate(t, nil)
	now := start.Unix()
	many := make(map[string]any)
	for i := range 65 {
		many["claim"+strconv.Itoa(i)] = i
	}
	for _, c := range []struct {
		name    string
		changes map[string]any
		detail  string // "" is accepted
	}{
		{"all is well", nil, ""},
		{"expired", map[string]any{"exp": now - 3600}, "expired at 2026-01-02T02:04:05Z"},
		{"expired just now", map[string]any{"exp": now - 30}, "expired at 2026-01-02T03:03:35Z"},
		{"within the leeway", map[string]any{"exp": now - 29}, ""},
		{"no exp", map[string]any{"exp": nil}, "no time of expiry"},
		{"exp is 0", map[string]any{"exp": 0}, "expired at 1970-01-01T00:00:00Z"},
		{"exp is negative", map[string]any{"exp": -1}, "a time of the token"},
		{"exp is a string", map[string]any{"exp": strconv.FormatInt(now+60, 10)}, "a time of the token"},
		{"exp is a fraction", map[string]any{"exp": float64(now) + 60.5}, ""},
		{"exp is a past fraction", map[string]any{"exp": float64(now) - 30.5}, "expired"},
		{"exp in milliseconds", map[string]any{"exp": (now + 60) * 1000}, "between the years 1970 and 9999"},
		{"exp is huge", map[string]any{"exp": 1e300}, "a time of the token"},
		{"exp is in the year 9999", map[string]any{"exp": int64(253_402_300_799)}, ""},
		{"exp is true", map[string]any{"exp": true}, "a time of the token"},
		{"exp is a list", map[string]any{"exp": []any{now + 60}}, "a time of the token"},
		{"not yet", map[string]any{"nbf": now + 31}, "not valid before 2026-01-02T03:04:36Z"},
		{"soon, within the leeway", map[string]any{"nbf": now + 30}, ""},
		{"nbf is a string", map[string]any{"nbf": "0"}, "a time of the token"},
		{"issued in the future", map[string]any{"iat": now + 31}, "issued in the future, at 2026-01-02T03:04:36Z"},
		{"issued in the leeway", map[string]any{"iat": now + 30}, ""},
		{"no iat", map[string]any{"iat": nil}, ""},
		{"iat is a list", map[string]any{"iat": []any{}}, "a time of the token"},
		{"another issuer", map[string]any{"iss": "https://issuer.example/"}, "another issuer"},
		{"no issuer", map[string]any{"iss": nil}, "another issuer"},
		{"a list of issuers", map[string]any{"iss": []any{"https://issuer.example"}}, "subject or issuer"},
		{"another audience", map[string]any{"aud": "slipstream2"}, "another audience"},
		{"no audience", map[string]any{"aud": nil}, "another audience"},
		{"audience in a list", map[string]any{"aud": []any{"other", "slipstream"}}, ""},
		{"not in the list", map[string]any{"aud": []any{"other", "slip", "stream"}}, "another audience"},
		{"a list with a number", map[string]any{"aud": []any{"slipstream", 1}}, "another audience"},
		{"a list with null", map[string]any{"aud": []any{nil, "slipstream"}}, "another audience"},
		{"audience is an object", map[string]any{"aud": map[string]any{"slipstream": true}}, "another audience"},
		{"subject is a number", map[string]any{"sub": 1}, "subject or issuer"},
		{"subject is a list", map[string]any{"sub": []any{"alice"}}, "subject or issuer"},
		{"subject is long", map[string]any{"sub": strings.Repeat("x", 1025)}, "subject or issuer"},
		{"65 claims", many, "more than 64 claims"},
		{"1025 values", map[string]any{"groups": strings.Split(strings.Repeat("a,", 1024)+"a", ",")}, "more than 1024 values"},
	} {
		t.Run(c.name, func(t *testing.T) {
			credentials := withToken(sign(t, jose.HS256, octKey, "oct", claimSet(c.changes)))
			if c.detail == "" {
				accepted(t, g, credentials, "jwt:alice")
			} else {
				refused(t, g, credentials, 401, c.detail)
			}
		})
	}
}

// TestPayloads: payloads that no proper issuer would sign are refused.
func TestPayloads(t *testing.T) {
	g, _ := newGate(t, nil)
	good := claimsJSON(t, nil)
	more := func(member string) string { return strings.TrimSuffix(good, "}") + "," + member + "}" }
	deep := strings.Repeat(`{"a":`, 900) + "1" + strings.Repeat("}", 900)
	for _, c := range []struct{ payload, detail string }{
		{more(`"exp":99999999999`), "repeated members"},
		{more(`"sub":"root"`), "repeated members"},
		{more(`"\u0073ub":"root"`), "repeated members"},
		{more(`"x":1,"x":1`), "repeated members"},
		{good + "{}", "JSON object"}, {good + ",", "JSON object"}, {good[:len(good)-1], "JSON object"},
		{"", "JSON object"}, {"[]", "JSON object"}, {"null", "JSON object"}, {`"` + "x" + `"`, "JSON object"},
		{deep[:len(deep)-1], "JSON object"}, {strings.Repeat("[", 6000), "JSON object"}, {strings.Repeat(`{"a":`, 1200), "JSON object"},
		{more("\"x\":\"\xff\""), "JSON object"}, {more(`"x":1e`), "JSON object"}, {more(`"x":NaN`), "JSON object"},
		{strings.Replace(good, `"exp":`, `"exp":1e999,"EXP":`, 1), "a time of the token"},
	} {
		token := forge(`{"alg":"HS256","kid":"oct"}`, c.payload, octKey)
		if c.payload == "" {
			c.detail = "three parts" // two dots in a row
		}
		refused(t, g, withToken(token), 401, c.detail)
	}
	// Depth costs nothing and does no harm. Names are case-sensitive.
	for _, extra := range []string{`"deep":` + deep, `"EXP":1`, `"Exp":"x","x":null`, `"list":[` + strings.Repeat("1,", 2000) + `1]`} {
		accepted(t, g, withToken(forge(`{"alg":"HS256","kid":"oct"}`, more(extra), octKey)), "jwt:alice")
	}
}

// TestKeyOfItsOwn: a key of the set is used only for the purpose that it names.
func TestKeyOfItsOwn(t *testing.T) {
	keys := []jose.JSONWebKey{
		{KeyID: "rsa", Key: &rsaKey().PublicKey, Algorithm: "RS256"},
		{KeyID: "enc", Key: &otherRSA().PublicKey, Use: "enc"},
		{KeyID: "other", Key: &ecKey().PublicKey, Algorithm: "ECDH-ES"},
	}
	g, _ := newGate(t, func(c *Config) { c.JWKSFile = tempFile(t, "jwks.json", keySetJSON(t, keys...)) })
	accepted(t, g, withToken(sign(t, jose.RS256, rsaKey(), "rsa", claimSet(nil))), "jwt:alice")
	for _, token := range []string{
		sign(t, jose.RS512, rsaKey(), "rsa", claimSet(nil)),
		sign(t, jose.RS512, rsaKey(), "", claimSet(nil)),
		sign(t, jose.RS256, otherRSA(), "enc", claimSet(nil)),
		sign(t, jose.ES256, ecKey(), "other", claimSet(nil)),
		forge(`{"alg":"HS256","kid":"rsa"}`, claimsJSON(t, nil), rsaKey().N.Bytes()),
	} {
		refused(t, g, withToken(token), 401, "not known here, or not for this algorithm")
	}
	if s := g.Stats(); s.SignatureChecks != 1 || s.TokenKeys != 1 {
		t.Errorf("%d signature checks and %d keys, want 1 and 1", s.SignatureChecks, s.TokenKeys)
	}
}

// TestWithoutKid: a token without kid is accepted only if one key fits its algorithm, and of keys
// that share a kid at most 8 are tried, in the order of the file.
func TestWithoutKid(t *testing.T) {
	var keys []jose.JSONWebKey
	secret := func(i int) []byte { return []byte(strings.Repeat(string(rune('a'+i)), 64)) }
	for i := range 10 {
		keys = append(keys, jose.JSONWebKey{KeyID: "same", Key: secret(i)})
	}
	keys = append(keys, jose.JSONWebKey{KeyID: "other", Key: secret(10)}, jose.JSONWebKey{KeyID: "rsa", Key: &rsaKey().PublicKey})
	g, _ := newGate(t, func(c *Config) { c.JWKSFile = tempFile(t, "jwks.json", keySetJSON(t, keys...)) })
	accepted(t, g, withToken(sign(t, jose.HS256, secret(7), "same", claimSet(nil))), "jwt:alice")
	refused(t, g, withToken(sign(t, jose.HS256, secret(8), "same", claimSet(nil))), 401, "signature")
	if n := g.Stats().SignatureChecks; n != 16 {
		t.Errorf("%d signature checks, want 8 for each token", n)
	}
	refused(t, g, withToken(sign(t, jose.HS256, secret(10), "", claimSet(nil))), 401, "no kid")
	if n := g.Stats().SignatureChecks; n != 16 {
		t.Errorf("%d signature checks, want none for a token without kid", n-16)
	}
	accepted(t, g, withToken(sign(t, jose.HS256, secret(10), "other", claimSet(nil))), "jwt:alice")
	accepted(t, g, withToken(sign(t, jose.RS256, rsaKey(), "", claimSet(nil))), "jwt:alice")
}

// TestTimePasses: a remembered token is valid as long as the token itself, and a
// refusal no longer than its reason.
func TestTimePasses(t *testing.T) {
	g, clock := newGate(t, nil)
	now := start.Unix()
	token := withToken(sign(t, jose.HS256, octKey, "oct", claimSet(map[string]any{"exp": now + 60, "nbf": now - 10})))
	accepted(t, g, token, "jwt:alice")
	clock.advance(89 * time.Second)
	accepted(t, g, token, "jwt:alice")
	clock.advance(999 * time.Millisecond)
	accepted(t, g, token, "jwt:alice")
	if n := g.Stats().SignatureChecks; n != 1 {
		t.Errorf("%d signature checks of one token, want 1", n)
	}
	clock.advance(time.Millisecond)
	refused(t, g, token, 401, "expired at 2026-01-02T03:05:05Z")
	clock.advance(-time.Minute) // the clock was set
	accepted(t, g, token, "jwt:alice")

	g, clock = newGate(t, nil)
	soon := withToken(sign(t, jose.HS256, octKey, "oct", claimSet(map[string]any{"nbf": now + 35})))
	refused(t, g, soon, 401, "not valid before")
	refused(t, g, soon, 401, "not valid before")
	if s := g.Stats(); s.SignatureChecks != 1 || s.Refusals != 2 || s.RepeatedRefusals != 1 {
		t.Errorf("%+v, want 1 signature check, 2 refusals, 1 repeated", s)
	}
	clock.advance(5 * time.Second)
	accepted(t, g, soon, "jwt:alice")
	clock.advance(-time.Minute)
	refused(t, g, soon, 401, "not valid before")

	bad := withToken(sign(t, jose.HS256, []byte(strings.Repeat("x", 64)), "oct", claimSet(nil)))
	before := g.Stats().SignatureChecks
	for range 3 {
		refused(t, g, bad, 401, "signature")
		clock.advance(4 * time.Second)
	}
	if n := g.Stats().SignatureChecks - before; n != 1 {
		t.Errorf("%d signature checks of a bad token within 10 s, want 1", n)
	}
	refused(t, g, bad, 401, "signature")
	if n := g.Stats().SignatureChecks - before; n != 2 {
		t.Errorf("%d signature checks of a bad token after 12 s, want 2", n)
	}
}

// TestNoLeeway: a negative leeway means none.
func TestNoLeeway(t *testing.T) {
	g, _ := newGate(t, func(c *Config) { c.Leeway = -1; c.Issuer, c.Audience = "", "" })
	now := start.Unix()
	refused(t, g, withToken(sign(t, jose.HS256, octKey, "oct", claimSet(map[string]any{"exp": now}))), 401, "expired")
	refused(t, g, withToken(sign(t, jose.HS256, octKey, "oct", claimSet(map[string]any{"nbf": now + 1}))), 401, "before")
	accepted(t, g, withToken(sign(t, jose.HS256, octKey, "oct", claimSet(map[string]any{"exp": now + 1, "iss": "x", "aud": nil}))), "jwt:alice")
}

// TestECDSASignatures: a signature with swapped halves or the wrong length is invalid.
func TestECDSASignatures(t *testing.T) {
	g, _ := newGate(t, nil)
	token := sign(t, jose.ES256, ecKey(), "ec", claimSet(nil))
	i := strings.LastIndexByte(token, '.') + 1
	signature := string(must(base64.RawURLEncoding.DecodeString(token[i:])))
	r := new(big.Int).SetBytes([]byte(signature[:32]))
	for _, s := range []string{
		signature[32:] + signature[:32], signature[:63], signature + "\x00", "\x00" + signature,
		string(r.Add(r, ecKey().Params().N).Bytes()) + signature[32:],
	} {
		refused(t, g, withToken(token[:i]+b64(s)), 401, "signature")
	}
	accepted(t, g, withToken(token), "jwt:alice")
}
