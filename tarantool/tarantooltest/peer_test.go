package tarantooltest_test

import (
	"bufio"
	"crypto/sha1"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// peer is a plain client: it shows what is on the wire.
type peer struct {
	t        *testing.T
	c        net.Conn
	r        *bufio.Reader
	greeting iproto.Greeting
	sync     uint32
	stream   uint64 // of the requests that follow
	relies   uint32 // they rely on a schema of this version, if it is not 0
	schema   uint32 // of the last message
}

// dial connects, and reads the greeting.
func dial(t *testing.T, addr string, config ...*tls.Config) *peer {
	t.Helper()
	network := "tcp"
	if strings.Contains(addr, "/") {
		network = "unix"
	}
	c, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	if len(config) > 0 {
		c = tls.Client(c, config[0])
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	p := &peer{t: t, c: c, r: bufio.NewReader(c)}
	first := make([]byte, iproto.GreetingLen)
	if _, err := io.ReadFull(p.r, first); err != nil {
		t.Fatal(err)
	}
	if p.greeting, err = iproto.ParseGreeting(first); err != nil {
		t.Fatal(err)
	}
	return p
}

// send sends a request and returns its sync.
func (p *peer) send(code iproto.Code, body func(b []byte) []byte) uint64 {
	p.t.Helper()
	p.sync++
	b := iproto.BeginRequest(nil, code)
	if p.stream != 0 {
		b = iproto.BeginStream(nil, code, p.stream)
	}
	if p.relies != 0 {
		b[5]++ // one pair more in the header
		b = iproto.AppendUint(iproto.AppendKey(b, iproto.KeySchemaVersion), uint64(p.relies))
	}
	b = iproto.EndRequest(body(b), 0)
	iproto.PutSync(b, p.sync)
	if _, err := p.c.Write(b); err != nil {
		p.t.Fatal(err)
	}
	return uint64(p.sync)
}

// receive returns the next message.
func (p *peer) receive() (iproto.Message, iproto.Response, error) {
	var s iproto.Scanner
	var b []byte
	for {
		m, err := s.Scan(b)
		if err != nil {
			return m, iproto.Response{}, err
		}
		if m.Kind != iproto.More {
			r, err := iproto.ParseBody(m.Code, b[m.BodyAt:])
			p.schema = uint32(m.Schema)
			return m, r, err
		}
		have := len(b)
		b = append(b, make([]byte, m.Len-have)...)
		if _, err := io.ReadFull(p.r, b[have:]); err != nil {
			return m, iproto.Response{}, err
		}
	}
}

// response sends a request and returns its reply, which comes next.
func (p *peer) response(code iproto.Code, body func(b []byte) []byte) (iproto.Response, error) {
	p.t.Helper()
	sync := p.send(code, body)
	m, r, err := p.receive()
	if err != nil {
		p.t.Fatalf("%v: %v", code, err)
	}
	if m.Sync != sync || m.Kind != iproto.Reply {
		p.t.Fatalf("%v: %v of %d, want a reply to %d", code, m.Kind, m.Sync, sync)
	}
	if r.Error != nil {
		return r, r.Error
	}
	return r, nil
}

// do sends a request and returns its data as text, or the number of its error.
func (p *peer) do(code iproto.Code, body func(b []byte) []byte) string {
	p.t.Helper()
	r, err := p.response(code, body)
	return text(p.t, r, err)
}

func text(t *testing.T, r iproto.Response, err error) string {
	t.Helper()
	if e := new(iproto.BoxError); errors.As(err, &e) {
		return "error " + iproto.ErrorCode(e.Code).String()
	}
	if r.Data == nil {
		return "ok"
	}
	d := iproto.NewDecoder(r.Data)
	v := d.Any()
	if d.Err() != nil || d.Len() != 0 {
		t.Fatalf("data %x: %v", r.Data, d.Err())
	}
	return fmt.Sprintf("%#v", v)
}

// The requests, with keys, tuples and operations as lists.

type list = []any

func any1(b []byte, v any) []byte { return iproto.AppendAny(b, v) }

func (p *peer) selects(space, index uint32, it iproto.Iterator, limit, offset uint32, key ...any) string {
	p.t.Helper()
	return p.do(iproto.CodeSelect, func(b []byte) []byte {
		return any1(iproto.AppendSelectHead(b, space, index, limit, offset, it), append(list{}, key...))
	})
}

func (p *peer) insert(code iproto.Code, space uint32, tuple ...any) string {
	p.t.Helper()
	return p.do(code, func(b []byte) []byte { return any1(iproto.AppendInsertHead(b, space), append(list{}, tuple...)) })
}

func (p *peer) update(space, index uint32, key list, ops ...any) string {
	p.t.Helper()
	return p.do(iproto.CodeUpdate, func(b []byte) []byte {
		return any1(iproto.AppendKey(any1(iproto.AppendUpdateHead(b, space, index), key), iproto.KeyTuple), append(list{}, ops...))
	})
}

func (p *peer) upsert(space uint32, tuple list, ops ...any) string {
	p.t.Helper()
	return p.do(iproto.CodeUpsert, func(b []byte) []byte {
		return any1(iproto.AppendKey(any1(iproto.AppendUpsertHead(b, space), tuple), iproto.KeyOperations), append(list{}, ops...))
	})
}

func (p *peer) delete(space, index uint32, key ...any) string {
	p.t.Helper()
	return p.do(iproto.CodeDelete, func(b []byte) []byte { return any1(iproto.AppendDeleteHead(b, space, index), append(list{}, key...)) })
}

func (p *peer) call(function string, args ...any) string {
	p.t.Helper()
	return p.do(iproto.CodeCall, func(b []byte) []byte { return any1(iproto.AppendCallHead(b, function), append(list{}, args...)) })
}

func (p *peer) begin(options iproto.Begin) string { return p.do(iproto.CodeBegin, options.Append) }

func (p *peer) commit() string {
	return p.do(iproto.CodeCommit, func(b []byte) []byte { return iproto.AppendCommit(b, false) })
}

func (p *peer) rollback() string { return p.do(iproto.CodeRollback, iproto.AppendRollback) }

func (p *peer) ping() string {
	return p.do(iproto.CodePing, func(b []byte) []byte { return iproto.AppendMap(b, 0) })
}

func (p *peer) auth(user, password string) string {
	scramble := iproto.ScrambleSHA1(sha1.Sum, p.greeting.Salt, password)
	return p.do(iproto.CodeAuth, func(b []byte) []byte { return iproto.AppendAuth(b, user, iproto.AuthSHA1, scramble[:]) })
}
