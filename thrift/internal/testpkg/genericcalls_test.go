package testpkg

import (
	"bytes"
	"context"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// mirror is a caller that records the arguments of a call and returns a result.
type mirror struct {
	encoding
	args, result []byte
}

func (m *mirror) Call(_ context.Context, in rpc.Invocation) error {
	m.args = m.encode(in.Args.(thrift.CompactStruct))
	_, err := m.decode(new(thrift.Reader), m.result, in.Result.(thrift.CompactStruct))
	return err
}

// inField returns the encoding of a struct that has s in a field, in a protocol.
func inField(e encoding, id uint16, s thrift.CompactStruct) []byte {
	if e.name == "compact" {
		return append(append(thrift.AppendCompactHead(nil, thrift.CompactTypeStruct, id, 0), e.encode(s)...), thrift.TypeStop)
	}
	return append(append([]byte{thrift.TypeStruct, byte(id >> 8), byte(id)}, e.encode(s)...), thrift.TypeStop)
}

// A call with JSON sends the same bytes as generated code for the same JSON, and returns the same
// JSON as generated code for the received value. This is checked for all structs, as arguments,
// results and exceptions.
func TestGenericCallsAgreeWithGeneratedCode(t *testing.T) {
	for _, d := range allDeclared(t) {
		of := &idl.Type{Kind: idl.Named, Name: d.idl.Name, Decl: d.idl}
		service := &idl.Service{Node: idl.Node{Name: "S"}, File: d.idl.File}
		field := func(name string, id int16) *idl.Field {
			return &idl.Field{Node: idl.Node{Name: name}, ID: id, Type: of}
		}
		service.Functions = []*idl.Function{{Node: idl.Node{Name: "f"}, Service: service, Result: of, Args: []*idl.Field{field("value", 1)}, Throws: []*idl.Field{field("thrown", 2)}}}
		for seed := range uint64(5) {
			fill := &filler{Rand: rand.New(rand.NewPCG(seed, 3)), sparse: seed%5 == 4}
			s := d.fresh()
			fill.fill(reflect.ValueOf(s).Elem())
			text, err := s.(thrift.JSONStruct).AppendJSON(nil, thrift.JSON{SortedKeys: true})
			if err != nil {
				t.Fatal(err)
			}
			into := d.fresh()
			if err := into.(thrift.JSONStruct).ReadJSON(new(thrift.Reader), text); err != nil {
				t.Fatal(err)
			}
			for _, e := range encodings {
				m := &mirror{encoding: e, result: inField(e, 0, s)}
				c, err := genericrpc.NewClient(m, service, genericrpc.Config{Compact: e.name == "compact"})
				if err != nil {
					t.Fatal(err)
				}
				got, err := c.Call(t.Context(), "f", append(append([]byte(`{"value":`), text...), '}'))
				if err != nil || !bytes.Equal(got, text) {
					t.Fatalf("%s, %s: %v\n%s, want\n%s", d.name, e.name, err, got, text)
				}
				if want := inField(e, 1, into); !bytes.Equal(m.args, want) {
					t.Fatalf("%s, %s: sent\n%x, want\n%x", d.name, e.name, m.args, want)
				}
				m.result = inField(e, 2, s)
				_, err = c.Call(t.Context(), "f", []byte("{}"))
				if thrown, ok := err.(*genericrpc.Exception); !ok || !bytes.Equal(thrown.JSON, text) {
					t.Fatalf("%s, %s: %v, want the exception\n%s", d.name, e.name, err, text)
				}
			}
		}
	}
}
