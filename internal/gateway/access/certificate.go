package access

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Bounds of a client's certificate. A certificate beyond them is refused.
const (
	maxCertificateNames = 64
	maxCertificateName  = 1 << 10 // bytes
)

// AnyCertificate is the name in [Rule.Certificates] that each certificate has.
const AnyCertificate = "*"

// Certificate is the identity of a client that has proven in a TLS handshake that it owns a
// certificate. It is immutable.
type Certificate struct {
	callers []*Caller // one for each name, in their order; never empty
	until   int64     // Unix nanoseconds
}

// nameKind is the kind of a name in a certificate: names of different kinds are never equal.
type nameKind uint8

const (
	nameDNS nameKind = iota + 1
	nameURI
	nameEmail
	nameIP
)

// certificateName is one of the names in a certificate.
type certificateName struct {
	kind nameKind
	text string // a DNS name in lower case, an address as formatted by package netip
}

// nameOf reads a name of [Rule.Certificates]. Its form says what kind it is: an IP address, a URI
// because of the colon, an email address because of the @, or else a DNS name.
func nameOf(text string) certificateName {
	if a, err := netip.ParseAddr(text); err == nil {
		return certificateName{nameIP, a.Unmap().String()}
	}
	switch {
	case strings.Contains(text, ":"):
		return certificateName{nameURI, text}
	case strings.Contains(text, "@"):
		return certificateName{nameEmail, text}
	}
	return certificateName{nameDNS, lower(text)}
}

// lower changes ASCII letters only, as DNS compares names: package strings would turn the
// Kelvin sign into a k.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// NewCertificate returns the identity that a handshake has proven: the names (SAN) of the
// client's certificate. It is nil if the client sent no certificate, or if it was not verified. It
// is an error if the certificate has too many names, or names that are too long.
func NewCertificate(state *tls.ConnectionState) (*Certificate, error) {
	if len(state.VerifiedChains) == 0 {
		return nil, nil
	}
	leaf := state.VerifiedChains[0][0]
	c := &Certificate{}
	for _, chain := range state.VerifiedChains { // one that is valid is enough
		until := chain[0].NotAfter
		for _, one := range chain[1:] {
			if one.NotAfter.Before(until) {
				until = one.NotAfter
			}
		}
		c.until = max(c.until, unixNanos(until))
	}
	for _, e := range leaf.Extensions {
		if !e.Id.Equal(subjectAltName) {
			continue
		}
		names, err := certificateNames(e.Value)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			c.callers = append(c.callers, &Caller{name: "cert:" + printable(n.text),
				id: callerID("cert", string(rune('0'+n.kind)), n.text), certificate: c, san: n})
		}
	}
	if len(c.callers) == 0 { // only rules for any certificate can match
		print := sha256.Sum256(leaf.Raw)
		c.callers = []*Caller{{name: "cert:sha256-" + hex.EncodeToString(print[:8]), id: callerID("cert", string(print[:])), certificate: c}}
	}
	return c, nil
}

// unixNanos is the time in Unix nanoseconds, clamped to their range: certificates may be valid until
// the year 9999.
func unixNanos(t time.Time) int64 {
	if t.Year() > 2200 {
		t = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return t.UnixNano()
}

// subjectAltName is the extension with the names of a certificate (RFC 5280, section 4.2.1.6).
var subjectAltName = asn1.ObjectIdentifier{2, 5, 29, 17}

// Tags of names in that extension.
const (
	tagEmail = 1
	tagDNS   = 2
	tagURI   = 6
	tagIP    = 7
)

var errNames = errors.New("access: the names (SAN) of the client's certificate cannot be read")

// certificateNames reads the names from the extension unchanged: package x509 normalizes URIs, so
// two different ones could become equal.
func certificateNames(extension []byte) (all []certificateName, err error) {
	var names asn1.RawValue
	if rest, err := asn1.Unmarshal(extension, &names); err != nil || len(rest) > 0 {
		return nil, errNames
	}
	for left := names.Bytes; len(left) > 0; {
		var one asn1.RawValue
		if left, err = asn1.Unmarshal(left, &one); err != nil {
			return nil, errNames
		}
		if len(one.Bytes) > maxCertificateName {
			return nil, fmt.Errorf("access: the client's certificate has a name (SAN) of %d bytes, expected at most %d", len(one.Bytes), maxCertificateName)
		}
		n := certificateName{text: string(one.Bytes)}
		switch {
		case one.Class != asn1.ClassContextSpecific:
			continue
		case one.Tag == tagDNS:
			n.kind, n.text = nameDNS, lower(n.text)
		case one.Tag == tagURI:
			n.kind = nameURI
		case one.Tag == tagEmail:
			n.kind = nameEmail
		case one.Tag == tagIP:
			a, ok := netip.AddrFromSlice(bytes.Clone(one.Bytes))
			if !ok {
				continue
			}
			n.kind, n.text = nameIP, a.Unmap().String()
		default:
			continue // of a kind that no rule can name
		}
		if all = append(all, n); len(all) > maxCertificateNames {
			return nil, fmt.Errorf("access: the client's certificate has more than %d names (SAN)", maxCertificateNames)
		}
	}
	return all, nil
}

// Left returns how long the certificate is valid from now on, or 0 if it has expired.
func (c *Certificate) Left(now time.Time) time.Duration {
	return max(0, time.Duration(c.until-now.UnixNano()))
}

// NamedBy returns the caller of the first name that the rule has, or nil if it has none. A nil rule,
// which admits anyone, matches the first name.
func (c *Certificate) NamedBy(r *Rule) *Caller {
	if r == nil {
		return c.callers[0]
	}
	for _, caller := range c.callers {
		for i, name := range r.Certificates {
			if name == AnyCertificate || r.named(i) == caller.san {
				return caller
			}
		}
	}
	return nil
}

// named returns a name of the rule, read at each use unless [Rule.Prepare] has read it.
func (r *Rule) named(i int) certificateName {
	if r.names != nil {
		return r.names[i]
	}
	return nameOf(r.Certificates[i])
}

// Prepare reads the names of certificates once, so that comparing them allocates nothing. Call
// it before the rule is shared, and do not change the names after that.
func (r *Rule) Prepare() *Rule {
	if r != nil && len(r.Certificates) > 0 {
		r.names = make([]certificateName, len(r.Certificates))
		for i, name := range r.Certificates {
			r.names[i] = nameOf(name)
		}
	}
	return r
}

// Admit returns the caller that the rule admits, or a refusal. c is the caller identified by the
// credentials of the request, and by is the certificate of its connection; both may be nil.
// Credentials take precedence: the certificate is used if there are none, or if they do not match
// the rule. With a refusal it returns the refused caller, or nil if that is unknown. It allocates
// nothing if the rule is prepared.
func (r *Rule) Admit(c *Caller, by *Certificate) (*Caller, *Refusal) {
	refusal := r.Allows(c)
	if by == nil || refusal == nil && c != nil {
		return c, refusal
	}
	if named := by.NamedBy(r); named != nil {
		return named, nil
	}
	if c != nil {
		return c, refusal
	}
	if r.onlyCertificates() {
		refusal = refusedCertificateMayNot
	}
	return by.callers[0], refusal
}

// onlyCertificates reports whether no other credentials can match.
func (r *Rule) onlyCertificates() bool {
	return len(r.Certificates) > 0 && len(r.Keys) == 0 && !r.JWT && len(r.Claims) == 0
}
