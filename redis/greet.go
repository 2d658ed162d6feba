package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// All tests run with Redis 7.0, and TestRedis8 runs with 8.0; Valkey 8.0 and 9.1 were tested by
// hand. Redis 7.4 added HEXPIRE and its family, and 8.0 added HGETEX, HSETEX and HGETDEL (Valkey:
// 9.0, and HGETDEL 9.1). Valkey 9.1 answers NOAUTH to an unknown command, even in a greeting with a
// password.

// greetingLimits are small, because the replies of a greeting are.
var greetingLimits = resp.Limits{Bulk: 16 << 10, Line: 4 << 10, Elements: 1024, Depth: 8, Frame: greetingBytes, Streamed: 16 << 10}

const (
	greetingBytes = 64 << 10
	// greetingPushes is the maximum number of pushes that are skipped.
	greetingPushes = 64
)

// step is one command of a greeting.
type step struct {
	name string
	args []string
	// optional means that its errors are ignored.
	optional bool
}

// greet makes a new connection ready: it sets the protocol, the user, the client name, the
// database, and the library that the client uses. It takes one round trip, or two with servers that
// do not know HELLO.
func greet(ctx context.Context, conn net.Conn, o *Options) (rest []byte, err error) {
	user, password, err := o.login().Get(ctx)
	if err != nil {
		return nil, err
	}
	g := greeting{conn: conn, scanner: resp.NewScanner(greetingLimits), secret: password}
	if o.Protocol == 2 {
		return g.run(append(authSteps(o, user, password), commonSteps(o)...), nil)
	}
	return g.run(append([]step{helloStep(o, user, password)}, commonSteps(o)...), func(err error) []step {
		if o.Protocol == 3 || !lacksHello(err, password) {
			return nil
		}
		return append(authSteps(o, user, password), commonSteps(o)...)
	})
}

func helloStep(o *Options, user, password string) step {
	s := step{name: "HELLO", args: []string{"HELLO", "3"}}
	if password != "" {
		if user == "" {
			user = "default"
		}
		s.args = append(s.args, "AUTH", user, password)
	}
	if o.ClientName != "" {
		s.args = append(s.args, "SETNAME", o.ClientName)
	}
	return s
}

// authSteps replace HELLO. Servers before version 6 support AUTH with one argument only.
func authSteps(o *Options, user, password string) []step {
	var steps []step
	switch {
	case password == "":
	case user == "":
		steps = append(steps, step{name: "AUTH", args: []string{"AUTH", password}})
	default:
		steps = append(steps, step{name: "AUTH", args: []string{"AUTH", user, password}})
	}
	if o.ClientName != "" {
		steps = append(steps, step{name: "CLIENT SETNAME", args: []string{"CLIENT", "SETNAME", o.ClientName}})
	}
	return steps
}

func commonSteps(o *Options) []step {
	var steps []step
	if o.DB != 0 {
		steps = append(steps, step{name: "SELECT", args: []string{"SELECT", strconv.Itoa(o.DB)}})
	}
	if o.readOnly {
		steps = append(steps, step{name: "READONLY", args: []string{"READONLY"}})
	}
	if o.Cache != nil {
		steps = append(steps, step{name: "CLIENT TRACKING", args: o.Cache.trackingArguments()})
	}
	if o.OmitClientInfo {
		return steps
	}
	return append(steps,
		step{name: "CLIENT SETINFO", args: []string{"CLIENT", "SETINFO", "LIB-NAME", "slipstream"}, optional: true},
		step{name: "CLIENT SETINFO", args: []string{"CLIENT", "SETINFO", "LIB-VER", libraryVersion()}, optional: true})
}

// libraryVersion is the version of this module in the program that uses it.
var libraryVersion = sync.OnceValue(func() string {
	const module = "github.com/slipstream-go/slipstream"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == module && strings.HasPrefix(m.Version, "v") {
				return m.Version
			}
		}
	}
	return "devel"
})

// lacksHello reports whether the server does not know HELLO, as opposed to rejecting its arguments.
// If a greeting with a password is rejected because the connection is not authenticated, the server
// does not know HELLO: Valkey 9.1 checks authentication before it checks whether it knows a
// command.
func lacksHello(err error, password string) bool {
	var e *ServerError
	return errors.As(err, &e) && (e.Code == "NOPROTO" || e.Code == "NOPERM" || e.Code == "NOAUTH" && password != "" ||
		e.Code == "ERR" && strings.HasPrefix(strings.ToLower(e.Message), "unknown command"))
}

// greeting is the state of one greeting.
type greeting struct {
	conn    net.Conn
	scanner *resp.Scanner
	secret  string

	in     []byte // received
	at     int    // offset in in at which the next reply starts
	pushes int
}

// run sends all steps together and reads their replies. If the first step fails, the steps that
// instead returns replace all of them; if instead is nil, the greeting fails.
func (g *greeting) run(steps []step, instead func(error) []step) (rest []byte, err error) {
	var out []byte
	for _, s := range steps {
		out = resp.AppendCommand(out, s.args...)
	}
	if _, err := g.conn.Write(out); err != nil {
		return nil, err
	}
	for i, s := range steps {
		err := g.reply(s)
		var server *ServerError
		if err == nil || s.optional && errors.As(err, &server) {
			continue
		}
		if i == 0 && instead != nil {
			if other := instead(err); other != nil {
				// The other replies of this round came before the connection was set up as
				// intended, so none of them counts.
				if err := g.discard(steps[1:]); err != nil {
					return nil, err
				}
				return g.run(other, nil)
			}
		}
		return nil, err // a server that has no room reports that and hangs up, so the other replies do not arrive
	}
	return g.in[g.at:], nil
}

// discard reads and ignores the replies to steps.
func (g *greeting) discard(steps []step) error {
	for _, s := range steps {
		var server *ServerError
		if err := g.reply(s); err != nil && !errors.As(err, &server) {
			return err
		}
	}
	return nil
}

// reply reads the reply to one step. An error reply is a *ServerError in the chain; after any other
// error, the connection is unusable.
func (g *greeting) reply(s step) error {
	frame, err := g.frame()
	if err != nil {
		return fmt.Errorf("reply to %s: %w", s.name, err)
	}
	d := resp.NewDecoder(frame)
	tok, err := d.Next()
	switch {
	case err != nil:
		return fmt.Errorf("reply to %s: %w", s.name, err)
	case isError(tok):
		return fmt.Errorf("%s: %w", s.name, g.discreet(parseServerError(tok.Bytes)))
	case s.name == "HELLO" && tok.Kind != resp.Map:
		return fmt.Errorf("reply to HELLO: %s, expected a map", describe(tok))
	case s.name != "HELLO" && (tok.Kind != resp.SimpleString || string(tok.Bytes) != "OK"):
		return fmt.Errorf("reply to %s: %s, expected OK", s.name, describe(tok))
	}
	return nil
}

// discreet removes what may be the password from an error: servers repeat the arguments of commands
// that they do not know, truncated at some point.
func (g *greeting) discreet(e *ServerError) *ServerError {
	if g.secret == "" {
		return e
	}
	e.Message, _, _ = strings.Cut(e.Message, ", with args beginning with")
	e.Message = strings.ReplaceAll(e.Message, g.secret, "***")
	return e
}

// frame reads one reply.
func (g *greeting) frame() ([]byte, error) {
	for {
		if g.at < len(g.in) {
			n, verdict, err := g.scanner.Scan(g.in[g.at:])
			if err != nil {
				return nil, err
			}
			if verdict != resp.More {
				frame := g.in[g.at : g.at+n]
				g.at += n
				if verdict == resp.Done {
					return frame, nil
				}
				if g.pushes++; g.pushes > greetingPushes {
					return nil, fmt.Errorf("%d messages that answer no command", g.pushes)
				}
				continue
			}
		}
		if len(g.in) >= greetingBytes {
			return nil, fmt.Errorf("more than %d bytes", greetingBytes)
		}
		var chunk [4 << 10]byte
		n, err := g.conn.Read(chunk[:])
		g.in = append(g.in, chunk[:n]...)
		if err != nil && n == 0 {
			return nil, err
		}
	}
}
