package tarantoolsim_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// Tarantool's official Python client uses the server, with the types that the installed server is
// too old for, and with errors as newer servers report them.

const pythonScript = "../testdata/steps.py"

var pythonMoments = []struct {
	python string
	ours   iproto.Datetime
}{
	{"Datetime(timestamp=0)", iproto.Datetime{}},
	{"Datetime(timestamp=1700000000, nsec=123456789)", iproto.Datetime{Seconds: 1_700_000_000, Nanoseconds: 123_456_789}},
	{"Datetime(timestamp=-86400)", iproto.Datetime{Seconds: -86_400}},
	{"Datetime(year=1969, month=12, day=31, hour=23, minute=59, sec=59, nsec=1)", iproto.Datetime{Seconds: -1, Nanoseconds: 1}},
	{"Datetime(year=2024, month=2, day=29, hour=12, tzoffset=-330)", iproto.Datetime{Seconds: 1_709_208_000 + 330*60, Offset: -330}},
	{"Datetime(year=2024, month=2, day=29, hour=12, tz='Europe/Moscow')", iproto.Datetime{Seconds: 1_709_208_000 - 180*60, Offset: 180, Zone: 947}},
	{"Datetime(year=1, month=1, day=1)", iproto.Datetime{Seconds: -62_135_596_800}},
	{"Datetime(year=9999, month=12, day=31, hour=23, minute=59, sec=59, nsec=999999999)", iproto.Datetime{Seconds: 253_402_300_799, Nanoseconds: 999_999_999}},
}

var pythonIntervals = []struct {
	python string
	ours   iproto.Interval
}{
	{"Interval()", iproto.Interval{Adjust: iproto.AdjustNone}},
	{"Interval(adjust=Adjust.EXCESS)", iproto.Interval{}},
	{"Interval(month=100000, adjust=Adjust.LAST)", iproto.Interval{Months: 100_000, Adjust: iproto.AdjustLast}},
	{
		"Interval(year=1, month=-2, week=3, day=-4, hour=5, minute=-6, sec=7, nsec=-8)",
		iproto.Interval{Years: 1, Months: -2, Weeks: 3, Days: -4, Hours: 5, Minutes: -6, Seconds: 7, Nanoseconds: -8, Adjust: iproto.AdjustNone},
	},
	{"Interval(sec=-2**40, nsec=2**31-1)", iproto.Interval{Seconds: -1 << 40, Nanoseconds: 1<<31 - 1, Adjust: iproto.AdjustNone}},
}

// pythonServer has a space for values, and a user for this test only.
func pythonServer(t *testing.T) *tarantoolsim.Server {
	t.Helper()
	testkit.NoLeaks(t)
	s := tarantoolsim.Start(t, tarantoolsim.Config{Users: map[string]string{"alice": "wonderland"}, Locked: true})
	err := s.CreateSpace(tarantoolsim.Space{
		Name:    "values",
		Fields:  []tarantoolsim.Field{{Name: "id", Type: "string"}, {Name: "value", Nullable: true}, {Name: "at", Type: "datetime", Nullable: true}},
		Indexes: []tarantoolsim.Index{{Name: "primary", Parts: []string{"id"}}, {Name: "at", Parts: []string{"at"}, Repeats: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Datetimes and intervals, in tuples, as keys and as arguments. Values stored by Python are read
// back by the client of package tarantool, and vice versa.
func TestPythonMoments(t *testing.T) {
	s := pythonServer(t)
	s.Func("echo", func(r *tarantoolsim.Request) ([]any, error) { return r.Args, nil })
	c, err := tarantool.Connect(t.Context(), tarantool.Options{Addr: s.Addr(), User: "alice", Password: "wonderland", Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var steps []testkit.PythonStep
	stored := make(map[string]any)
	both := func(python string, ours any) {
		if err := c.Do(t.Context(), nil, tarantool.Insert("values", []any{"ours " + python, ours})); err != nil {
			t.Fatal(err)
		}
		stored["theirs "+python] = ours
		steps = append(steps,
			testkit.PythonStep{Do: fmt.Sprintf("c.select('values', %q)", "ours "+python), Want: fmt.Sprintf("[[%q, %s]]", "ours "+python, python)},
			testkit.PythonStep{Do: fmt.Sprintf("c.insert('values', [%q, %s])", "theirs "+python, python), Want: fmt.Sprintf("[[%q, %s]]", "theirs "+python, python)},
			testkit.PythonStep{Do: fmt.Sprintf("c.call('echo', [%s], %s)", python, python), Want: fmt.Sprintf("[[%s], %s]", python, python)},
		)
	}
	for _, m := range pythonMoments {
		both(m.python, m.ours)
		key := fmt.Sprintf("[['key', None, %s]]", m.python)
		steps = append(steps,
			testkit.PythonStep{Do: fmt.Sprintf("c.replace('values', ['key', None, %s])", m.python), Want: key},
			testkit.PythonStep{Do: fmt.Sprintf("c.select('values', [%s], index='at')", m.python), Want: key},
		)
	}
	for _, v := range pythonIntervals {
		both(v.python, v.ours)
	}
	testkit.PythonTarantool(t, pythonScript, s.Addr(), "alice", "wonderland", steps)
	for name, ours := range stored {
		var rows [][]any
		err := c.Do(t.Context(), &rows, tarantool.Select("values").Key(tarantool.String(name)))
		if want := [][]any{{name, ours}}; err != nil || !reflect.DeepEqual(rows, want) {
			t.Errorf("%v, %v, want %v", rows, err, want)
		}
	}
}

// Errors as values and as error replies, with their causes and fields.
func TestPythonErrors(t *testing.T) {
	s := pythonServer(t)
	whole := &iproto.BoxError{
		Type: "ClientError", File: "a.lua", Line: 7, Message: "what", Code: 5000,
		Cause: &iproto.BoxError{Type: "CustomError", File: "b.lua", Line: 1 << 20, Message: "why", Errno: 2, Fields: map[string]any{"custom_type": "E", "n": int64(-1)}},
	}
	const python = "BoxError('ClientError', 'a.lua', 7, 'what', 0, 5000, None, BoxError('CustomError', 'b.lua', 2**20, 'why', 2, 0, {'custom_type': 'E', 'n': -1}))"
	s.Func("fails", func(*tarantoolsim.Request) ([]any, error) { return nil, whole })
	s.Func("returns", func(*tarantoolsim.Request) ([]any, error) { return []any{whole, 1}, nil })
	var taken any
	s.Func("takes", func(r *tarantoolsim.Request) ([]any, error) { taken = r.Args[0]; return nil, nil })
	s.Func("breaks", func(*tarantoolsim.Request) ([]any, error) { return nil, errors.New("no luck") })
	steps := []testkit.PythonStep{
		{Do: "c.call('fails')", Want: "('error', 5000, 'what')"},
		{Do: "extra(lambda: c.call('fails'))", Want: python},
		{Do: "c.call('returns')", Want: "[" + python + ", 1]"},
		{Do: "c.call('takes', " + python + ")", Want: "[]"},
		{Do: "c.call('breaks')", Want: "('error', 32, 'no luck')"},
		{Do: "extra(lambda: c.call('breaks')).type", Want: "'LuajitError'"},
		{Do: "c.insert('values', [1])[0:0]", Want: "('error', 23, 'Tuple field 1 (id) type does not match one required by operation: expected string, got unsigned')"},
	}
	testkit.PythonTarantool(t, pythonScript, s.Addr(), "alice", "wonderland", steps)
	if !reflect.DeepEqual(taken, whole) {
		t.Errorf("%+v, want %+v", taken, whole)
	}
}

// The other features of the client: the life cycle of a tuple, including field names, and what the
// client has learned about the server.
func TestPythonRequests(t *testing.T) {
	s := pythonServer(t)
	s.Eval("return ...", func(r *tarantoolsim.Request) ([]any, error) { return r.Args, nil })
	testkit.PythonTarantool(t, pythonScript, s.Addr(), "alice", "wonderland", []testkit.PythonStep{
		{Do: "c._server_protocol_version, c._server_features, c._server_auth_type", Want: "(10, list(range(13)), 'chap-sha1')"},
		{Do: "c.ping() > 0", Want: "True"},
		{Do: "c.insert('values', ['a', 1])", Want: "[['a', 1]]"},
		{Do: "c.insert('values', ['a', 1])[0:0]", Want: "('error', 3, 'Duplicate key exists in unique index \"primary\" in space \"values\"')"},
		{Do: "c.replace('values', ['a', 'text'])", Want: "[['a', 'text']]"},
		{Do: "c.update('values', 'a', [(':', 'value', 0, 1, 'T'), ('=', 'at', None)])", Want: "[['a', 'Text', None]]"},
		{Do: "c.upsert('values', ['b', 1], [('+', 1, 5)])", Want: "[]"},
		{Do: "c.upsert('values', ['b', 1], [('+', 1, 5)])", Want: "[]"},
		{Do: "c.select('values', iterator=4)", Want: "[['b', 6], ['a', 'Text', None]]"},
		{Do: "c.select('values', offset=1, limit=1)", Want: "[['b', 6]]"},
		{Do: "c.delete('values', 'a')", Want: "[['a', 'Text', None]]"},
		{Do: "c.eval('return ...', 1, [None])", Want: "[1, [None]]"},
	})
	testkit.PythonTarantool(t, pythonScript, s.Addr(), "", "", []testkit.PythonStep{
		{Do: "c.eval('return 1')", Want: "('error', 42, \"Access denied for user 'guest': eval\")"},
	})
}
