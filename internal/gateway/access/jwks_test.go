package access

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

func TestParseJWKS(t *testing.T) {
	jwk := func(k jose.JSONWebKey) string { return string(must(json.Marshal(k))) }
	set := func(keys ...string) string { return "{\n\"keys\": [\n" + strings.Join(keys, ",\n") + "\n]\n}\n" }
	oct := func(n int) string { return b64(strings.Repeat("x", n)) }
	number := func(b *big.Int) string { return base64.RawURLEncoding.EncodeToString(b.Bytes()) }
	good := jwk(jose.JSONWebKey{KeyID: "rsa", Key: &rsaKey().PublicKey})
	okp := `{"kty":"OKP","crv":"X25519","x":"` + oct(32) + `"}`
	ed := jwk(jose.JSONWebKey{KeyID: "ed", Key: edKey().Public()})
	weak := must(rsa.GenerateKey(rand.Reader, 1024))
	even := `{"kty":"RSA","e":"Ag","n":"` + number(rsaKey().N) + `"}`
	var many []string
	for range 257 {
		many = append(many, good)
	}
	for _, c := range []struct {
		name, text string
		keys, line int
		message    string // "" is right
	}{
		{"one", set(good), 1, 0, ""},
		{"unknown members", `{"x":{"keys":1},"keys":[` + good + `],"y":[1]}`, 1, 0, ""},
		{"unknown kinds left out", set(`{"kty":"AKP","alg":"ML-DSA-44"}`, okp, good, `{"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"}`), 1, 0, ""},
		{"Ed25519", set(ed), 1, 0, ""},
		{"Ed25519 for ES256", set(good, strings.Replace(ed, "{", `{"alg":"ES256",`, 1)), 0, 4, "alg is ES256"},
		{"RSA for EdDSA", set(strings.Replace(good, "{", `{"alg":"EdDSA",`, 1)), 0, 3, "alg is EdDSA"},
		{"RSA for PS256", set(strings.Replace(good, "{", `{"alg":"PS256",`, 1)), 1, 0, ""},
		{"private Ed25519", set(jwk(jose.JSONWebKey{Key: edKey()})), 0, 3, "private key"},
		{"Ed25519 of low order", set(`{"kty":"OKP","crv":"Ed25519","x":"` + b64("\x01"+strings.Repeat("\x00", 31)) + `"}`), 0, 3, "low-order"},
		{"Ed25519, short", set(`{"kty":"OKP","crv":"Ed25519","x":"` + oct(31) + `"}`), 0, 3, "wrong length for x"},
		{"Ed448", set(good, `{"kty":"OKP","crv":"Ed448","x":"`+oct(57)+`"}`), 1, 0, ""},
		{"for encryption", set(good, `{"kty":"oct","use":"enc","k":"AA"}`, `{"kty":"oct","key_ops":["encrypt"],"k":"AA"}`), 1, 0, ""},
		{"for checking", set(`{"kty":"oct","use":"sig","key_ops":["sign","verify"],"k":"` + oct(32) + `"}`), 1, 0, ""},
		{"256 keys", set(many[:256]...), 256, 0, ""},
		{"257 keys", set(many...), 0, 259, "at most 256"},
		{"none", set(), 0, 0, "no key"},
		{"none of ours", set(okp), 0, 0, "no key"},
		{"empty", "", 0, 1, "not a key set"},
		{"not JSON", "{\n\"keys\": [\n{]}", 0, 3, "not a key set"},
		{"cut", set(good)[:100], 0, 3, "not a key set"},
		{"a key alone", good, 0, 0, `expected {"keys": [...]}`},
		{"a list", "[" + good + "]", 0, 1, "not a key set"},
		{"keys is an object", `{"keys":{}}`, 0, 0, `expected {"keys": [...]}`},
		{"keys twice", "{\"keys\":[],\n\"keys\":[]}", 0, 2, "twice"},
		{"a member twice", set(good, `{"kty":"oct","kty":"oct"}`), 0, 4, `key 2: the member "kty" appears twice`},
		{"a key is a number", set(good, "1"), 0, 4, "key 2: expected an object"},
		{"no kind", set(`{"k":"AAAA"}`), 0, 3, "kty is missing"},
		{"kind is a number", set(`{"kty":1}`), 0, 3, "kty: "},
		{"RSA of 1024 bits", set(good, good, jwk(jose.JSONWebKey{KeyID: "weak", Key: &weak.PublicKey})), 0, 5, "key 3: the RSA key has 1024 bits, expected at least 2048"},
		{"RSA without N", set(`{"kty":"RSA","e":"AQAB"}`), 0, 3, "missing n/e"},
		{"RSA of 8192 bits", set(`{"kty":"RSA","e":"AQAB","n":"` + oct(1024) + `"}`), 0, 3, "too large"},
		{"RSA with an even exponent", set(even), 0, 3, "exponent (e) is 2"},
		{"RSA with a huge exponent", set(strings.Replace(even, `"Ag"`, `"gAAAAQ"`, 1)), 0, 3, "exponent (e) is 2147483649"},
		{"private RSA", set(jwk(jose.JSONWebKey{Key: rsaKey()})), 0, 3, "private key"},
		{"private EC", set(jwk(jose.JSONWebKey{Key: ecKey()})), 0, 3, "private key"},
		{"EC not on the curve", set(`{"kty":"EC","crv":"P-256","x":"` + oct(32) + `","y":"` + oct(32) + `"}`), 0, 3, "not on declared curve"},
		{"no secret", set(`{"kty":"oct"}`), 0, 3, "missing k"},
		{"empty secret", set(`{"kty":"oct","k":""}`), 0, 3, "0 bytes"},
		{"short secret", set(`{"kty":"oct","k":"` + oct(31) + `"}`), 0, 3, "31 bytes, expected at least 32"},
		{"secret too short for its algorithm", set(`{"kty":"oct","alg":"HS512","k":"` + oct(63) + `"}`), 0, 3, "alg is HS512"},
		{"algorithm of another kind", set(`{"kty":"oct","alg":"RS256","k":"` + oct(64) + `"}`), 0, 3, "alg is RS256"},
		{"long kid", set(`{"kty":"oct","kid":"` + strings.Repeat("x", 257) + `"}`), 0, 3, "257 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys, err := parseJWKS("set.json", []byte(c.text), nil)
			if c.message == "" {
				if err != nil || len(keys) != c.keys {
					t.Errorf("got %d keys, %v, want %d", len(keys), err, c.keys)
				}
				return
			}
			e, ok := errors.AsType[*FileError](err)
			if !ok || e.File != "set.json" || e.Line != c.line || !strings.Contains(e.Message, c.message) {
				t.Errorf("got %v, want line %d and %q", err, c.line, c.message)
			}
		})
	}
}

// TestAlgorithmsOfKeys: size and kind say what a key may be used for.
func TestAlgorithmsOfKeys(t *testing.T) {
	names := func(k *tokenKey) string {
		var all []string
		for _, a := range k.algorithms {
			all = append(all, string(a.name))
		}
		return strings.Join(all, " ")
	}
	for _, c := range []struct {
		key     any
		allowed []string
		want    string
	}{
		{octKey[:32], nil, "HS256"}, {octKey[:48], nil, "HS256 HS384"}, {octKey, nil, "HS256 HS384 HS512"},
		{&rsaKey().PublicKey, nil, "RS256 RS384 RS512 PS256 PS384 PS512"},
		{edKey().Public(), nil, "EdDSA"},
		{&ecKey().PublicKey, nil, "ES256"}, {&ec384Key().PublicKey, nil, "ES384"}, {&ec521Key().PublicKey, nil, "ES512"},
		{&rsaKey().PublicKey, []string{"RS512", "HS256"}, "RS512"},
	} {
		keys, err := parseJWKS("x", keySetJSON(t, jose.JSONWebKey{Key: c.key}), must(algorithmsNamed(c.allowed)))
		if err != nil || len(keys) != 1 || names(keys[0]) != c.want {
			t.Errorf("%T: got %v, %v, want %s", c.key, keys, err, c.want)
		}
	}
	if _, err := parseJWKS("x", keySetJSON(t, jose.JSONWebKey{Key: octKey}), must(algorithmsNamed([]string{"RS256"}))); err == nil {
		t.Error("a set without a key for the allowed algorithms was accepted")
	}
}
