package redis

import (
	"context"
	"net"

	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// traits are the traits of Redis: a server answers the requests of a connection in order.
var traits = pipe.Traits{Match: pipe.InOrder, Place: pipe.Random}

// protocol connects the codec and the engine; nothing else does.
type protocol struct {
	opts   *Options // never changed
	limits resp.Limits
	aside  func() // called for invalidations within a message, before it is delivered; nil if they are ignored
}

func newProtocol(o *Options) *protocol {
	l := o.Limits
	return &protocol{opts: o, limits: resp.Limits{
		Bulk: l.Bulk, Line: l.Line, Elements: l.Elements, Depth: l.Depth, Frame: l.Frame, Streamed: l.Streamed,
	}}
}

// Greet implements pipe.Protocol.
func (p *protocol) Greet(ctx context.Context, conn net.Conn) (rest []byte, err error) {
	return greet(ctx, conn, p.opts)
}

// NewScanner implements pipe.Protocol.
func (p *protocol) NewScanner() pipe.Scanner {
	return &scanner{resp.NewScanner(p.limits), p.aside}
}

// AppendPing implements pipe.Protocol. If the user may not send PING, the server answers with an
// error, which serves the same purpose.
func (p *protocol) AppendPing(b []byte) []byte { return append(b, "*1\r\n$4\r\nPING\r\n"...) }

type scanner struct {
	*resp.Scanner
	aside func()
}

// Body implements pipe.Splitter.
func (s *scanner) Body() (from, n int, ticket uint64) {
	from, n = s.Scanner.Body()
	return from, n, 0
}

// Scan implements pipe.Scanner.
func (s *scanner) Scan(b []byte) (pipe.Frame, error) {
	n, verdict, err := s.Scanner.Scan(b)
	if s.aside != nil && s.TookAside() {
		s.aside()
	}
	switch {
	case err != nil:
		return pipe.Frame{}, err
	case verdict == resp.Done:
		return pipe.Frame{Len: n, Verdict: pipe.Done}, nil
	case verdict == resp.More:
		return pipe.Frame{Len: n, Verdict: pipe.More}, nil
	}
	return pipe.Frame{Len: n, Verdict: pipe.Push}, nil
}
