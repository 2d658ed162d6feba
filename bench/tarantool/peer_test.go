package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tarantool/go-iproto"
	rival "github.com/tarantool/go-tarantool/v3"

	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
)

// The tests of peers drive the server of package tarantoolsim with go-tarantool v3, an independent
// implementation of the protocol. They are here because only this module requires rivals.

// peerLimit is how long a reply may take.
const peerLimit = 10 * time.Second

var peerSpace = tarantoolsim.Space{
	Name: "users",
	Fields: []tarantoolsim.Field{
		{Name: "id", Type: "unsigned"}, {Name: "name", Type: "string"}, {Name: "age", Type: "integer", Nullable: true}, {Name: "more", Nullable: true},
	},
	Indexes: []tarantoolsim.Index{
		{Name: "primary", Parts: []string{"id"}}, {Name: "name", Parts: []string{"name"}}, {Name: "age", Parts: []string{"age", "name"}, Repeats: true},
	},
}

// peerServer starts a server with the space.
func peerServer(t *testing.T, config tarantoolsim.Config) *tarantoolsim.Server {
	t.Helper()
	s := tarantoolsim.Start(t, config)
	if err := s.CreateSpace(peerSpace); err != nil {
		t.Fatal(err)
	}
	return s
}

// peerConnect connects, with the given dialer if there is one.
func peerConnect(t *testing.T, s *tarantoolsim.Server, opts rival.Opts, dialer ...rival.Dialer) *rival.Connection {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), peerLimit)
	defer cancel()
	dialer = append(dialer, rival.NetDialer{Address: s.Addr()})
	opts.Timeout = peerLimit
	c, err := rival.Connect(ctx, dialer[0], opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// peerAnswer returns the data of a reply, or the name of the error, as text.
func peerAnswer(f rival.Future) string {
	data, err := f.Get()
	var refused rival.ServerError
	switch {
	case errors.As(err, &refused):
		return refused.Code.String()
	case err != nil:
		return "failed: " + err.Error()
	}
	return fmt.Sprint(data)
}

// peerStep is a request and the expected answer.
type peerStep struct {
	request rival.Request
	want    string
}

func peerSteps(t *testing.T, do rival.Doer, steps []peerStep) {
	t.Helper()
	for i, s := range steps {
		if got := peerAnswer(do.Do(s.request)); got != s.want {
			t.Fatalf("step %d, %s: %s, want %s", i, s.request.Type(), got, s.want)
		}
	}
}

// peerTuples returns steps that cover the life of a space, with names or with numbers.
func peerTuples(space, primary, byName, byAge any) []peerStep {
	list := func(v ...any) []any { return v }
	selects := func(index any, key ...any) rival.SelectRequest {
		return rival.NewSelectRequest(space).Index(index).Key(key)
	}
	update := func(key int, ops *rival.Operations) rival.Request {
		return rival.NewUpdateRequest(space).Index(primary).Key(list(uint(key))).Operations(ops)
	}
	ops := rival.NewOperations
	return []peerStep{
		{rival.NewPingRequest(), "[]"},
		{rival.NewInsertRequest(space).Tuple(list(uint(1), "one", 10)), "[[1 one 10]]"},
		{rival.NewInsertRequest(space).Tuple(list(uint(1), "uno", 10)), iproto.ER_TUPLE_FOUND.String()},
		{rival.NewInsertRequest(space).Tuple(list(uint(2), "one", 10)), iproto.ER_TUPLE_FOUND.String()},
		{rival.NewInsertRequest(space).Tuple(list("x", "y", 10)), iproto.ER_FIELD_TYPE.String()},
		{rival.NewInsertRequest(space).Tuple(list(uint(2))), iproto.ER_FIELD_MISSING.String()},
		{rival.NewReplaceRequest(space).Tuple(list(uint(1), "one", -11)), "[[1 one -11]]"},
		{rival.NewReplaceRequest(space).Tuple(list(uint(2), "two", 20)), "[[2 two 20]]"},
		{rival.NewInsertRequest(space).Tuple(list(uint(3), "three", nil)), "[[3 three <nil>]]"},
		{rival.NewInsertRequest(space).Tuple(list(uint(1<<40), "large", 20)), "[[1099511627776 large 20]]"},

		{selects(primary, uint(2)), "[[2 two 20]]"},
		{selects(primary, uint(9)), "[]"},
		{selects(byName, "three"), "[[3 three <nil>]]"},
		{selects(byAge, 20), "[[1099511627776 large 20] [2 two 20]]"},
		{selects(byAge, 20, "two"), "[[2 two 20]]"},
		{selects(primary), "[[1 one -11] [2 two 20] [3 three <nil>] [1099511627776 large 20]]"},
		{selects(primary).Offset(1).Limit(2), "[[2 two 20] [3 three <nil>]]"},
		{selects(primary, uint(2)).Iterator(rival.IterGt).Limit(1), "[[3 three <nil>]]"},
		{selects(primary, uint(2)).Iterator(rival.IterGe).Limit(1), "[[2 two 20]]"},
		{selects(primary, uint(2)).Iterator(rival.IterLt), "[[1 one -11]]"},
		{selects(primary, uint(2)).Iterator(rival.IterLe), "[[2 two 20] [1 one -11]]"},
		{selects(byAge, 20).Iterator(rival.IterReq), "[[2 two 20] [1099511627776 large 20]]"},
		{selects(primary, "x"), iproto.ER_KEY_PART_TYPE.String()},
		{selects(primary, uint(1), uint(2)), iproto.ER_KEY_PART_COUNT.String()},

		{update(2, ops().Add(2, 5).Assign(1, "zwei")), "[[2 zwei 25]]"},
		{update(2, ops().Subtract(2, 30)), "[[2 zwei -5]]"},
		{update(2, ops().Assign(2, 0b1100)), "[[2 zwei 12]]"},
		{update(2, ops().BitwiseAnd(2, uint(0b0110))), "[[2 zwei 4]]"},
		{update(2, ops().BitwiseOr(2, uint(0b0011))), "[[2 zwei 7]]"},
		{update(2, ops().BitwiseXor(2, uint(0b0101))), "[[2 zwei 2]]"},
		{update(2, ops().Splice(1, 1, 2, "WE")), "[[2 zWEi 2]]"},
		{update(2, ops().Splice(1, -2, 1, "I")), "[[2 zWEI 2]]"},
		{update(2, ops().Insert(3, "new").Insert(-1, "last")), "[[2 zWEI 2 new last]]"},
		{update(2, ops().Delete(3, 2)), "[[2 zWEI 2]]"},
		{update(2, ops().Assign(0, uint(7))), iproto.ER_CANT_UPDATE_PRIMARY_KEY.String()},
		{update(2, ops().Assign(9, 1)), iproto.ER_NO_SUCH_FIELD_NO.String()},
		{update(2, ops().Add(1, 1)), iproto.ER_UPDATE_ARG_TYPE.String()},
		{update(9, ops().Add(2, 1)), "[]"},

		{rival.NewUpsertRequest(space).Tuple(list(uint(4), "four", 40)).Operations(ops().Add(2, 1)), "[]"},
		{rival.NewUpsertRequest(space).Tuple(list(uint(4), "four", 40)).Operations(ops().Add(2, 1)), "[]"},
		{selects(primary, uint(4)), "[[4 four 41]]"},

		{rival.NewDeleteRequest(space).Index(primary).Key(list(uint(4))), "[[4 four 41]]"},
		{rival.NewDeleteRequest(space).Index(primary).Key(list(uint(4))), "[]"},
		{rival.NewDeleteRequest(space).Index(byName).Key(list("three")), "[[3 three <nil>]]"},
		{rival.NewDeleteRequest(space).Index(byAge).Key(list(20)), iproto.ER_MORE_THAN_ONE_TUPLE.String()},
		{rival.NewSelectRequest(uint(9999)).Index(uint(0)), iproto.ER_NO_SUCH_SPACE.String()},
		{rival.NewSelectRequest(space).Index(uint(9)), iproto.ER_NO_SUCH_INDEX_ID.String()},
	}
}

// All operations on tuples, with numbers, with names that the client looks up in the schema, and
// with names that the server looks up.
func TestPeerTuples(t *testing.T) {
	for name, c := range map[string]struct {
		protocol int
		version  string
	}{"new": {0, ""}, "2.11": {4, "2.11.0"}, "2.6": {-1, "2.6.0"}} {
		config := tarantoolsim.Config{Protocol: c.protocol, Version: c.version}
		t.Run(name+"/numbers", func(t *testing.T) {
			s := peerServer(t, config)
			peerSteps(t, peerConnect(t, s, rival.Opts{SkipSchema: true}), peerTuples(uint(512), uint(0), uint(1), uint(2)))
		})
		t.Run(name+"/names", func(t *testing.T) {
			s := peerServer(t, config)
			peerSteps(t, peerConnect(t, s, rival.Opts{}), peerTuples("users", "primary", "name", "age"))
		})
	}
	t.Run("unknown names", func(t *testing.T) {
		peerSteps(t, peerConnect(t, peerServer(t, tarantoolsim.Config{}), rival.Opts{SkipSchema: true}), []peerStep{
			{rival.NewInsertRequest("users").Tuple([]any{uint(1), "one"}), "[[1 one]]"},
			{rival.NewSelectRequest("nobody").Index("primary"), iproto.ER_NO_SUCH_SPACE.String()},
			{rival.NewSelectRequest("users").Index("nothing"), iproto.ER_NO_SUCH_INDEX_NAME.String()},
		})
	})
}

// The schema that the client loads is that of the server.
func TestPeerSchema(t *testing.T) {
	schema, err := rival.GetSchema(peerConnect(t, peerServer(t, tarantoolsim.Config{}), rival.Opts{SkipSchema: true}))
	if err != nil {
		t.Fatal(err)
	}
	space, known := schema.Spaces["users"]
	if !known || space.Id != 512 || space.Engine != "memtx" || len(space.FieldsById) != 4 || len(space.Indexes) != 3 {
		t.Fatalf("%+v", space)
	}
	if f := space.Fields["age"]; f.Id != 2 || f.Type != "integer" || !f.IsNullable || space.Fields["id"].IsNullable {
		t.Errorf("%+v", f)
	}
	ix := space.Indexes["age"]
	if ix.Id != 2 || ix.SpaceId != 512 || ix.Type != "tree" || ix.Unique || fmt.Sprint(ix.Fields) != "[{2 integer} {1 string}]" || !space.Indexes["name"].Unique {
		t.Errorf("%+v", ix)
	}
	if len(schema.Spaces) != 3 || schema.Spaces["_vspace"].Id != 281 || schema.Spaces["_vindex"].Id != 289 {
		t.Errorf("%d spaces, want also the two that describe the schema", len(schema.Spaces))
	}
}

// The server announces the features that the client requires, version by version.
func TestPeerIdentification(t *testing.T) {
	all := []iproto.Feature{
		iproto.IPROTO_FEATURE_STREAMS, iproto.IPROTO_FEATURE_TRANSACTIONS, iproto.IPROTO_FEATURE_ERROR_EXTENSION, iproto.IPROTO_FEATURE_WATCHERS,
		iproto.IPROTO_FEATURE_PAGINATION, iproto.IPROTO_FEATURE_SPACE_AND_INDEX_NAMES, iproto.IPROTO_FEATURE_WATCH_ONCE,
		iproto.IPROTO_FEATURE_DML_TUPLE_EXTENSION, iproto.IPROTO_FEATURE_CALL_RET_TUPLE_EXTENSION, iproto.IPROTO_FEATURE_CALL_ARG_TUPLE_EXTENSION,
		iproto.IPROTO_FEATURE_FETCH_SNAPSHOT_CURSOR, iproto.IPROTO_FEATURE_IS_SYNC, iproto.IPROTO_FEATURE_INSERT_ARROW,
	}
	for _, c := range []struct {
		config tarantoolsim.Config
		want   rival.ProtocolInfo
	}{
		{tarantoolsim.Config{}, rival.ProtocolInfo{Auth: rival.ChapSha1Auth, Version: 10, Features: all}},
		{tarantoolsim.Config{Auth: "pap-sha256", Protocol: 4}, rival.ProtocolInfo{Auth: rival.PapSha256Auth, Version: 4, Features: all[:5]}},
		{tarantoolsim.Config{Protocol: 3, Without: []int{0, 1}}, rival.ProtocolInfo{Version: 3, Features: all[2:4]}},
		{tarantoolsim.Config{Protocol: -1}, rival.ProtocolInfo{}},
	} {
		s := peerServer(t, c.config)
		got := peerConnect(t, s, rival.Opts{}, rival.NetDialer{Address: s.Addr(), RequiredProtocolInfo: rival.ProtocolInfo{Features: c.want.Features}}).ProtocolInfo()
		if got.Auth != c.want.Auth || got.Version != c.want.Version || !slices.Equal(got.Features, c.want.Features) {
			t.Errorf("%+v: %+v, want %+v", c.config, got, c.want)
		}
	}
	s := peerServer(t, tarantoolsim.Config{Protocol: 4})
	_, err := rival.Connect(t.Context(), rival.NetDialer{Address: s.Addr(), RequiredProtocolInfo: rival.ProtocolInfo{Version: 5}}, rival.Opts{})
	if err == nil {
		t.Error("a client that requires version 5 of the protocol accepted version 4")
	}
}

// Pages after a position and after a tuple, forwards and backwards.
func TestPeerPages(t *testing.T) {
	s := peerServer(t, tarantoolsim.Config{})
	for i := range 10 {
		if err := s.Put("users", []any{i, fmt.Sprintf("name %d", i), i / 3}); err != nil {
			t.Fatal(err)
		}
	}
	c := peerConnect(t, s, rival.Opts{})
	for name, base := range map[string]rival.SelectRequest{
		"primary":   rival.NewSelectRequest("users").Limit(3),
		"backwards": rival.NewSelectRequest("users").Limit(3).Iterator(rival.IterLe).Key([]any{uint(9)}),
		"age":       rival.NewSelectRequest("users").Index("age").Limit(3).Iterator(rival.IterGe).Key([]any{0}),
	} {
		var seen []uint64
		var pages int
		for r := base; ; pages++ {
			response, err := c.Do(r.FetchPos(true)).GetResponse()
			if err != nil {
				t.Fatal(err)
			}
			var rows []struct {
				_msgpack struct{} `msgpack:",as_array"`
				ID       uint64
				Name     string
				Age      int
			}
			if err := response.DecodeTyped(&rows); err != nil {
				t.Fatal(err)
			}
			pos, err := response.(*rival.SelectResponse).Pos()
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) == 0 {
				if pos != nil {
					t.Errorf("%s: a position %q without a tuple", name, pos)
				}
				break
			}
			for _, row := range rows {
				seen = append(seen, row.ID)
			}
			r = base.After(pos)
		}
		want := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
		if name == "backwards" {
			slices.Reverse(want)
		}
		if !slices.Equal(seen, want) || pages != 4 {
			t.Errorf("%s: %v in %d pages", name, seen, pages)
		}
	}
	peerSteps(t, c, []peerStep{
		{rival.NewSelectRequest("users").Limit(2).After([]any{uint(6), "name 6", 2}), "[[7 name 7 2] [8 name 8 2]]"},
		{rival.NewSelectRequest("users").Limit(2).After([]byte("nonsense!")), iproto.ER_ITERATOR_POSITION.String()},
	})
}
