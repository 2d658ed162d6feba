package testpkg

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cloudwego/gopkg/bufiox"
	"github.com/cloudwego/kitex/pkg/generic"
	"github.com/cloudwego/kitex/pkg/generic/descriptor"
	kitex "github.com/cloudwego/kitex/pkg/generic/thrift"
	"github.com/slipstream-go/slipstream/thrift"
)

// call is a function that has a struct as its only argument and its result.
type call struct {
	name   string
	args   func() argsStruct
	result func() resultStruct
}

type argsStruct interface {
	thrift.CompactStruct
	GetFirstArgument() any
}

type resultStruct interface {
	thrift.CompactStruct
	SetSuccess(any)
}

type jsonStruct interface {
	thrift.Struct
	thrift.JSONStruct
}

// unions is for fill_test.go.
var unions = make(map[reflect.Type]bool)

func (c call) value() jsonStruct {
	v := reflect.New(reflect.TypeOf(c.args()).Elem().Field(0).Type.Elem())
	v.Interface().(interface{ InitDefault() }).InitDefault()
	noteUnions(v.Type().Elem())
	return v.Interface().(jsonStruct)
}

// noteUnions records which of the structs in a type are unions.
func noteUnions(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		noteUnions(t.Elem())
	case reflect.Struct:
		if _, done := unions[t]; done {
			return
		}
		_, unions[t] = reflect.PointerTo(t).MethodByName("CountSetFields" + t.Name())
		for i := range t.NumField() {
			noteUnions(t.Field(i).Type)
		}
	}
}

func service(t *testing.T) *descriptor.ServiceDescriptor {
	t.Helper()
	p, err := generic.NewThriftFileProvider("../idl/calls.thrift", "../idl")
	if err != nil {
		t.Fatal(err)
	}
	return <-p.Provide()
}

// forCalls calls f with the zero value and other values of all structs.
func forCalls(t *testing.T, f func(t *testing.T, c call, v jsonStruct, rnd *rand.Rand)) {
	for _, c := range calls {
		v := c.value()
		t.Run(reflect.TypeOf(v).Elem().Name(), func(t *testing.T) {
			for seed := range uint64(12) {
				v, rnd := c.value(), rand.New(rand.NewPCG(seed, 3))
				if seed == 0 {
					reflect.ValueOf(v).Elem().SetZero()
				} else {
					(&filler{Rand: rnd, utf8: true}).fill(reflect.ValueOf(v).Elem())
				}
				f(t, c, v, rnd)
			}
		})
	}
}

// theirJSON returns the JSON that Kitex writes for a result.
func theirJSON(svc *descriptor.ServiceDescriptor, c call, v any) (string, error) {
	result := c.result()
	result.SetSuccess(v)
	text, err := kitex.NewReadJSON(svc).Read(context.Background(), c.name, true, 0, bufiox.NewBytesReader(result.AppendThrift(nil)))
	s, _ := text.(string)
	return s, err
}

// isIncomplete reports whether a struct was sent without its required fields.
func isIncomplete(err error) bool { return err != nil && strings.Contains(err.Error(), "required") }

func TestOurJSONIsThatOfKitex(t *testing.T) {
	svc, compared := service(t), 0
	forCalls(t, func(t *testing.T, c call, v jsonStruct, _ *rand.Rand) {
		theirs, err := theirJSON(svc, c, v)
		if isIncomplete(err) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		ours, err := v.AppendJSON(nil, thrift.JSON{})
		if err != nil {
			t.Fatal(err)
		}
		if what := difference("", parse(t, ours), parse(t, []byte(theirs))); what != "" {
			t.Fatalf("%s\nours\n%s\ntheirs\n%s", what, ours, theirs)
		}
		compared++
	})
	t.Logf("%d values", compared)
}

// Documents with fewer members, and with null, are read as Kitex reads them.
func TestJSONIsReadAsByKitex(t *testing.T) {
	svc, compared := service(t), 0
	forCalls(t, func(t *testing.T, c call, v jsonStruct, rnd *rand.Rand) {
		theirs, err := theirJSON(svc, c, v)
		if isIncomplete(err) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		document := parse(t, []byte(theirs))
		if rnd.IntN(3) > 0 {
			thin(document, rnd, true)
		}
		text, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		var wire []byte
		w := bufiox.NewBytesWriter(&wire)
		if err := kitex.NewWriteJSON(svc).Write(context.Background(), w, string(text), c.name, true, nil); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		args := c.args()
		if err := thrift.Unmarshal(wire, args); err != nil {
			return // a union without a field, or a struct without its required fields
		}
		got := c.value()
		if err := got.ReadJSON(new(thrift.Reader), text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		want := args.GetFirstArgument().(thrift.Struct).AppendThrift(nil)
		if have := got.AppendThrift(nil); !bytes.Equal(have, want) {
			t.Fatalf("%s\nours\n%+v\ntheirs\n%+v", text, got, args.GetFirstArgument())
		}
		compared++
	})
	t.Logf("%d documents", compared)
}

// thin removes members of objects. Those of a struct may also become null.
func thin(v any, rnd *rand.Rand, isStruct bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			thin(e, rnd, false)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			switch {
			case rnd.IntN(4) == 0:
				delete(v, k)
			case isStruct && rnd.IntN(4) == 0:
				v[k] = nil
			default:
				thin(v[k], rnd, false)
			}
		}
	}
}

func parse(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return v
}

// difference returns where two documents differ, or an empty string.
func difference(at string, x, y any) string {
	switch x := x.(type) {
	case map[string]any:
		y, ok := y.(map[string]any)
		if !ok || len(x) != len(y) {
			return at + ": members differ"
		}
		for k := range x {
			if d := difference(at+"."+k, x[k], y[k]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		y, ok := y.([]any)
		if !ok || len(x) != len(y) {
			return at + ": elements differ"
		}
		for i := range x {
			if d := difference(at+"["+strconv.Itoa(i)+"]", x[i], y[i]); d != "" {
				return d
			}
		}
		return ""
	case json.Number:
		if y, ok := y.(json.Number); ok && x != y && strings.ContainsAny(string(x+y), ".eE") {
			v, _ := x.Float64()
			if w, _ := y.Float64(); v == w {
				return ""
			}
		}
	}
	if x != y {
		return at + ": values differ"
	}
	return ""
}
