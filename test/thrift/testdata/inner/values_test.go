package testpkg

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/slipstream-go/slipstream/test/thrift/walk"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

// A one is a struct of the IDL together with its Go type.
type one struct {
	name  string
	idl   *idl.Struct
	fresh func() thrift.CompactStruct
}

var unions = make(map[reflect.Type]bool)

// all returns all structs.
func all(t testing.TB) []one {
	t.Helper()
	names, err := filepath.Glob("../idl/*.thrift")
	if err != nil {
		t.Fatal(err)
	}
	program, err := idl.Load(idl.Config{NegativeIDs: true}, names...)
	if err != nil {
		t.Fatal(err)
	}
	fresh := make(map[string]func() thrift.CompactStruct)
	for _, m := range made {
		maps.Copy(fresh, m)
	}
	var list []one
	for _, f := range program.Files {
		for _, d := range f.Decls {
			if s, ok := d.(*idl.Struct); ok {
				name := f.Name + "." + s.Name
				list = append(list, one{name, s, fresh[name]})
				unions[reflect.TypeOf(fresh[name]()).Elem()] = s.Kind == idl.Union
			}
		}
	}
	if len(list) < 20 {
		t.Fatalf("only %d structs", len(list))
	}
	return list
}

// random returns a random value. Every second one has a defined order, and every fifth one has no
// optional scalars.
func (o one) random(seed uint64) (s thrift.CompactStruct, ordered bool) {
	return o.randomText(seed, false)
}

// randomText is like random, but if text is true, binaries are valid UTF-8.
func (o one) randomText(seed uint64, text bool) (s thrift.CompactStruct, ordered bool) {
	f := &filler{Rand: rand.New(rand.NewPCG(seed, 1)), sparse: seed%5 == 4, single: seed%2 == 0, utf8: true}
	s = o.fresh()
	f.fill(reflect.ValueOf(s).Elem())
	(&walk.Adapter{Rand: f.Rand, Single: f.single, Text: text}).Struct(reflect.ValueOf(s), o.idl)
	return s, f.single
}

func (o one) dump(s thrift.CompactStruct, v walk.View) string {
	return v.Dump(reflect.ValueOf(s), o.idl)
}

// protocol is one of our protocols.
type protocol struct {
	name   string
	encode func(s thrift.CompactStruct) []byte
	decode func(r *thrift.Reader, b []byte, s thrift.CompactStruct) (int, error)
}

var protocols = []protocol{
	{"binary", func(s thrift.CompactStruct) []byte { return s.AppendThrift(nil) },
		func(r *thrift.Reader, b []byte, s thrift.CompactStruct) (int, error) { return r.Read(b, 0, s) }},
	{"compact", func(s thrift.CompactStruct) []byte { return s.AppendCompact(nil) },
		func(r *thrift.Reader, b []byte, s thrift.CompactStruct) (int, error) { return r.ReadCompact(b, 0, s) }},
}
