package tarantool_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// These tests use the official Python client of Tarantool with the same real server: each client
// reads what the other has written, finds it by its value, and gets the same errors.

const pythonScript = "../internal/testkit/testdata/steps.py"

// keys lists the types of keys that are tested: each has its own space.
const pythonSetup = `
box.schema.user.create('ann', {password = 'secret'})
box.schema.user.grant('ann', 'super')
local s = box.schema.space.create('values')
s:create_index('primary', {parts = {{1, 'string'}}})
for _, kind in ipairs{'boolean', 'unsigned', 'integer', 'number', 'double', 'decimal', 'string', 'varbinary', 'uuid', 'scalar'} do
	box.schema.space.create('by_' .. kind):create_index('primary', {parts = {{1, kind}}})
end
function fails() box.error{code = 5000, reason = 'no luck'} end
`

// pythonValue is a value in both languages, and the types of keys that it can have.
type pythonValue struct {
	python string
	ours   any
	keys   string
}

func pythonValues(t *testing.T) []pythonValue {
	t.Helper()
	values := []pythonValue{
		{"None", nil, ""}, {"True", true, "boolean scalar"}, {"False", false, "boolean scalar"},
		{"''", "", "string scalar"}, {"'näme \\x00\\n'", "näme \x00\n", "string scalar"}, {"'x' * 31", strings.Repeat("x", 31), ""},
		{"'x' * 32", strings.Repeat("x", 32), ""}, {"'x' * 255", strings.Repeat("x", 255), ""}, {"'x' * 256", strings.Repeat("x", 256), ""},
		{"'x' * 70000", strings.Repeat("x", 70_000), ""},
		{"b''", []byte{}, "varbinary scalar"}, {"bytes(range(256))", everyByte(), "varbinary scalar"}, {"b'\\xc3' * 70000", []byte(strings.Repeat("\xc3", 70_000)), ""},
		{"1.5", 1.5, "double number scalar"}, {"0.1", 0.1, "double"}, {"-0.0", math.Copysign(0, -1), ""}, {"2.0", 2.0, "double"}, {"5e-324", 5e-324, "double number"},
		{"1.7976931348623157e308", math.MaxFloat64, "double number"}, {"inf", math.Inf(1), "double number"}, {"-inf", math.Inf(-1), "double number"},
		{"[]", []any{}, ""}, {"[1, [None, ['deep', [b'']]], {}]", []any{int64(1), []any{nil, []any{"deep", []any{[]byte{}}}}, map[any]any{}}, ""},
		{"list(range(20))", upTo(20), ""}, {"list(range(70000))", upTo(70_000), ""},
		{"{'a': {'b': {'c': [1, {}]}}}", map[any]any{"a": map[any]any{"b": map[any]any{"c": []any{int64(1), map[any]any{}}}}}, ""},
		{"{1: 'one', -2: 'two', 'x': None}", map[any]any{int64(1): "one", int64(-2): "two", "x": nil}, ""},
		{"{i: -i for i in range(1, 301)}", negatives(300), ""},
	}
	for _, n := range []int64{0, 1, 127, 128, 255, 256, 65_535, 65_536, math.MaxInt32, math.MaxInt32 + 1, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64} {
		values = append(values, pythonValue{fmt.Sprint(n), n, "unsigned integer number scalar"})
	}
	for _, n := range []int64{-1, -32, -33, -128, -129, -32_768, -32_769, math.MinInt32, math.MinInt32 - 1, math.MinInt64} {
		values = append(values, pythonValue{fmt.Sprint(n), n, "integer number scalar"})
	}
	for _, n := range []uint64{math.MaxInt64 + 1, math.MaxUint64} {
		values = append(values, pythonValue{fmt.Sprint(n), n, "unsigned integer number scalar"})
	}
	for _, text := range []string{
		"0", "1", "-1", "10", "0.1", "-0.01", "12345.678", "-99", "100", "99999999999999999999999999999999999999",
		"-0.00000000000000000000000000000000000001", "-1234567890123456789.0123456789012345678",
	} {
		d, err := iproto.ParseDecimal(text)
		must(t, err)
		values = append(values, pythonValue{"Decimal('" + text + "')", d, "decimal"})
	}
	for _, text := range []string{"00000000-0000-0000-0000-000000000000", "00112233-4455-6677-8899-aabbccddeeff", "ffffffff-ffff-ffff-ffff-ffffffffffff"} {
		id, err := iproto.ParseUUID(text)
		must(t, err)
		values = append(values, pythonValue{"UUID('" + text + "')", id, "uuid"})
	}
	return values
}

func everyByte() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func upTo(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = int64(i)
	}
	return list
}

func negatives(n int) map[any]any {
	m := make(map[any]any)
	for i := 1; i <= n; i++ {
		m[int64(i)] = int64(-i)
	}
	return m
}

// Each client writes all values under its own names, in tuples of the form [name, value], and as
// keys, [value, writer].
func TestPythonReadsWhatWeWriteAndWritesWhatWeRead(t *testing.T) {
	testkit.NoLeaks(t)
	s := testkit.StartTarantool(t, pythonSetup)
	c, ctx := connect(t, tarantool.Options{Addr: s.Addr}), t.Context()
	values := pythonValues(t)
	var steps []testkit.PythonStep
	step := func(do, want string, args ...any) {
		steps = append(steps, testkit.PythonStep{Do: fmt.Sprintf(do, args...), Want: want})
	}
	for i, v := range values {
		name := fmt.Sprint("ours ", i)
		must(t, c.Do(ctx, nil, tarantool.Insert("values", []any{name, v.ours})))
		step("c.select('values', %q)", fmt.Sprintf("[[%q, %s]]", name, v.python), name)
		step("c.replace('values', [%q, %s])", fmt.Sprintf("[[%q, %s]]", fmt.Sprint("theirs ", i), v.python), fmt.Sprint("theirs ", i), v.python)
		for kind := range strings.FieldsSeq(v.keys) {
			must(t, c.Do(ctx, nil, tarantool.Insert("by_"+kind, []any{v.ours, "ours"})))
			step("c.select('by_%s', [%s])", fmt.Sprintf("[[%s, 'ours']]", v.python), kind, v.python)
			step("c.update('by_%s', [%s], [('=', 1, 'theirs'), ('!', -1, %s)])", fmt.Sprintf("[[%s, 'theirs', %s]]", v.python, v.python), kind, v.python, v.python)
		}
	}
	must(t, c.Do(ctx, nil, tarantool.Insert("values", []any{"single", float32(0.25)})))
	step("c.select('values', 'single')", "[['single', 0.25]]")
	testkit.PythonTarantool(t, pythonScript, s.Addr, "", "", steps)

	for i, v := range values {
		var rows [][]any
		must(t, c.Do(ctx, &rows, tarantool.Select("values").Key(tarantool.String(fmt.Sprint("theirs ", i)))))
		if len(rows) != 1 || len(rows[0]) != 2 || !reflect.DeepEqual(rows[0][1], v.ours) {
			t.Errorf("%.100s: %.300v, want %.300v", v.python, rows, v.ours)
		}
		for kind := range strings.FieldsSeq(v.keys) {
			var back [][]any
			must(t, c.Do(ctx, &back, tarantool.Select("by_"+kind).Key(tarantool.Any(v.ours))))
			if want := [][]any{{v.ours, "theirs", v.ours}}; !reflect.DeepEqual(back, want) {
				t.Errorf("%s as a key of type %s: %v, want %v", v.python, kind, back, want)
			}
		}
	}
}

// Both clients get the same errors, by number and text, and each reads the results of the other's
// SQL statements.
func TestPythonErrorsAndSQL(t *testing.T) {
	testkit.NoLeaks(t)
	s := testkit.StartTarantool(t, pythonSetup)
	c, ctx := connect(t, tarantool.Options{Addr: s.Addr}), t.Context()
	must(t, c.Do(ctx, nil, tarantool.Execute("CREATE TABLE books (id INTEGER PRIMARY KEY AUTOINCREMENT, title STRING, price DOUBLE)")))
	must(t, c.Do(ctx, nil, tarantool.Insert("values", []any{"one"})))
	var steps []testkit.PythonStep
	for _, f := range []struct {
		python string
		ours   tarantool.Request
		code   iproto.ErrorCode
	}{
		{"c.call('fails')", tarantool.Call("fails"), 5000},
		{"c.call('nothing')", tarantool.Call("nothing"), iproto.CodeNoSuchProcedure},
		{"c.insert('values', ['one'])", tarantool.Insert("values", []any{"one"}), iproto.CodeTupleFound},
		{"c.insert('values', [1])", tarantool.Insert("values", []any{1}), iproto.CodeFieldType},
		{"c.insert('by_decimal', [1.5])", tarantool.Insert("by_decimal", []any{1.5}), iproto.CodeFieldType},
		{"c.select('by_uuid', ['x'])", tarantool.Select("by_uuid").Key(tarantool.String("x")), iproto.CodeKeyPartType},
		{"c.execute('SELECT')", tarantool.Execute("SELECT"), 0},
	} {
		err := c.Do(ctx, nil, f.ours)
		var refused *tarantool.ServerError
		if !errors.As(err, &refused) || f.code != 0 && refused.Code != f.code {
			t.Fatalf("%s: %v, want code %d", f.python, err, f.code)
		}
		steps = append(steps, testkit.PythonStep{Do: f.python, Want: fmt.Sprintf("('error', %d, %q)", refused.Code, refused.Message)})
	}
	must(t, c.Do(ctx, nil, tarantool.Execute("INSERT INTO books VALUES (NULL, ?, ?)", "ours", 1.5)))
	steps = append(steps,
		testkit.PythonStep{Do: "c.execute('SELECT * FROM books WHERE title = :t', {'t': 'ours'})", Want: "[[1, 'ours', 1.5]]"},
		testkit.PythonStep{Do: "c.execute('INSERT INTO books VALUES (NULL, ?, ?), (NULL, NULL, NULL)', ['theirs', 2.5]).autoincrement_ids", Want: "[2, 3]"},
	)
	testkit.PythonTarantool(t, pythonScript, s.Addr, "ann", "secret", steps)
	var rows [][]any
	must(t, c.Do(ctx, &rows, tarantool.Execute("SELECT * FROM books WHERE id >= ? ORDER BY id", 2)))
	if fmt.Sprint(rows) != "[[2 theirs 2.5] [3 <nil> <nil>]]" {
		t.Error(rows)
	}
}
