package tarantool_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// Every kind of request works with a real server, with each of the three ways to get its result.
func TestRequests(t *testing.T) {
	c, _ := started(t)
	ctx := t.Context()
	for _, step := range []struct {
		req  tarantool.Request
		want string
	}{
		{tarantool.Ping(), "[]"},
		{tarantool.Select("users").Key(tarantool.Int(7)), "[[7 name7 0]]"},
		{tarantool.Select("users").Index("name").Key(tarantool.String("name3")).Limit(2).Offset(1), "[[13 name3 0] [23 name3 0]]"},
		{tarantool.Select("users").Iterator(tarantool.Gt).Key(tarantool.Int(98)), "[[99 name9 0] [100 name0 0]]"},
		{tarantool.Select("users").Key(tarantool.Int(1000)), "[]"},
		{tarantool.Insert("users", []any{1000, "new", 5}), "[[1000 new 5]]"},
		{tarantool.Replace("users", &user{1000, "newer", 6}), "[[1000 newer 6]]"},
		{tarantool.Replace("users", user2{ID: 1000, Name: "newest", Hits: new(int)}), "[[1000 newest 0]]"},
		{tarantool.Update("users", []tarantool.Part{tarantool.Int(1000)}, tarantool.Add(2, 14), tarantool.Splice("name", 1, 4, "yz")), "[[1000 nyzt 14]]"},
		{tarantool.Update("users", []tarantool.Part{tarantool.Int(1000)}, tarantool.And(2, 6), tarantool.Assign(1, "xyz")), "[[1000 xyz 6]]"},
		{tarantool.Update("users", []tarantool.Part{tarantool.Int(1000)}, tarantool.Or(2, 8)), "[[1000 xyz 14]]"},
		{tarantool.Update("users", []tarantool.Part{tarantool.Int(1000)}, tarantool.Xor(2, 4)), "[[1000 xyz 10]]"},
		{tarantool.Update("users", []tarantool.Part{tarantool.Int(1000)}, tarantool.Subtract(-1, 2)), "[[1000 xyz 8]]"},
		{tarantool.Update("users", []tarantool.Part{tarantool.Int(1000)}, tarantool.InsertField(3, "more"), tarantool.InsertField(4, 1)), "[[1000 xyz 8 more 1]]"},
		{tarantool.Update("users", []tarantool.Part{tarantool.Int(1000)}, tarantool.DeleteFields(4, 1)), "[[1000 xyz 8 more]]"},
		{tarantool.Update("users", []tarantool.Part{tarantool.Int(5555)}, tarantool.Add(2, 4)), "[]"},
		{tarantool.Upsert("users", []any{1000, "unused", 0}, tarantool.Add(2, 1)), "[]"},
		{tarantool.Upsert("users", []any{1001, "other", 0}, tarantool.Add(2, 1)), "[]"},
		{tarantool.Select("users").Iterator(tarantool.Ge).Key(tarantool.Int(1000)), "[[1000 xyz 9 more] [1001 other 0]]"},
		{tarantool.Delete("users", tarantool.Int(1000)), "[[1000 xyz 9 more]]"},
		{tarantool.Delete("users", tarantool.Int(1000)), "[]"},
		{tarantool.Call("echo", 1, "two", nil, []any{3.5, true}, map[string]any{"k": "v"}), "[1 two <nil> [3.5 true] map[k:v]]"},
		{tarantool.Eval("return ...", -1), "[-1]"},
		{tarantool.Eval("return 1").Arguments([]any{}), "[1]"},
		{tarantool.Call("echo"), "[]"},
	} {
		data, err := c.Start(ctx, step.req).Get()
		if err != nil || fmt.Sprint(data) != step.want {
			t.Errorf("%T: %v, %v; want %s", step.req, data, err, step.want)
		}
	}
}

// user2 is a tuple that is decoded by reflection.
type user2 struct {
	ID   uint32
	Name string
	Hits *int
	//lint:ignore U1000 fields that are not exported are passed over
	skip int
	Also string `tarantool:"-"`
}

func TestDestinations(t *testing.T) {
	c, _ := started(t)
	ctx := t.Context()
	req := tarantool.Select("users").Key(tarantool.Int(7))
	var own []user
	var reflected []user2
	var general []any
	var anything any
	var raw tarantool.Raw
	zero := 0
	for _, d := range []struct {
		dst  any
		want any
	}{
		{&own, &[]user{{7, "name7", 0}}},
		{&reflected, &[]user2{{ID: 7, Name: "name7", Hits: &zero}}},
		{&general, &[]any{[]any{int64(7), "name7", int64(0)}}},
		{&anything, func() *any { v := any([]any{[]any{int64(7), "name7", int64(0)}}); return &v }()},
		{&raw, func() *tarantool.Raw { r := tarantool.Raw("\xdd\x00\x00\x00\x01\x93\x07\xa5name7\x00"); return &r }()},
	} {
		if err := c.Do(ctx, d.dst, req); err != nil || !reflect.DeepEqual(d.dst, d.want) {
			t.Errorf("%T: %v, %v", d.dst, reflect.ValueOf(d.dst).Elem(), err)
		}
	}
	for name, dst := range map[string]any{
		"not a pointer": general, "a nil pointer": (*[]any)(nil), "a number": new(int), "a short array": new([1][2]any), "text for a number": new([][3]uint64),
	} {
		err := c.Do(ctx, dst, req)
		if slipstream.OutcomeOf(err) != slipstream.Executed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrors(t *testing.T) {
	c, _ := started(t)
	ctx := t.Context()
	for name, step := range map[string]struct {
		req     tarantool.Request
		outcome slipstream.Outcome
		code    iproto.ErrorCode
		is      error
	}{
		"found":         {tarantool.Insert("users", []any{1, "a", 1}), slipstream.Refused, iproto.CodeTupleFound, nil},
		"function":      {tarantool.Call("fails"), slipstream.Executed, 42000, nil},
		"lua":           {tarantool.Eval("error('x')"), slipstream.Executed, iproto.CodeLua, nil},
		"space":         {tarantool.Select("nowhere"), slipstream.NotSent, 0, tarantool.ErrNoSuchSpace},
		"index":         {tarantool.Select("users").Index("nowhere"), slipstream.NotSent, 0, tarantool.ErrNoSuchSpace},
		"numbers":       {tarantool.Select("").Numbers(4000, 0), slipstream.Refused, iproto.CodeNoSuchSpace, nil},
		"argument":      {tarantool.Call("echo", make(chan int)), slipstream.NotSent, 0, nil},
		"tuple":         {tarantool.Insert("users", 7), slipstream.NotSent, 0, nil},
		"operation":     {tarantool.Upsert("users", []any{1}, tarantool.Op{}), slipstream.NotSent, 0, nil},
		"key":           {tarantool.Select("users").Key(tarantool.Any(make(chan int))), slipstream.NotSent, 0, nil},
		"nothing":       {nil, slipstream.NotSent, 0, nil},
		"page":          {tarantool.Select("users").After([]byte("x")), slipstream.NotSent, 0, nil},
		"empty request": {tarantool.ProcedureRequest{}, slipstream.NotSent, 0, nil},
	} {
		err := c.Start(ctx, step.req).Wait(nil)
		if slipstream.OutcomeOf(err) != step.outcome || step.code != 0 && !tarantool.IsCode(err, step.code) || step.is != nil && !errors.Is(err, step.is) {
			t.Errorf("%s: %v (%v)", name, err, slipstream.OutcomeOf(err))
		}
	}
	var lacks *tarantool.UnsupportedError
	if err := c.Do(ctx, nil, tarantool.Select("users").After([]byte("x"))); !errors.As(err, &lacks) || lacks.Since != "2.11" {
		t.Errorf("%v", err)
	}
}

func TestSpace(t *testing.T) {
	c, _ := started(t)
	ctx := t.Context()
	users := tarantool.SpaceOf[user](c, "users")
	var u user
	if found, err := users.Get(ctx, &u, tarantool.Int(7)); !found || err != nil || u != (user{7, "name7", 0}) {
		t.Errorf("%v, %t, %v", u, found, err)
	}
	if found, err := users.Get(ctx, &u, tarantool.Int(7000)); found || err != nil || u.ID != 7 {
		t.Errorf("%v, %t, %v", u, found, err)
	}
	list, err := users.Index("name").Select(ctx, nil, 2, tarantool.Eq, tarantool.String("name4"))
	if err != nil || !reflect.DeepEqual(list, []user{{4, "name4", 0}, {14, "name4", 0}}) {
		t.Errorf("%v, %v", list, err)
	}
	must(t, users.Insert(ctx, &user{2000, "x", 1}))
	if err := users.Insert(ctx, &user{2000, "x", 1}); !tarantool.IsCode(err, iproto.CodeTupleFound) {
		t.Errorf("%v", err)
	}
	must(t, users.Replace(ctx, &user{2000, "y", 1}))
	must(t, users.Upsert(ctx, &user{2000, "z", 1}, tarantool.Add("hits", 2)))
	if found, err := users.Update(ctx, &u, []tarantool.Part{tarantool.Int(2000)}, tarantool.Add("hits", 2)); !found || err != nil || u != (user{2000, "y", 5}) {
		t.Errorf("%v, %t, %v", u, found, err)
	}
	f := users.StartGet(ctx, tarantool.Int(2000))
	<-f.Done()
	if found, err := f.Get(&u); !found || err != nil || u.Name != "y" {
		t.Errorf("%v, %t, %v", u, found, err)
	}
	if _, err := f.Get(&u); !errors.Is(err, tarantool.ErrReleased) {
		t.Errorf("%v", err)
	}
	if found, err := users.Delete(ctx, nil, tarantool.Int(2000)); !found || err != nil {
		t.Errorf("%t, %v", found, err)
	}
	if err := users.Insert(ctx, nil); slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("%v", err)
	}
	type row struct {
		ID   int
		Name string
	}
	rows := tarantool.SpaceOf[row](c, "users") // the struct has fewer fields than the tuples
	var r row
	if found, err := rows.Get(ctx, &r, tarantool.Int(7)); !found || err != nil || r != (row{7, "name7"}) {
		t.Errorf("%v, %t, %v", r, found, err)
	}
}

// A space that is dropped and recreated has another number, and another space may get the old one.
// Names have their current meaning, whatever the client had learned.
func TestSchemaChanges(t *testing.T) {
	c, _ := started(t)
	ctx := t.Context()
	users := tarantool.SpaceOf[user](c, "users")
	var u user
	for i := range 20 {
		if found, err := users.Get(ctx, &u, tarantool.Int(7)); !found || err != nil {
			t.Fatalf("%d: %t, %v", i, found, err)
		}
		id := 600 + i%2
		must(t, c.Do(ctx, nil, tarantool.Eval(`
			local id, other = ...
			box.space.users:drop()
			if box.space.other then box.space.other:drop() end
			for _, s in ipairs{{'users', id}, {'other', other}} do
				local s = box.schema.space.create(s[1], {id = s[2], format = {{'id', 'unsigned'}, {'name', 'string'}, {'hits', 'unsigned'}}})
				s:create_index('primary', {parts = {'id'}})
				s:insert{7, s.name, 0}
			end`, id, 1201-id)))
		req := tarantool.Select("users").Key(tarantool.Int(7))
		data, err := c.Start(ctx, req).Get()
		if err != nil || fmt.Sprint(data) != "[[7 users 0]]" {
			t.Fatalf("%d: %v, %v", i, data, err)
		}
		if found, err := users.Get(ctx, &u, tarantool.Int(7)); !found || err != nil || u.Name != "users" {
			t.Fatalf("%d: %v, %t, %v", i, u, found, err)
		}
		if found, err := users.StartGet(ctx, tarantool.Int(7)).Get(&u); !found || err != nil || u.Name != "users" {
			t.Fatalf("%d: %v, %t, %v", i, u, found, err)
		}
	}
}

func TestAuthentication(t *testing.T) {
	_, s := started(t)
	ctx := t.Context()
	for _, o := range []tarantool.Options{
		{Addr: s.Addr, User: "ann", Password: "secret"},
		{Addr: s.Addr, User: "ann", Password: "secret", Auth: tarantool.AuthCHAPSHA1},
	} {
		c := connect(t, o)
		if data, err := c.Start(ctx, tarantool.Eval("return box.session.user()")).Get(); err != nil || fmt.Sprint(data) != "[ann]" {
			t.Errorf("%v, %v", data, err)
		}
	}
	for _, o := range []tarantool.Options{{Addr: s.Addr, User: "ann", Password: "wrong"}, {Addr: s.Addr, User: "nobody", Password: "secret"}} {
		if c, err := tarantool.Connect(ctx, o); err == nil {
			c.Close()
			t.Errorf("%v: connected", o)
		}
	}
}
