package tarantool_test

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// wide takes 200 bytes, but a reply needs only a nil for it.
type wide struct{ Fields [25]uint64 }

// pointed is a tuple with two wide structs, for which a reply needs no bytes.
type pointed struct{ A, B *wide }

// bomb is the data of a reply, about 1 MiB of elements, and the destination that it is decoded
// into.
type bomb struct {
	name, each string
	dst        func() any
}

// bombs returns data that grows to 8 to 200 times its size.
func bombs() []bomb {
	return []bomb{
		{"nils as structs", "\xc0", func() any { return new([]wide) }},
		{"nils as lists", "\xc0", func() any { return new([][]int) }},
		{"nils as texts", "\xc0", func() any { return new([]string) }},
		{"nils as anything", "\xc0", func() any { return new([]any) }},
		{"nils as one value", "\xc0", func() any { return new(any) }},
		{"nils as interfaces", "\xc0", func() any { return new([]error) }},
		{"empty lists of lists", "\x90", func() any { return new([][][]wide) }},
		{"lists as anything", "\x91\x90", func() any { return new([]any) }},
		{"lists as pointers", "\x92\x90\x90", func() any { return new([]pointed) }},
		{"maps as anything", "\x80", func() any { return new([]any) }},
		{"maps of a pair as anything", "\x81\x01\xc0", func() any { return new(any) }},
		{"maps as maps", "\x81\x01\xc0", func() any { return new([]map[int]wide) }},
		{"numbers as anything", "\x05", func() any { return new([]any) }},
		{"errors as anything", "\xc7\x04\x03\x81\x00\x91\x80", func() any { return new([]any) }},
		{"errors", "\xc7\x04\x03\x81\x00\x91\x80", func() any { return new([]*iproto.BoxError) }},
		{"extensions as anything", "\xd4\x55\x00", func() any { return new([]any) }},
		{"decimals", "\xd6\x01\x00\x00\x00\x1c", func() any { return new([]any) }},
	}
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// arrayOf returns an array of about 1 MiB.
func arrayOf(each string) string {
	n := 1 << 20 / len(each)
	return "\xdd" + string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + strings.Repeat(each, n)
}

// TestHostileDecoding: the memory of a decoded reply is bounded, whatever it is decoded into. Only
// the call itself fails, and the connection continues.
func TestHostileDecoding(t *testing.T) {
	testkit.NoLeaks(t)
	const most = 2 << 20
	var mu sync.Mutex
	var now func(uint64) []byte // guarded by mu
	server := (&hostile{answer: func(m box.Request, body []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		if _, key := selected(m, body); m.Code == box.CodeCall || m.Code == box.CodeExecute || key == evilID {
			return now(m.Sync)
		}
		return nil
	}}).serve(t)
	answer := func(reply func(uint64) []byte) {
		mu.Lock()
		defer mu.Unlock()
		now = reply
	}
	for _, l := range []tarantool.Limits{{Decoded: most}, {Elements: 1000}} {
		c := connect(t, tarantool.Options{Addr: server.addr, Retries: -1, Limits: l})
		honest := hostileClient{c, tarantool.SpaceOf[record](c, "s")}
		before := server.connections.Load()
		// fails runs a call twice, because other allocations have been made by the second time.
		fails := func(name string, call func() error) {
			t.Helper()
			var err error
			call()
			if got := allocated(func() { err = call() }); got > 3*most+16<<20 {
				t.Errorf("%s, %+v: %d MiB allocated", name, l, got>>20)
			}
			var e *slipstream.Error
			if !errors.Is(err, tarantool.ErrLimit) || !errors.As(err, &e) || e.Outcome != slipstream.Executed {
				t.Errorf("%s, %+v: %v; want an exceeded limit", name, l, err)
			}
			if err := honest.honestCall(t.Context(), 5); err != nil {
				t.Errorf("%s: the next call: %v", name, err)
			}
		}
		for _, b := range bombs() {
			data := arrayOf(b.each)
			answer(func(sync uint64) []byte { return dataReply(sync, data) })
			fails(b.name, func() error { return c.Do(t.Context(), b.dst(), tarantool.Call("evil")) })
		}
		nils := arrayOf("\xc0")
		answer(func(sync uint64) []byte { return dataReply(sync, nils) })
		fails("tuples of a space", func() error {
			_, err := tarantool.SpaceOf[wide](c, "s").Select(t.Context(), nil, 0, tarantool.Eq, tarantool.Int(evilID))
			return err
		})
		fails("results of a procedure", func() error {
			var results []wide
			return tarantool.ProcedureOf[[]int, []wide](c, "evil").Call(t.Context(), &[]int{1}, &results)
		})
		answer(func(sync uint64) []byte { return dataReply(sync, "\x91"+nils) })
		fails("a tuple", func() error {
			var tuple []wide
			_, err := tarantool.SpaceOf[[]wide](c, "s").Get(t.Context(), &tuple, tarantool.Int(evilID))
			return err
		})
		answer(func(sync uint64) []byte { return reply(sync, "\x82\x32"+arrayOf("\x80")+"\x30\x90") })
		fails("columns", func() error { return c.Do(t.Context(), &tarantool.SQLResult{}, tarantool.Execute("select 1")) })
		answer(func(sync uint64) []byte {
			return append(coded(uint32(box.CodeChunk), sync, "\x81\x30"+nils), dataReply(sync, "\x90")...)
		})
		fails("a push", func() (err error) {
			var pushed error
			err = c.Do(t.Context(), nil, tarantool.Call("evil").OnPush(func(d *iproto.Decoder) { d.Any(); pushed = d.Err() }))
			if err == nil && pushed != nil {
				err = &slipstream.Error{Outcome: slipstream.Executed, Err: pushed}
			}
			return err
		})
		// A reply that is not decoded takes no more memory than its size.
		answer(func(sync uint64) []byte { return dataReply(sync, nils) })
		for _, dst := range []any{nil, new(tarantool.Raw), new([]struct{})} {
			if _, counts := dst.(*[]struct{}); counts && l.Elements > 0 {
				continue
			}
			if err := c.Do(t.Context(), dst, tarantool.Call("evil")); err != nil {
				t.Errorf("%T, %+v: %v", dst, l, err)
			}
		}
		if n := server.connections.Load(); n != before {
			t.Errorf("%d connections, want %d", n, before)
		}
		c.Close()
	}
}

// TestLimitsAreExact: data that just fits is decoded.
func TestLimitsAreExact(t *testing.T) {
	data := string(iproto.AppendAny(nil, []any{int64(1), "ab", []any{nil, true}, map[any]any{int64(1): nil}})) // 4+2+2 elements
	server := (&hostile{answer: func(m box.Request, body []byte) []byte {
		if m.Code == box.CodeCall {
			return dataReply(m.Sync, data)
		}
		return nil
	}}).serve(t)
	for _, l := range []struct {
		limits tarantool.Limits
		fits   bool
	}{
		{tarantool.Limits{}, true},
		{tarantool.Limits{Elements: 8}, true}, {tarantool.Limits{Elements: 7}, false},
		{tarantool.Limits{Decoded: 1000}, true}, {tarantool.Limits{Decoded: 100}, false},
	} {
		c := connect(t, tarantool.Options{Addr: server.addr, Limits: l.limits})
		for range 3 { // the counts start over with each reply
			var got []any
			err := c.Do(t.Context(), &got, tarantool.Call("f"))
			if l.fits && (err != nil || len(got) != 4) || !l.fits && !errors.Is(err, tarantool.ErrLimit) {
				t.Errorf("%+v: %v, %v; fits %t", l.limits, got, err, l.fits)
			}
		}
		c.Close()
	}
	for _, o := range []tarantool.Options{{Limits: tarantool.Limits{Elements: -1}}, {Limits: tarantool.Limits{Decoded: -1}}} {
		if c, err := tarantool.Connect(t.Context(), o); err == nil || !strings.Contains(err.Error(), "limit of") {
			t.Errorf("%+v: %v, %v", o.Limits, c, err)
		}
	}
}

// TestErrorsOfTheServerAreBounded: an error may have any fields.
func TestErrorsOfTheServerAreBounded(t *testing.T) {
	fields := iproto.AppendMap(nil, 1)
	fields = append(append(iproto.AppendString(fields, "f"), "\xdd\x04\x00\x00\x00"...), bytes.Repeat([]byte{0xc0}, 64<<20)...)
	body := append([]byte("\x81\x52\x81\x00\x91\x81\x06"), fields...)
	var err error
	if got := allocated(func() { _, err = box.ParseBody(uint32(box.CodeError)|1, body) }); got > 1<<20 || !errors.Is(err, iproto.ErrLimit) {
		t.Errorf("%d MiB allocated, %v", got>>20, err)
	}
}
