// Package credentials creates the credentials of clients in the gateway's benchmarks, and the files
// with which the gateway verifies them.
package credentials

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// Claims of the tokens, which the gateway's configuration requires.
const (
	Issuer   = "https://issuer.example"
	Audience = "depts"
	Scope    = "depts:read"
)

// A Set holds the credentials of some clients.
type Set struct {
	Keys, JWKS string   // contents of the file of API keys and of the key set
	APIKeys    []string // one for each client
	Tokens     []string // one for each client, RS256, valid for a day
}

// New creates a key and a token for each of n clients.
func New(n int) (*Set, error) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	set := map[string]any{"keys": []any{map[string]string{
		"kty": "RSA", "kid": "bench", "alg": "RS256", "use": "sig",
		"n": base64.RawURLEncoding.EncodeToString(private.N.Bytes()),
		"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(private.E)).Bytes()),
	}}}
	text, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	c := &Set{JWKS: string(text)}
	var lines strings.Builder
	now := time.Now()
	for i := range n {
		key := "slk_" + rand.Text() + rand.Text()
		sum := sha256.Sum256([]byte(key))
		fmt.Fprintf(&lines, "client-%d sha256:%s\n", i, hex.EncodeToString(sum[:]))
		c.APIKeys = append(c.APIKeys, key)
		token, err := sign(private, map[string]any{
			"iss": Issuer, "aud": Audience, "sub": fmt.Sprintf("client-%d", i), "scope": "profile " + Scope,
			"iat": now.Unix(), "exp": now.Add(24 * time.Hour).Unix(), "jti": rand.Text(),
		})
		if err != nil {
			return nil, err
		}
		c.Tokens = append(c.Tokens, token)
	}
	c.Keys = lines.String()
	return c, nil
}

// sign creates a token (RFC 7519) with RS256.
func sign(private *rsa.PrivateKey, claims map[string]any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"RS256","typ":"JWT","kid":"bench"}`)) + "." + encode(payload)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, private, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return text + "." + encode(signature), nil
}
