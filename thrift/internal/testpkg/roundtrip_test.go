package testpkg

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shop"
)

// encoding is one of the protocols.
type encoding struct {
	name   string
	encode func(s thrift.CompactStruct) []byte
	decode func(r *thrift.Reader, b []byte, s thrift.CompactStruct) (int, error)
}

var encodings = []encoding{
	{"binary", func(s thrift.CompactStruct) []byte { return s.AppendThrift(nil) },
		func(r *thrift.Reader, b []byte, s thrift.CompactStruct) (int, error) { return r.Read(b, 0, s) }},
	{"compact", func(s thrift.CompactStruct) []byte { return s.AppendCompact(nil) },
		func(r *thrift.Reader, b []byte, s thrift.CompactStruct) (int, error) { return r.ReadCompact(b, 0, s) }},
}

// forAll calls f for filled values of all structs.
func forAll(t *testing.T, f func(t *testing.T, fresh func() thrift.CompactStruct, fill *filler)) {
	for name, fresh := range structs {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(10) {
				f(t, fresh, &filler{Rand: rand.New(rand.NewPCG(seed, 1)), sparse: seed%5 == 4})
			}
		})
	}
}

func filled(fresh func() thrift.CompactStruct, f *filler) thrift.CompactStruct {
	s := fresh()
	f.fill(reflect.ValueOf(s).Elem())
	return s
}

func TestWhatIsReadEqualsWhatWasWritten(t *testing.T) {
	forAll(t, func(t *testing.T, fresh func() thrift.CompactStruct, f *filler) {
		s := filled(fresh, f)
		for _, e := range encodings {
			b := e.encode(s)
			got := fresh()
			if n, err := e.decode(new(thrift.Reader), b, got); err != nil || n != len(b) {
				t.Fatalf("%s: %d of %d, %v\n%x", e.name, n, len(b), err, b)
			}
			if !same(got, s) {
				t.Fatalf("%s:\n%+v, want\n%+v", e.name, got, s)
			}
		}
	})
}

func TestSizeIsExact(t *testing.T) {
	forAll(t, func(t *testing.T, fresh func() thrift.CompactStruct, f *filler) {
		s := filled(fresh, f)
		b := s.AppendThrift(nil)
		if n := s.SizeThrift(); n != len(b) {
			t.Fatalf("the size is %d, want %d: %+v", n, len(b), s)
		}
		buffer := make([]byte, len(b))
		if n := thrift.Write(buffer, s); n != len(b) || !sameLength(buffer, b) {
			t.Fatalf("Write used another buffer: %+v", s)
		}
	})
}

// sameLength reports whether b was written to the buffer, in any order of bytes, because that of maps
// may differ.
func sameLength(buffer, b []byte) bool {
	var sum, want int
	for i := range b {
		sum += int(buffer[i])
		want += int(b[i])
	}
	return sum == want
}

func TestReadingIntoOldValues(t *testing.T) {
	forAll(t, func(t *testing.T, fresh func() thrift.CompactStruct, f *filler) {
		old := filled(fresh, f)
		s := filled(fresh, f)
		for _, e := range encodings {
			if p, ok := old.(interface{ Reset() }); ok {
				p.Reset()
			} else { // A field has this name.
				old = fresh()
			}
			b := e.encode(s)
			if _, err := e.decode(new(thrift.Reader), b, old); err != nil || !same(old, s) {
				t.Fatalf("%s: %v\n%+v, want\n%+v", e.name, err, old, s)
			}
		}
	})
}

// fieldsOf returns the fields of an encoded struct, with their heads.
func fieldsOf(b []byte) (fields [][]byte) {
	for off := 0; b[off] != thrift.TypeStop; {
		next := thrift.Skip(b, off+3, b[off], thrift.MaxDepth)
		fields = append(fields, b[off:next])
		off = next
	}
	return fields
}

// If a field occurs more than once, the last value replaces the earlier ones completely.
func TestOfARepeatedFieldTheLastValueCounts(t *testing.T) {
	forAll(t, func(t *testing.T, fresh func() thrift.CompactStruct, f *filler) {
		s := filled(fresh, f)
		if unions[reflect.TypeOf(s).Elem()] {
			return
		}
		first := fieldsOf(s.AppendThrift(nil))
		f.sparse = true
		last := fieldsOf(filled(fresh, f).AppendThrift(nil))
		var once [][]byte
		for _, field := range first {
			if !slices.ContainsFunc(last, func(other []byte) bool { return bytes.Equal(other[:3], field[:3]) }) {
				once = append(once, field)
			}
		}
		read := func(fields ...[]byte) thrift.CompactStruct {
			b := append(bytes.Join(fields, nil), thrift.TypeStop)
			got := fresh()
			if _, err := (&thrift.Reader{MaxMemory: 1 << 30}).Read(b, 0, got); err != nil {
				t.Fatalf("%v\n%x", err, b)
			}
			return got
		}
		got, want := read(append(first, last...)...), read(append(once, last...)...)
		if !same(got, want) {
			t.Fatalf("%+v, want\n%+v", got, want)
		}
	})
}

func TestInputThatEndsEarlyIsAnError(t *testing.T) {
	forAll(t, func(t *testing.T, fresh func() thrift.CompactStruct, f *filler) {
		s := filled(fresh, f)
		for _, e := range encodings {
			b := e.encode(s)
			for n := 0; n < len(b); n += 1 + len(b)/50 {
				_, err := e.decode(new(thrift.Reader), b[:n], fresh())
				if _, ok := errors.AsType[*thrift.Error](err); !ok {
					t.Fatalf("%s: %d of %d bytes: %v", e.name, n, len(b), err)
				}
			}
		}
	})
}

// same reports whether two structs are equal. A nil map equals an empty one.
func same(x, y thrift.CompactStruct) bool {
	normalize(reflect.ValueOf(x))
	normalize(reflect.ValueOf(y))
	return reflect.DeepEqual(x, y)
}

// normalize sets empty maps to nil. It sets values that are not set to zero, because they may have
// defaults.
func normalize(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			normalize(v.Elem())
		}
	case reflect.Struct:
		if isOpt(v.Type()) && !v.Field(1).Bool() {
			v.SetZero()
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				normalize(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			normalize(v.Index(i))
		}
	case reflect.Map:
		if v.Len() == 0 && v.CanSet() {
			v.SetZero()
			return
		}
		for k, e := range v.Seq2() {
			value := reflect.New(e.Type()).Elem()
			value.Set(e)
			normalize(value)
			v.SetMapIndex(k, value)
		}
	}
}

// A zero struct can be written. Required structs that are nil are written without fields, so the
// result can be read unless they have required fields.
func TestZeroStructs(t *testing.T) {
	for name, fresh := range structs {
		s := fresh()
		switch s.(type) {
		case *shop.Chained, *shop.Around, *shop.Link:
			continue
		}
		if unions[reflect.TypeOf(s).Elem()] {
			continue
		}
		_, isKitex := s.(interface{ InitDefault() })
		for _, e := range encodings {
			b := e.encode(s)
			got := fresh()
			_, err := e.decode(new(thrift.Reader), b, got)
			if isKitex && err != nil && strings.Contains(err.Error(), "required") {
				continue // Nil structs are written without fields unless they are optional.
			}
			if err != nil {
				t.Errorf("%s, %s: %v", name, e.name, err)
			}
			again := fresh()
			b = e.encode(got)
			if _, err := e.decode(new(thrift.Reader), b, again); err != nil || !bytes.Equal(e.encode(again), b) {
				t.Errorf("%s, %s: %v\n%+v, want\n%+v", name, e.name, err, again, got)
			}
		}
	}
}

func TestUnionsHaveOneField(t *testing.T) {
	for name, fresh := range structs {
		s := fresh()
		if !unions[reflect.TypeOf(s).Elem()] {
			continue
		}
		for _, e := range encodings {
			_, err := e.decode(new(thrift.Reader), []byte{0}, fresh())
			if te, ok := errors.AsType[*thrift.Error](err); !ok || te.Code != thrift.CodeUnion {
				t.Errorf("%s, %s: %v", name, e.name, err)
			}
		}
	}
}

// Damaged input causes an error or a value that can be written again, and never a panic.
func TestDamagedInput(t *testing.T) {
	forAll(t, func(t *testing.T, fresh func() thrift.CompactStruct, f *filler) {
		s := filled(fresh, f)
		for _, e := range encodings {
			b := e.encode(s)
			for range 20 {
				damaged := bytes.Clone(b)
				for range 1 + f.IntN(3) {
					damaged[f.IntN(len(b))] = byte(f.IntN(256))
				}
				got := fresh()
				if _, err := e.decode(new(thrift.Reader), damaged, got); err == nil {
					e.encode(got)
				}
			}
		}
	})
}
