package thriftfront

import (
	"context"
	"encoding/binary"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

type netipAddr = netip.Addr

// header describes the header of a message; if framed is set, there is none.
type header struct {
	framed, anyOrder              bool
	timeout, authorization, plain string
}

func message(method string, seq int32, args []byte, h header) []byte {
	body := append(thrift.AppendMessage(nil, method, thrift.Call, seq), args...)
	if h.framed {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	flags := uint16(0)
	if h.anyOrder {
		flags = frame.FlagAnyOrder
	}
	w := frame.BeginHeader(nil, flags, seq, false)
	if h.timeout != "" {
		w.Int(frame.KeyTimeout, h.timeout)
	}
	if h.authorization != "" {
		w.String(keySentAuthorization, h.authorization)
	}
	if h.plain != "" {
		w.String(keyAuthorization, h.plain)
	}
	b, err := w.End()
	if err != nil {
		panic(err)
	}
	_ = frame.EndMessage(b, 0, len(body))
	return append(b, body...)
}

func keyArgument(key string) []byte {
	return append(thrift.AppendString([]byte{thrift.TypeString, 0, 1}, key), thrift.TypeStop)
}

func keysArgument(keys ...string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{thrift.TypeList, 0, 1, thrift.TypeString}, uint32(len(keys)))
	for _, k := range keys {
		b = thrift.AppendString(b, k)
	}
	return append(b, thrift.TypeStop)
}

// reply reads one length-prefixed answer.
func (r *raw) reply() string {
	r.t.Helper()
	if err := r.conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		r.t.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	for {
		if len(r.in) >= 4 {
			if n := 4 + int(binary.BigEndian.Uint32(r.in)); len(r.in) >= n {
				one := string(r.in[:n])
				r.in = r.in[n:]
				return one
			}
		}
		n, err := r.conn.Read(buf)
		if err != nil {
			r.t.Fatalf("%v after %.200q", err, r.in)
		}
		r.in = append(r.in, buf[:n]...)
	}
}

// TestMalformed: bytes that are not a call end the connection, after the pending answers.
func TestMalformed(t *testing.T) {
	bothBackends(t, echo, Config{}, func(t *testing.T, f *fixture) {
		good := message("get_depts", 7, keyArgument("42"), header{})
		reply2 := append(thrift.AppendCompactMessage(nil, "get_depts", thrift.Reply, 1), 0)
		reply := append(thrift.AppendMessage(nil, "get_depts", thrift.Reply, 1), 0)
		oneway := append(thrift.AppendMessage(nil, "get_depts", thrift.Oneway, 1), 0)
		for name, bad := range map[string][]byte{
			"HTTP": []byte("GET / HTTP/1.1\r\n\r\n"), "too large": {0, 1, 0, 1, 0x80, 1, 0, 1}, "a reply": reply, "a reply in Compact": reply2, "oneway": oneway,
			"the end of a struct": append(thrift.AppendMessage(nil, "get_depts", thrift.Call, 1), 99, 0, 1),
		} {
			for _, before := range [][]byte{nil, good} {
				c := f.raw(t)
				c.send(append(append([]byte(nil), before...), bad...))
				got := c.ended()
				if before != nil != strings.Contains(string(got), "42") {
					t.Errorf("%s after %d bytes: got %q", name, len(before), got)
				}
			}
		}
		if f.server.Malformed() == 0 {
			t.Error("nothing was counted")
		}
	})
}

// TestBadArguments: structs that do not match the method's arguments are answered, and the connection continues.
func TestBadArguments(t *testing.T) {
	bothBackends(t, echo, Config{}, func(t *testing.T, f *fixture) {
		c := f.raw(t)
		twice := append(thrift.AppendString([]byte{thrift.TypeString, 0, 1}, "1"), keyArgument("2")...)
		huge := []byte{thrift.TypeList, 0, 1, thrift.TypeString, 0x7F, 0xFF, 0xFF, 0xFF, 0}
		other := append([]byte{thrift.TypeI32, 0, 9, 0, 0, 0, 1}, keyArgument("42")...)
		for name, args := range map[string][]byte{"none": {0}, "twice": twice, "another type": {thrift.TypeI32, 0, 1, 0, 0, 0, 1, 0}, "trailing": append(keyArgument("1"), 0)} {
			c.send(message("get_depts", 1, args, header{}))
			if got := c.reply(); !strings.Contains(got, "the arguments do not match the method") {
				t.Errorf("%s: %q", name, got)
			}
		}
		for name, args := range map[string][]byte{"short": {thrift.TypeString, 0, 1, 0, 0, 0, 9, 'x'}, "a huge count": huge, "numbers": {thrift.TypeList, 0, 1, thrift.TypeI32, 0, 0, 0, 1, 0, 0, 0, 1, 0}} {
			c.send(message("list_depts", 1, args, header{framed: true}))
			if got := c.reply(); !strings.Contains(got, "the arguments do not match the method") {
				t.Errorf("%s: %q", name, got)
			}
		}
		c.send(message("get_depts", 1, other, header{framed: true}))
		if got := c.reply(); !strings.Contains(got, "42") {
			t.Errorf("a field that a newer IDL may have: %q", got)
		}
		c.send(message("get_"+strings.Repeat("x", 60_000), 1, keyArgument("1"), header{framed: true}))
		if got := c.reply(); !strings.Contains(got, "there is no method") || len(got) > 1000 {
			t.Errorf("an unknown method: %d bytes", len(got))
		}
	})
}

// TestOrder: answers have the order of calls, unless a header allows any order.
func TestOrder(t *testing.T) {
	block := make(chan struct{})
	load := func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		if id == "1" {
			<-block
		}
		return echo(ctx, r, id)
	}
	f := newFixture(t, load, Config{})
	release := sync.OnceFunc(func() { close(block) })
	t.Cleanup(release)
	f.listen(t)
	any, ordered := f.raw(t), f.raw(t)
	any.send(message("get_depts", 1, keyArgument("1"), header{anyOrder: true}))
	eventually(t, func() bool { return f.loads.Load() == 1 }) // by a separate statement
	any.send(message("get_depts", 2, keyArgument("2"), header{anyOrder: true}))
	if got := any.reply(); !strings.Contains(got, "get_depts\x00\x00\x00\x02") {
		t.Errorf("the first answer: %q", got)
	}
	ordered.send(message("get_depts", 1, keyArgument("1"), header{framed: true}))
	ordered.send(message("get_depts", 2, keyArgument("2"), header{framed: true}))
	release()
	if got := ordered.reply(); !strings.Contains(got, "get_depts\x00\x00\x00\x01") {
		t.Errorf("the first answer: %q", got)
	}
	if got := any.reply(); !strings.Contains(got, "get_depts\x00\x00\x00\x01") {
		t.Errorf("the second answer: %q", got)
	}
}

// TestTwoCredentials: a call with two different credentials is refused.
func TestTwoCredentials(t *testing.T) {
	config := Config{}
	config.Gate = gate(t)
	f := newFixture(t, echo, config)
	f.listen(t)
	c := f.raw(t)
	for _, row := range []struct {
		h    header
		want string
	}{
		{header{authorization: webKey, plain: webKey}, `"`},
		{header{plain: webKey}, `"`},
		{header{authorization: webKey, plain: "other"}, "more than once"},
	} {
		c.send(message("get_secrets", 1, keyArgument("42"), row.h))
		if got := c.reply(); row.want == `"` != strings.Contains(got, "42\x0a") || row.want != `"` && !strings.Contains(got, row.want) {
			t.Errorf("%+v: %q", row.h, got)
		}
	}
}

// TestNewNumbers: after a reload with other field numbers, no client gets a struct with the old ones, and documents
// whose numbers are unchanged keep their forms.
func TestNewNumbers(t *testing.T) {
	f := newFixture(t, echo, Config{})
	f.listen(t)
	c := f.raw(t)
	ask := func() string {
		c.send(message("get_depts", 1, keyArgument("42"), header{framed: true}))
		return c.reply()
	}
	ask()
	first := ask()
	d, ok := f.cache.Peek(cache.Key{ID: "42"}, f.cache.Now())
	if !ok {
		t.Fatal("the document is not cached")
	}
	form := d.Doc.Form(cache.FormThrift)
	swap := func(ids resource.FieldIDs) {
		all := withColumns()
		all[0].Fields = ids
		v, err := f.server.Next(all, Config{})
		if err != nil {
			t.Fatal(err)
		}
		f.server.Swap(v)
	}
	swap(fieldIDs(1, 2, 3))
	if got := ask(); got != first || d.Doc.Form(cache.FormThrift) != form {
		t.Error("a form was created again although the numbers are the same")
	}
	swap(fieldIDs(9, 2, 0))
	if got := ask(); !strings.Contains(got, "\x0b\x00\x09\x00\x00\x00\x0242") || strings.Contains(got, "\x0b\x00\x03") {
		t.Errorf("with other numbers: %q", got)
	}
	if next := d.Doc.Form(cache.FormThrift); next == form || next == nil {
		t.Error("the new form was not stored")
	}
	// A shape of the same tables, recreated: columns are found by their names.
	s := shapeOf()
	s.Fields[0], s.Fields[1] = s.Fields[1], s.Fields[0]
	f.shape.Store(s)
	if got := ask(); !strings.Contains(got, "\x0b\x00\x09\x00\x00\x00\x0242") || !strings.Contains(got, "\x0a\x00\x02\x00\x00\x00\x00\x00\x00\x00\x02") {
		t.Errorf("with another shape: %q", got)
	}
	if f.loads.Load() != 1 {
		t.Errorf("%d loads, want 1", f.loads.Load())
	}
}

// TestHitsAllocateNothing: a hit allocates nothing.
func TestHitsAllocateNothing(t *testing.T) {
	config := Config{}
	config.Gate = gate(t)
	f := newFixture(t, echo, config)
	f.listen(t)
	c := f.raw(t)
	buf := make([]byte, 64<<10)
	for name, call := range map[string][]byte{
		"framed": message("get_depts", 1, keyArgument("42"), header{framed: true}), "with a header": message("get_depts", 1, keyArgument("42"), header{timeout: "1000"}),
		"a batch": message("list_depts", 1, keysArgument("42", "43", "44", "0"), header{}), "two columns": message("get_orders", 1, keyArgument("eu/7"), header{}),
		"not found": message("get_depts", 1, keyArgument("0"), header{}), "JSON": message("get_totals", 1, keyArgument("5"), header{}),
		"Compact": compactMessage("get_depts", 1, compactKey("42")), "a batch in Compact": compactMessage("list_depts", 1, compactKeys("42", "43", "44", "0")),
		"not found in Compact": compactMessage("get_depts", 1, compactKey("0")),
		"with credentials":     message("get_secrets", 1, keyArgument("1"), header{authorization: webKey}),
	} {
		ask := func() {
			if _, err := c.conn.Write(call); err != nil {
				t.Fatal(err)
			}
			if n, err := c.conn.Read(buf); err != nil || n < 10 {
				t.Fatal(n, err)
			}
		}
		for range 10 {
			ask()
		}
		if n := testing.AllocsPerRun(500, ask); n != 0 && poolsKeep {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}
