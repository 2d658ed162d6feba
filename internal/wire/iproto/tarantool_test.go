package iproto

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// peer is a connection to a real server.
type peer struct {
	t        *testing.T
	c        net.Conn
	r        *bufio.Reader
	greeting Greeting
	sync     uint32
	buf      []byte
}

func dial(t *testing.T, addr string) *peer {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	p := &peer{t: t, c: c, r: bufio.NewReader(c)}
	first := make([]byte, GreetingLen)
	if _, err := io.ReadFull(p.r, first); err != nil {
		t.Fatal(err)
	}
	if p.greeting, err = ParseGreeting(first); err != nil {
		t.Fatal(err)
	}
	return p
}

// send sends a request with the body that is appended.
func (p *peer) send(code Code, body func(b []byte) []byte) {
	p.t.Helper()
	p.sync++
	b := EndRequest(body(BeginRequest(nil, code)), 0)
	PutSync(b, p.sync)
	if _, err := p.c.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// receive returns the next message and its body.
func (p *peer) receive() (Message, []byte) {
	p.t.Helper()
	var s Scanner
	p.buf = p.buf[:0]
	for {
		m, err := s.Scan(p.buf)
		if err != nil {
			p.t.Fatal(err)
		}
		if m.Kind != More {
			if m.Sync != uint64(p.sync) {
				p.t.Fatalf("reply to %d, want %d", m.Sync, p.sync)
			}
			return m, bytes.Clone(p.buf[m.BodyAt:m.Len])
		}
		have := len(p.buf)
		p.buf = append(p.buf, make([]byte, m.Len-have)...)
		if _, err := io.ReadFull(p.r, p.buf[have:]); err != nil {
			p.t.Fatal(err)
		}
	}
}

// call sends a request and returns its reply.
func (p *peer) call(code Code, body func(b []byte) []byte) (Response, error) {
	p.t.Helper()
	p.send(code, body)
	m, b := p.receive()
	r, err := ParseBody(m.Code, b)
	if err != nil {
		p.t.Fatalf("%v: %v in %x", code, err, b)
	}
	if r.Error != nil {
		return r, r.Error
	}
	return r, nil
}

// eval runs Lua and returns what it returned.
func (p *peer) eval(lua string, args ...any) []any {
	p.t.Helper()
	r, err := p.call(CodeEval, func(b []byte) []byte { return AppendAny(AppendEvalHead(b, lua), append([]any{}, args...)) })
	if err != nil {
		p.t.Fatalf("%s: %v", lua, err)
	}
	d := NewDecoder(r.Data)
	v, _ := d.Any().([]any)
	if d.Err() != nil || d.Len() != 0 {
		p.t.Fatalf("%s: %v in %x", lua, d.Err(), r.Data)
	}
	return v
}

const luaSetup = `
box.schema.user.create('alice', {password = 'wonderland'})
local s = box.schema.space.create('s', {id = 512, format = {{'id', 'unsigned'}, {'name', 'string'}}})
s:create_index('pk')
`

func TestRealServer(t *testing.T) {
	server := testkit.StartTarantool(t, luaSetup)
	p := dial(t, server.Addr)
	if p.greeting.Protocol != "Binary" || len(p.greeting.Instance) != 36 || len(p.greeting.Salt) != 32 {
		t.Errorf("greeting %+v", p.greeting)
	}
	if _, err := p.call(CodePing, func(b []byte) []byte { return AppendMap(b, 0) }); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"one", "two"} {
		r, err := p.call(CodeReplace, func(b []byte) []byte {
			return AppendString(AppendUint(AppendArray(AppendInsertHead(b, 512), 2), uint64(len(name))), name)
		})
		if err != nil || len(r.Data) == 0 {
			t.Error(r, err)
		}
	}
	r, err := p.call(CodeSelect, func(b []byte) []byte {
		return AppendArray(AppendSelectHead(b, 512, 0, 10, 0, IterAll), 0)
	})
	d := NewDecoder(r.Data)
	if n := d.Array(); err != nil || n != 1 || d.Array() != 2 || d.Uint() != 3 || d.String() != "two" || d.Err() != nil || d.Len() != 0 {
		t.Errorf("select: %x, %v, %v", r.Data, err, d.Err())
	}
	_, err = p.call(CodeSelect, func(b []byte) []byte {
		return AppendArray(AppendSelectHead(b, 999, 0, 10, 0, IterAll), 0)
	})
	if e := new(BoxError); !errors.As(err, &e) || ErrorCode(e.Code) != ErrNoSuchSpace || e.Message != "Space '999' does not exist" || e.Type != "ClientError" {
		t.Errorf("select of no space: %#v", err)
	}
	if _, err := p.call(CodeID, func(b []byte) []byte { return AppendID(b, ProtocolVersion, nil, "") }); err == nil || ErrorCode(err.(*BoxError).Code) != ErrUnknownRequestType {
		t.Errorf("id: %v", err)
	}
}

func TestRealServerAuthentication(t *testing.T) {
	server := testkit.StartTarantool(t, luaSetup)
	p := dial(t, server.Addr)
	for _, c := range []struct {
		password string
		code     ErrorCode
	}{{"wonderland", 0}, {"wonderlanf", ErrPasswordMismatch}} {
		scramble := ScrambleSHA1(sha1.Sum, p.greeting.Salt, c.password)
		_, err := p.call(CodeAuth, func(b []byte) []byte { return AppendAuth(b, "alice", AuthSHA1, scramble[:]) })
		if c.code == 0 && err != nil || c.code != 0 && (err == nil || ErrorCode(err.(*BoxError).Code) != c.code) {
			t.Errorf("password %q: %v", c.password, err)
		}
	}
}
