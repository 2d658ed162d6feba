package testpkg

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/generic"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/b"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/constants"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/docs"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/ids"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/names"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shared"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shop"
)

// declared is a struct in the IDL and its Go type.
type declared struct {
	name  string
	idl   *idl.Struct
	fresh func() thrift.CompactStruct
}

// allDeclared returns all structs.
func allDeclared(t testing.TB) (all []declared) {
	paths, err := filepath.Glob("../../gen/testdata/idl/*.thrift")
	if err != nil {
		t.Fatal(err)
	}
	program, err := idl.Load(idl.Config{}, paths...)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range program.Files {
		list := map[string][]func() (thrift.CompactStruct, bool){
			"shop": shop.StructsOfShop, "types": shop.StructsOfTypes, "names": names.StructsOfNames, "shared": shared.StructsOfShared,
			"b": b.StructsOfB, "constants": constants.StructsOfConstants, "ids": ids.StructsOfIDs, "docs": docs.StructsOfDocs,
		}[f.Name]
		for _, d := range f.Decls {
			s, ok := d.(*idl.Struct)
			if !ok || len(list) == 0 {
				continue
			}
			create := list[0]
			list = list[1:]
			all = append(all, declared{f.Name + "." + s.Name, s, func() thrift.CompactStruct {
				v, _ := create()
				v.(interface{ Reset() }).Reset()
				return v
			}})
		}
	}
	if len(all) < 30 {
		t.Fatalf("only %d structs", len(all))
	}
	return all
}

// codecs holds the codecs for the protocols in encodings.
var codecs = map[string]generic.Codec{"binary": {}, "compact": {Compact: true}}

// A generic codec writes the same bytes and the same JSON for a struct as generated code, and reads
// both back to the same struct.
func TestGenericCodecAgreesWithGeneratedCode(t *testing.T) {
	for _, d := range allDeclared(t) {
		for seed := range uint64(10) {
			f := &filler{Rand: rand.New(rand.NewPCG(seed, 1)), sparse: seed%5 == 4}
			s := d.fresh()
			f.fill(reflect.ValueOf(s).Elem())
			for _, e := range encodings {
				c := codecs[e.name]
				in := e.encode(s)
				v, n, err := c.Read(in, 0, d.idl)
				if err != nil || n != len(in) {
					t.Fatalf("%s, %s: %d of %d, %v\n%x", d.name, e.name, n, len(in), err, in)
				}
				if out, err := c.Append(nil, d.idl, v); err != nil || !bytes.Equal(out, in) {
					t.Fatalf("%s, %s: %v\n%x, want\n%x", d.name, e.name, err, out, in)
				}
				sameJSON(t, d, c, e, s, v)
			}
		}
	}
}

func sameJSON(t *testing.T, d declared, c generic.Codec, e encoding, s thrift.CompactStruct, v map[string]any) {
	t.Helper()
	for _, c.JSON.I64Strings = range []bool{false, true} {
		want, err := s.(thrift.JSONStruct).AppendJSON(nil, thrift.JSON{SortedKeys: true, I64Strings: c.JSON.I64Strings})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.AppendJSON(nil, d.idl, v)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s: %v\n%s, want\n%s", d.name, err, got, want)
		}
		back, err := c.FromJSON(want, d.idl)
		if err != nil {
			t.Fatalf("%s: %v\n%s", d.name, err, want)
		}
		into := d.fresh()
		if err := into.(thrift.JSONStruct).ReadJSON(new(thrift.Reader), want); err != nil {
			t.Fatalf("%s: %v\n%s", d.name, err, want)
		}
		if out, err := c.Append(nil, d.idl, back); err != nil || !bytes.Equal(out, e.encode(into)) {
			t.Fatalf("%s, read from JSON: %v\n%x, want\n%x", d.name, err, out, e.encode(into))
		}
	}
}

// Missing fields get the same values as in generated code, and the same fields are required.
func TestGenericCodecHasTheDefaultsOfGeneratedCode(t *testing.T) {
	for _, d := range allDeclared(t) {
		for _, e := range encodings {
			into := d.fresh()
			_, want := e.decode(new(thrift.Reader), []byte{0}, into)
			c := codecs[e.name]
			v, _, err := c.Read([]byte{0}, 0, d.idl)
			if (err == nil) != (want == nil) {
				t.Fatalf("%s, %s: %v, want %v", d.name, e.name, err, want)
			}
			if err == nil {
				if out, err := c.Append(nil, d.idl, v); err != nil || !bytes.Equal(out, e.encode(into)) {
					t.Fatalf("%s, %s: %v\n%x, want\n%x", d.name, e.name, err, out, e.encode(into))
				}
				sameJSON(t, d, c, e, into, v)
			}
		}
	}
}

// Generic codecs and generated code reject the same input.
func TestGenericCodecRefusesWhatGeneratedCodeRefuses(t *testing.T) {
	for _, d := range allDeclared(t) {
		for seed := range uint64(4) {
			f := &filler{Rand: rand.New(rand.NewPCG(seed, 2)), single: true}
			s := d.fresh()
			f.fill(reflect.ValueOf(s).Elem())
			for _, e := range encodings {
				whole := e.encode(s)
				for range 60 {
					in := bytes.Clone(whole)[:f.IntN(len(whole)+1)]
					for range f.IntN(3) {
						if len(in) > 0 {
							in[f.IntN(len(in))] = byte(f.IntN(20))
						}
					}
					_, want := e.decode(new(thrift.Reader), in, d.fresh())
					c := codecs[e.name]
					v, _, err := c.Read(in, 0, d.idl)
					if !sameVerdict(err, want) {
						t.Fatalf("%s, %s: %v, want %v\n%x", d.name, e.name, err, want, in)
					}
					if err == nil && d.idl.Kind != idl.Union { // a union may have an unknown field
						if _, err := c.Append(nil, d.idl, v); err != nil && !hasUnion(d.idl, map[*idl.Struct]bool{}) {
							t.Fatalf("%s, %s: writing the value that was read: %v\n%x", d.name, e.name, err, in)
						}
					}
				}
			}
		}
	}
}

// sameVerdict reports whether both or neither reject a message. The generated code keeps unknown
// fields, so it also rejects unknown numbers that do not fit into their type. Generic values need
// more memory.
func sameVerdict(generic, generated error) bool {
	if bad, ok := errors.AsType[*thrift.Error](generic); ok && bad.Code == thrift.CodeMemory {
		return true
	}
	if bad, ok := errors.AsType[*thrift.Error](generated); ok && bad.Code == thrift.CodeNumber && generic == nil {
		return true
	}
	return (generic == nil) == (generated == nil)
}

// hasUnion reports whether a struct may contain a union.
func hasUnion(s *idl.Struct, seen map[*idl.Struct]bool) bool {
	if s.Kind == idl.Union {
		return true
	}
	if seen[s] {
		return false
	}
	seen[s] = true
	var inType func(t *idl.Type) bool
	inType = func(t *idl.Type) bool {
		t = t.True()
		if in := t.Struct(); in != nil {
			return hasUnion(in, seen)
		}
		return t.Key != nil && inType(t.Key) || t.Elem != nil && inType(t.Elem)
	}
	for _, f := range s.Fields {
		if inType(f.Type) {
			return true
		}
	}
	return false
}

// Decoding never panics and accepts the same input as generated code, and a value is unchanged
// after it is written and read again.
func FuzzGenericCodec(f *testing.F) {
	all := allDeclared(f)
	fill := &filler{Rand: rand.New(rand.NewPCG(1, 2))}
	for i, d := range all {
		s := filled(d.fresh, fill)
		f.Add(uint8(i), false, s.AppendThrift(nil))
		f.Add(uint8(i), true, s.AppendCompact(nil))
	}
	f.Fuzz(func(t *testing.T, i uint8, compact bool, in []byte) {
		d := all[int(i)%len(all)]
		e := encodings[0]
		if compact {
			e = encodings[1]
		}
		c := codecs[e.name]
		_, want := e.decode(new(thrift.Reader), in, d.fresh())
		v, _, err := c.Read(in, 0, d.idl)
		if !sameVerdict(err, want) {
			t.Fatalf("%s, %s: %v, want %v", d.name, e.name, err, want)
		}
		if err != nil {
			return
		}
		out, err := c.Append(nil, d.idl, v)
		if err != nil {
			if !hasUnion(d.idl, map[*idl.Struct]bool{}) {
				t.Fatalf("%s: writing the value that was read: %v", d.name, err)
			}
			return
		}
		back, n, err := c.Read(out, 0, d.idl)
		if err != nil || n != len(out) {
			t.Fatalf("%s: %d of %d, %v", d.name, n, len(out), err)
		}
		if again, err := c.Append(nil, d.idl, back); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%s: %v\n%x, want\n%x", d.name, err, again, out)
		}
		text, err := c.AppendJSON(nil, d.idl, v)
		if err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
		if _, err := c.FromJSON(text, d.idl); err != nil {
			t.Fatalf("%s: %v\n%s", d.name, err, text)
		}
	})
}
