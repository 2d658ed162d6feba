// Package walk traverses values of generated types according to their IDL.
package walk

import (
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// View describes how a library represents values.
type View struct {
	// SortSets is set for libraries whose sets are unordered.
	SortSets bool
	// DefaultsAreSet is set for libraries in which an optional field with a default always has a
	// value.
	DefaultsAreSet bool
	// DefaultsAreUnset is set for libraries in which an optional field with its default value
	// counts as not set.
	DefaultsAreUnset bool
}

// Dump returns all fields of a struct, by ID, in a text format that programs in other languages can
// also write.
func (w View) Dump(v reflect.Value, s *idl.Struct) string {
	var b strings.Builder
	w.structure(&b, reflect.Indirect(v), s)
	return b.String()
}

// Fields returns the fields of a struct in the order of their IDs, each with its index in the Go
// type.
func Fields(t reflect.Type, s *idl.Struct) []Field {
	var fields []Field
	for i := range t.NumField() {
		if t.Field(i).IsExported() {
			fields = append(fields, Field{s.Fields[len(fields)], i})
		}
	}
	if len(fields) != len(s.Fields) {
		panic(fmt.Sprintf("%v has %d fields, the IDL declares %d", t, len(fields), len(s.Fields)))
	}
	slices.SortFunc(fields, func(a, b Field) int { return int(a.IDL.ID) - int(b.IDL.ID) })
	return fields
}

// Field is a field of a struct.
type Field struct {
	IDL   *idl.Field
	Index int
}

// Of returns the value of the field in a struct. If the field is absent, ok is false.
func (f Field) Of(v reflect.Value, union bool) (field reflect.Value, ok bool) {
	field = v.Field(f.Index)
	switch {
	case IsOpt(field.Type()):
		return field.Field(0), field.Field(1).Bool()
	case field.Kind() == reflect.Pointer && field.Type().Elem().Kind() != reflect.Struct:
		return field.Elem(), !field.IsNil()
	case field.Kind() == reflect.Pointer:
		return field, !field.IsNil() || f.IDL.Requirement == idl.Required
	case field.Kind() == reflect.Slice || field.Kind() == reflect.Map:
		return field, !field.IsNil() || !union && f.IDL.Requirement != idl.Optional
	}
	return field, true
}

// IsOpt reports whether a type is a thrift.Opt.
func IsOpt(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.NumField() == 2 && t.Field(1).Name == "Set"
}

func (w View) structure(b *strings.Builder, v reflect.Value, s *idl.Struct) {
	b.WriteByte('{')
	if v.IsValid() {
		for _, f := range Fields(v.Type(), s) {
			field, set := f.Of(v, s.Kind == idl.Union)
			opt := IsOpt(v.Field(f.Index).Type()) && f.IDL.Default != nil && s.Kind != idl.Union
			if opt && w.DefaultsAreSet {
				set = true
			}
			if opt && w.DefaultsAreUnset {
				fresh := reflect.New(v.Type())
				fresh.MethodByName("Reset").Call(nil)
				set = set && !field.Equal(fresh.Elem().Field(f.Index).Field(0))
			}
			if !set {
				continue
			}
			fmt.Fprintf(b, "%d:", f.IDL.ID)
			w.value(b, field, f.IDL.Type)
			b.WriteByte(',')
		}
	}
	b.WriteByte('}')
}

func (w View) value(b *strings.Builder, v reflect.Value, t *idl.Type) {
	t = t.True()
	switch t.Kind {
	case idl.Bool:
		fmt.Fprint(b, v.Bool())
	case idl.Double:
		fmt.Fprintf(b, "%016x", math.Float64bits(v.Float()))
	case idl.String, idl.Binary, idl.UUID:
		b.WriteString(`"` + hex.EncodeToString(Bytes(v)) + `"`)
	case idl.List, idl.Set:
		elements := make([]string, v.Len())
		for i := range elements {
			elements[i] = w.text(v.Index(i), t.Elem)
		}
		if t.Kind == idl.Set && w.SortSets {
			slices.Sort(elements)
		}
		b.WriteString("[" + strings.Join(elements, ",") + "]")
	case idl.Map:
		var entries []string
		for k, e := range Entries(v) {
			entries = append(entries, w.text(k, t.Key)+"="+w.text(e, t.Elem))
		}
		slices.Sort(entries)
		b.WriteString("<" + strings.Join(entries, ",") + ">")
	default:
		if s := t.Struct(); s != nil {
			w.structure(b, reflect.Indirect(v), s)
			return
		}
		fmt.Fprint(b, v.Int())
	}
}

func (w View) text(v reflect.Value, t *idl.Type) string {
	var b strings.Builder
	w.value(&b, v, t)
	return b.String()
}

// Bytes returns the bytes of a string, a binary or a UUID.
func Bytes(v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.String:
		return []byte(v.String())
	case reflect.Array:
		b := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(b), v)
		return b
	}
	return v.Bytes()
}

// Entries ranges over a map, or over a slice of thrift.Entry.
func Entries(v reflect.Value) func(yield func(k, e reflect.Value) bool) {
	if v.Kind() == reflect.Map {
		return v.Seq2()
	}
	return func(yield func(k, e reflect.Value) bool) {
		for i := range v.Len() {
			if !yield(v.Index(i).Field(0), v.Index(i).Field(1)) {
				return
			}
		}
	}
}
