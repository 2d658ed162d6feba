package access

import (
	"crypto"
	"crypto/rsa"
	_ "crypto/sha256"
	_ "crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Bounds of a token. They are checked before anything longer is parsed.
const (
	maxToken  = 8 << 10 // bytes; the payload has at most three quarters of them
	maxScheme = 16      // bytes of the field besides the token
	maxHeader = 2 << 10 // bytes of the decoded header
	maxTries  = 8       // keys of the same kid that are tried for a token
)

// refusalTime is how long a refused token is refused without another check.
const refusalTime = 10 * time.Second

// bearer extracts the token from an Authorization field and checks its outer form:
// three parts of base64url. It allocates nothing.
func bearer(value string) (string, *Refusal) {
	if len(value) > maxToken+maxScheme {
		return "", refusedLongToken
	}
	scheme, token, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", refusedScheme
	}
	token = strings.Trim(token, " ")
	switch {
	case token == "" || strings.ContainsAny(token, " \t,"):
		return "", refusedBearer
	case len(token) > maxToken:
		return "", refusedLongToken
	}
	dots := 0
	for i := range len(token) {
		c := token[i]
		switch {
		case c == '.':
			dots++
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return "", refusedParts
		}
	}
	switch {
	case dots == 4:
		return "", refusedEncrypted
	case dots != 2 || token[0] == '.' || strings.Contains(token, ".."):
		return "", refusedParts
	case strings.HasSuffix(token, "."):
		return "", refusedUnsigned
	}
	return token, nil
}

// check reads a token. Few goroutines call it at a time, see Gate.checking.
func (g *Gate) check(tokens *tokenSet, token string, now time.Time) verdict {
	refuse := func(r *Refusal, until int64) verdict {
		return verdict{refusal: r, from: math.MinInt64, until: min(until, now.Add(refusalTime).UnixNano())}
	}
	h, refusal := readHeader(token)
	if refusal != nil {
		return refuse(refusal, math.MaxInt64)
	}
	payload, key, refusal := g.verify(tokens.keys, h, token)
	if refusal != nil {
		return refuse(refusal, math.MaxInt64)
	}
	c, refusal := readClaims(payload)
	if refusal != nil {
		return refuse(refusal, math.MaxInt64)
	}
	from, until, refusal := g.judge(c, now)
	if refusal != nil {
		// A token that is not valid yet must not be refused for longer than that.
		if now.UnixNano() < from {
			return refuse(refusal, from)
		}
		return refuse(refusal, math.MaxInt64)
	}
	caller := c.caller()
	caller.token.key, caller.token.algorithm, caller.token.kid = key.print, algorithmNamed(h.alg), h.kid
	caller.token.from, caller.token.until = math.MinInt64, c.exp.nanos()
	if from != math.MinInt64 {
		caller.token.from = from + int64(g.cfg.Leeway)
	}
	return verdict{caller: caller, from: from, until: until, bytes: c.bytes}
}

// header is the required part of the JOSE header (RFC 7515, section 4).
type header struct {
	alg, kid string
}

// readHeader decodes the header of a token whose outer form was checked. It is read
// here before the library reads it, which has fewer bounds: nothing nested is
// accepted, and no key or certificate from the token.
func readHeader(token string) (header, *Refusal) {
	var h header
	text, rest, _ := strings.Cut(token, ".")
	if base64.RawURLEncoding.DecodedLen(len(text)) > maxHeader {
		return h, refusedHeader
	}
	// Strict decoding refuses spare bits at the end: one token has one spelling.
	strict := base64.RawURLEncoding.Strict()
	data, err := strict.DecodeString(text)
	if err != nil {
		return h, refusedParts
	}
	for part := range strings.SplitSeq(rest, ".") {
		if _, err := strict.DecodeString(part); err != nil {
			return h, refusedParts
		}
	}
	var refusal *Refusal
	note := func(r *Refusal) {
		if refusal == nil {
			refusal = r
		}
	}
	err = eachMember(data, func(name string, value json.RawMessage, _ int64) error {
		switch name {
		case "crit", "b64":
			note(refusedCritical)
		case "jwk", "x5c":
			note(refusedOwnKey)
		case "enc":
			note(refusedEncrypted)
		case "alg":
			return json.Unmarshal(value, &h.alg)
		case "kid":
			return json.Unmarshal(value, &h.kid)
		case "cty":
			var cty string
			if json.Unmarshal(value, &cty) != nil || strings.EqualFold(cty, "JWT") {
				note(refusedNested)
			}
		}
		if value[0] == '{' || value[0] == '[' {
			note(refusedHeader)
		}
		return nil
	})
	if err != nil {
		return h, refusedHeader
	}
	return h, refusal
}

// verify checks the signature and returns the payload and the key that it was signed with.
func (g *Gate) verify(keys []*tokenKey, h header, token string) ([]byte, *tokenKey, *Refusal) {
	if strings.EqualFold(h.alg, "none") {
		return nil, nil, refusedUnsigned
	}
	alg := algorithmNamed(h.alg)
	if alg == nil || g.allowed != nil && !slices.Contains(g.allowed, alg) {
		return nil, nil, refusedAlgorithm
	}
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{alg.name})
	if err != nil {
		return nil, nil, refusedHeader
	}
	if h.kid == "" && severalServe(keys, alg) {
		return nil, nil, refusedNoKid
	}
	tries := 0
	for _, k := range keys {
		if !k.serves(alg, h.kid) {
			continue
		}
		if tries++; tries > maxTries {
			break
		}
		g.checks.Add(1)
		if k.verifies(alg, signed, token) {
			return signed.UnsafePayloadWithoutVerification(), k, nil
		}
	}
	if tries == 0 {
		return nil, nil, refusedUnknown
	}
	return nil, nil, refusedSignature
}

// verifies reports whether the key verifies the signature of a token.
func (k *tokenKey) verifies(alg *algorithm, signed *jose.JSONWebSignature, token string) bool {
	hash, pss := pssHashes[alg.name]
	public, ok := k.key.(*rsa.PublicKey)
	if !pss || !ok {
		_, err := signed.Verify(k.key)
		return err == nil
	}
	// go-jose accepts a salt of any length; it must be as long as the hash (RFC 7518, section 3.5).
	h := hash.New()
	h.Write([]byte(token[:strings.LastIndexByte(token, '.')]))
	return rsa.VerifyPSS(public, hash, h.Sum(nil), signed.Signatures[0].Signature, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
}

var pssHashes = map[jose.SignatureAlgorithm]crypto.Hash{jose.PS256: crypto.SHA256, jose.PS384: crypto.SHA384, jose.PS512: crypto.SHA512}

// severalServe reports whether more than one key may be used for the algorithm.
func severalServe(keys []*tokenKey, alg *algorithm) bool {
	n := 0
	for _, k := range keys {
		if k.serves(alg, "") {
			n++
		}
	}
	return n > 1
}

// serves reports whether the key may be used for the algorithm, and is the one
// that kid names if it names one.
func (k *tokenKey) serves(alg *algorithm, kid string) bool {
	return slices.Contains(k.algorithms, alg) && (kid == "" || kid == k.kid)
}

// judge compares the claims with the clock and the configuration. from and until
// are the validity of the token, in Unix nanoseconds with the leeway; from is set
// if that is why it is refused.
func (g *Gate) judge(c *claims, now time.Time) (from, until int64, refusal *Refusal) {
	at, leeway := now.UnixNano(), int64(g.cfg.Leeway)
	if !c.exp.given {
		return math.MinInt64, 0, refusedNoExpiry
	}
	until = c.exp.nanos() + leeway
	from = math.MinInt64
	for _, begin := range []numericDate{c.nbf, c.iat} {
		if begin.given {
			from = max(from, begin.nanos()-leeway)
		}
	}
	switch {
	case at >= until:
		return math.MinInt64, 0, invalidTime("the token has expired at ", c.exp)
	case c.nbf.given && at < c.nbf.nanos()-leeway:
		return from, 0, invalidTime("the token is not valid before ", c.nbf)
	case at < from:
		return from, 0, invalidTime("the token says that it was issued in the future, at ", c.iat)
	}
	if refusal := g.meant(c.values); refusal != nil {
		return math.MinInt64, 0, refusal
	}
	return from, until, nil
}
