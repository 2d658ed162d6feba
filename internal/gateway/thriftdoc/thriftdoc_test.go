package thriftdoc

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift/generic"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

func columns(names ...string) (all []resource.Field) {
	types := map[string]resource.Field{
		"bool":    {Type: resource.JSONBoolean},
		"int32":   {Type: resource.JSONInteger, Format: "int32", SQL: "integer"},
		"int64":   {Type: resource.JSONInteger, Format: "int64"},
		"double":  {Type: resource.JSONNumber, Format: "double", Also: []resource.JSONType{resource.JSONString}, Enum: resource.NotNumbers()},
		"numeric": {Type: resource.JSONNumber, Format: "double", Exact: true, SQL: "numeric(10,2)"},
		"text":    {Type: resource.JSONString},
		"json":    {},
		"array":   {Type: resource.JSONArray, Items: &resource.Field{Type: resource.JSONString}},
	}
	for _, n := range names {
		name, kind, _ := strings.Cut(n, ":")
		f := types[kind]
		f.Name = name
		all = append(all, f)
	}
	return all
}

func shape() *resource.Shape {
	inner := &resource.Shape{Fields: columns("empno:int32", "name:text", "note:text")}
	s := &resource.Shape{Fields: columns("id:int64", "small:int32", "ok:bool", "ratio:double", "price:numeric", "title:text", "any:json", "tags:array", "first name:text", "class:text", "unserved:text")}
	s.Fields = append(s.Fields, resource.Field{Name: "emps", Type: resource.JSONArray, Children: inner})
	return s
}

func ids(pairs ...any) (f resource.FieldIDs) {
	for i := 0; i < len(pairs); i += 2 {
		f.Fields = append(f.Fields, resource.FieldID{Name: pairs[i].(string), ID: pairs[i+1].(int)})
	}
	return f
}

func numbered() *resource.FieldIDs {
	f := ids("id", 1, "small", 7, "ok", 3, "ratio", 4, "price", 5, "title", 6, "any", 300, "tags", 8, "first name", 9, "class", 10, "emps", 11, "former", 2)
	f.Children = []resource.ChildFieldIDs{{Name: "emps", FieldIDs: ids("empno", 1, "name", 2)}}
	return &f
}

// decoded returns the struct of a document as JSON, read by the printed IDL.
func decoded(t *testing.T, l *Layout, document string) string {
	t.Helper()
	b, err := l.Append([]byte("x"), []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	text := IDL([]Resource{{Name: "depts", Layout: l, Key: "{id}"}})
	program, err := idl.Load(idl.Config{ReadFile: func(string) ([]byte, error) { return text, nil }}, "x.thrift")
	if err != nil {
		t.Fatal(err)
	}
	if len(program.Warnings) > 0 {
		t.Errorf("warnings: %v", program.Warnings)
	}
	s := program.Roots[0].Type("Depts").(*idl.Struct)
	v, next, err := generic.Codec{}.Read(b, 1, s)
	if err != nil || next != len(b) {
		t.Fatalf("%v after %d of %d bytes: %q", err, next, len(b), b)
	}
	out, err := generic.Codec{}.AppendJSON(nil, s, v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestAppend: what a client decodes by the printed IDL is the document, by the names of its fields.
func TestAppend(t *testing.T) {
	l := New(shape(), numbered())
	for _, row := range []struct{ document, want string }{
		{`{}`, `{}`},
		{`{"id":null,"emps":null,"unserved":"x","other":[{"id":[1,"]"]}]}`, `{}`},
		{`{"id":-9223372036854775808,"small":2147483647,"ok":true,"ratio":1.5,"price":123456789012345678.90,"title":"a\"b","any":{"k": [1, "}"]},"tags":["x",null],"first name":"F","class":"c"}`,
			`{"id":-9223372036854775808,"ok":true,"ratio":1.5,"price":"123456789012345678.90","title":"a\"b","small":2147483647,"tags":"[\"x\",null]","first_name":"F","class_":"c","any":"{\"k\": [1, \"}\"]}"}`},
		{` { "emps" : [ { "empno" : 7 , "name" : "\ud83d\ude00\u00e9\n" } , { } ] , "id" : 1 } `, `{"id":1,"emps":[{"empno":7,"name":"\U0001F600é\n"},{}]}`},
		{`{"price":"NaN","ratio":-0.0,"title":17,"any":"text"}`, `{"ratio":-0,"price":"NaN","title":"17","any":"\"text\""}`},
		{`{"t\u0069tle":"escaped name","title\ud800":1,"ok":false}`, `{"ok":false,"title":"escaped name"}`},
		{`{"emps":[]}`, `{"emps":[]}`},
	} {
		want := strings.ReplaceAll(row.want, `\U0001F600`, "\U0001F600")
		if got := decoded(t, l, row.document); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", row.document, got, want)
		}
	}
	b, err := l.Append(nil, []byte(`{"ratio":"-Infinity"}`))
	if err != nil || math.Float64frombits(binary.BigEndian.Uint64(b[3:])) != math.Inf(-1) {
		t.Errorf("-Infinity: %v, %x", err, b)
	}
}

func TestIDL(t *testing.T) {
	l := New(shape(), numbered())
	got := IDL([]Resource{{Name: "order-lines", Layout: l, Key: "{id}"}, {Name: "9lives", Key: "{a}/{b}"}, {Name: "notFound", Key: "{a}"}})
	testkit.Golden(t, "service.thrift", got)
	if want := []string{"unserved", "emps.note"}; !reflect.DeepEqual(l.Missing, want) {
		t.Errorf("without a number: %q, want %q", l.Missing, want)
	}
	if want := []string{"former"}; !reflect.DeepEqual(l.Gone, want) {
		t.Errorf("gone: %q, want %q", l.Gone, want)
	}
}

// TestAssign: numbers that exist stay, new ones are greater than all that ever were, and those of
// removed members become reserved.
func TestAssign(t *testing.T) {
	f := ids("b", 3, "gone", 9)
	f.Reserved = []int{5}
	f.Children = []resource.ChildFieldIDs{{Name: "was", FieldIDs: ids("x", 4)}}
	s := &resource.Shape{Fields: columns("a:text", "b:text", "c:text")}
	s.Fields = append(s.Fields, resource.Field{Name: "list", Children: &resource.Shape{Fields: columns("x:text")}})
	got, err := Assign(s, &f)
	if err != nil {
		t.Fatal(err)
	}
	want := ids("b", 3, "a", 10, "c", 11, "list", 12)
	want.Reserved = []int{5, 9}
	want.Children = []resource.ChildFieldIDs{{Name: "list", FieldIDs: ids("x", 1)}, {Name: "was", FieldIDs: ids("x", 4)}}
	if !got.Equal(&want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	again, err := Assign(s, &got)
	if err != nil || !again.Equal(&got) {
		t.Errorf("a second time: %v, %+v", err, again)
	}
	full := ids("b", resource.MaxFieldID)
	if _, err := Assign(s, &full); err == nil {
		t.Error("there is no number after the last one")
	}
}

func TestMismatches(t *testing.T) {
	l := New(shape(), numbered())
	for document, path := range map[string]string{
		`{"id":"x"}`: "id", `{"id":1.5}`: "id", `{"id":9223372036854775808}`: "id", `{"small":2147483648}`: "small", `{"ok":1}`: "ok",
		`{"ratio":"x"}`: "ratio", `{"title":{}}`: "title", `{"emps":{}}`: "emps", `{"emps":[{"empno":"x"}]}`: "emps.empno", `{"ratio":[1]}`: "ratio",
	} {
		b, err := l.Append([]byte("kept"), []byte(document))
		e, ok := errors.AsType[*MismatchError](err)
		if !ok || e.Path != path || string(b) != "kept" {
			t.Errorf("%s: %v, %q", document, err, b)
		}
	}
	for _, document := range []string{"", "{", "[]", `{"id":1`, `{"id":1}}`, `{"id"}`, `{"title":"x`, `{"title":"\u12"}`, `{"title":"\x"}`, `{1:2}`, `{"any":[}`, `{"emps":[1]}`, `{"emps":[{}`, `{"id":1 "ok":true}`, `{"any":]}`} {
		if b, err := l.Append(nil, []byte(document)); err == nil {
			t.Errorf("%s: %q", document, b)
		}
	}
}

// FuzzAppend: no document makes the transcoder fail, or take more than a small multiple of its size.
func FuzzAppend(f *testing.F) {
	l := New(shape(), numbered())
	for _, s := range []string{`{"id":1,"emps":[{"empno":2,"name":"\ud83d\ude00"}],"any":{"a":[1,{}]},"tags":null}`, `{"title":"\ud800"}`, `{"ratio":"NaN"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		b, err := l.Append(nil, document)
		if err == nil && len(b) > 4*len(document)+16 {
			t.Errorf("%d bytes of %d", len(b), len(document))
		}
		if json.Valid(document) && err != nil {
			if _, ok := errors.AsType[*MismatchError](err); !ok && document[0] == '{' && !strings.Contains(string(document), "emps") {
				t.Errorf("valid JSON: %v", err)
			}
		}
	})
}
