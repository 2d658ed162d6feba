package respfront

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/requestlog"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

const (
	// maxFailures is how many logins of a connection may fail; then it is closed.
	maxFailures = 10
	// checkKeyEvery is how often an API key, and the key that a token was signed with, are
	// looked up again: removing a key also ends open connections. Expiry is checked when it is
	// due.
	checkKeyEvery = 5 * time.Second
	// maxPassword is the longest password that is hashed, in bytes: the limit of a command
	// before a login.
	maxPassword = 16 << 10
	// loginRate is how many logins of an address may fail per second in the long run, and
	// loginBurst how many may fail together; beyond that, no login is tried. Reconnecting
	// does not help, because the address is the same.
	loginRate  = 1
	loginBurst = 60
	// defaultUser is the name of a login that has none.
	defaultUser = "default"
)

// The messages of Redis about logins.
const (
	textWrongPass = "invalid username-password pair or user is disabled."
	textNoUsers   = "AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
	textHelloAuth = "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
	textSyntax    = "syntax error"
)

// nobody is the user that the password of an unknown user is compared with. No known
// password has this hash.
var nobody = &user{hashes: []*[32]byte{{}}}

// credential is the kind of a client's login.
type credential uint8

const (
	byPassword credential = iota // or nothing
	byAPIKey
	byToken
	byCertificate // of the connection; checkCertificate notices when it expires
)

// login returns the caller with a name and password; hash is that of the password. The caller is
// nil if the two do not match.
func (v *View) login(name, password []byte) (caller *access.Caller, hash [32]byte, by credential) {
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
		return u.caller, hash, byPassword
	}
	if v.gate == nil || len(password) == 0 {
		return nil, hash, byPassword
	}
	caller, refusal := v.gate.Identify(context.Background(), access.Credentials{APIKey: string(password)}) // does not block for a key
	if refusal != nil || caller == nil {
		return nil, hash, byPassword
	}
	if string(name) != defaultUser && "key:"+string(name) != caller.Name() {
		return nil, hash, byPassword // the key of another caller
	}
	return caller, hash, byAPIKey
}

// checkLogin ends the login with an API key or a token that has expired or is no longer valid.
func (x *session) checkLogin(now time.Duration) {
	if x.by == byPassword || x.by == byCertificate || now < x.recheck {
		return
	}
	caller, known, left := x.caller.Load(), (*access.Caller)(nil), time.Duration(0)
	switch gate := x.view.gate; {
	case gate == nil:
	case x.by == byAPIKey:
		known, left = gate.Known(x.hash)
	default:
		if left = gate.Valid(caller); left > 0 {
			known = caller
		}
	}
	// The times are on the cache's clock, so that a command does not read another
	// one.
	x.recheck = now + min(left, checkKeyEvery)
	switch {
	case known == nil:
		x.fallBack()
	case known != caller:
		x.setCaller(known)
	}
}

// authenticate logs in and continues the command with then, or answers. A token that was not seen
// recently is checked later: until then, nothing more is read from the connection.
func (t *turn) authenticate(name, password []byte, then func(*turn)) {
	s, x := t.server, t.session
	if len(x.view.users) == 0 && x.view.gate == nil && string(name) == defaultUser {
		then(t) // anyone may do everything, whatever the password
		return
	}
	if wait, ok := s.logins.Within(x.guesser, t.start); !ok {
		t.tooMany(wait, "failed logins from this address")
		return
	}
	t.units += len(password) >> 9
	if len(password) <= maxPassword {
		if caller, hash, by := x.view.login(name, password); caller != nil {
			t.loggedIn(caller, hash, by)
			then(t)
			return
		}
		if gate := x.view.gate; gate != nil && gate.TakesTokens() && access.LooksLikeToken(password) {
			t.authenticateToken(string(name), string(password), then)
			return
		}
	}
	t.wrongLogin("password", textWrongPass)
}

func (t *turn) loggedIn(caller *access.Caller, hash [32]byte, by credential) {
	x := t.session
	x.setCaller(caller)
	x.by, x.hash, x.failures = by, hash, 0
	x.recheck = t.start // the next command looks up when it expires
}

// wrongLogin answers a login that has failed.
func (t *turn) wrongLogin(rule, text string) {
	s, x := t.server, t.session
	s.logins.Charge(x.guesser, t.start, 1)
	t.fail(FailWrongPass, text)
	x.failures++
	last := x.failures >= maxFailures
	s.warnLogin(t.start, x.addr.Addr(), last)
	if s.config.LoginFailed != nil {
		s.config.LoginFailed(x.addr.Addr(), rule, text)
	}
	if last {
		t.conn.End()
	}
	if x.view.requests != nil {
		x.view.requests.Record(&requestlog.Entry{Time: t.began, Took: time.Since(t.began), Protocol: protocolName, Client: x.addr.Addr(),
			Method: t.command.name, Error: FailWrongPass.Code(), Source: frontend.SourceOther.String()})
	}
}

func (t *turn) auth(args [][]byte) {
	switch {
	case len(args) > 3:
		t.fail(FailUsage, textSyntax)
	case len(args) == 2 && len(t.session.view.users) == 0 && t.session.view.gate == nil:
		t.fail(FailUsage, textNoUsers)
	case len(args) == 2:
		t.authenticate([]byte(defaultUser), args[1], (*turn).ok)
	default:
		t.authenticate(args[1], args[2], (*turn).ok)
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
	if user == nil {
		t.helloAs(three, name)
		return
	}
	name = bytes.Clone(name) // the login may outlast these bytes
	t.authenticate(user, password, func(t *turn) { t.helloAs(three, name) })
}

// helloAs completes HELLO, after the login if there is one.
func (t *turn) helloAs(three bool, name []byte) {
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
	x.fallBack()
	x.about.Store(nil)
	x.three.Store(false)
	t.three = false
	o := t.conn.Output()
	o.B = resp.AppendSimpleString(o.B, "RESET")
}
