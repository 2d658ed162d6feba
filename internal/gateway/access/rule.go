package access

import "slices"

// Caller is the owner of valid credentials. It is immutable and shared.
type Caller struct {
	name   string
	id     uint64
	key    string              // name of the API key, or "" for a token
	claims map[string][]string // of a token; nil for an API key
	token  *signed             // nil for an API key

	// Of a certificate; nil and the zero value for others.
	certificate *Certificate
	san         certificateName
}

// NewCaller returns the caller for a user that a protocol has authenticated itself,
// such as one of Redis. A [Rule] treats it as the API key of that name. All callers
// of one name have one ID, which no API key or token has. The empty name means
// "default", the name of Redis for a user without one.
func NewCaller(name string) *Caller {
	if name == "" {
		name = "default" // a caller without a key would be one with a token
	}
	return &Caller{name: "user:" + printable(name), id: callerID("user", name), key: name}
}

// Name is "key:" and the name of the API key, "jwt:" and the subject of the
// token, "user:" and the name of a user, or "cert:" and a name of a certificate: for logs. Unprintable
// characters are replaced by "_", and names of more than 64 bytes are cut, so it does not identify a
// caller: see ID.
func (c *Caller) Name() string { return c.name }

// ID is the same for all keys of one name, and for all tokens of one issuer and
// subject, and differs for others. It is never 0, and changes with a restart: for
// rate limits.
func (c *Caller) ID() uint64 { return c.id }

// Rule says which callers may read a resource. A nil rule admits everyone, an
// empty one no one.
type Rule struct {
	// Keys are names of API keys; "*" matches any.
	Keys []string
	// JWT admits every valid token that has the Claims.
	JWT bool
	// Claims that a token must have, all of them: each claim must be, or
	// contain, one of its values. Numbers and Booleans are compared as written in
	// the token; scope is a list separated by spaces (RFC 8693). It implies JWT.
	Claims map[string][]string
	// Certificates are names (SAN) of clients' certificates: DNS names, URIs, email and IP
	// addresses, whose form determines the kind. They are compared exactly, DNS names without
	// regard to case; "*" matches any certificate that the listener accepted.
	Certificates []string

	names []certificateName // of Certificates, or nil: see Prepare
}

// Allows returns nil if the caller may read, or else why not. c may be nil, for a
// request without credentials. It allocates nothing.
func (r *Rule) Allows(c *Caller) *Refusal {
	switch {
	case r == nil:
		return nil
	case c == nil:
		return r.missing()
	case c.certificate != nil:
		if c.certificate.NamedBy(r) != nil {
			return nil
		}
		return refusedCertificateMayNot
	case c.key != "":
		for _, name := range r.Keys {
			if name == "*" || name == c.key {
				return nil
			}
		}
		return refusedKeyMayNot
	case !r.JWT && len(r.Claims) == 0:
		return refusedTokenMayNot
	}
	for name, values := range r.Claims {
		if !containsOne(c.claims[name], values) {
			return refusedScope
		}
	}
	return nil
}

func containsOne(has, wanted []string) bool {
	for _, w := range wanted {
		if slices.Contains(has, w) {
			return true
		}
	}
	return false
}

// missing is the refusal that requests the kinds of credentials that the rule
// could accept.
func (r *Rule) missing() *Refusal {
	token := r.JWT || len(r.Claims) > 0
	switch {
	case token && len(r.Keys) > 0:
		return refusedNobody
	case token:
		return refusedNobodyToken
	case len(r.Keys) > 0:
		return refusedNobodyKey
	case len(r.Certificates) > 0:
		return refusedNoCertificate
	}
	return refusedEveryone
}
