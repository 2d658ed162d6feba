package config

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// This file reads by what callers are known, and what they may read.

// Bounds of lists and texts.
const (
	maxAccessKeys  = 256
	maxClaims      = 16
	maxClaimValues = 256
	maxLabel       = 256
	maxPath        = 4096

	maxCertificateName = 1024
)

// label is the kind of a text that is shown or compared, and never empty.
func label(expected string, limit int) kind[string] {
	return keyword[string](expected, func(s string) string { return badLabel(s, limit) },
		schema{"type": "string", "minLength": 1, "maxLength": limit})
}

func badLabel(s string, limit int) string {
	switch {
	case s == "":
		return " is empty"
	case len(s) > limit:
		return fmt.Sprintf(" is longer than %d bytes", limit)
	case strings.ContainsFunc(s, isControl):
		return " holds a control character"
	}
	return ""
}

// fileName is the kind of the name of a file.
func fileName(expected string) kind[string] {
	return keyword[string](expected, badFileName, schema{"type": "string", "minLength": 1, "maxLength": maxPath, "pattern": "[^/]$"})
}

func badFileName(s string) string {
	if problem := badLabel(s, maxPath); problem != "" {
		return problem
	}
	if strings.HasSuffix(s, "/") {
		return " is a folder"
	}
	return ""
}

func authFields() []field[Auth] {
	return []field[Auth]{
		{Name: "keys", Doc: "the file of API keys, one a line: a name, sha256: with the digest of the key, and until: with a date for one that expires",
			Value: scalar(fileName("a file, relative to this one, such as keys.txt"), func(a *Auth) *string { return &a.Keys }), Omit: ifZero},
		{Name: "jwt", Doc: "which tokens are believed; left out: none",
			Value: object(jwtFields, func(a *Auth) *JWT { return &a.JWT }), Omit: ifZero},
	}
}

func jwtFields() []field[JWT] {
	algorithm := oneOf("HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
	return []field[JWT]{
		{Name: "keys", Doc: "the keys that sign tokens, a JSON Web Key Set: a file, or the https URL of one; this or discovery is needed",
			Value: scalar(keySet(), func(j *JWT) *string { return &j.Keys }), Omit: ifZero},
		{Name: "discovery", Doc: "the https URL of the issuer, whose discovery document (OpenID Connect) says where the keys are",
			Value: scalar(secureURL(), func(j *JWT) *string { return &j.Discovery }), Omit: ifZero},
		{Name: "ca", Doc: "the file of the certificates, in PEM, that those of the issuer's servers must lead to; left out: the system's",
			Value: scalar(fileName("a file, relative to this one, such as ca.pem"), func(j *JWT) *string { return &j.CA }), Omit: ifZero},
		{Name: "refresh", Doc: "how often a key set is fetched again; a token with an unknown kid asks for it sooner",
			Value: scalar(duration(10*time.Second, 24*time.Hour), func(j *JWT) *time.Duration { return &j.Refresh }), If: (*JWT).fetched, Default: 5 * time.Minute},
		{Name: "issuer", Doc: "what the claim iss must be; left out: not compared",
			Value: scalar(label("the claim iss of tokens", maxLabel), func(j *JWT) *string { return &j.Issuer }), Omit: ifZero},
		{Name: "audience", Doc: `audience: "name", which the claim aud must be or contain, or audience: any, which believes tokens for every service of the issuer`,
			Value: scalar(label(`what the claim aud of tokens must contain, such as "shop", or any for the tokens of every audience`, maxLabel), func(j *JWT) *string { return &j.Audience }),
			Omit:  ifZero, Required: true},
		{Name: "algorithms", Doc: "the signatures that are believed; left out: those that fit the keys of the file",
			Value: list(algorithm, 13, same, func(j *JWT) *[]string { return &j.Algorithms })},
		{Name: "leeway", Doc: "how far clocks may be apart; 0s: not at all",
			Value: scalar(durationOrOff(10*time.Minute), func(j *JWT) *time.Duration { return &j.Leeway }), If: (*JWT).Known, Default: 30 * time.Second},
	}
}

// secureURL is the kind of the URL of an issuer. It has no place for a password or a
// parameter, so that logs may show it.
func secureURL() kind[string] {
	return keyword[string]("https://host/path; http:// for a loopback address alone", badSecureURL, urlSchema())
}

func badSecureURL(s string) string {
	if strings.Contains(s, "@") {
		return `an "@" in the URL, which takes no name or password`
	}
	if problem := badEndpoint(s); problem != "" {
		return problem
	}
	u, _ := url.Parse(s) // badEndpoint has
	a, err := netip.ParseAddr(u.Hostname())
	if u.Scheme == "http" && u.Hostname() != "localhost" && (err != nil || !a.IsLoopback()) {
		return "plain http, so that whoever is on the way could sign tokens"
	}
	return ""
}

// keySet is the kind of the name of a file or of a URL.
func keySet() kind[string] {
	return keyword[string]("a file, relative to this one, such as jwks.json, or https://host/path; http:// for a loopback address alone", func(s string) string {
		if isURL(s) {
			return badSecureURL(s)
		}
		return badFileName(s)
	}, schema{"type": "string", "minLength": 1, "maxLength": maxPath})
}

// accessSetting is a mapping that names at least one caller: with an empty one no caller could read,
// which leaving the resource out does better.
func accessSetting() setting[Resource] {
	return setting[Resource]{
		read: func(p *parser, v value, into *Resource) {
			into.Access = &Access{}
			readObject(p, v, accessFields(), into.Access)
		},
		write: func(from *Resource) any {
			if from.Access == nil {
				return nil
			}
			return writeObject(accessFields(), from.Access)
		},
		schema: func() schema {
			s := objectSchema(accessFields())
			s["minProperties"] = 1
			return s
		},
	}
}

func accessFields() []field[Access] {
	name := keyword[string](`the name of an API key, 1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-", or "*" for any`, func(s string) string {
		if s != "*" && !keyName.MatchString(s) {
			return " is not the name of a key"
		}
		return ""
	}, schema{"type": "string", "pattern": `^(\*|[A-Za-z0-9._-]{1,64})$`})
	return []field[Access]{
		{Name: "keys", Doc: `the names of API keys of auth.keys and of redis.users; "*" is any of them`,
			Value: list(name, maxAccessKeys, same, func(a *Access) *[]string { return &a.Keys })},
		{Name: "jwt", Doc: "lets the bearer of every valid token read that has the claims",
			Value: scalar(truth(), func(a *Access) *bool { return &a.JWT }), Omit: ifZero},
		{Name: "claims", Doc: `what a token must have, each claim being or containing one of the values, such as { scope: ["depts:read"] }; implies jwt`,
			Value: claims()},
		{Name: "certificates", Doc: `names (SAN) in the certificates of clients, where a listener has tls with clients: DNS names, URIs, email and IP addresses, compared in full; "*" is any certificate`,
			Value: list(certificateName(), maxAccessKeys, sameCertificateName, func(a *Access) *[]string { return &a.Certificates })},
	}
}

// certificateName is the kind of a name in a client's certificate.
func certificateName() kind[string] {
	return keyword[string](`a name of a certificate, such as "spiffe://prod/web", "billing.internal" or "ops@example.com", or "*" for any`, func(s string) string {
		switch problem := badLabel(s, maxCertificateName); {
		case problem != "" || s == "*":
			return problem
		case strings.ContainsAny(s, "* "):
			return " has a wildcard or a blank, and names are compared in full"
		}
		return ""
	}, schema{"type": "string", "pattern": `^(\*|[^* ]+)$`, "maxLength": maxCertificateName})
}

// sameCertificateName finds names that are listed twice; only DNS names have no case.
func sameCertificateName(a, b string) bool {
	return a == b || !strings.ContainsAny(a, ":@") && strings.EqualFold(a, b)
}

// keyName allows what package access allows in a file of keys.
var keyName = regexp.MustCompile("^[A-Za-z0-9._-]{1,64}$")

// claims is a mapping from claims to lists. It is written in the order of
// the names, as a map has none.
func claims() setting[Access] {
	values := list(label("a text to compare the claim with", maxLabel), maxClaimValues, same, func(all *[]string) *[]string { return all })
	return setting[Access]{
		read: func(p *parser, v value, into *Access) {
			order, byName, ok := p.members(v)
			if !ok {
				p.failAt(v, "%s; expected a mapping from claims to lists of values", describe(v.node))
				return
			}
			if len(order) > maxClaims || len(order) == 0 {
				p.failKey(v, "%d entries; expected between 1 and %d", len(order), maxClaims)
				return
			}
			into.Claims = make(map[string][]string, len(order))
			for _, name := range order {
				if problem := badLabel(name, maxLabel); problem != "" {
					p.failKey(byName[name], "the claim%s; expected the name of a claim", problem)
				}
				var all []string
				values.read(p, byName[name], &all)
				into.Claims[name] = all
			}
		},
		write: func(from *Access) any {
			if len(from.Claims) == 0 {
				return nil
			}
			var m members
			for _, name := range slices.Sorted(maps.Keys(from.Claims)) {
				all := from.Claims[name]
				v := values.write(&all)
				if v == nil {
					v = []any{} // refused, but not hidden
				}
				m = append(m, member{name, v})
			}
			return m
		},
		schema: func() schema {
			return schema{"type": "object", "propertyNames": schema{"minLength": 1, "maxLength": maxLabel},
				"additionalProperties": values.schema(), "minProperties": 1, "maxProperties": maxClaims}
		},
	}
}

// access refuses resources that ask for credentials which the file gives no means
// to know: their readers would be turned away, all of them.
func (p *parser) access(root value, c *Config) {
	resources := within(root, "resources")
	p.keySets(root, &c.Auth.JWT)
	certificates := c.asksForCertificates()
	for i := range c.Resources {
		r := &c.Resources[i]
		if r.Access == nil {
			continue
		}
		refuse := func(name, message string) {
			v := within(resources, r.Name)
			v.path += ".access." + name
			p.failKey(v, "%s", message)
		}
		if len(r.Access.Keys) > 0 && c.Auth.Keys == "" && len(c.Redis.Users) == 0 {
			refuse("keys", "no API key is known; expected auth.keys, the file of API keys")
		}
		const jwks = "no token is believed; expected auth.jwt with keys, the keys that sign tokens, or with discovery"
		if r.Access.JWT && !c.Auth.JWT.Known() {
			refuse("jwt", jwks)
		}
		if len(r.Access.Claims) > 0 && !c.Auth.JWT.Known() {
			refuse("claims", jwks)
		}
		if len(r.Access.Certificates) > 0 && !certificates {
			refuse("certificates", "no listener asks clients for a certificate; expected a listener with tls: { cert: ..., key: ..., clients: the file of their authorities }")
		}
	}
}

// keySets refuses tokens whose keys come from nowhere or from two places, and settings of a
// fetch that there is not.
func (p *parser) keySets(root value, j *JWT) {
	at := within(root, "auth", "jwt")
	refuse := func(name, format string, args ...any) { p.failKey(within(at, name), format, args...) }
	switch {
	case j.Audience != "" && !j.Known():
		p.failAt(at, `field "keys" is missing; expected the keys that sign tokens, a file or URL, or discovery, the URL of their issuer`)
	case j.Keys != "" && j.Discovery != "":
		refuse("discovery", "there are keys beside it; expected one of both")
	case j.Discovery != "" && j.Issuer != "" && j.Issuer != j.Discovery:
		refuse("issuer", "the text %q is not that of discovery; expected no issuer, or %q", j.Issuer, j.Discovery)
	case j.CA != "" && !j.fetched():
		refuse("ca", "no keys are fetched; expected it beside discovery or keys with a URL")
	case j.Refresh != 0 && !j.fetched():
		refuse("refresh", "no keys are fetched; expected it beside discovery or keys with a URL")
	}
}
