package respfront

import (
	"crypto/tls"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// secured is the certificate of a connection's client.
type secured struct {
	*access.Certificate               // immutable
	recheck             time.Duration // when to check whether it has expired, on the cache's clock; owned by the turn
}

// certificate returns the certificate of the client, or nil if there is none.
func (x *session) certificate() *access.Certificate {
	if x.secured == nil {
		return nil
	}
	return x.secured.Certificate
}

// Secured implements [loop.SecureSession]: a client certificate that some rule names is a login,
// which lasts as long as the certificate and is replaced by any other.
func (x *session) Secured(c *loop.Conn, state tls.ConnectionState) {
	certificate, err := access.NewCertificate(&state)
	if err != nil {
		c.Abort(err)
		return
	}
	if certificate == nil {
		return
	}
	x.secured = &secured{Certificate: certificate}
	x.checkCertificate(c.ReadAt())
	x.fallBack()
	if x.caller.Load() != nil {
		c.Prove()
	}
}

// fallBack ends a login. Then the client is identified by its certificate, if a rule names it or if
// no login is needed.
func (x *session) fallBack() {
	x.by, x.hash = byPassword, [32]byte{}
	var caller *access.Caller
	if x.secured != nil {
		caller = x.view.certified(x.secured.Certificate)
	}
	if caller != nil {
		x.by = byCertificate
	}
	x.setCaller(caller)
}

// certified returns the caller of a client with a certificate before a login, or nil if there is
// none.
func (v *View) certified(c *access.Certificate) *access.Caller {
	for _, r := range v.resources.List {
		if r.Access == nil {
			continue
		}
		if caller := c.NamedBy(r.Access); caller != nil {
			return caller
		}
	}
	if v.requireAuth {
		return nil
	}
	return c.NamedBy(nil)
}

// checkCertificate ends the identity of a certificate that has expired. The wall clock is read
// every few seconds, and when the certificate expires.
func (x *session) checkCertificate(now time.Duration) {
	if x.secured == nil || now < x.secured.recheck {
		return
	}
	left := x.secured.Left(time.Now())
	x.secured.recheck = now + min(left, checkKeyEvery)
	if left == 0 {
		x.secured = nil
		if x.by == byCertificate {
			x.fallBack()
		}
	}
}
