package access

import (
	"crypto/sha256"
	"crypto/x509"
	"math"
	"slices"
	"time"
)

// signed is what is kept of a token, so that its validity can be checked without it: the key that
// it was signed with, and its times without the leeway.
type signed struct {
	subject     string
	key         [sha256.Size]byte // fingerprint of the key
	algorithm   *algorithm
	kid         string
	from, until int64 // in Unix nanoseconds
}

// printOf returns a fingerprint of a key.
func printOf(key any) [sha256.Size]byte {
	if secret, ok := key.([]byte); ok {
		return sha256.Sum256(secret)
	}
	der, _ := x509.MarshalPKIXPublicKey(key) // it supports all kinds that strong accepts
	return sha256.Sum256(der)
}

// LooksLikeToken reports whether a password may be a token: three parts of base64url.
func LooksLikeToken(password []byte) bool {
	dots := 0
	for _, c := range password {
		switch {
		case c == '.':
			dots++
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return dots == 2
}

// TakesTokens reports whether tokens are accepted at all.
func (g *Gate) TakesTokens() bool { return g.remote != nil || g.tokens.Load() != nil }

// Subject is the subject of a token, unchanged, or "" for other callers.
func (c *Caller) Subject() string {
	if c.token == nil {
		return ""
	}
	return c.token.subject
}

// Valid returns how long the token of a caller is valid from now on, or 0 if it is no longer
// valid: it has expired, the key that it was signed with was removed, or another issuer or
// audience is required now. It is for connections that outlive their login, so that they need
// not keep the token.
func (g *Gate) Valid(c *Caller) time.Duration {
	t, tokens := c.token, g.tokens.Load()
	if t == nil || tokens == nil || t.kid == "" && severalServe(tokens.keys, t.algorithm) {
		return 0
	}
	if !slices.ContainsFunc(tokens.keys, func(k *tokenKey) bool { return k.print == t.key && k.serves(t.algorithm, t.kid) }) {
		return 0
	}
	if g.meant(c.claims) != nil {
		return 0
	}
	at, leeway := g.now().UnixNano(), int64(g.cfg.Leeway)
	if t.from != math.MinInt64 && at < t.from-leeway {
		return 0
	}
	return max(0, time.Duration(t.until+leeway-at))
}

// meant refuses the claims of a token from another issuer or for another audience.
func (g *Gate) meant(claims map[string][]string) *Refusal {
	switch {
	case g.cfg.Issuer != "" && !slices.Equal(claims["iss"], []string{g.cfg.Issuer}):
		return refusedIssuer
	case g.cfg.Audience != "" && !slices.Contains(claims["aud"], g.cfg.Audience):
		return refusedAudience
	}
	return nil
}
