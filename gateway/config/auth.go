package config

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Auth says how callers are identified. With the zero value they are not, and no
// resource can have an [Access].
type Auth struct {
	Keys string // The file of API keys, lines of a name and a digest.
	JWT  JWT
}

// JWT says which tokens are accepted (RFC 7519). Keys or Discovery is required if another field
// is set.
type JWT struct {
	// Keys are the keys that sign tokens, a JSON Web Key Set (RFC 7517): a file or the URL of
	// one; see [JWT.KeysURL].
	Keys string
	// Discovery is the URL of an issuer whose discovery document says where its key
	// set is (OpenID Connect Discovery 1.0). It is also the Issuer.
	Discovery string
	CA        string        // The file of the certificates of authorities that must have signed those of servers. Default: the system's.
	Refresh   time.Duration // How often a key set is fetched again. Default 5 min.
	Issuer    string        // What the claim iss must be. Default: not compared.
	// Audience is what the claim aud must be or contain, or [AnyAudience]. Required: a
	// key set that several services share would accept tokens for any of them.
	Audience   string
	Algorithms []string      // Signature algorithms that are accepted. Default: those that fit the keys of the file.
	Leeway     time.Duration // How far clocks may differ. Default 30 s; if negative, not at all.
}

// AnyAudience is the [JWT.Audience] that waives the comparison of the claim aud.
const AnyAudience = "any"

// Access says which callers may read a resource: those that any of its fields
// admits.
type Access struct {
	Keys []string // Names of API keys, and of users of Redis; "*" matches any of them.
	JWT  bool     // Bearers of every valid token that has the Claims.
	// Claims are the claims that a token must have, all of them: each claim must
	// be one of its values here, or a list that contains one of them. They imply
	// JWT.
	Claims map[string][]string
	// Certificates are names (SAN) in the certificates of clients: DNS names, URIs, email and
	// IP addresses, compared exactly, DNS names without regard to case. "*" matches any
	// certificate that a listener with [TLS.Clients] accepted.
	Certificates []string
}

// nobody reports whether no caller could read.
func (a *Access) nobody() bool {
	return len(a.Keys) == 0 && !a.JWT && len(a.Claims) == 0 && len(a.Certificates) == 0
}

// KeysURL returns the URL from which the keys that sign tokens are fetched, or "" if Keys is
// a file.
func (j *JWT) KeysURL() string {
	if isURL(j.Keys) {
		return j.Keys
	}
	return ""
}

func isURL(keys string) bool { return strings.Contains(keys, "://") }

// Known reports whether tokens are accepted.
func (j *JWT) Known() bool { return j.Keys != "" || j.Discovery != "" }

// fetched reports whether the keys come from another machine.
func (j *JWT) fetched() bool { return j.Discovery != "" || isURL(j.Keys) }

// Bounds of lists and texts.
const (
	maxAccessKeys      = 256
	maxClaims          = 16
	maxClaimValues     = 256
	maxCertificateName = 1024
)

func (a *Auth) fields() []field {
	return []field{
		{Name: "keys", Value: scalar(&a.Keys, fileName("a file, relative to this one, such as keys.txt")),
			Doc: "the file of API keys, one per line: a name, sha256: with the digest of the key, " +
				"and until: with a date for one that expires"},
		{Name: "jwt", Value: object(a.JWT.fields), Doc: "which tokens are accepted; if omitted, none"},
	}
}

func (j *JWT) fields() []field {
	algorithm := oneOf("HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512",
		"ES256", "ES384", "ES512", "EdDSA")
	audience := label(`what the claim aud of tokens must contain, such as "shop", or any to accept tokens for every audience`, maxLabel)
	return []field{
		{Name: "keys", Value: scalar(&j.Keys, keySet()),
			Doc: "the keys that sign tokens, a JSON Web Key Set: a file, or the https URL of one; this or discovery is needed"},
		{Name: "discovery", Value: scalar(&j.Discovery, secureURL()),
			Doc: "the https URL of the issuer, whose discovery document (OpenID Connect) says where the keys are"},
		{Name: "ca", Value: scalar(&j.CA, fileName("a file, relative to this one, such as ca.pem")),
			Doc: "the file of the authorities, in PEM, that must have signed the certificates of the issuer's servers; if omitted, the system's"},
		{Name: "refresh", Value: scalar(&j.Refresh, duration(10*time.Second, 24*time.Hour)), If: j.fetched, Default: 5 * time.Minute,
			Doc: "how often a key set is fetched again; a token with an unknown kid causes an earlier fetch"},
		{Name: "issuer", Value: scalar(&j.Issuer, label("the claim iss of tokens", maxLabel)),
			Doc: "what the claim iss must be; if omitted, not compared"},
		{Name: "audience", Value: scalar(&j.Audience, audience), Required: true,
			Doc: `audience: "name", which the claim aud must be or contain, or audience: any, ` +
				"which accepts tokens for every service of the issuer"},
		{Name: "algorithms", Value: list(&j.Algorithms, algorithm, 13),
			Doc: "the signature algorithms that are accepted; if omitted, those that fit the keys of the file"},
		{Name: "leeway", Value: scalar(&j.Leeway, durationOrOff(10*time.Minute)), If: j.Known, Default: 30 * time.Second,
			Doc: "how far clocks may differ; 0s means not at all"},
	}
}

// setting is a mapping that names at least one caller: with an empty one no caller could read the
// resource, so it might as well be omitted.
func (a *Access) setting() setting {
	return object(a.fields).with("minProperties", 1)
}

func (a *Access) fields() []field {
	name := keyword[string](`the name of an API key, 1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-", or "*" for any`, func(s string) string {
		return when(s != "*" && !keyName.MatchString(s), " is not the name of a key")
	}, schema{"type": "string", "pattern": `^(\*|[A-Za-z0-9._-]{1,64})$`})
	return []field{
		{Name: "keys", Value: list(&a.Keys, name, maxAccessKeys),
			Doc: `the names of API keys of auth.keys and of redis.users; "*" matches any of them`},
		{Name: "jwt", Value: scalar(&a.JWT, truth()),
			Doc: "lets bearers of valid tokens with the claims read"},
		{Name: "claims", Value: a.claims(),
			Doc: `the claims that a token must have; each must be or contain one of the values, such as { scope: ["depts:read"] }; implies jwt`},
		{Name: "certificates", Value: list(&a.Certificates, certificateName(), maxAccessKeys),
			Doc: "names (SAN) in the certificates of clients, where a listener has tls with clients: " +
				`DNS names, URIs, email and IP addresses, compared in full; "*" matches any certificate`},
	}
}

// certificateName is the kind of a name in a client's certificate. Only DNS names are compared
// without regard to case.
func certificateName() kind[string] {
	return keyword[string](`a name of a certificate, such as "spiffe://prod/web", "billing.internal" or "ops@example.com", or "*" for any`, func(s string) string {
		return cmp.Or(badLabel(s, maxCertificateName), when(s != "*" && strings.ContainsAny(s, "* "),
			" has a wildcard or a blank, and names are compared in full"))
	}, schema{"type": "string", "pattern": `^(\*|[^* ]+)$`, "maxLength": maxCertificateName}).unlike(func(a, b string) bool {
		return a == b || !strings.ContainsAny(a, ":@") && strings.EqualFold(a, b)
	})
}

// keyName accepts the names that package access accepts in a file of keys.
var keyName = regexp.MustCompile("^[A-Za-z0-9._-]{1,64}$")

// claims is a mapping from claims to lists. It is written in the order of
// the names, because a map has no order.
func (a *Access) claims() setting {
	values := func(at *[]string) setting {
		return list(at, label("a text to compare the claim with", maxLabel), maxClaimValues)
	}
	return setting{
		read: func(p *parser, v value) {
			a.Claims = make(map[string][]string)
			p.each(v, "claims to lists of values", maxClaims, func(name string, one value) {
				if problem := badLabel(name, maxLabel); problem != "" {
					p.failKey(one, "the claim%s; expected the name of a claim", problem)
				}
				var all []string
				values(&all).read(p, one)
				a.Claims[name] = all
			})
		},
		write: func() any {
			if len(a.Claims) == 0 {
				return nil
			}
			var m members
			for _, name := range slices.Sorted(maps.Keys(a.Claims)) {
				all := a.Claims[name]
				v := values(&all).write()
				if v == nil {
					v = []any{} // refused, but not hidden
				}
				m = append(m, member{name, v})
			}
			return m
		},
		schema: func() schema {
			return mappingSchema(schema{"minLength": 1, "maxLength": maxLabel}, values(nil).schema(), maxClaims)
		},
	}
}

// access refuses resources that require credentials which the file gives no means to
// verify: all of their readers would be rejected.
func (p *parser) access(root value, c *Config) {
	p.keySets(root, &c.Auth.JWT)
	const jwks = "no token is accepted; expected auth.jwt with keys, the keys that sign tokens, or with discovery"
	keys, tokens, certificates := c.Auth.Keys != "" || len(c.Redis.Users) > 0, c.Auth.JWT.Known(), c.asksForCertificates()
	for i := range c.Resources {
		r := &c.Resources[i]
		if r.Access == nil {
			continue
		}
		refuse := func(asked, known bool, name, message string) {
			if asked && !known {
				v := within(root, "resources", r.Name)
				v.path += ".access." + name
				p.failKey(v, "%s", message)
			}
		}
		refuse(len(r.Access.Keys) > 0, keys, "keys", "no API key is known; expected auth.keys, the file of API keys")
		refuse(r.Access.JWT, tokens, "jwt", jwks)
		refuse(len(r.Access.Claims) > 0, tokens, "claims", jwks)
		refuse(len(r.Access.Certificates) > 0, certificates, "certificates", "no listener asks clients for a certificate; "+
			"expected a listener with tls: { cert: ..., key: ..., clients: the file of their authorities }")
	}
}

// keySets refuses tokens whose keys have no source or two, and settings of a fetch if nothing
// is fetched.
func (p *parser) keySets(root value, j *JWT) {
	at := within(root, "auth", "jwt")
	refuse := func(name, format string, args ...any) { p.failKey(within(at, name), format, args...) }
	switch {
	case j.Audience != "" && !j.Known():
		p.failAt(at, `field "keys" is missing; expected the keys that sign tokens, a file or URL, or discovery, the URL of their issuer`)
	case j.Keys != "" && j.Discovery != "":
		refuse("discovery", "keys is set, too; expected only one of them")
	case j.Discovery != "" && j.Issuer != "" && j.Issuer != j.Discovery:
		refuse("issuer", "the issuer %q differs from discovery; expected no issuer, or %q", j.Issuer, j.Discovery)
	case j.CA != "" && !j.fetched():
		refuse("ca", "no keys are fetched; expected it only with discovery or a URL in keys")
	case j.Refresh != 0 && !j.fetched():
		refuse("refresh", "no keys are fetched; expected it only with discovery or a URL in keys")
	}
}
