package redis

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

var (
	anyMapType            = reflect.TypeFor[map[string]any]()
	valueType             = reflect.TypeFor[Value]()
	textUnmarshalerType   = reflect.TypeFor[encoding.TextUnmarshaler]()
	binaryUnmarshalerType = reflect.TypeFor[encoding.BinaryUnmarshaler]()
)

// reflected decodes the value that starts with tok into v, which must be settable.
func reflected(d *resp.Decoder, tok resp.Token, v reflect.Value) error {
	t := v.Type()
	if t.PkgPath() != "" { // a named type may decode itself
		if t == valueType {
			return valueOf(d, tok, v.Addr().Interface().(*Value))
		}
		if t == durationType {
			return wrong(tok, t, errDuration)
		}
		if done, err := unmarshalled(tok, v); done {
			return err
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if tok.Null {
			v.SetZero()
			return nil
		}
		if v.IsNil() {
			v.Set(reflect.New(t.Elem()))
		}
		return reflected(d, tok, v.Elem())
	case reflect.Interface:
		if t.NumMethod() != 0 {
			return wrong(tok, t, errMismatch)
		}
		natural, err := naturalOf(d, tok)
		if err != nil {
			return err
		}
		if natural == nil {
			v.SetZero()
		} else {
			v.Set(reflect.ValueOf(natural))
		}
		return nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return intoBytes(tok, v)
		}
		return intoSlice(d, tok, v)
	case reflect.Array:
		return intoArray(d, tok, v)
	case reflect.Map:
		return intoMap(d, tok, v)
	case reflect.Struct:
		return intoStruct(d, tok, v)
	}
	return intoBasic(tok, v)
}

// unmarshalled lets a type that can decode itself from text do so.
func unmarshalled(tok resp.Token, v reflect.Value) (done bool, err error) {
	p := reflect.PointerTo(v.Type())
	isTextual, isBinary := p.Implements(textUnmarshalerType), p.Implements(binaryUnmarshalerType)
	if !isTextual && !isBinary {
		return false, nil
	}
	text, err := textOf(tok)
	if err != nil {
		return true, wrong(tok, v.Type(), err)
	}
	if isTextual {
		err = v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(text)
	} else {
		err = v.Addr().Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(text)
	}
	if err != nil {
		err = wrong(tok, v.Type(), err)
	}
	return true, err
}

func intoBasic(tok resp.Token, v reflect.Value) error {
	err := error(errMismatch)
	switch v.Kind() {
	case reflect.String:
		var s string
		if s, err = stringOf(tok); err == nil {
			v.SetString(s)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		var n int64
		if n, err = intOf(tok); err == nil && v.OverflowInt(n) {
			err = errOverflow
		}
		if err == nil {
			v.SetInt(n)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		var n uint64
		if n, err = uintOf(tok); err == nil && v.OverflowUint(n) {
			err = errOverflow
		}
		if err == nil {
			v.SetUint(n)
		}
	case reflect.Float32, reflect.Float64:
		var f float64
		if f, err = floatOf(tok); err == nil && v.OverflowFloat(f) {
			err = errOverflow
		}
		if err == nil {
			v.SetFloat(f)
		}
	case reflect.Bool:
		var b bool
		if b, err = boolOf(tok); err == nil {
			v.SetBool(b)
		}
	}
	if err != nil {
		return wrong(tok, v.Type(), err)
	}
	return nil
}

func intoBytes(tok resp.Token, v reflect.Value) error {
	if tok.Null {
		v.SetZero()
		return nil
	}
	text, err := textOf(tok)
	if err != nil {
		return wrong(tok, v.Type(), err)
	}
	v.SetBytes(append(v.Bytes()[:0], text...))
	return nil
}

// intoSlice decodes arrays and sets, and maps as key, value, key, value, which is what servers send
// in RESP2. The memory of the slice is reused.
func intoSlice(d *resp.Decoder, tok resp.Token, v reflect.Value) error {
	if tok.Null {
		v.SetZero()
		return nil
	}
	if !isAggregate(tok) {
		return wrong(tok, v.Type(), cannot(tok))
	}
	n := 0
	v.SetLen(0)
	if tok.Len > v.Cap() {
		v.Set(reflect.MakeSlice(v.Type(), 0, tok.Len))
	} else if v.IsNil() {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	}
	for e := (elements{d, tok.Len}); ; n++ {
		tok, ok, err := e.next()
		if err != nil || !ok {
			return err
		}
		if n == v.Cap() {
			v.Grow(1)
		}
		v.SetLen(n + 1)
		element := v.Index(n)
		// The new element must neither share memory with a previous one, which the caller may have
		// kept, nor inherit its fields.
		element.SetZero()
		if err := reflected(d, tok, element); err != nil {
			return at(err, "["+strconv.Itoa(n)+"]")
		}
	}
}

func intoArray(d *resp.Decoder, tok resp.Token, v reflect.Value) error {
	if !isAggregate(tok) {
		return wrong(tok, v.Type(), cannot(tok))
	}
	whole := tok
	n := 0
	for e := (elements{d, tok.Len}); ; n++ {
		tok, ok, err := e.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if n == v.Len() {
			return wrong(whole, v.Type(), fmt.Errorf("expected %d elements", v.Len()))
		}
		if err := reflected(d, tok, v.Index(n)); err != nil {
			return at(err, "["+strconv.Itoa(n)+"]")
		}
	}
	if n != v.Len() {
		return wrong(whole, v.Type(), fmt.Errorf("expected %d elements", v.Len()))
	}
	return nil
}

// pairs calls visit for each key of a map, of an array of alternating keys and values (RESP2), or
// of an array of pairs (RESP3, such as ZRANGE WITHSCORES). Visit decodes the value that starts with
// tok.
func pairs(d *resp.Decoder, tok resp.Token, t reflect.Type, visit func(key, value resp.Token) error) error {
	if !isAggregate(tok) || tok.Kind == resp.Set {
		return wrong(tok, t, cannot(tok))
	}
	whole := tok
	e := elements{d, tok.Len}
	for {
		key, ok, err := e.next()
		if err != nil || !ok {
			return err
		}
		inner := &e
		var pair elements
		if whole.Kind != resp.Map && key.Kind == resp.Array && key.Len == 2 {
			pair = elements{d, 2}
			inner = &pair
			if key, _, err = inner.next(); err != nil {
				return err
			}
		}
		if isAggregate(key) {
			return wrong(key, t, fmt.Errorf("a key is an aggregate"))
		}
		value, ok, err := inner.next()
		if err != nil {
			return err
		}
		if !ok {
			return wrong(whole, t, fmt.Errorf("the last key has no value"))
		}
		if err := visit(key, value); err != nil {
			return err
		}
	}
}

func intoMap(d *resp.Decoder, tok resp.Token, v reflect.Value) error {
	t := v.Type()
	if tok.Null {
		v.SetZero()
		return nil
	}
	if k := t.Key().Kind(); k == reflect.Interface || k == reflect.Struct || k == reflect.Array || k == reflect.Pointer || k == reflect.Chan {
		return wrong(tok, t, fmt.Errorf("the keys of a map must be strings, numbers or bools"))
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(t))
	} else {
		v.Clear()
	}
	key, element := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
	return pairs(d, tok, t, func(k, value resp.Token) error {
		if err := reflected(d, k, key); err != nil {
			return at(err, " (a key)")
		}
		element.SetZero()
		if err := reflected(d, value, element); err != nil {
			return at(err, "["+strconv.Quote(short(k.Bytes))+"]")
		}
		v.SetMapIndex(key, element)
		return nil
	})
}

// short truncates keys for errors.
func short(text []byte) string {
	const most = 64
	if len(text) > most {
		return string(text[:most]) + "..."
	}
	return string(text)
}
