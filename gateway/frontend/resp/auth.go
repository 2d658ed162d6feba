package respfront

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"time"

	"github.com/slipstream-go/slipstream/gateway/access"
	"github.com/slipstream-go/slipstream/gateway/requestlog"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

const (
	// maxFailures is how many logins of a connection may fail; then it is closed.
	maxFailures = 10
	// checkKeyEvery is how often an API key is looked up again: one that was removed
	// from the file ends connections that are open as well. One that expires is looked up at
	// that time.
	checkKeyEvery = 5 * time.Second
	// maxPassword is the longest password that is hashed, in bytes: what a command may have
	// before a login.
	maxPassword = 16 << 10
	// loginRate is how many logins of an address may fail a second in the long run, and
	// loginBurst how many may fail at once; beyond that, no login is tried. Reconnecting
	// does not help, because the address is the same.
	loginRate  = 1
	loginBurst = 60
	// defaultUser is the name of a login that has none.
	defaultUser = "default"
)

// What Redis says about logins.
const (
	textWrongPass = "invalid username-password pair or user is disabled."
	textNoUsers   = "AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
	textHelloAuth = "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
	textSyntax    = "syntax error"
)

// nobody is what a password of an unknown user is compared with. No password has this
// hash: it is no output of SHA-256 that anybody knows an input of.
var nobody = &user{hashes: []*[32]byte{{}}}

// login finds the caller of a name and password; hash is that of the password, and isKey says
// that it is an API key. The caller is nil if the two do not belong together.
func (v *View) login(name, password []byte) (caller *access.Caller, hash [32]byte, isKey bool) {
	hash = sha256.Sum256(password)
	u := v.users[string(name)]
	if u == nil {
		u = nobody
	}
	found := 0
	for _, h := range u.hashes {
		found |= subtle.ConstantTimeCompare(h[:], hash[:])
	}
	if found == 1 {
		return u.caller, hash, false
	}
	if v.gate == nil || len(password) == 0 {
		return nil, hash, false
	}
	caller, refusal := v.gate.Identify(context.Background(), access.Credentials{APIKey: string(password)}) // does not wait for a key
	if refusal != nil || caller == nil {
		return nil, hash, false
	}
	if string(name) != defaultUser && "key:"+string(name) != caller.Name() {
		return nil, hash, false // the key of somebody else
	}
	return caller, hash, true
}

// checkKey ends the login with an API key that has expired or is not known any more.
func (x *session) checkKey(now time.Duration) {
	if !x.byKey || now < x.recheck {
		return
	}
	var caller *access.Caller
	if x.view.gate != nil {
		var left time.Duration
		caller, left = x.view.gate.Known(x.hash)
		// On the cache's clock, so that a command costs no reading of another one.
		x.recheck = now + min(left, checkKeyEvery)
	}
	if caller != x.caller.Load() {
		x.setCaller(caller)
	}
	x.byKey = caller != nil
}

// authenticate logs in and reports whether it has; if not, it has answered.
func (t *turn) authenticate(name, password []byte) bool {
	s, x := t.server, t.session
	if len(x.view.users) == 0 && x.view.gate == nil && string(name) == defaultUser {
		return true // anybody may do everything, whatever the password
	}
	if wait, ok := s.logins.Within(x.client, t.start); !ok {
		t.tooMany(wait, "failed logins from this address")
		return false
	}
	t.units += len(password) >> 9
	var caller *access.Caller
	var hash [32]byte
	var isKey bool
	if len(password) <= maxPassword {
		caller, hash, isKey = x.view.login(name, password)
	}
	if caller != nil {
		x.setCaller(caller)
		x.byKey, x.hash, x.failures = isKey, hash, 0
		x.recheck = t.start // the next command asks when the key expires
		return true
	}
	s.logins.Charge(x.client, t.start, 1)
	t.fail(FailWrongPass, textWrongPass)
	x.failures++
	last := x.failures >= maxFailures
	s.warnLogin(t.start, x.addr.Addr(), last)
	if last {
		t.conn.End()
	}
	if x.view.requests != nil {
		x.view.requests.Record(&requestlog.Entry{Time: t.began, Took: time.Since(t.began), Protocol: protocolName, Client: x.addr.Addr(),
			Method: t.command.name, Error: FailWrongPass.Code(), Source: SourceOther.String()})
	}
	return false
}

func (t *turn) auth(args [][]byte) {
	switch {
	case len(args) > 3:
		t.fail(FailUsage, textSyntax)
	case len(args) == 2 && len(t.session.view.users) == 0 && t.session.view.gate == nil:
		t.fail(FailUsage, textNoUsers)
	case len(args) == 2 && t.authenticate([]byte(defaultUser), args[1]),
		len(args) == 3 && t.authenticate(args[1], args[2]):
		t.ok()
	}
}

// hello is HELLO [version [AUTH user password] [SETNAME name]].
func (t *turn) hello(args [][]byte) {
	three := t.three
	if len(args) > 1 {
		switch version, err := parseInteger(args[1]); {
		case err != nil:
			t.fail(FailUsage, "Protocol version is not an integer or out of range")
			return
		case version != 2 && version != 3:
			t.fail(FailVersion, "unsupported protocol version")
			return
		default:
			three = version == 3
		}
	}
	var name, user, password []byte
	for i := 2; i < len(args); {
		switch {
		case equalFold(args[i], "auth") && i+2 < len(args):
			user, password = args[i+1], args[i+2]
			i += 3
		case equalFold(args[i], "setname") && i+1 < len(args):
			name = args[i+1]
			if !t.validName(name, "Client names") {
				return
			}
			i += 2
		default:
			t.fail(FailUsage, "Syntax error in HELLO option '"+printable(args[i], 128)+"'")
			return
		}
	}
	if user != nil && !t.authenticate(user, password) {
		return
	}
	if !t.session.known() {
		t.fail(FailNoAuth, textHelloAuth)
		return
	}
	if name != nil {
		t.session.describe(func(a *about) { a.name = string(name) })
	}
	t.three = three
	t.session.three.Store(three)
	t.greet()
}

// greet answers HELLO.
func (t *turn) greet() {
	version := int64(2)
	if t.three {
		version = 3
	}
	o := t.conn.Output()
	b := t.appendMap(o.B, 7)
	b = resp.AppendBulkString(resp.AppendBulkString(b, "server"), serverName)
	b = resp.AppendBulkString(resp.AppendBulkString(b, "version"), redisVersion)
	b = resp.AppendInt(resp.AppendBulkString(b, "proto"), version)
	b = resp.AppendInt(resp.AppendBulkString(b, "id"), int64(t.session.id))
	b = resp.AppendBulkString(resp.AppendBulkString(b, "mode"), "standalone")
	b = resp.AppendBulkString(resp.AppendBulkString(b, "role"), "master")
	o.B = resp.AppendArrayHeader(resp.AppendBulkString(b, "modules"), 0)
}

func (t *turn) reset([][]byte) {
	x := t.session
	x.setCaller(nil)
	x.byKey = false
	x.about.Store(nil)
	x.three.Store(false)
	t.three = false
	o := t.conn.Output()
	o.B = resp.AppendSimpleString(o.B, "RESET")
}
