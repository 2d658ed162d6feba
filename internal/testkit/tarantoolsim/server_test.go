package tarantoolsim_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// start starts a server with the spaces, and a client of it.
func start(t *testing.T, c tarantoolsim.Config) (*tarantoolsim.Server, *peer) {
	t.Helper()
	testkit.NoLeaks(t)
	s := tarantoolsim.Start(t, c)
	for _, sp := range spaces {
		if err := s.CreateSpace(sp); err != nil {
			t.Fatal(err)
		}
	}
	return s, dial(t, s.Addr())
}

// want fails unless got is the expected value.
func want[T any](t *testing.T, what string, got, wanted T) {
	t.Helper()
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("%s: %v, want %v", what, got, wanted)
	}
}

// data returns the data of an answer as text.
func data(values ...any) string { return fmt.Sprintf("%#v", append(list{}, values...)) }

func TestGreetingAndID(t *testing.T) {
	_, p := start(t, tarantoolsim.Config{})
	want(t, "version", p.greeting.Version, "3.3.0")
	want(t, "salt", len(p.greeting.Salt), 32)
	r, err := p.response(box.CodeID, func(b []byte) []byte { return box.AppendID(b, 10, nil, "") })
	set, ferr := box.ParseFeatures(r.Features)
	if err != nil || ferr != nil || r.Version != 10 || set != 1<<13-1 || string(r.AuthType) != box.AuthSHA1 {
		t.Errorf("%+v, features %b, %v, %v", r, set, err, ferr)
	}
	want(t, "ping", p.ping(), "ok")
}

func TestOlderServers(t *testing.T) {
	for _, c := range []struct {
		protocol int
		without  []int
		features uint64
	}{{1, nil, 0b11}, {3, nil, 0b1111}, {4, nil, 0b11111}, {7, nil, 0b1111111111}, {10, []int{0, 12}, 0b0111111111110}} {
		s := tarantoolsim.Start(t, tarantoolsim.Config{Protocol: c.protocol, Without: c.without})
		r, err := dial(t, s.Addr()).response(box.CodeID, func(b []byte) []byte { return box.AppendID(b, 10, nil, "") })
		set, _ := box.ParseFeatures(r.Features)
		if err != nil || set != c.features || r.Version != uint32(c.protocol) {
			t.Errorf("protocol %d: version %d, features %b, %v", c.protocol, r.Version, set, err)
		}
	}
	_, p := start(t, tarantoolsim.Config{Protocol: -1})
	unknown := "error UNKNOWN_REQUEST_TYPE"
	want(t, "id", p.do(box.CodeID, func(b []byte) []byte { return box.AppendID(b, 10, nil, "") }), unknown)
	want(t, "watch", p.do(box.CodeWatch, func(b []byte) []byte { return box.AppendWatch(b, "k") }), unknown)
	// A pitfall of such a server: there is no transaction, and changes are permanent.
	p.stream = 1
	want(t, "begin", p.begin(box.Begin{}), unknown)
	want(t, "insert", p.insert(box.CodeInsert, 512, int64(1), "a"), data(list{int64(1), "a"}))
	want(t, "rollback", p.rollback(), unknown)
	p.stream = 0
	want(t, "select", p.selects(512, 0, tarantool.All, 10, 0), data(list{int64(1), "a"}))
	// It does not support positions, either.
	after := func(b []byte) []byte {
		return any1((&box.Select{Target: box.Target{Space: 512}, Limit: 10, Iterator: uint32(tarantool.All), FetchPosition: true, AfterTuple: any1(nil, list{int64(5)})}).AppendHead(b), list{})
	}
	r, err := p.response(box.CodeSelect, after)
	if err != nil || r.Position != nil || text(t, r, err) != data(list{int64(1), "a"}) {
		t.Errorf("select after: %+v, %v", r, err)
	}
}

func TestAuthentication(t *testing.T) {
	_, p := start(t, tarantoolsim.Config{Users: map[string]string{"alice": "wonderland"}, Locked: true})
	denied, wrong := "error ACCESS_DENIED", "error PASSWORD_MISMATCH"
	want(t, "as the guest", p.selects(512, 0, tarantool.All, 1, 0), denied)
	want(t, "ping as the guest", p.ping(), "ok")
	want(t, "spaces of the guest", p.selects(281, 2, tarantool.Eq, 9, 0, "users"), data())
	want(t, "indexes of the guest", p.selects(289, 0, tarantool.Eq, 9, 0, 512), data())
	want(t, "nothing", p.selects(9999, 0, tarantool.Eq, 9, 0), "error NO_SUCH_SPACE")
	want(t, "wrong password", p.auth("alice", "other"), wrong)
	want(t, "nobody", p.auth("bob", ""), wrong)
	want(t, "still the guest", p.call("f"), denied)
	want(t, "right password", p.auth("alice", "wonderland"), "ok")
	want(t, "as alice", p.selects(512, 0, tarantool.All, 1, 0), data())
	want(t, "indexes of alice", strings.Count(p.selects(289, 0, tarantool.Eq, 9, 0, 512), "tree"), 3)
	proven := p.do(box.CodeAuth, func(b []byte) []byte {
		b = iproto.AppendString(box.AppendKey(iproto.AppendMap(b, 2), box.KeyUserName), "alice")
		proof := box.ScrambleSHA1(sha1.Sum, p.greeting.Salt, "wonderland")
		return any1(box.AppendKey(b, box.KeyTuple), list{box.AuthSHA1, proof[:]})
	})
	want(t, "a proof that is no string", proven, "ok")
	want(t, "other method", p.do(box.CodeAuth, func(b []byte) []byte { return box.AppendAuth(b, "alice", box.AuthSHA256, []byte("wonderland")) }), "error UNKNOWN_AUTH_METHOD")

	s := tarantoolsim.Start(t, tarantoolsim.Config{Users: map[string]string{"alice": "wonderland"}, Auth: box.AuthSHA256})
	q := dial(t, s.Addr())
	for password, answer := range map[string]string{"wonderland": "ok", "wonderlan": wrong, "": wrong} {
		want(t, "plain "+password, q.do(box.CodeAuth, func(b []byte) []byte { return box.AppendAuth(b, "alice", box.AuthSHA256, []byte(password)) }), answer)
	}
}

func TestSchemaSpaces(t *testing.T) {
	s, p := start(t, tarantoolsim.Config{})
	want(t, "the space", p.selects(281, 2, tarantool.Eq, 10, 0, "users"), data(list{int64(512), int64(1), "users", "memtx", int64(0), map[any]any{}, list{
		map[any]any{"name": "id", "type": "unsigned"}, map[any]any{"name": "name", "type": "string"},
		map[any]any{"name": "age", "type": "integer", "is_nullable": true},
	}}))
	want(t, "its indexes", p.selects(289, 0, tarantool.Eq, 10, 0, int64(512)), data(
		list{int64(512), int64(0), "pk", "tree", map[any]any{"unique": true}, list{list{int64(0), "unsigned"}}},
		list{int64(512), int64(1), "name", "tree", map[any]any{"unique": true}, list{list{int64(1), "string"}}},
		list{int64(512), int64(2), "age", "tree", map[any]any{"unique": false}, list{map[any]any{"field": int64(2), "type": "integer", "is_nullable": true}, list{int64(1), "string"}}},
	))
	want(t, "a write", p.insert(box.CodeReplace, 281, int64(1)), "error VIEW_IS_RO")
	before := s.SchemaVersion()
	want(t, "version in replies", p.schema, before)
	if err := s.CreateSpace(tarantoolsim.Space{Name: "new", Fields: []tarantoolsim.Field{{Name: "id"}}, Indexes: []tarantoolsim.Index{{Name: "pk", Parts: []string{"id"}}}}); err != nil {
		t.Fatal(err)
	}
	p.ping()
	want(t, "version after a change", p.schema, before+1)
	want(t, "the new space", p.insert(box.CodeInsert, 514, "x"), data(list{"x"}))
	if err := s.DropSpace("new"); err != nil {
		t.Fatal(err)
	}
	want(t, "the dropped space", p.insert(box.CodeInsert, 514, "x"), "error NO_SUCH_SPACE")
	p.relies = s.SchemaVersion()
	want(t, "with the schema of now", p.selects(512, 0, tarantool.All, 1, 0), data())
	p.relies--
	want(t, "with another schema", p.selects(512, 0, tarantool.All, 1, 0), "error WRONG_SCHEMA_VERSION")
	for name, err := range map[string]error{
		"dropping it again": s.DropSpace("new"), "dropping a system space": s.DropSpace("_vspace"), "another of the name": s.CreateSpace(spaces[0]),
		"no index": s.CreateSpace(tarantoolsim.Space{Name: "x"}), "putting into none": s.Put("new", list{1}), "a wrong tuple": s.Put("users", list{"x"}),
		"a wrong type": s.CreateSpace(tarantoolsim.Space{Name: "x", Fields: []tarantoolsim.Field{{"id", "int", false}}, Indexes: []tarantoolsim.Index{{Name: "pk", Parts: []string{"id"}}}}),
		"a wrong part": s.CreateSpace(tarantoolsim.Space{Name: "x", Indexes: []tarantoolsim.Index{{Name: "pk", Parts: []string{"id"}}}}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestNames(t *testing.T) {
	s, p := start(t, tarantoolsim.Config{})
	if err := s.Put("users", list{1, "a"}, list{2, "b", 30}, list{1, "c"}); err != nil {
		t.Fatal(err)
	}
	want(t, "tuples", s.Tuples("users"), [][]any{{int64(1), "c"}, {int64(2), "b", int64(30)}})
	target := box.Target{SpaceName: "users", IndexName: "name"}
	want(t, "select", p.do(box.CodeSelect, func(b []byte) []byte {
		return any1((&box.Select{Target: target, Limit: 5}).AppendHead(b), list{"b"})
	}), data(list{int64(2), "b", int64(30)}))
	want(t, "delete", p.do(box.CodeDelete, func(b []byte) []byte { return any1(target.AppendDeleteHead(b), list{"b"}) }), data(list{int64(2), "b", int64(30)}))
	target.IndexName = "none"
	want(t, "no index", p.do(box.CodeDelete, func(b []byte) []byte { return any1(target.AppendDeleteHead(b), list{"b"}) }), "error NO_SUCH_INDEX_NAME")
	target.SpaceName = "none"
	want(t, "no space", p.do(box.CodeInsert, func(b []byte) []byte { return any1(target.AppendInsertHead(b), list{"b"}) }), "error NO_SUCH_SPACE")
	want(t, "seen", s.Seen(), []string{"select users", "delete users", "delete users", "insert none"})
}

func TestPagination(t *testing.T) {
	s, p := start(t, tarantoolsim.Config{})
	for i := range 10 {
		if err := s.Put("users", list{i, fmt.Sprint("n", i), i / 3}); err != nil {
			t.Fatal(err)
		}
	}
	for _, it := range []tarantool.Iterator{tarantool.All, tarantool.Le, tarantool.Ge} {
		for index := range uint32(3) {
			whole := p.selects(512, index, it, 100, 0)
			var pages list
			sel := box.Select{Target: box.Target{Space: 512, Index: index}, Limit: 3, Iterator: uint32(it), FetchPosition: true}
			for {
				r, err := p.response(box.CodeSelect, func(b []byte) []byte { return any1(sel.AppendHead(b), list{}) })
				d := iproto.NewDecoder(r.Data)
				page, _ := d.Any().([]any)
				if err != nil || (r.Position != nil) != (len(page) > 0) {
					t.Fatalf("%+v, %v", r, err)
				}
				if len(page) == 0 {
					break
				}
				pages = append(pages, page...)
				// Alternate between the position and the tuple itself.
				sel.AfterPosition, sel.AfterTuple = bytes.Clone(r.Position), nil
				if len(pages)%2 == 0 {
					sel.AfterPosition, sel.AfterTuple = nil, any1(nil, page[len(page)-1])
				}
			}
			want(t, fmt.Sprintf("iterator %d of index %d", it, index), data(pages...), whole)
		}
	}
	for name, sel := range map[string]box.Select{
		"no position": {AfterPosition: []byte("*")}, "none of ours": {AfterPosition: []byte("AAAA")}, "tuple of another shape": {AfterTuple: any1(nil, list{"x"})},
	} {
		sel.Target, sel.Limit = box.Target{Space: 512}, 1
		want(t, name, p.do(box.CodeSelect, func(b []byte) []byte { return any1(sel.AppendHead(b), list{}) }), "error ITERATOR_POSITION")
	}
}

func TestTuplesAsExtensions(t *testing.T) {
	s, p := start(t, tarantoolsim.Config{})
	if err := s.Put("pairs", list{"a", 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.response(box.CodeID, func(b []byte) []byte {
		return box.AppendID(b, 10, []box.Feature{box.FeatureTupleExtension}, "")
	}); err != nil {
		t.Fatal(err)
	}
	r, err := p.response(box.CodeSelect, func(b []byte) []byte {
		return any1(box.AppendSelectHead(b, 513, 0, 1, 0, uint32(tarantool.All)), list{})
	})
	d := iproto.NewDecoder(r.Data)
	if n := d.Array(); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	tuple := d.Tuple()
	formats := iproto.NewDecoder(r.TupleFormats)
	m, _ := formats.Any().(map[any]any)
	format, _ := m[int64(tuple.Format)].([]any)
	if d.Err() != nil || !bytes.Equal(tuple.Data, any1(nil, list{"a", int64(1)})) || len(format) != 3 {
		t.Errorf("%+v, formats %v, %v", tuple, m, d.Err())
	}
}

func TestFunctions(t *testing.T) {
	s, p := start(t, tarantoolsim.Config{})
	s.Func("sum", func(r *tarantoolsim.Request) ([]any, error) {
		total := int64(0)
		for _, a := range r.Args {
			n, ok := a.(int64)
			if !ok {
				return nil, errors.New("no number")
			}
			total += n
		}
		return []any{total, len(r.Args), []int{1}, map[string]any{"a": nil}, uint8(7), float32(1.5)}, nil
	})
	s.Func("broken", func(r *tarantoolsim.Request) ([]any, error) { return []any{make(chan int)}, nil })
	s.Func("denied", func(r *tarantoolsim.Request) ([]any, error) { return nil, tarantoolsim.Error(42, "no") })
	s.Eval("return 1", func(r *tarantoolsim.Request) ([]any, error) { return []any{1}, nil })
	want(t, "call", p.call("sum", int64(1), int64(2)), data(int64(3), int64(2), list{int64(1)}, map[any]any{"a": nil}, int64(7), 1.5))
	want(t, "its error", p.call("sum", "x"), "error PROC_LUA")
	want(t, "another's error", p.call("denied"), "error ACCESS_DENIED")
	want(t, "what cannot be sent", p.call("broken"), "error PROC_LUA")
	want(t, "no function", p.call("none"), "error NO_SUCH_PROC")
	want(t, "eval", p.do(box.CodeEval, func(b []byte) []byte { return any1(box.AppendEvalHead(b, "return 1"), list{}) }), data(int64(1)))
	want(t, "another eval", p.do(box.CodeEval, func(b []byte) []byte { return any1(box.AppendEvalHead(b, "return 2"), list{}) }), "error PROC_LUA")
	want(t, "an old call", p.do(box.CodeCall16, func(b []byte) []byte { return any1(box.AppendCallHead(b, "sum"), list{int64(1)}) }),
		data(list{int64(1)}, list{int64(1)}, list{list{int64(1)}}, list{map[any]any{"a": nil}}, list{int64(7)}, list{1.5}))
	s.Func("sum", nil)
	want(t, "a function that is gone", p.call("sum"), "error NO_SUCH_PROC")

	s.Func("pushes", func(r *tarantoolsim.Request) ([]any, error) {
		for i := range 3 {
			if err := r.Push(i); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	sync := p.send(box.CodeCall, func(b []byte) []byte { return any1(box.AppendCallHead(b, "pushes"), list{}) })
	for i := range 4 {
		m, r, err := p.receive()
		kind, values := box.Push, data(int64(i))
		if i == 3 {
			kind, values = box.Reply, data()
		}
		if err != nil || m.Kind != kind || m.Sync != sync || text(t, r, nil) != values {
			t.Errorf("message %d: %+v %s, %v", i, m, text(t, r, nil), err)
		}
	}
}

func TestHandlers(t *testing.T) {
	s, p := start(t, tarantoolsim.Config{})
	free := make(chan struct{})
	s.Handle("call slow", func(r *tarantoolsim.Request) ([]any, error) {
		select {
		case <-free:
			return []any{"slow"}, nil
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	})
	s.Handle("select", func(r *tarantoolsim.Request) ([]any, error) {
		if len(r.Args) > 0 && r.Args[0] == int64(13) {
			return nil, tarantoolsim.Error(uint32(iproto.CodeTransactionConflict), "unlucky")
		}
		return nil, tarantoolsim.Own
	})
	s.Handle("insert users", func(r *tarantoolsim.Request) ([]any, error) { return []any{[]any{r.Space, r.Connection()}}, nil })
	s.Handle("call never", func(*tarantoolsim.Request) ([]any, error) { return nil, tarantoolsim.Silence })
	s.Handle("call bye", func(*tarantoolsim.Request) ([]any, error) { return nil, tarantoolsim.HangUp })
	slow := p.send(box.CodeCall, func(b []byte) []byte { return any1(box.AppendCallHead(b, "slow"), list{}) })
	want(t, "own answer", p.selects(512, 0, tarantool.Eq, 1, 0, int64(1)), data())
	want(t, "an error", p.selects(512, 0, tarantool.Eq, 1, 0, int64(13)), "error TRANSACTION_CONFLICT")
	want(t, "an answer", p.insert(box.CodeInsert, 512, int64(1), "a"), data(list{"users", int64(1)}))
	p.send(box.CodeCall, func(b []byte) []byte { return any1(box.AppendCallHead(b, "never"), list{}) })
	want(t, "other request", p.insert(box.CodeReplace, 512, int64(1), "a"), data(list{int64(1), "a"}))
	close(free)
	if m, r, err := p.receive(); err != nil || m.Sync != slow || text(t, r, nil) != data("slow") {
		t.Errorf("the slow one: %+v, %v", m, err)
	}
	s.Handle("select", nil)
	want(t, "no handler", p.selects(512, 0, tarantool.Eq, 1, 0, int64(13)), data())
	p.send(box.CodeCall, func(b []byte) []byte { return any1(box.AppendCallHead(b, "bye"), list{}) })
	if _, _, err := p.receive(); !errors.Is(err, io.EOF) && err == nil {
		t.Errorf("hung up: %v", err)
	}
	want(t, "seen", s.Seen(), []string{"call slow", "select users", "select users", "insert users", "call never", "replace users", "select users", "call bye"})
}

func TestTLSAndSockets(t *testing.T) {
	testkit.NoLeaks(t)
	path := filepath.Join(t.TempDir(), "s")
	s := tarantoolsim.Start(t, tarantoolsim.Config{Listen: path})
	want(t, "address", s.Addr(), path)
	want(t, "ping", dial(t, s.Addr()).ping(), "ok")
	server, client := certificates(t)
	s = tarantoolsim.Start(t, tarantoolsim.Config{TLS: server})
	p := dial(t, s.Addr(), client)
	want(t, "ping over TLS", p.ping(), "ok")
	if _, err := tarantoolsim.NewServer(tarantoolsim.Config{Listen: path + "/x/y"}); err == nil {
		t.Error("a server on no path")
	}
}

func TestFaults(t *testing.T) {
	s, p := start(t, tarantoolsim.Config{})
	s.Reorder(3)
	var syncs []uint64
	for range 3 {
		syncs = append(syncs, p.send(box.CodePing, func(b []byte) []byte { return iproto.AppendMap(b, 0) }))
	}
	slices.Reverse(syncs)
	for _, sync := range syncs {
		if m, _, err := p.receive(); err != nil || m.Sync != sync {
			t.Errorf("reordered: %d, %v, want %d", m.Sync, err, sync)
		}
	}
	sync := p.send(box.CodePing, func(b []byte) []byte { return iproto.AppendMap(b, 0) })
	s.Reorder(0)
	if m, _, err := p.receive(); err != nil || m.Sync != sync {
		t.Errorf("reply that was held back: %d, %v, want %d", m.Sync, err, sync)
	}

	s.Hang(true)
	sync = p.send(box.CodeInsert, func(b []byte) []byte { return any1(box.AppendInsertHead(b, 512), list{int64(1), "a"}) })
	testkit.Eventually(t, 10*time.Second, func() error {
		if len(s.Tuples("users")) != 1 {
			return errors.New("a server that hangs does not execute requests")
		}
		return nil
	})
	p.c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := p.r.Peek(1); err == nil {
		t.Error("an answer of a server that hangs")
	}
	p.c.SetReadDeadline(time.Now().Add(30 * time.Second))
	s.Hang(false)
	if m, _, err := p.receive(); err != nil || m.Sync != sync {
		t.Errorf("after hanging: %d, %v, want %d", m.Sync, err, sync)
	}

	s.SetReadOnly(true)
	want(t, "a write", p.insert(box.CodeReplace, 512, int64(2), "b"), "error READONLY")
	want(t, "a read", p.selects(512, 0, tarantool.All, 1, 0), data(list{int64(1), "a"}))
	s.SetReadOnly(false)
	want(t, "a write again", p.delete(512, 0, int64(1)), data(list{int64(1), "a"}))

	s.Refuse(true)
	s.HangUp()
	if _, _, err := p.receive(); err == nil {
		t.Error("a message after the end")
	}
	c, err := (&netDialer{}).dial(t.Context(), s.Addr())
	if err == nil {
		defer c.Close()
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Error("a greeting of a server that refuses")
		}
	}
	s.Refuse(false)
	want(t, "a new connection", dial(t, s.Addr()).ping(), "ok")
	if open, ever := s.Connections(); open != 1 || ever != 2 {
		t.Errorf("%d connections, %d so far", open, ever)
	}
	s.Close()
	if _, err := (&netDialer{}).dial(context.Background(), s.Addr()); err == nil {
		t.Error("a connection to a server that is closed")
	}
}

func TestGarbageEndsAConnection(t *testing.T) {
	_, p := start(t, tarantoolsim.Config{})
	if _, err := p.c.Write([]byte("GET / HTTP/1.1\r\n\r\n" + string(make([]byte, 100)))); err != nil {
		t.Fatal(err)
	}
	if m, r, err := p.receive(); err != nil || r.Error == nil || r.Error.Code != uint32(iproto.CodeInvalidMessagePack) {
		t.Errorf("%+v, %+v, %v", m, r, err)
	}
	if _, _, err := p.receive(); err == nil {
		t.Error("the connection continues")
	}
}

func TestBroadcastOfWhatCannotBeSent(t *testing.T) {
	s := tarantoolsim.Start(t, tarantoolsim.Config{})
	if err := s.Broadcast("key", make(chan int)); err == nil {
		t.Error("a channel was sent")
	}
	if err := s.Broadcast("key", 1); err != nil {
		t.Error(err)
	}
}
