package respfront

import (
	"context"
	"net/http"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/loop"
)

const (
	// costOfCheck is what a wrong signature costs in commands, for the limit of the address.
	costOfCheck = 10
	// weightOfLogin is what a waiting login holds in addition to its token.
	weightOfLogin = 1 << 10
)

// tokenLogin is the answer to a login with a token whose signature must be checked.
type tokenLogin struct {
	// Immutable after authenticateToken.
	session     *session
	gate        *access.Gate
	credentials access.Credentials
	name        string // from the client
	command     *command
	then        func(*turn)
	place       completer

	// Owned by the goroutine that checks until it completes place, then by the connection's
	// turn.
	caller  *access.Caller
	refusal *access.Refusal
}

// authenticateToken logs in with a token. Its signature is checked as over HTTP: by a goroutine,
// for clients in turn, until the timeout of a command.
func (t *turn) authenticateToken(name, token string, then func(*turn)) {
	s, x := t.server, t.session
	l := &tokenLogin{session: x, gate: x.view.gate, name: name, command: t.command, then: then,
		credentials: access.Credentials{Authorization: "Bearer " + token, Client: x.client}}
	caller, refusal, ok := l.gate.IdentifyAtOnce(l.credentials)
	if ok {
		t.judge(l, caller, refusal)
		return
	}
	l.place = t.conn.Defer(l)
	l.place.Weigh(weightOfLogin + len(token))
	t.conn.Pause(true) // later commands may need the login
	ctx := t.conn.Context()
	s.work.Add(1)
	// Ends with RequestTimeout or with the connection, whose context it has. Shutdown waits
	// for it.
	s.workers.Start(loop.JobFunc(func() {
		defer s.work.Done()
		ctx, cancel := context.WithTimeout(ctx, s.config.RequestTimeout)
		defer cancel()
		l.caller, l.refusal = l.gate.Identify(ctx, l.credentials)
		l.place.Complete()
	}))
}

// judge completes a login with a token. A name is for clients that require one: it must be the
// subject of the token, or the default user.
func (t *turn) judge(l *tokenLogin, caller *access.Caller, refusal *access.Refusal) {
	switch {
	case refusal == nil && l.name != defaultUser && l.name != caller.Subject():
		t.wrongLogin("token", textWrongPass)
	case refusal == nil:
		t.loggedIn(caller, [32]byte{}, byToken)
		l.then(t)
	case refusal.Status == http.StatusServiceUnavailable:
		t.fail(FailOverloaded, refusal.Detail)
	case refusal.Status == http.StatusGatewayTimeout:
		t.fail(FailTimeout, refusal.Detail)
	default:
		if refusal.Forged {
			t.session.view.clientLimit.Charge(t.session.client, t.start, costOfCheck)
		}
		t.wrongLogin("token", refusal.Detail)
	}
}

// Write implements [loop.Reply].
func (l *tokenLogin) Write(c *loop.Conn) { l.write(engineConn{c}) }

// Drop implements [loop.Reply].
func (l *tokenLogin) Drop() {}

func (l *tokenLogin) write(c conn) {
	c.Pause(false)
	t := l.session.server.turns.Get().(*turn)
	t.begin(l.session, c)
	t.command = l.command
	t.judge(l, l.caller, l.refusal)
	if l.session.known() {
		c.Prove()
	}
	t.end()
}
