package tarantool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

const oneSpace = `
do
	local s = box.schema.space.create('%[1]s', {format = {{'id', 'unsigned'}, {'value', 'string'}}})
	s:create_index('primary', {parts = {'id'}})
	s:insert{1, '%[1]s'}
end
`

// A server that replaces another one may have assigned other numbers to its spaces, with the same
// version of its schema. Names then have the meaning that they have on that server.
func TestFaultAnotherServerAnotherSchema(t *testing.T) {
	testkit.NoLeaks(t)
	first := startInstance(t, "none", fmt.Sprintf(oneSpace, "apples")+fmt.Sprintf(oneSpace, "pears"))
	c := connect(t, tarantool.Options{Addr: first.addr, Backoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond})
	apples, pears := tarantool.SpaceOf[record](c, "apples"), tarantool.SpaceOf[record](c, "pears")
	read := func(s *tarantool.Space[record], want string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var got record
		if found, err := s.Get(ctx, &got, tarantool.Int(1)); err != nil || !found || got.Value != want {
			return fmt.Errorf("of %s: %v, %t, %w", want, got, found, err)
		}
		var rows []record
		if err := c.Do(ctx, &rows, tarantool.Select(want)); err != nil || len(rows) != 1 || rows[0].Value != want {
			return fmt.Errorf("of %s: %v, %w", want, rows, err)
		}
		return nil
	}
	must(t, read(apples, "apples"))
	must(t, read(pears, "pears"))
	var versions []uint64
	must(t, c.Do(t.Context(), &versions, tarantool.Eval("return box.internal.schema_version()")))
	first.changeSetup(t, fmt.Sprintf(oneSpace, "pears")+fmt.Sprintf(oneSpace, "apples"))
	first.restart(t)
	testkit.Eventually(t, 10*time.Second, func() error { return c.Do(t.Context(), nil, tarantool.Ping()) })
	must(t, c.Do(t.Context(), &versions, tarantool.Eval("return ..., box.internal.schema_version()", versions[0])))
	if versions[0] != versions[1] {
		t.Fatalf("the versions are %d: they must be equal for a meaningful test", versions)
	}
	for _, err := range []error{read(apples, "apples"), read(pears, "pears")} {
		if err != nil {
			t.Error(err)
		}
	}
}

// Whatever schema a server sends, calls end with an error, and work again once the schema is valid.
func TestHostileSchema(t *testing.T) {
	testkit.NoLeaks(t)
	for name, data := range map[string]string{
		"no spaces": "\x90", "nil": "\xc0", "a number": "\x05", "a space of a number": "\x91\x05", "a space of nil": "\x91\xc0", "a space without fields": "\x91\x90",
		"a space of two fields": "\x91\x92\x01\x01", "a negative number": "\x91\x93\xff\x01\xa1s", "a number above 32 bits": "\x91\x93\xcf\x00\x00\x00\x01\x00\x00\x00\x00\x01\xa1s", "a number of a text": "\x91\x93\xa1x\x01\xa1s",
		"a name of a number": "\x91\x93\xcd\x02\x00\x01\x05", "4 Gi spaces": "\xdd\xff\xff\xff\xff", "a space of 4 Gi fields": "\x91\xdd\xff\xff\xff\xff\x01\x01\xa1s", "a name of 4 GiB": "\x91\x93\x01\x01\xdb\xff\xff\xff\xff",
		"what is deep": "\x91\x94\xcd\x02\x00\x01\xa1s" + strings.Repeat("\x91", 10_000),
	} {
		for _, space := range []uint64{281, 289} {
			t.Run(fmt.Sprintf("%s, %d", name, space), func(t *testing.T) {
				var mu sync.Mutex
				bad := 3 // answers; guarded by mu
				server := &hostile{answer: func(m box.Request, body []byte) []byte {
					mu.Lock()
					defer mu.Unlock()
					if of, _ := selected(m, body); of != space || bad == 0 {
						return nil
					}
					bad--
					return dataReply(m.Sync, data)
				}}
				server.serve(t)
				growth := testkit.HeapGrowth(t)
				c := connect(t, tarantool.Options{Addr: server.addr, Retries: -1})
				h := hostileClient{Client: c, space: tarantool.SpaceOf[record](c, "s").Index("primary")}
				for i := 0; ; i++ {
					if err := h.honestCall(t.Context(), 7); err == nil {
						break
					} else if i > 4 {
						t.Fatal(err)
					}
				}
				if grown := growth(); grown >= 32<<20 {
					t.Errorf("the heap grew by %d MiB", grown>>20)
				}
				if n := server.connections.Load(); n != 1 {
					t.Errorf("%d connections", n)
				}
			})
		}
	}
}

// Pushes with sync 0, with unknown syncs, or with the sync of a finished request reach no caller.
func TestHostilePushes(t *testing.T) {
	testkit.NoLeaks(t)
	push := func(sync uint64, text string) []byte {
		return box.AppendPush(nil, sync, 1, 1, iproto.AppendString(nil, text))
	}
	server := &hostile{answer: func(m box.Request, body []byte) []byte {
		if m.Code != box.CodeCall {
			return nil
		}
		var b []byte
		for _, other := range []uint64{m.Sync + 1, m.Sync + 1000, m.Sync + 1<<20, 1<<32 - 1} {
			b = append(b, push(other, "wrong")...)
		}
		return append(append(b, push(m.Sync, "right")...), dataReply(m.Sync, "\x90")...)
	}}
	server.serve(t)
	c := connect(t, tarantool.Options{Addr: server.addr, Retries: -1})
	for range 100 {
		var got []string
		req := tarantool.Call("f").OnPush(func(d *iproto.Decoder) { got = append(got, fmt.Sprint(d.Any())) })
		if err := c.Do(t.Context(), nil, req); err != nil || fmt.Sprint(got) != "[[right]]" {
			t.Fatalf("%v, pushed %q", err, got)
		}
	}
	if n := server.connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// A push to a call that was answered or canceled reaches no caller, and the connection stays open.
func TestHostileLatePushes(t *testing.T) {
	testkit.NoLeaks(t)
	var first, last uint64
	seen, held := false, make(chan struct{})
	server := &hostile{answer: func(m box.Request, body []byte) []byte {
		push := func(sync uint64, text string) []byte {
			return box.AppendPush(nil, sync, 1, 1, iproto.AppendString(nil, text))
		}
		switch {
		case m.Code != box.CodeCall:
			return nil
		case !seen: // canceled before it is answered
			seen, first, last = true, m.Sync, m.Sync
			close(held)
			return []byte{}
		}
		b := append(push(first, "canceled"), push(last, "answered")...)
		last = m.Sync
		return append(append(b, push(m.Sync, "right")...), dataReply(m.Sync, "\x90")...)
	}}
	server.serve(t)
	c := connect(t, tarantool.Options{Addr: server.addr, Retries: -1, StallTimeout: -1})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // ends when the server has the call
		<-held
		cancel()
	}()
	fail := func(*iproto.Decoder) { t.Error("a push reached a call that was canceled") }
	if err := c.Do(ctx, nil, tarantool.Call("f").OnPush(fail)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for range 100 {
		var got []string
		req := tarantool.Call("f").OnPush(func(d *iproto.Decoder) { got = append(got, fmt.Sprint(d.Any())) })
		if err := c.Do(t.Context(), nil, req); err != nil || fmt.Sprint(got) != "[[right]]" {
			t.Fatalf("%v, pushed %q", err, got)
		}
	}
	if n := server.connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// A push whose sync differs from that of a request only in its high bits is not for that request.
func TestHostilePushToAnotherTicket(t *testing.T) {
	testkit.NoLeaks(t)
	server := &hostile{answer: func(m box.Request, body []byte) []byte {
		if m.Code != box.CodeCall {
			return nil
		}
		return append(box.AppendPush(nil, m.Sync+1<<32, 1, 1, []byte{0xc3}), dataReply(m.Sync, "\x90")...)
	}}
	server.serve(t)
	c := connect(t, tarantool.Options{Addr: server.addr, Retries: -1, Backoff: time.Millisecond})
	pushed := 0
	req := tarantool.Call("f").OnPush(func(*iproto.Decoder) { pushed++ })
	err := c.Do(t.Context(), nil, req)
	if pushed != 0 || err != nil {
		t.Errorf("%v, pushed %d times", err, pushed)
	}
}
