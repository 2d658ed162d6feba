package tarantoolsim_test

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

	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// peer is a simple client that shows what is sent over the connection.
type peer struct {
	t        *testing.T
	c        net.Conn
	r        *bufio.Reader
	greeting box.Greeting
	sync     uint32
	stream   uint64 // of the requests that follow
	relies   uint32 // if not 0, the schema version that they require
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
	first := make([]byte, box.GreetingLen)
	if _, err := io.ReadFull(p.r, first); err != nil {
		t.Fatal(err)
	}
	if p.greeting, err = box.ParseGreeting(first); err != nil {
		t.Fatal(err)
	}
	return p
}

// send sends a request and returns its sync.
func (p *peer) send(code box.Code, body func(b []byte) []byte) uint64 {
	p.t.Helper()
	p.sync++
	b := box.BeginRequest(nil, code)
	if p.stream != 0 {
		b = box.Header{Code: code, Stream: p.stream}.Append(nil)
	}
	if p.relies != 0 {
		b[5]++ // one more pair in the header
		b = iproto.AppendUint(box.AppendKey(b, box.KeySchemaVersion), uint64(p.relies))
	}
	b = box.EndRequest(body(b), 0)
	box.PutSync(b, uint64(p.sync))
	if _, err := p.c.Write(b); err != nil {
		p.t.Fatal(err)
	}
	return uint64(p.sync)
}

// receive returns the next message.
func (p *peer) receive() (box.Message, box.Response, error) {
	var s box.Scanner
	var b []byte
	for {
		m, err := s.Scan(b)
		if err != nil {
			return m, box.Response{}, err
		}
		if m.Kind != box.More {
			r, err := box.ParseBody(m.Code, b[m.BodyAt:])
			p.schema = uint32(m.Schema)
			return m, r, err
		}
		have := len(b)
		b = append(b, make([]byte, m.Len-have)...)
		if _, err := io.ReadFull(p.r, b[have:]); err != nil {
			return m, box.Response{}, err
		}
	}
}

// response sends a request and returns its reply, which must be the next message.
func (p *peer) response(code box.Code, body func(b []byte) []byte) (box.Response, error) {
	p.t.Helper()
	sync := p.send(code, body)
	m, r, err := p.receive()
	if err != nil {
		p.t.Fatalf("%v: %v", code, err)
	}
	if m.Sync != sync || m.Kind != box.Reply {
		p.t.Fatalf("%v: %v of %d, want a reply to %d", code, m.Kind, m.Sync, sync)
	}
	if r.Error != nil {
		return r, r.Error
	}
	return r, nil
}

// do sends a request and returns its data as text, or the number of its error.
func (p *peer) do(code box.Code, body func(b []byte) []byte) string {
	p.t.Helper()
	r, err := p.response(code, body)
	return text(p.t, r, err)
}

func text(t *testing.T, r box.Response, err error) string {
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

func (p *peer) selects(space, index uint32, it tarantool.Iterator, limit, offset uint32, key ...any) string {
	p.t.Helper()
	return p.do(box.CodeSelect, func(b []byte) []byte {
		return any1(box.AppendSelectHead(b, space, index, limit, offset, uint32(it)), append(list{}, key...))
	})
}

func (p *peer) insert(code box.Code, space uint32, tuple ...any) string {
	p.t.Helper()
	return p.do(code, func(b []byte) []byte { return any1(box.AppendInsertHead(b, space), append(list{}, tuple...)) })
}

func (p *peer) update(space, index uint32, key list, ops ...any) string {
	p.t.Helper()
	return p.do(box.CodeUpdate, func(b []byte) []byte {
		return any1(box.AppendKey(any1(box.AppendUpdateHead(b, space, index), key), box.KeyTuple), append(list{}, ops...))
	})
}

func (p *peer) upsert(space uint32, tuple list, ops ...any) string {
	p.t.Helper()
	return p.do(box.CodeUpsert, func(b []byte) []byte {
		return any1(box.AppendKey(any1(box.AppendUpsertHead(b, space), tuple), box.KeyOperations), append(list{}, ops...))
	})
}

func (p *peer) delete(space, index uint32, key ...any) string {
	p.t.Helper()
	return p.do(box.CodeDelete, func(b []byte) []byte { return any1(box.AppendDeleteHead(b, space, index), append(list{}, key...)) })
}

func (p *peer) call(function string, args ...any) string {
	p.t.Helper()
	return p.do(box.CodeCall, func(b []byte) []byte { return any1(box.AppendCallHead(b, function), append(list{}, args...)) })
}

func (p *peer) begin(options box.Begin) string { return p.do(box.CodeBegin, options.Append) }

func (p *peer) commit() string {
	return p.do(box.CodeCommit, func(b []byte) []byte { return box.AppendCommit(b, false) })
}

func (p *peer) rollback() string { return p.do(box.CodeRollback, box.AppendRollback) }

func (p *peer) ping() string {
	return p.do(box.CodePing, func(b []byte) []byte { return iproto.AppendMap(b, 0) })
}

func (p *peer) auth(user, password string) string {
	scramble := box.ScrambleSHA1(sha1.Sum, p.greeting.Salt, password)
	return p.do(box.CodeAuth, func(b []byte) []byte { return box.AppendAuth(b, user, box.AuthSHA1, scramble[:]) })
}
