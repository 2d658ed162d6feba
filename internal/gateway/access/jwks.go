package access

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// Bounds of a key set.
const (
	maxJWKSFile = 1 << 20 // bytes of the file
	maxJWKS     = 256     // keys of the set
	maxKid      = 256     // bytes of a kid
	minRSABits  = 2048    // RFC 7518, section 3.3
)

// algorithm is a signature algorithm and the kind of keys that it may be used with.
type algorithm struct {
	name jose.SignatureAlgorithm
	kty  string
	bits int // of the hash; of an oct key at least; of the curve of an EC key
}

// algorithms are all supported ones: "none" and any other cannot be configured
// (RFC 7518, section 3.1).
var algorithms = []*algorithm{
	{jose.HS256, "oct", 256}, {jose.HS384, "oct", 384}, {jose.HS512, "oct", 512},
	{jose.RS256, "RSA", 256}, {jose.RS384, "RSA", 384}, {jose.RS512, "RSA", 512},
	{jose.PS256, "RSA", 256}, {jose.PS384, "RSA", 384}, {jose.PS512, "RSA", 512},
	{jose.ES256, "EC", 256}, {jose.ES384, "EC", 384}, {jose.ES512, "EC", 521},
	{jose.EdDSA, "OKP", 256}, // with Ed25519 (RFC 8037, section 3.1)
}

// algorithmNamed returns nil for a name that is not in the list.
func algorithmNamed(name string) *algorithm {
	for _, a := range algorithms {
		if string(a.name) == name {
			return a
		}
	}
	return nil
}

func algorithmsNamed(names []string) ([]*algorithm, error) {
	var list []*algorithm
	for _, n := range names {
		a := algorithmNamed(n)
		if a == nil {
			return nil, fmt.Errorf("access: unknown signature algorithm %q, expected HS, RS, PS or ES with 256, 384 or 512, or EdDSA", n)
		}
		list = append(list, a)
	}
	return list, nil
}

// tokenKey is a key that signatures are checked with.
type tokenKey struct {
	kid        string
	key        any          // []byte, *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
	algorithms []*algorithm // that it may be used with, at least one
	print      [sha256.Size]byte
}

// fits reports whether the kind and size of the key are those of the algorithm.
// It checks the key itself, not what its JSON says.
func (a *algorithm) fits(key any) bool {
	switch key := key.(type) {
	case []byte:
		return a.kty == "oct" && len(key)*8 >= a.bits
	case *rsa.PublicKey:
		return a.kty == "RSA"
	case *ecdsa.PublicKey:
		return a.kty == "EC" && key.Curve.Params().BitSize == a.bits
	case ed25519.PublicKey:
		return a.kty == "OKP"
	}
	return false
}

// parseJWKS reads a key set (RFC 7517, section 5). allowed are the algorithms of
// the configuration, or nil for all. Keys of unknown kinds, keys for encryption and
// keys whose algorithms are not allowed are skipped, but one must remain.
func parseJWKS(file string, data []byte, allowed []*algorithm) ([]*tokenKey, error) {
	at := func(offset int64, format string, args ...any) error {
		line := 1 + bytes.Count(data[:min(max(0, offset), int64(len(data)))], []byte("\n"))
		return &FileError{file, line, fmt.Sprintf(format, args...)}
	}
	var array json.RawMessage
	var arrayEnd int64
	err := eachMember(data, func(name string, value json.RawMessage, end int64) error {
		if name == "keys" {
			array, arrayEnd = value, end
		}
		return nil
	})
	if err != nil {
		return nil, at(offsetOf(err), "not a key set: %v", err)
	}
	if len(array) == 0 || array[0] != '[' {
		return nil, &FileError{file, 0, `not a key set: expected {"keys": [...]}`}
	}
	arrayStart := arrayEnd - int64(len(array))
	decoder := json.NewDecoder(bytes.NewReader(array))
	_, _ = decoder.Token() // the bracket that was just seen
	var keys []*tokenKey
	for n := 1; decoder.More(); n++ {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil { // was valid a moment ago
			return nil, at(arrayStart+decoder.InputOffset(), "key %d: %v", n, err)
		}
		start := arrayStart + decoder.InputOffset() - int64(len(raw))
		if n > maxJWKS {
			return nil, at(start, "too many keys, expected at most %d", maxJWKS)
		}
		k, err := parseJWK(raw, allowed)
		if err != nil {
			return nil, at(start, "key %d: %v", n, err)
		}
		if k != nil {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, &FileError{file, 0, "the set has no key for checking signatures of the allowed algorithms"}
	}
	return keys, nil
}

// parseJWK returns nil for a key that is of no interest, and an error for one
// that would be of use but must not be used.
func parseJWK(raw json.RawMessage, allowed []*algorithm) (*tokenKey, error) {
	var head struct{ kty, use, alg, kid string }
	private, forUse := false, true
	err := eachMember(raw, func(name string, value json.RawMessage, _ int64) error {
		fields := map[string]*string{"kty": &head.kty, "use": &head.use, "alg": &head.alg, "kid": &head.kid}
		if field := fields[name]; field != nil {
			return wrapMember(name, json.Unmarshal(value, field))
		}
		switch name {
		case "d":
			private = true
		case "key_ops":
			var ops []string
			err := json.Unmarshal(value, &ops)
			forUse = slices.Contains(ops, "verify")
			return wrapMember(name, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(head.kid) > maxKid:
		return nil, fmt.Errorf("kid has %d bytes, expected at most %d", len(head.kid), maxKid)
	case head.kty == "":
		return nil, errors.New("kty is missing; expected RSA, EC, OKP or oct")
	case head.kty != "RSA" && head.kty != "EC" && head.kty != "OKP" && head.kty != "oct":
		return nil, nil
	case head.use != "" && head.use != "sig" || !forUse:
		return nil, nil
	case private:
		return nil, errors.New("this is a private key (d); remove its private members, the gateway only needs the public part")
	case (head.kty == "EC" || head.kty == "OKP") && foreignCurve(raw):
		return nil, nil
	}
	var jwk jose.JSONWebKey
	if err := jwk.UnmarshalJSON(raw); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "go-jose/go-jose: "))
	}
	k := &tokenKey{kid: head.kid, key: jwk.Key}
	if err := k.strong(); err != nil {
		return nil, err
	}
	return k.choose(head.alg, allowed)
}

// foreignCurve reports whether an EC or OKP key is on a curve that no algorithm here
// uses, such as secp256k1 or Ed448: a key of an unknown kind.
func foreignCurve(raw json.RawMessage) bool {
	var head struct {
		Crv string `json:"crv"`
	}
	return json.Unmarshal(raw, &head) == nil && head.Crv != "" &&
		!slices.Contains([]string{"P-256", "P-384", "P-521", "Ed25519"}, head.Crv)
}

func wrapMember(name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// strong refuses keys that are too easy to guess.
func (k *tokenKey) strong() error {
	switch key := k.key.(type) {
	case []byte:
		if len(key) < 32 {
			return fmt.Errorf("the secret (k) has %d bytes, expected at least 32", len(key))
		}
	case *rsa.PublicKey:
		if n := key.N.BitLen(); n < minRSABits {
			return fmt.Errorf("the RSA key has %d bits, expected at least %d", n, minRSABits)
		}
		if key.E < 3 || key.E%2 == 0 || key.E > math.MaxInt32 { // crypto/rsa accepts no others
			return fmt.Errorf("the exponent (e) is %d, expected an odd number of at most 31 bits from 3", key.E)
		}
	case *ecdsa.PublicKey, ed25519.PublicKey: // go-jose refuses points of low order
	default:
		return fmt.Errorf("unexpected kind of key %T", key)
	}
	return nil
}

// choose sets the algorithms of the key, to nil if none is allowed.
func (k *tokenKey) choose(alg string, allowed []*algorithm) (*tokenKey, error) {
	if allowed == nil {
		allowed = algorithms
	}
	named := algorithmNamed(alg)
	if named != nil && !named.fits(k.key) {
		return nil, fmt.Errorf("alg is %s, which does not fit the kind or size of the key", named.name)
	}
	for _, a := range allowed {
		if a.fits(k.key) && (alg == "" || a == named) {
			k.algorithms = append(k.algorithms, a)
		}
	}
	if len(k.algorithms) == 0 {
		return nil, nil
	}
	k.print = printOf(k.key)
	return k, nil
}
