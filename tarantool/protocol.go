package tarantool

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// From its greeting on, each connection watches box.shutdown. When its value becomes true, the
// connection is retired (Pin.Retire): it accepts no more calls and ends with the last one in
// flight.

// traits are the traits of IPROTO, whose sync is the ticket. Calls are gathered: with default
// settings, a server reads about 512 small requests of a connection at a time (readahead, 16 KiB).
var traits = pipe.Traits{
	Match: pipe.ByTicket, TicketBits: 64,
	Place: pipe.Gather, Spill: 512,
	PutTicket: box.PutSync,
}

// protocol connects the codec and the engine; nothing else does.
type protocol struct {
	opts     *Options // never changed
	learn    func(*server)
	maxReply int
}

// server describes a server, according to its greeting and its reply to IPROTO_ID. It is immutable.
type server struct {
	version  string // version of the program, such as 2.6.0
	instance string
	protocol uint32
	features uint64 // bits of box.Feature
	auth     string // the required method; empty if the server reported none
}

func (s *server) has(f box.Feature) bool { return s.features&(1<<f) != 0 }

// AppendPing implements pipe.Protocol.
func (p *protocol) AppendPing(b []byte) []byte { return box.AppendPing(b) }

// NewScanner implements pipe.Protocol.
func (p *protocol) NewScanner() pipe.Scanner {
	return &scanner{box.Scanner{MaxMessage: p.maxReply}}
}

type scanner struct{ box.Scanner }

// Scan implements pipe.Scanner.
func (s *scanner) Scan(b []byte) (f pipe.Frame, err error) {
	m, err := s.Scanner.Scan(b)
	if err != nil {
		return f, err
	}
	f.Len, f.Ticket = m.Len, m.Sync
	switch m.Kind {
	case box.Reply:
		f.Verdict = pipe.Done
	case box.More:
		f.Verdict = pipe.More
	case box.Push:
		f.Verdict = pipe.Interim
	default:
		f.Verdict = pipe.Push
	}
	return f, nil
}

// greetingReply bounds a reply during the greeting, so that a peer that is not a Tarantool server
// cannot make the client collect bytes.
const greetingReply = 64 << 10

// features are the protocol features that this package uses.
var features = []box.Feature{
	box.FeatureStreams, box.FeatureTransactions, box.FeatureErrorExtension, box.FeatureWatchers,
	box.FeaturePagination, box.FeatureWatchOnce,
}

// Greet implements pipe.Protocol: it handles the greeting, the features and the user.
func (p *protocol) Greet(ctx context.Context, conn net.Conn) (rest []byte, err error) {
	g := greeter{conn: conn}
	text, err := g.take(box.GreetingLen)
	if err != nil {
		return nil, fmt.Errorf("greeting: %w", err)
	}
	greeting, err := box.ParseGreeting(text)
	if err != nil {
		return nil, err
	}
	s := &server{version: greeting.Version, instance: greeting.Instance}
	// Older servers answer that they do not know the request, and log that.
	if atLeast(greeting.Version, 2, 10) {
		if err := g.identify(s); err != nil {
			return nil, err
		}
	}
	user, password, err := p.opts.login().Get(ctx)
	if err != nil {
		return nil, err
	}
	if user != "" {
		if err := g.authenticate(p.opts, s, greeting.Salt, user, password); err != nil {
			return nil, err
		}
	}
	if s.has(box.FeatureWatchers) { // it has no reply; the value arrives as an event
		watch := appendAside(nil, box.CodeWatch, shutdownKey)
		box.PutSync(watch, traits.GreetingTicket())
		if _, err := conn.Write(watch); err != nil {
			return nil, err
		}
	}
	p.learn(s)
	return g.in, nil
}

// greeter performs the handshake before there is an engine.
type greeter struct {
	conn net.Conn
	in   []byte // received and not yet read
	sync uint32
}

// take returns the next n bytes.
func (g *greeter) take(n int) ([]byte, error) {
	for len(g.in) < n {
		if err := g.more(); err != nil {
			return nil, err
		}
	}
	b := g.in[:n]
	g.in = g.in[n:]
	return b, nil
}

func (g *greeter) more() error {
	var chunk [4 << 10]byte
	n, err := g.conn.Read(chunk[:])
	g.in = append(g.in, chunk[:n]...)
	if n > 0 {
		return nil
	}
	return err
}

// ask sends a request and waits for its reply. An error reply is returned as a *ServerError.
func (g *greeter) ask(code box.Code, body func([]byte) []byte) (box.Response, error) {
	g.sync++
	frame := box.EndRequest(body(box.BeginRequest(nil, code)), 0)
	box.PutSync(frame, uint64(g.sync))
	if _, err := g.conn.Write(frame); err != nil {
		return box.Response{}, fmt.Errorf("%s: %w", code, err)
	}
	scanner := box.Scanner{MaxMessage: greetingReply}
	for {
		m, err := scanner.Scan(g.in)
		if err != nil {
			return box.Response{}, fmt.Errorf("reply to %s: %w", code, err)
		}
		if m.Kind == box.More {
			if err := g.more(); err != nil {
				return box.Response{}, fmt.Errorf("reply to %s: %w", code, err)
			}
			continue
		}
		message, body := g.in[:m.Len], g.in[m.BodyAt:m.Len]
		g.in = g.in[len(message):]
		if m.Kind != box.Reply || m.Sync != uint64(g.sync) {
			return box.Response{}, fmt.Errorf("reply to %s: a %s with the sync %d, expected a reply with %d", code, m.Kind, m.Sync, g.sync)
		}
		r, err := box.ParseBody(m.Code, body)
		switch {
		case err != nil:
			return r, fmt.Errorf("reply to %s: %w", code, err)
		case m.Code != uint32(box.CodeOK):
			return r, fmt.Errorf("%s: %w", code, serverError(m.Code, r.Error))
		}
		return r, nil
	}
}

// identify sends the features of this client, and receives those of the server.
func (g *greeter) identify(s *server) error {
	r, err := g.ask(box.CodeID, func(b []byte) []byte {
		return box.AppendID(b, box.ProtocolVersion, features, "")
	})
	if err != nil {
		if IsCode(err, iproto.CodeUnknownRequestType) {
			return nil
		}
		return err
	}
	s.protocol, s.auth = r.Version, string(r.AuthType)
	s.features, err = box.ParseFeatures(r.Features)
	return err
}

func (g *greeter) authenticate(o *Options, s *server, salt []byte, user, password string) error {
	method := o.Auth
	if method == AuthAuto {
		method = AuthCHAPSHA1
		if s.auth == string(AuthPAPSHA256) {
			method = AuthPAPSHA256
			if o.TLS == nil && o.network() != "unix" {
				return errors.New("the server requires pap-sha256, which sends the password, so it needs TLS")
			}
		}
	}
	proof := []byte(password)
	if method == AuthCHAPSHA1 {
		scramble := box.ScrambleSHA1(sha1.Sum, salt, password)
		proof = scramble[:]
	}
	_, err := g.ask(box.CodeAuth, func(b []byte) []byte {
		return box.AppendAuth(b, user, string(method), proof)
	})
	return err
}

// atLeast reports whether a version such as 2.10.1-57-g36a1 is major.minor or later. A version that
// cannot be parsed counts as new, so IPROTO_ID is sent.
func atLeast(version string, major, minor int) bool {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	second, _, _ = strings.Cut(second, "-")
	x, err := strconv.Atoi(first)
	y, failed := strconv.Atoi(second)
	if err != nil || failed != nil {
		return true
	}
	return x > major || x == major && y >= minor
}
