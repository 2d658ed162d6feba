package tarantool

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// dataOf returns the data, an encoded array, of a body without an error.
func dataOf(body []byte) ([]byte, error) {
	if data, ok := box.Data(body); ok {
		return data, nil
	}
	r, err := box.ParseBody(uint32(box.CodeOK), body)
	if err != nil {
		return nil, err
	}
	return dataIn(&r), nil
}

// dataIn returns the data of a response. If it has none, dataIn returns an empty array.
func dataIn(r *box.Response) []byte {
	if r.Data == nil {
		return emptyArray
	}
	return r.Data
}

var emptyArray = []byte{0x90}

// decodeData decodes the data of a reply, an encoded array, into *dst. If dst is nil, the data is
// discarded. Destinations that decode themselves, and the general types, do not use reflection.
func decodeData(l iproto.Limits, data []byte, dst any) error {
	if dst == nil {
		return nil
	}
	if v := reflect.ValueOf(dst); v.Kind() != reflect.Pointer && !isReader(dst) || v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("the destination is a %T, expected a pointer that is not nil", dst)
	}
	d := decoderOf(l, data)
	defer putDecoder(d)
	switch p := dst.(type) {
	case Reader:
		if err := readOwn(d, p); err != nil {
			return err
		}
	case *[]any:
		if d.IsNil() {
			*p = nil
			break
		}
		v, _ := d.Any().([]any)
		*p = v
	case *any:
		*p = d.Any()
	case *Raw:
		*p = append((*p)[:0], d.Raw()...)
	default:
		if err := readReflected(d, reflect.ValueOf(dst).Elem(), 0); err != nil {
			return err
		}
	}
	if d.Err() == nil && d.Len() > 0 {
		return errors.New("trailing bytes after the reply's data")
	}
	return d.Err()
}

func isReader(dst any) bool {
	_, ok := dst.(Reader)
	return ok
}

// Raw is a destination that receives the undecoded data of a reply: a MessagePack array.
type Raw []byte

// decoders are reused, because arguments of a user's Reader escape.
var decoders = sync.Pool{New: func() any { return new(iproto.Decoder) }}

// decoderOf returns a decoder of b, which must be put back.
func decoderOf(l iproto.Limits, b []byte) *iproto.Decoder {
	d := decoders.Get().(*iproto.Decoder)
	d.Reset(b)
	d.Limit(l)
	return d
}

func putDecoder(d *iproto.Decoder) {
	d.Reset(nil)
	decoders.Put(d)
}

func readOwn(d *iproto.Decoder, r Reader) error {
	if err := r.ReadMsgpack(d); err != nil {
		d.Fail(err)
		return err
	}
	return d.Err()
}

var (
	typeOfReader   = reflect.TypeFor[Reader]()
	typeOfDecimal  = reflect.TypeFor[iproto.Decimal]()
	typeOfUUID     = reflect.TypeFor[iproto.UUID]()
	typeOfDatetime = reflect.TypeFor[iproto.Datetime]()
	typeOfTime     = reflect.TypeFor[time.Time]()
	typeOfInterval = reflect.TypeFor[iproto.Interval]()
	typeOfError    = reflect.TypeFor[*iproto.BoxError]()
	typeOfTuple    = reflect.TypeFor[iproto.Tuple]()
	typeOfExt      = reflect.TypeFor[iproto.Ext]()
	typeOfArrow    = reflect.TypeFor[iproto.Arrow]()
)

// readReflected reads a value into v, which must be settable.
func readReflected(d *iproto.Decoder, v reflect.Value, depth int) error {
	if depth > mostDepth {
		return errTooDeep
	}
	if v.CanAddr() && v.Addr().Type().Implements(typeOfReader) {
		return readOwn(d, v.Addr().Interface().(Reader))
	}
	if readExtension(d, v) {
		return d.Err()
	}
	if v.Kind() != reflect.Interface && v.Kind() != reflect.Pointer && d.IsNil() {
		v.SetZero()
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		if d.IsNil() {
			v.SetZero()
			return nil
		}
		if v.IsNil() {
			if !d.Claim(1, int(v.Type().Elem().Size())) {
				return d.Err()
			}
			v.Set(reflect.New(v.Type().Elem()))
		}
		return readReflected(d, v.Elem(), depth+1)
	case reflect.Interface:
		return readInterface(d, v)
	case reflect.Bool:
		v.SetBool(d.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := d.Int()
		if v.OverflowInt(n) {
			return fmt.Errorf("%d does not fit into %s", n, v.Type())
		}
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		n := d.Uint()
		if v.OverflowUint(n) {
			return fmt.Errorf("%d does not fit into %s", n, v.Type())
		}
		v.SetUint(n)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(d.Float())
	case reflect.String:
		v.SetString(d.String())
	case reflect.Slice:
		return readSlice(d, v, depth)
	case reflect.Array:
		return readArray(d, v, depth)
	case reflect.Map:
		return readMap(d, v, depth)
	case reflect.Struct:
		return readStruct(d, v, depth)
	default:
		return fmt.Errorf("values cannot be decoded into a %s", v.Type())
	}
	return d.Err()
}

// readExtension reads values with an extension type of Tarantool.
func readExtension(d *iproto.Decoder, v reflect.Value) bool {
	var value any
	switch v.Type() {
	case typeOfDecimal:
		value = d.Decimal()
	case typeOfUUID:
		value = d.UUID()
	case typeOfDatetime:
		value = d.Datetime()
	case typeOfTime:
		value = TimeOf(d.Datetime())
	case typeOfInterval:
		value = d.Interval()
	case typeOfTuple:
		t := d.Tuple()
		d.Claim(len(t.Data), 1)
		t.Data = append([]byte(nil), t.Data...)
		value = t
	case typeOfArrow:
		a := d.Arrow()
		d.Claim(len(a), 1)
		value = append(iproto.Arrow(nil), a...)
	case typeOfExt:
		typ, data := d.Ext()
		d.Claim(len(data), 1)
		value = iproto.Ext{Type: typ, Data: append([]byte(nil), data...)}
	case typeOfError:
		if d.IsNil() {
			v.SetZero()
			return true
		}
		value = d.Error()
	default:
		return false
	}
	if d.Err() == nil {
		v.Set(reflect.ValueOf(value))
	}
	return true
}

func readInterface(d *iproto.Decoder, v reflect.Value) error {
	value := d.Any()
	if err := d.Err(); err != nil {
		return err
	}
	if value == nil {
		v.SetZero()
		return nil
	}
	got := reflect.ValueOf(value)
	if !got.Type().AssignableTo(v.Type()) {
		return fmt.Errorf("a %s is not a %s", got.Type(), v.Type())
	}
	v.Set(got)
	return nil
}

func readSlice(d *iproto.Decoder, v reflect.Value, depth int) error {
	if v.Type().Elem().Kind() == reflect.Uint8 && d.Kind() != iproto.KindArray {
		v.SetBytes(d.Bytes())
		return d.Err()
	}
	n := d.Array()
	if err := d.Err(); err != nil {
		return err
	}
	// The head of the array was checked against the available bytes. Decoded elements may still be
	// far larger than encoded ones, so they are counted, and the slice grows as elements are read.
	size := max(int(v.Type().Elem().Size()), 1)
	if !d.Claim(n, size) {
		return d.Err()
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, min(n, max(1, d.Len()*4/size))))
	v.SetLen(0)
	for i := range n {
		v.Grow(1)
		v.SetLen(i + 1)
		if err := readReflected(d, v.Index(i), depth+1); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

func readArray(d *iproto.Decoder, v reflect.Value, depth int) error {
	n := d.Array()
	if err := d.Err(); err != nil {
		return err
	}
	if n != v.Len() {
		return fmt.Errorf("an array of %d elements does not fit into %s", n, v.Type())
	}
	for i := range n {
		if err := readReflected(d, v.Index(i), depth+1); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

func readMap(d *iproto.Decoder, v reflect.Value, depth int) error {
	n := d.Map()
	if err := d.Err(); err != nil {
		return err
	}
	t := v.Type()
	if !d.Claim(n, 2*int(t.Key().Size()+t.Elem().Size())+8) {
		return d.Err()
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(t))
	}
	for range n {
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		if err := readReflected(d, key, depth+1); err != nil {
			return fmt.Errorf("key: %w", err)
		}
		if err := readReflected(d, value, depth+1); err != nil {
			return fmt.Errorf("value of %v: %w", key, err)
		}
		if !key.Comparable() {
			return fmt.Errorf("the map key %v cannot be compared", key)
		}
		v.SetMapIndex(key, value)
	}
	return nil
}

// readStruct reads a tuple. More fields than in the struct are not an error, because a space that
// gets another field must not break existing programs. If the tuple has fewer fields, the others
// remain zero, as in Tarantool with fields that may be null.
func readStruct(d *iproto.Decoder, v reflect.Value, depth int) error {
	fields, err := fieldsOf(v.Type())
	if err != nil {
		return err
	}
	n := d.Array()
	if err := d.Err(); err != nil {
		return err
	}
	for i, f := range fields {
		field := v
		for _, j := range f.index {
			field = field.Field(j)
		}
		if i >= n {
			field.SetZero()
			continue
		}
		if err := readReflected(d, field, depth+1); err != nil {
			return fmt.Errorf("field %s: %w", f.name, err)
		}
	}
	for range max(n-len(fields), 0) {
		d.Skip()
	}
	return d.Err()
}
