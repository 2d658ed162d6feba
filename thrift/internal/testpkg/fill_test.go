package testpkg

import (
	"math/rand/v2"
	"reflect"
	"strings"

	"github.com/slipstream-go/slipstream/thrift"
)

// filler fills values such that reading their encoding returns the same values: lists are not nil,
// and maps are nil or have entries.
type filler struct {
	*rand.Rand
	within []reflect.Type // structs that contain the value
	sparse bool           // fields that are an Opt are absent
	utf8   bool           // strings are valid UTF-8
	large  int            // one in this many strings is large enough to be linked; if 0, none is
	single bool           // maps have at most one entry, so their order is defined
}

func (f *filler) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.Uint64()) >> f.IntN(64))
		if v.Kind() == reflect.Int64 && v.Type().PkgPath() != "" { // an enum: only 32 bits are written
			v.SetInt(int64(int32(v.Int())))
		}
		if f.IntN(10) == 0 {
			v.SetInt(0)
		}
	case reflect.Float64:
		v.SetFloat(f.NormFloat64())
	case reflect.String:
		v.SetString(f.text())
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(f.Uint64() & 0xff)
		}
	case reflect.Slice:
		f.slice(v)
	case reflect.Map:
		f.entries(v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if p, ok := v.Interface().(interface{ InitDefault() }); ok {
			p.InitDefault() // A value that equals its default is not sent.
		}
		f.fill(v.Elem())
	case reflect.Struct:
		f.structure(v)
	default:
		panic(v.Type())
	}
}

func (f *filler) text() string {
	b := make([]byte, f.IntN(12))
	if f.large > 0 && f.IntN(f.large) == 0 {
		b = make([]byte, thrift.LinkFrom-2+f.IntN(4))
	}
	for i := range b {
		b[i] = byte(f.IntN(256))
		if f.utf8 {
			b[i] &= 0x7f
		}
	}
	return string(b)
}

// count returns the number of elements for a container.
func (f *filler) count() int { return f.IntN(max(1, 5-len(f.within))) }

func (f *filler) slice(v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes([]byte(f.text()))
		return
	}
	n := f.count()
	if f.IntN(4) == 0 && len(f.within) < 2 {
		n += 20 // a long list has a different head in the Compact protocol
	}
	if f.holds(v.Type().Elem()) {
		n = 0
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		f.fill(v.Index(i))
	}
}

func (f *filler) entries(v reflect.Value) {
	v.SetZero()
	n := f.count()
	if f.single {
		n = min(n, 1)
	}
	if n == 0 || f.holds(v.Type().Elem()) {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for range n {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key)
		f.fill(value)
		v.SetMapIndex(key, value)
	}
}

// holds reports whether the value is in two structs of type t or, if it is deep, in one.
func (f *filler) holds(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if strings.HasPrefix(t.Name(), "Entry[") && t.Field(1).Type.Kind() == reflect.Pointer {
		return f.holds(t.Field(1).Type)
	}
	times := 0
	for _, one := range f.within {
		if one == t {
			times++
		}
	}
	return times > 1 || times > 0 && len(f.within) > 3
}

func (f *filler) structure(v reflect.Value) {
	t := v.Type()
	f.within = append(f.within, t)
	defer func() { f.within = f.within[:len(f.within)-1] }()
	if isOpt(t) {
		if !f.sparse {
			f.fill(v.Field(0))
			v.Field(1).SetBool(true)
		}
		return
	}
	only := -1
	if unions[t] {
		only = f.IntN(t.NumField())
		for !t.Field(only).IsExported() || f.holds(t.Field(only).Type) || t.Field(only).Type.Kind() == reflect.Map {
			only = f.IntN(t.NumField())
		}
	}
	for i := range t.NumField() {
		one := t.Field(i)
		switch {
		case !one.IsExported() || only >= 0 && i != only:
		case one.Type.Kind() == reflect.Pointer && f.holds(one.Type):
		case only >= 0:
			sparse := f.sparse
			f.sparse = false
			f.fill(v.Field(i))
			f.sparse = sparse
		default:
			f.fill(v.Field(i))
		}
	}
}

func isOpt(t reflect.Type) bool { return t.NumField() == 2 && t.Field(1).Name == "Set" }
