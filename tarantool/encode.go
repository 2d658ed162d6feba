package tarantool

import (
	"cmp"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// mostDepth is the maximum nesting depth of a value to be sent: deeper ones are usually cyclic.
const mostDepth = 128

// argumentError says which value could not be encoded.
func argumentError(what string, i int, err error) error {
	return fmt.Errorf("%s %d: %w", what, i+1, err)
}

// appendValues appends an array of values.
func appendValues(b []byte, what string, values []any) ([]byte, error) {
	b = iproto.AppendArray(b, len(values))
	for i, v := range values {
		var err error
		if b, err = appendValue(b, v); err != nil {
			return b, argumentError(what, i, err)
		}
	}
	return b, nil
}

// appendArray appends a value that must be an array: a tuple or arguments.
func appendArray(b []byte, what string, v any) ([]byte, error) {
	from := len(b)
	b, err := appendValue(b, v)
	if err != nil {
		return b, fmt.Errorf("%s: %w", what, err)
	}
	d := iproto.NewDecoder(b[from:])
	if d.Kind() != iproto.KindArray {
		return b, fmt.Errorf("%s: a %T is encoded as %s, expected an array", what, v, d.Kind())
	}
	return b, nil
}

// appendValue appends any value. Common types do not use reflection.
func appendValue(b []byte, v any) ([]byte, error) { return appendNested(b, v, 0) }

func appendNested(b []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return iproto.AppendNil(b), nil
	case Appender:
		if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && p.IsNil() {
			return iproto.AppendNil(b), nil
		}
		return appendOwn(b, v)
	case string:
		return iproto.AppendString(b, v), nil
	case []byte:
		return iproto.AppendBytes(b, v), nil
	case int:
		return iproto.AppendInt(b, int64(v)), nil
	case int64:
		return iproto.AppendInt(b, v), nil
	case uint64:
		return iproto.AppendUint(b, v), nil
	case uint32:
		return iproto.AppendUint(b, uint64(v)), nil
	case bool:
		return iproto.AppendBool(b, v), nil
	case float64:
		return iproto.AppendFloat64(b, v), nil
	case Part:
		return v.append(b), v.wrong()
	case []any:
		if depth >= mostDepth {
			return b, errTooDeep
		}
		b = iproto.AppendArray(b, len(v))
		for i, e := range v {
			var err error
			if b, err = appendNested(b, e, depth+1); err != nil {
				return b, fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return b, nil
	}
	if b, ok := appendExtension(b, v); ok {
		return b, nil
	}
	return appendReflected(b, reflect.ValueOf(v), depth)
}

// appendOwn lets a value append itself, and checks the result: no value, or two values, would
// change the meaning of the request.
func appendOwn(b []byte, v Appender) ([]byte, error) {
	from := len(b)
	out, err := v.AppendMsgpack(b)
	switch {
	case err != nil:
		return b, err
	case len(out) < from:
		return b, fmt.Errorf("AppendMsgpack of %T returned less than it was given", v)
	}
	d := iproto.NewDecoder(out[from:])
	d.Skip()
	switch {
	case d.Err() != nil:
		return b, fmt.Errorf("AppendMsgpack of %T: %w", v, d.Err())
	case d.Len() > 0:
		return b, fmt.Errorf("AppendMsgpack of %T appended more than one value", v)
	}
	return out, nil
}

func appendExtension(b []byte, v any) ([]byte, bool) {
	switch v := v.(type) {
	case iproto.Decimal:
		return iproto.AppendDecimal(b, v), true
	case iproto.UUID:
		return iproto.AppendUUID(b, v), true
	case iproto.Datetime:
		return iproto.AppendDatetime(b, v), true
	case time.Time:
		return iproto.AppendDatetime(b, DatetimeOf(v)), true
	case iproto.Interval:
		return iproto.AppendInterval(b, v), true
	case *iproto.BoxError:
		if v == nil {
			return iproto.AppendNil(b), true
		}
		return iproto.AppendBoxError(b, v), true
	case iproto.Tuple:
		return iproto.AppendTuple(b, v), true
	case iproto.Arrow:
		return iproto.AppendArrow(b, v), true
	case iproto.Ext:
		return iproto.AppendExt(b, v.Type, v.Data), true
	case *big.Int:
		if v != nil && v.IsUint64() {
			return iproto.AppendUint(b, v.Uint64()), true
		}
		if v != nil && v.IsInt64() {
			return iproto.AppendInt(b, v.Int64()), true
		}
	}
	return b, false
}

var errTooDeep = fmt.Errorf("nested deeper than %d", mostDepth)

// appendReflected appends values of user-defined types: structs as arrays of their exported fields,
// in order, unless a tag says otherwise.
func appendReflected(b []byte, v reflect.Value, depth int) ([]byte, error) {
	if depth > mostDepth {
		return b, errTooDeep
	}
	switch v.Kind() {
	case reflect.Bool:
		return iproto.AppendBool(b, v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return iproto.AppendInt(b, v.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return iproto.AppendUint(b, v.Uint()), nil
	case reflect.Float32:
		return iproto.AppendFloat32(b, float32(v.Float())), nil
	case reflect.Float64:
		return iproto.AppendFloat64(b, v.Float()), nil
	case reflect.String:
		return iproto.AppendString(b, v.String()), nil
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return iproto.AppendNil(b), nil
		}
		return appendElement(b, v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		return appendList(b, v, depth)
	case reflect.Map:
		return appendMapping(b, v, depth)
	case reflect.Struct:
		return appendStruct(b, v, depth)
	}
	return b, fmt.Errorf("a value of type %s cannot be sent", v.Type())
}

// appendElement appends a part of a value, whose type may have its own encoding.
func appendElement(b []byte, v reflect.Value, depth int) ([]byte, error) {
	if v.CanAddr() && v.Addr().CanInterface() {
		if own, ok := v.Addr().Interface().(Appender); ok {
			return appendOwn(b, own)
		}
	}
	if v.CanInterface() && (v.Kind() == reflect.Struct || v.NumMethod() > 0 || v.Kind() == reflect.Array || v.Kind() == reflect.Slice) {
		return appendNestedValue(b, v, depth)
	}
	return appendReflected(b, v, depth)
}

// appendNestedValue appends a value that may be an extension or have methods.
func appendNestedValue(b []byte, v reflect.Value, depth int) ([]byte, error) {
	value := v.Interface()
	if own, ok := value.(Appender); ok && (v.Kind() != reflect.Pointer || !v.IsNil()) {
		return appendOwn(b, own)
	}
	if b, ok := appendExtension(b, value); ok {
		return b, nil
	}
	return appendReflected(b, v, depth)
}

func appendList(b []byte, v reflect.Value, depth int) ([]byte, error) {
	if v.Kind() == reflect.Slice && v.IsNil() {
		return iproto.AppendNil(b), nil
	}
	if v.Type().Elem().Kind() == reflect.Uint8 && v.Kind() == reflect.Slice {
		return iproto.AppendBytes(b, v.Bytes()), nil
	}
	b = iproto.AppendArray(b, v.Len())
	for i := range v.Len() {
		var err error
		if b, err = appendElement(b, v.Index(i), depth+1); err != nil {
			return b, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return b, nil
}

// appendMapping appends a map, sorted by the encoded keys, so that equal maps have equal encodings.
func appendMapping(b []byte, v reflect.Value, depth int) ([]byte, error) {
	if v.IsNil() {
		return iproto.AppendNil(b), nil
	}
	type pair struct{ key, value []byte }
	pairs := make([]pair, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		key, err := appendElement(nil, it.Key(), depth+1)
		if err != nil {
			return b, fmt.Errorf("key: %w", err)
		}
		value, err := appendElement(nil, it.Value(), depth+1)
		if err != nil {
			return b, fmt.Errorf("value of %v: %w", it.Key(), err)
		}
		pairs = append(pairs, pair{key, value})
	}
	slices.SortFunc(pairs, func(x, y pair) int { return cmp.Compare(string(x.key), string(y.key)) })
	b = iproto.AppendMap(b, len(pairs))
	for _, p := range pairs {
		b = append(append(b, p.key...), p.value...)
	}
	return b, nil
}

func appendStruct(b []byte, v reflect.Value, depth int) ([]byte, error) {
	fields, err := fieldsOf(v.Type())
	if err != nil {
		return b, err
	}
	b = iproto.AppendArray(b, len(fields))
	for _, f := range fields {
		field := v
		for _, i := range f.index {
			field = field.Field(i)
		}
		if b, err = appendElement(b, field, depth+1); err != nil {
			return b, fmt.Errorf("field %s: %w", f.name, err)
		}
	}
	return b, nil
}

// structField is a struct field that becomes an element of the array.
type structField struct {
	name  string
	index []int
}

var structFields sync.Map // reflect.Type to []structField or error

// fieldsOf returns the fields of a struct in the order of the array. The tag `tarantool:"-"` omits
// a field.
func fieldsOf(t reflect.Type) ([]structField, error) {
	if known, ok := structFields.Load(t); ok {
		fields, ok := known.([]structField)
		if !ok {
			return nil, known.(error)
		}
		return fields, nil
	}
	var fields []structField
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("tarantool")
		switch {
		case !f.IsExported() || tag == "-":
			continue
		case tag != "":
			err := fmt.Errorf("field %s of %s has the tag %q, expected none or -", f.Name, t, strings.TrimSpace(tag))
			structFields.Store(t, err)
			return nil, err
		}
		fields = append(fields, structField{f.Name, f.Index})
	}
	if len(fields) == 0 {
		err := fmt.Errorf("%s has no exported fields", t)
		structFields.Store(t, err)
		return nil, err
	}
	structFields.Store(t, fields)
	return fields, nil
}
