package box

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
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

// send sends a request whose body the function appends.
func (p *peer) send(code Code, body func(b []byte) []byte) {
	p.t.Helper()
	p.sync++
	b := EndRequest(body(BeginRequest(nil, code)), 0)
	PutSync(b, uint64(p.sync))
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

// eval runs Lua code and returns its results.
func (p *peer) eval(lua string, args ...any) []any {
	p.t.Helper()
	r, err := p.call(CodeEval, func(b []byte) []byte { return iproto.AppendAny(AppendEvalHead(b, lua), append([]any{}, args...)) })
	if err != nil {
		p.t.Fatalf("%s: %v", lua, err)
	}
	d := iproto.NewDecoder(r.Data)
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
	if _, err := p.call(CodePing, func(b []byte) []byte { return iproto.AppendMap(b, 0) }); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"one", "two"} {
		r, err := p.call(CodeReplace, func(b []byte) []byte {
			return iproto.AppendString(iproto.AppendUint(iproto.AppendArray(AppendInsertHead(b, 512), 2), uint64(len(name))), name)
		})
		if err != nil || len(r.Data) == 0 {
			t.Error(r, err)
		}
	}
	r, err := p.call(CodeSelect, func(b []byte) []byte {
		return iproto.AppendArray(AppendSelectHead(b, 512, 0, 10, 0, 2), 0)
	})
	d := iproto.NewDecoder(r.Data)
	if n := d.Array(); err != nil || n != 1 || d.Array() != 2 || d.Uint() != 3 || d.String() != "two" || d.Err() != nil || d.Len() != 0 {
		t.Errorf("select: %x, %v, %v", r.Data, err, d.Err())
	}
	_, err = p.call(CodeSelect, func(b []byte) []byte {
		return iproto.AppendArray(AppendSelectHead(b, 999, 0, 10, 0, 2), 0)
	})
	if e := new(iproto.BoxError); !errors.As(err, &e) || iproto.ErrorCode(e.Code) != iproto.CodeNoSuchSpace || e.Message != "Space '999' does not exist" || e.Type != "ClientError" {
		t.Errorf("select of no space: %#v", err)
	}
	if _, err := p.call(CodeID, func(b []byte) []byte { return AppendID(b, ProtocolVersion, nil, "") }); err == nil || iproto.ErrorCode(err.(*iproto.BoxError).Code) != iproto.CodeUnknownRequestType {
		t.Errorf("id: %v", err)
	}
}

func TestRealServerAuthentication(t *testing.T) {
	server := testkit.StartTarantool(t, luaSetup)
	p := dial(t, server.Addr)
	for _, c := range []struct {
		password string
		code     iproto.ErrorCode
	}{{"wonderland", 0}, {"wonderlanf", iproto.CodePasswordMismatch}} {
		scramble := ScrambleSHA1(sha1.Sum, p.greeting.Salt, c.password)
		_, err := p.call(CodeAuth, func(b []byte) []byte { return AppendAuth(b, "alice", AuthSHA1, scramble[:]) })
		if c.code == 0 && err != nil || c.code != 0 && (err == nil || iproto.ErrorCode(err.(*iproto.BoxError).Code) != c.code) {
			t.Errorf("password %q: %v", c.password, err)
		}
	}
}

// Values that Lua returns must arrive as the types of this package, and Lua must understand what
// those types write.
func TestRealServerValues(t *testing.T) {
	p := dial(t, testkit.StartTarantool(t, luaSetup).Addr)
	for _, c := range []struct {
		lua  string
		want []any
	}{
		{"return", []any{}},
		{"return nil, true, 0, -1, 2^53, 18446744073709551615ULL, -9223372036854775808LL, 1.5, 'é'", []any{
			nil, true, int64(0), int64(-1), int64(1 << 53), uint64(math.MaxUint64), int64(math.MinInt64), 1.5, "é",
		}},
		{"return {1, {2, {a = {b = 3}}}}, setmetatable({}, {__serialize = 'map'})", []any{
			[]any{int64(1), []any{int64(2), map[any]any{"a": map[any]any{"b": int64(3)}}}}, map[any]any{},
		}},
		{"local d = require('decimal') return d.new('-12.340'), d.new('1e37'), d.new(0)", []any{must(iproto.ParseDecimal)("-12.340"), must(iproto.ParseDecimal)("1e37"), iproto.Decimal{}}},
		{"return require('uuid').fromstr('7170b4af-72b6-4f07-b7a1-0e4b1b1d9ab4')", []any{must(iproto.ParseUUID)("7170b4af-72b6-4f07-b7a1-0e4b1b1d9ab4")}},
		{"return ('x'):rep(70000)", []any{strings.Repeat("x", 70000)}},
	} {
		if got := p.eval(c.lua); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.lua, got, c.want)
		}
	}
	r := testkit.Rand(t)
	for range 500 {
		v := randomDecimal(t, r)
		got := p.eval("local v = ... return v, tostring(v), require('decimal').is_decimal(v)", v)
		if len(got) != 3 || got[0] != any(v) || got[2] != true || must(iproto.ParseDecimal)(got[1].(string)).Compare(v) != 0 {
			t.Fatalf("%v comes back as %v", v, got)
		}
		u := iproto.UUID{byte(r.Uint32()), 1, 2, byte(r.Uint32()), 15: byte(r.Uint32())}
		if got := p.eval("local v = ... return v, tostring(v)", u); got[0] != any(u) || got[1] != any(u.String()) {
			t.Fatalf("%v comes back as %v", u, got)
		}
	}
	for range 300 {
		v := randomValue(r, 2)
		if got := p.eval("return ...", []any{v}); len(got) != 1 || !reflect.DeepEqual(got[0], any([]any{v})) {
			t.Fatalf("%v comes back as %v", v, got)
		}
	}
}

// must turns a parser into one that panics on invalid text.
func must[T any](parse func(string) (T, error)) func(string) T {
	return func(text string) T {
		v, err := parse(text)
		if err != nil {
			panic(err)
		}
		return v
	}
}

// randomDecimal returns a decimal that Tarantool 2.6.0 can hold: it has at most 38 digits,
// including its zeros.
func randomDecimal(t *testing.T, r *rand.Rand) iproto.Decimal {
	t.Helper()
	v, err := iproto.NewDecimal(r.IntN(2) == 0, r.Uint64()>>(32+r.IntN(32)), r.Uint64()>>r.IntN(64), r.IntN(38))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// randomValue returns a value that Lua returns unchanged. It excludes binary data, which would
// become a string, tables that are empty or contain nil, and types that are newer than the server.
func randomValue(r *rand.Rand, depth int) any {
	n := 7
	if depth <= 0 {
		n = 6
	}
	switch r.IntN(n) {
	case 0:
		return r.IntN(2) == 0
	case 1:
		return int64(r.Uint64()) >> r.IntN(64)
	case 2:
		return math.MaxUint64 - r.Uint64()>>1
	case 3:
		return float64(r.IntN(1000)) + 0.5
	case 4:
		return strings.Repeat("é", r.IntN(40)*r.IntN(40)*(r.IntN(100)/99*20+1))
	case 5:
		u := iproto.UUID{0: byte(r.Uint32()), 15: byte(r.Uint32())}
		u[8] = byte(r.IntN(0xe0)) // the server rejects the variants above
		return u
	}
	elems := make([]any, 1+r.IntN(20))
	for i := range elems {
		elems[i] = randomValue(r, depth-1)
	}
	return elems
}

// A stack of errors must arrive complete, both as the error of a reply and as a value.
func TestRealServerErrors(t *testing.T) {
	p := dial(t, testkit.StartTarantool(t, luaSetup).Addr)
	const stack = `
		local e = box.error.new({code = 5000, reason = 'top', type = 'Mine'})
		e:set_prev(box.error.new(box.error.NO_SUCH_SPACE, 'below'))
	`
	_, err := p.call(CodeEval, func(b []byte) []byte { return iproto.AppendArray(AppendEvalHead(b, stack+"box.error(e)"), 0) })
	check := func(what string, top *iproto.BoxError) {
		t.Helper()
		if top == nil || top.Message != "top" || top.Code != 5000 || top.Cause == nil || iproto.ErrorCode(top.Cause.Code) != iproto.CodeNoSuchSpace || top.Cause.Type != "ClientError" ||
			top.Cause.Message != "Space 'below' does not exist" || top.Cause.Cause != nil {
			t.Errorf("%s: %#v", what, top)
		}
	}
	top := new(iproto.BoxError)
	if !errors.As(err, &top) {
		t.Fatal(err)
	}
	check("raised", top)
	got := p.eval("box.session.settings.error_marshaling_enabled = true" + stack + "return e")
	top, _ = got[0].(*iproto.BoxError)
	check("returned", top)
	if top != nil && !reflect.DeepEqual(top.Fields, map[string]any{"custom_type": "Mine"}) {
		t.Errorf("fields %v", top.Fields)
	}
}

// The names and numbers of errors must be those of the server.
func TestRealServerErrorCodes(t *testing.T) {
	p := dial(t, testkit.StartTarantool(t, luaSetup).Addr)
	got := p.eval("local t = {} for name, code in pairs(box.error) do if type(code) == 'number' then t[name] = code end end return t")
	known, _ := got[0].(map[any]any)
	compared := 0
	for code := range iproto.ErrorCode(300) {
		name := code.String()
		if strings.HasPrefix(name, "error code") {
			continue
		}
		if theirs, ok := known[name]; ok {
			compared++
			if theirs != int64(code) {
				t.Errorf("%s is %d, and %v there", name, code, theirs)
			}
		} else if code <= 218 { // the last error code of 2.6.0
			t.Errorf("%s (%d) is unknown to the server", name, code)
		}
	}
	if compared < 60 {
		t.Errorf("only %d names were compared", compared)
	}
}
