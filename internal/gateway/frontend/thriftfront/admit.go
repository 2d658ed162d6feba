package thriftfront

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/thriftdoc"
)

const (
	// keysPerCall is the number of keys in a call that count as one call for rate limits. It reflects their cost, as for a
	// batch over HTTP.
	keysPerCall = 10
	// costOfCheck is the number of calls that a wrong signature counts as for the address's limit.
	costOfCheck = 10
	// wrongRate and wrongBurst limit how many wrong tokens from an address are checked, as over HTTP.
	wrongRate  = 10 // per second
	wrongBurst = 200
)

// atOnce is the nil context. It stands for a turn, which must not block.
var atOnce context.Context

// more returns the number of additional calls that the keys count as.
func (k *call) more() int { return (len(k.keys)+keysPerCall-1)/keysPerCall - 1 }

// admitKeys charges the keys of a call to the address's limit. The call itself has been charged.
func (k *call) admitKeys() *failure {
	if wait, ok := k.view.clientLimit.Allow(k.session.client, k.start, k.more()); !ok {
		return k.tooMany(wait, "keys from this address")
	}
	return nil
}

// authorize identifies the caller and decides whether it may read the resource. If ctx is atOnce, it returns errLater
// instead of checking a signature.
func (k *call) authorize(ctx context.Context) *failure {
	rule, v := k.method.of.Access, k.view
	if rule == nil && v.callerLimit == nil {
		k.passed = true
		return nil
	}
	var caller *access.Caller
	if v.gate != nil {
		var refusal *access.Refusal
		var f *failure
		if caller, refusal, f = k.identify(ctx); f != nil {
			return f
		}
		// Invalid credentials are ignored if none are required.
		if refusal != nil && rule != nil {
			k.loginFailed(refusal)
			return refused(refusal)
		}
	}
	certificate := k.session.certificate
	if certificate != nil && certificate.Left(k.began) <= 0 {
		certificate = nil
	}
	caller, refusal := rule.Admit(caller, certificate)
	k.caller = caller
	if refusal != nil {
		return refused(refusal)
	}
	if caller != nil {
		if wait, ok := v.callerLimit.Allow(caller.ID(), k.start, 1+k.more()); !ok {
			return k.tooMany(wait, "calls with these credentials")
		}
	}
	k.passed = true
	return nil
}

// identify identifies the caller by the credentials in the call's header.
func (k *call) identify(ctx context.Context) (*access.Caller, *access.Refusal, *failure) {
	x := k.session
	c := access.Credentials{Duplicate: k.repeated, Client: x.client}
	if value := text(k.authorization); looksLikeBearer(value) {
		c.Authorization = value
	} else {
		c.APIKey = value
	}
	if ctx == atOnce {
		caller, refusal, ok := k.view.gate.IdentifyAtOnce(c)
		if !ok {
			return nil, nil, errLater
		}
		return caller, refusal, nil
	}
	if wait, ok := k.mayGuess(); !ok {
		return nil, nil, k.tooMany(wait, "wrong tokens from this address")
	}
	caller, refusal := k.view.gate.Identify(ctx, c)
	if refusal != nil && refusal.Forged {
		x.server.wrong.Charge(x.client, k.start, 1)
		k.view.clientLimit.Charge(x.client, k.start, costOfCheck)
	}
	return caller, refusal, nil
}

// looksLikeBearer reports whether a value begins with an HTTP authentication scheme; API keys contain no space.
func looksLikeBearer(value string) bool { return strings.IndexByte(value, ' ') >= 0 }

// loginFailed reports invalid credentials, except those that could not be checked.
func (k *call) loginFailed(refusal *access.Refusal) {
	report := k.session.server.config.LoginFailed
	if report == nil || refusal.Status != http.StatusUnauthorized && refusal.Status != http.StatusBadRequest {
		return
	}
	rule := "token"
	if strings.HasPrefix(refusal.Challenge, "ApiKey") {
		rule = "key"
	}
	report(k.session.addr.Addr(), rule, refusal.Detail)
}

// refused returns the answer to a call that is refused because of its credentials.
func refused(r *access.Refusal) *failure {
	switch r.Status {
	case http.StatusServiceUnavailable:
		return &failure{exception: thriftdoc.Overloaded, code: "OVERLOADED", text: r.Detail, wait: 1}
	case http.StatusGatewayTimeout:
		return &failure{exception: thriftdoc.Unavailable, code: "TIMEOUT", text: r.Detail}
	}
	return &failure{exception: thriftdoc.Denied, code: "DENIED", text: r.Detail}
}

// mayGuess reports whether a token from the client may be checked, and if not, how long the client must wait.
func (k *call) mayGuess() (wait time.Duration, ok bool) {
	a := k.session.addr.Addr()
	if !a.IsValid() || a.IsPrivate() || a.IsLoopback() {
		return 0, true // may be an unlisted proxy for many clients, as may a Unix socket
	}
	return k.session.server.wrong.Within(k.session.client, k.start)
}

// charge charges loaded documents to the limits of the address and of the caller; keysPerCall documents count as one
// call. They are already loaded, so only later calls can be refused.
func (k *call) charge(loaded int) {
	n := (loaded + keysPerCall - 1) / keysPerCall
	k.view.clientLimit.Charge(k.session.client, k.start, n)
	if k.caller != nil {
		k.view.callerLimit.Charge(k.caller.ID(), k.start, n)
	}
}
