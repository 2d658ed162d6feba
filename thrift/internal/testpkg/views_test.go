package testpkg

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/b"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/constants"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/docs"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/ids"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/names"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shared"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shop"
)

// These tests are also run with other options, including setters. They call getters and setters by
// reflection.

// view is implemented by all views.
type view interface {
	thrift.Struct
	OpenThrift(b []byte) error
}

// viewOf holds constructors of views, by the type of the struct.
var viewOf = func() map[reflect.Type]func() view {
	all := make(map[reflect.Type]func() view)
	for _, list := range [][]func() thrift.Struct{
		shop.ListOfViewsShop, shop.ListOfViewsTypes, names.ListOfViewsNames, shared.ListOfViewsShared, b.ListOfViewsB,
		constants.ListOfViewsConstants, ids.ListOfViewsIDs, docs.ListOfViewsDocs,
	} {
		for _, make := range list {
			t, _ := reflect.TypeOf(make()).MethodByName("DecodeThrift")
			all[t.Type.In(2).Elem()] = func() view { return make().(view) }
		}
	}
	return all
}()

// newView returns the view of a struct.
func newView(s thrift.Struct) view { return viewOf[reflect.TypeOf(s).Elem()]() }

// method returns the method of a view with the given number of parameters. If the name is in use,
// the method has an underscore.
func method(v reflect.Value, name string, params int) reflect.Value {
	for range 2 {
		if m := v.MethodByName(name); m.IsValid() && m.Type().NumIn() == params {
			return m
		}
		name += "_"
	}
	return reflect.Value{}
}

// getterOf returns the getter of a field.
func getterOf(v reflect.Value, field string) reflect.Value {
	m := method(v, field, 0)
	if !m.IsValid() {
		panic(fmt.Sprintf("%v has no getter of %s", v.Type(), field))
	}
	return m
}

// read sets the struct to to the results of the getters of a view.
func read(v, to reflect.Value) {
	for i := range to.NumField() {
		field := to.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		out := getterOf(v, field.Name).Call(nil)
		if len(out) == 1 || out[1].Bool() {
			convert(out[0], to.Field(i))
		}
	}
}

// convert sets a value to one that a view returned.
func convert(from, to reflect.Value) {
	if from.Type() == to.Type() {
		to.Set(from)
		return
	}
	if to.Kind() == reflect.Pointer {
		if isOpt(from.Type()) {
			if !from.Field(1).Bool() {
				return
			}
			from = from.Field(0)
		}
		to.Set(reflect.New(to.Type().Elem()))
		convert(from, to.Elem())
		return
	}
	if viewOf[to.Type()] != nil {
		v := reflect.New(from.Type())
		v.Elem().Set(from)
		read(v, to)
		return
	}
	if present := from.MethodByName("Present").Call(nil)[0].Bool(); !present {
		return
	}
	switch all := from.MethodByName("All"); {
	case from.MethodByName("AppendTo").IsValid():
		to.Set(from.MethodByName("AppendTo").Call([]reflect.Value{reflect.MakeSlice(to.Type(), 0, 0)})[0])
	case to.Kind() == reflect.Map:
		to.Set(reflect.MakeMap(to.Type()))
		for k, e := range all.Call(nil)[0].Seq2() {
			key, elem := reflect.New(to.Type().Key()).Elem(), reflect.New(to.Type().Elem()).Elem()
			convert(k, key)
			convert(e, elem)
			to.SetMapIndex(key, elem)
		}
	default:
		to.Set(reflect.MakeSlice(to.Type(), 0, 0))
		for k, e := range all.Call(nil)[0].Seq2() {
			elem := reflect.New(to.Type().Elem()).Elem()
			if elem.Kind() == reflect.Struct && elem.NumField() == 2 && elem.Type().Field(0).Name == "Key" && viewOf[elem.Type()] == nil {
				convert(k, elem.Field(0))
				convert(e, elem.Field(1))
			} else {
				convert(e, elem)
			}
			to.Set(reflect.Append(to, elem))
		}
	}
}

// checkView checks that the getters of a view return the values of a struct.
func checkView(t *testing.T, v view, want thrift.CompactStruct, fresh func() thrift.CompactStruct) {
	t.Helper()
	got := fresh()
	reflect.ValueOf(got).Elem().SetZero()
	read(reflect.ValueOf(v), reflect.ValueOf(got).Elem())
	if !same(got, want) {
		t.Fatalf("the getters return\n%+v, want\n%+v", got, want)
	}
}

func TestViewsEqualStructs(t *testing.T) {
	forAll(t, func(t *testing.T, fresh func() thrift.CompactStruct, f *filler) {
		s := filled(fresh, f)
		b := s.AppendThrift(nil)
		v := newView(s)
		if err := v.OpenThrift(b); err != nil {
			t.Fatalf("%v\n%x", err, b)
		}
		if out := v.AppendThrift(nil); !bytes.Equal(out, b) || v.SizeThrift() != len(b) {
			t.Fatalf("encoded as\n%x, want\n%x", out, b)
		}
		decoded := fresh()
		result := reflect.ValueOf(v).MethodByName("DecodeThrift").Call([]reflect.Value{reflect.ValueOf(new(thrift.Reader)), reflect.ValueOf(decoded)})
		if !result[0].IsNil() || !same(decoded, s) {
			t.Fatalf("decoded %v\n%+v, want\n%+v", result[0], decoded, s)
		}
		checkView(t, v, s, fresh)
	})
}

// Fields can be in any order.
func TestViewsOfOtherOrdersEqualStructs(t *testing.T) {
	forAll(t, func(t *testing.T, fresh func() thrift.CompactStruct, f *filler) {
		s := filled(fresh, f)
		v := newView(s)
		if err := v.OpenThrift(shuffled(f.Rand, s.AppendThrift(nil))); err != nil {
			t.Fatal(err)
		}
		checkView(t, v, s, fresh)
	})
}

// shuffled returns a struct with its fields in another order.
func shuffled(r *rand.Rand, b []byte) []byte {
	fields := fieldsOf(b)
	r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	return append(bytes.Join(fields, nil), thrift.TypeStop)
}

// Absent fields have their defaults, except for structs and containers.
func TestAbsentFieldsOfViewsHaveDefaults(t *testing.T) {
	for name, fresh := range structs {
		s := fresh()
		if unions[reflect.TypeOf(s).Elem()] {
			continue
		}
		v := newView(s)
		want := fresh()
		err := v.OpenThrift([]byte{thrift.TypeStop})
		want.(interface{ Reset() }).Reset()
		if _, wantErr := new(thrift.Reader).Read([]byte{thrift.TypeStop}, 0, want); (err != nil) != (wantErr != nil) {
			t.Errorf("%s: %v, want %v", name, err, wantErr)
		}
		if err != nil {
			continue
		}
		got := fresh()
		reflect.ValueOf(got).Elem().SetZero()
		read(reflect.ValueOf(v), reflect.ValueOf(got).Elem())
		for i := range reflect.TypeOf(s).Elem().NumField() {
			g, w := reflect.ValueOf(got).Elem().Field(i), reflect.ValueOf(want).Elem().Field(i)
			if !g.CanSet() {
				continue
			}
			isBytes := g.Kind() == reflect.Slice && g.Type().Elem().Kind() == reflect.Uint8
			if g.Kind() == reflect.Pointer || g.Kind() == reflect.Map || g.Kind() == reflect.Slice && !isBytes {
				if !g.IsZero() {
					t.Errorf("%s: %s is %v", name, reflect.TypeOf(s).Elem().Field(i).Name, g)
				}
				continue
			}
			if isBytes && bytes.Equal(g.Bytes(), w.Bytes()) {
				continue
			}
			if !reflect.DeepEqual(g.Interface(), w.Interface()) {
				t.Errorf("%s: %s is %v, want %v", name, reflect.TypeOf(s).Elem().Field(i).Name, g, w)
			}
		}
	}
}

// A view accepts what ReadThrift accepts.
func TestViewsOfDamagedInput(t *testing.T) {
	forAll(t, func(t *testing.T, fresh func() thrift.CompactStruct, f *filler) {
		s := filled(fresh, f)
		b := s.AppendThrift(nil)
		for range 5 {
			damaged := bytes.Clone(b)
			for range 1 + f.IntN(3) {
				damaged[f.IntN(len(b))] = byte(f.IntN(256))
			}
			if f.IntN(4) == 0 {
				damaged = damaged[:f.IntN(len(b))]
			}
			v := newView(s)
			err := v.OpenThrift(damaged)
			if _, wantErr := (&thrift.Reader{MaxMemory: 1 << 30}).Read(damaged, 0, fresh()); (err != nil) != (wantErr != nil) {
				t.Fatalf("%v, want %v\n%x", err, wantErr, damaged)
			}
			read(reflect.ValueOf(v), reflect.ValueOf(fresh()).Elem())
		}
	})
}

// The field of a union may be one that it does not declare.
func TestViewsOfUnionsWithUnknownFields(t *testing.T) {
	unknown := []byte{thrift.TypeBool, 0x7a, 0x7b, 1}
	for name, fresh := range structs {
		s := fresh()
		if !unions[reflect.TypeOf(s).Elem()] {
			continue
		}
		known := filled(fresh, &filler{Rand: rand.New(rand.NewPCG(1, 1))}).AppendThrift(nil)
		for _, b := range [][]byte{append(bytes.Clone(unknown), thrift.TypeStop), append(bytes.Clone(unknown), known...)} {
			err := newView(s).OpenThrift(b)
			if _, wantErr := new(thrift.Reader).Read(b, 0, fresh()); (err != nil) != (wantErr != nil) {
				t.Errorf("%s: %v, want %v\n%x", name, err, wantErr, b)
			}
		}
	}
}

// Getters return and encoding writes what setters set. Fields that the struct does not declare stay.
func TestSettersOfViews(t *testing.T) {
	unknown := []byte{thrift.TypeString, 0x7a, 0x7b, 0, 0, 0, 2, 'o', 'k'}
	forAll(t, func(t *testing.T, fresh func() thrift.CompactStruct, f *filler) {
		s := filled(fresh, f)
		f.sparse = f.IntN(2) == 0
		other := filled(fresh, f)
		to, from := reflect.ValueOf(s).Elem(), reflect.ValueOf(other).Elem()
		b := s.AppendThrift(nil)
		if !unions[to.Type()] {
			b = append(append(b[:len(b)-1], unknown...), thrift.TypeStop)
		}
		v := newView(s)
		if err := v.OpenThrift(b); err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Perm(to.NumField()) {
			field := to.Type().Field(i)
			if !field.IsExported() || !unions[to.Type()] && f.IntN(2) == 0 {
				continue
			}
			set := method(reflect.ValueOf(v), "Set"+field.Name, 1)
			if !set.IsValid() {
				set = method(reflect.ValueOf(v), "Set"+field.Name+"_", 1)
			}
			if !set.IsValid() {
				t.Skip("there are no setters")
			}
			set.Call([]reflect.Value{from.Field(i)})
			to.Field(i).Set(from.Field(i))
		}
		checkView(t, v, s, fresh)
		out := v.AppendThrift(nil)
		if len(out) != v.SizeThrift() || bytes.Contains(out, unknown) == unions[to.Type()] {
			t.Fatalf("the size is %d\n%x", v.SizeThrift(), out)
		}
		again := newView(s)
		if err := again.OpenThrift(out); err != nil {
			t.Fatal(err)
		}
		checkView(t, again, s, fresh)
	})
}
