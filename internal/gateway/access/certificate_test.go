package access

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// san is a name in a certificate, by its tag.
type san struct {
	tag  int
	text string
}

// leaf returns a self-signed certificate with unchanged names.
func leaf(t testing.TB, until time.Time, names ...san) *x509.Certificate {
	t.Helper()
	var list []asn1.RawValue
	for _, n := range names {
		list = append(list, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: n.tag, Bytes: []byte(n.text)})
	}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "common.internal"}, NotAfter: until}
	if len(list) > 0 {
		value, err := asn1.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		template.ExtraExtensions = []pkix.Extension{{Id: subjectAltName, Value: value}}
	}
	return testkit.SelfSigned(t, template).Leaf
}

// stateOf returns the state after a handshake that has verified a certificate.
func stateOf(chain ...*x509.Certificate) *tls.ConnectionState {
	return &tls.ConnectionState{PeerCertificates: chain[:1], VerifiedChains: [][]*x509.Certificate{chain}}
}

func certificateWith(t testing.TB, names ...san) *Certificate {
	t.Helper()
	c, err := NewCertificate(stateOf(leaf(t, time.Now().Add(time.Hour), names...)))
	if err != nil || c == nil {
		t.Fatalf("got %v, %v, want a certificate", c, err)
	}
	return c
}

// TestCertificateNames: which names of a certificate a rule matches, and what the caller is
// called.
func TestCertificateNames(t *testing.T) {
	c := certificateWith(t, san{tagDNS, "Web.Example.com"}, san{tagURI, "spiffe://prod/web"}, san{tagURI, "https://Host/a%2fb#"},
		san{tagEmail, "Ops@example.com"}, san{tagIP, "\xc0\x00\x02\x07"}, san{tagDNS, "*.wild.example"}, san{tagEmail, "a\x1b[31m b@x"}, san{8, "1.2.3"})
	for name, want := range map[string]string{
		"web.example.com": "cert:web.example.com", "WEB.EXAMPLE.COM": "cert:web.example.com", "*": "cert:web.example.com",
		"spiffe://prod/web": "cert:spiffe://prod/web", "https://Host/a%2fb#": "cert:https://Host/a%2fb#", "Ops@example.com": "cert:Ops@example.com",
		"192.0.2.7": "cert:192.0.2.7", "::ffff:192.0.2.7": "cert:192.0.2.7", "a\x1b[31m b@x": "cert:a_[31m_b@x",
		// Other names, other kinds, and names that only look alike.
		"common.internal": "", "example.com": "", "www.web.example.com": "", "web.example.com.": "", "spiffe://prod/Web": "", "spiffe://prod/web/": "",
		"https://Host/a%2Fb#": "", "https://Host/a%2fb": "", "https://host/a%2fb#": "", "ops@example.com": "", "a.wild.example": "", "192.0.2.8": "", "1.2.3": "", "": "",
		"ſpiffe://prod/web": "", "web.example.co\u212a": "",
	} {
		rule := (&Rule{Certificates: []string{"other.example.com", name}}).Prepare()
		got, refusal := rule.Admit(nil, c)
		if is := refusal == nil; is != (want != "") || is && got.Name() != want {
			t.Errorf("%q: got %v, %v, want %q", name, got, refusal, want)
		}
		if got == nil || (rule.Allows(got) == nil) != (want != "") {
			t.Errorf("%q: Allows and NamedBy differ", name)
		}
		if _, again := (&Rule{Certificates: rule.Certificates}).Admit(nil, c); again != refusal {
			t.Errorf("%q: the rule that is not prepared says %v, want %v", name, again, refusal)
		}
	}
	other := certificateWith(t, san{tagDNS, "spiffe://prod/web"}, san{tagURI, "web.example.com"}, san{tagEmail, "192.0.2.7"})
	for _, name := range []string{"spiffe://prod/web", "web.example.com", "192.0.2.7"} {
		if named := other.NamedBy(&Rule{Certificates: []string{name}}); named != nil {
			t.Errorf("%s matches a name of another kind", name)
		}
	}
}

// TestCertificateBesideCredentials: the credentials of a request take precedence, and the
// certificate is used if there are none or they do not match.
func TestCertificateBesideCredentials(t *testing.T) {
	c := certificateWith(t, san{tagDNS, "web.internal"})
	key := NewCaller("batch")
	named, other := []string{"web.internal"}, []string{"shop.internal"}
	for _, test := range []struct {
		name    string
		rule    *Rule
		caller  *Caller
		by      *Certificate
		want    string
		refusal int
	}{
		{"everybody, certificate", nil, nil, c, "cert:web.internal", 0},
		{"everybody, both", nil, key, c, "user:batch", 0},
		{"everybody, neither", nil, nil, nil, "", 0},
		{"both fit", &Rule{Keys: []string{"*"}, Certificates: named}, key, c, "user:batch", 0},
		{"the certificate fits", &Rule{Keys: []string{"x"}, Certificates: named}, key, c, "cert:web.internal", 0},
		{"the key fits", &Rule{Keys: []string{"batch"}, Certificates: other}, key, c, "user:batch", 0},
		{"neither fits", &Rule{Keys: []string{"x"}, Certificates: other}, key, c, "user:batch", 403},
		{"another certificate", &Rule{Certificates: other}, nil, c, "cert:web.internal", 403},
		{"another certificate, a key would do", &Rule{Keys: []string{"x"}, Certificates: other}, nil, c, "cert:web.internal", 401},
		{"no certificate", &Rule{Certificates: named}, nil, nil, "", 403},
		{"a key instead", &Rule{Certificates: named}, key, nil, "user:batch", 403},
		{"tokens only", &Rule{JWT: true}, nil, c, "cert:web.internal", 401},
		{"claims only", &Rule{Claims: map[string][]string{"a": {"b"}}}, nil, c, "cert:web.internal", 401},
		{"nobody", &Rule{}, nil, c, "cert:web.internal", 403},
	} {
		caller, refusal := test.rule.Admit(test.caller, test.by)
		status, name := 0, ""
		if refusal != nil {
			status = refusal.Status
		}
		if caller != nil {
			name = caller.Name()
		}
		if status != test.refusal || name != test.want {
			t.Errorf("%s: got %q, %d, want %q, %d", test.name, name, status, test.want, test.refusal)
		}
	}
	// The caller of a certificate has no token, so no rule about tokens admits it.
	if refusal := (&Rule{JWT: true, Keys: []string{"*"}}).Allows(c.NamedBy(nil)); refusal == nil {
		t.Error("a certificate is treated as a token or a key")
	}
}

// TestCertificateBounds: more or longer names than are kept are an error, and an unverified
// certificate is not an identity.
func TestCertificateBounds(t *testing.T) {
	var many []san
	for i := range maxCertificateNames {
		many = append(many, san{tagDNS, fmt.Sprintf("n%d.internal", i)})
	}
	until := time.Now().Add(time.Hour)
	if c, err := NewCertificate(stateOf(leaf(t, until, many...))); err != nil || len(c.callers) != maxCertificateNames {
		t.Errorf("%d names: %v", maxCertificateNames, err)
	}
	if c, err := NewCertificate(stateOf(leaf(t, until, append(many, san{tagDNS, "more"})...))); err == nil || c != nil {
		t.Error("one name too many is accepted")
	}
	if _, err := NewCertificate(stateOf(leaf(t, until, san{tagURI, "u:" + strings.Repeat("x", maxCertificateName-2)}))); err != nil {
		t.Error(err)
	}
	if c, err := NewCertificate(stateOf(leaf(t, until, san{tagURI, "u:" + strings.Repeat("x", maxCertificateName-1)}))); err == nil || c != nil {
		t.Error("a name that is too long is accepted")
	}
	one := leaf(t, until, san{tagDNS, "web.internal"})
	for _, state := range []*tls.ConnectionState{{}, {PeerCertificates: []*x509.Certificate{one}}} {
		if c, err := NewCertificate(state); c != nil || err != nil {
			t.Errorf("nothing was verified: got %v, %v", c, err)
		}
	}
	nameless, err := NewCertificate(stateOf(leaf(t, until)))
	if err != nil {
		t.Fatal(err)
	}
	if by, refusal := (&Rule{Certificates: []string{"*"}}).Admit(nil, nameless); refusal != nil || !strings.HasPrefix(by.Name(), "cert:sha256-") {
		t.Errorf("without names: got %v, %v", by, refusal)
	}
	if _, refusal := (&Rule{Certificates: []string{"common.internal", ""}}).Admit(nil, nameless); refusal == nil {
		t.Error("the common name is used as a name")
	}
}

// TestCertificateExpires: an identity lasts as long as the certificate and its chain.
func TestCertificateExpires(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	short, long := leaf(t, now.Add(time.Minute), san{tagDNS, "web"}), leaf(t, time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), san{tagDNS, "web"})
	for _, test := range []struct {
		name   string
		chains [][]*x509.Certificate
		want   time.Duration // if 0, centuries
	}{
		{"leaf", [][]*x509.Certificate{{short}}, time.Minute},
		{"authority", [][]*x509.Certificate{{long, short}}, time.Minute},
		{"another way", [][]*x509.Certificate{{long, short}, {long, long}}, 0},
	} {
		c, err := NewCertificate(&tls.ConnectionState{VerifiedChains: test.chains})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Left(now); test.want != 0 && got != test.want || test.want == 0 && got < 100*365*24*time.Hour {
			t.Errorf("%s: %v are left, want %v", test.name, got, test.want)
		}
		if test.want != 0 && (c.Left(now.Add(time.Minute)) != 0 || c.Left(now.Add(time.Hour)) != 0) {
			t.Errorf("%s: it is valid after its end", test.name)
		}
	}
}

// TestAdmitAllocatesNothing: each request calls Admit.
func TestAdmitAllocatesNothing(t *testing.T) {
	c := certificateWith(t, san{tagDNS, "a.internal"}, san{tagURI, "spiffe://prod/web"})
	rule := (&Rule{Keys: []string{"x"}, Certificates: []string{"b.internal", "spiffe://prod/web"}}).Prepare()
	key, now := NewCaller("batch"), time.Now()
	if n := testing.AllocsPerRun(100, func() { rule.Admit(key, c); rule.Admit(nil, c); rule.Admit(nil, nil); c.Left(now) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
