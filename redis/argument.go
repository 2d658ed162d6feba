package redis

import (
	"bytes"
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// appendArgument appends one argument as a bulk string.
func appendArgument(b []byte, arg any) ([]byte, error) {
	switch v := arg.(type) {
	case string:
		return resp.AppendBulkString(b, v), nil
	case []byte:
		return resp.AppendBulk(b, v), nil
	case int:
		return resp.AppendBulkInt(b, int64(v)), nil
	case int64:
		return resp.AppendBulkInt(b, v), nil
	case int32:
		return resp.AppendBulkInt(b, int64(v)), nil
	case int16:
		return resp.AppendBulkInt(b, int64(v)), nil
	case int8:
		return resp.AppendBulkInt(b, int64(v)), nil
	case uint:
		return resp.AppendBulkUint(b, uint64(v)), nil
	case uint64:
		return resp.AppendBulkUint(b, v), nil
	case uint32:
		return resp.AppendBulkUint(b, uint64(v)), nil
	case uint16:
		return resp.AppendBulkUint(b, uint64(v)), nil
	case uint8:
		return resp.AppendBulkUint(b, uint64(v)), nil
	case float64:
		return resp.AppendBulkFloat(b, v), nil
	case float32:
		return appendFloat32(b, v), nil
	case bool:
		if v {
			return resp.AppendBulkString(b, "1"), nil
		}
		return resp.AppendBulkString(b, "0"), nil
	}
	return appendMarshalled(b, arg)
}

// appendMarshalled appends an argument that encodes itself. The text encoding is preferred because
// other clients can read it.
func appendMarshalled(b []byte, arg any) ([]byte, error) {
	if v := reflect.ValueOf(arg); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return b, fmt.Errorf("is a nil %T; Redis has no null argument", arg)
	}
	var text []byte
	var err error
	switch v := arg.(type) {
	case encoding.TextMarshaler:
		text, err = v.MarshalText()
	case encoding.BinaryMarshaler:
		text, err = v.MarshalBinary()
	default:
		return appendNamedType(b, arg)
	}
	if err != nil {
		return b, fmt.Errorf("of type %T: %w", arg, err)
	}
	return resp.AppendBulk(b, text), nil
}

// appendNamedType appends a value whose type is defined by a basic type.
func appendNamedType(b []byte, arg any) ([]byte, error) {
	v := reflect.ValueOf(arg)
	if v.Type() == durationType {
		return b, fmt.Errorf("is a time.Duration, which has no unit for Redis; pass its milliseconds or seconds")
	}
	switch v.Kind() {
	case reflect.String:
		return resp.AppendBulkString(b, v.String()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return resp.AppendBulkInt(b, v.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return resp.AppendBulkUint(b, v.Uint()), nil
	case reflect.Float64:
		return resp.AppendBulkFloat(b, v.Float()), nil
	case reflect.Float32:
		return appendFloat32(b, float32(v.Float())), nil
	case reflect.Bool:
		return appendArgument(b, v.Bool())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return resp.AppendBulk(b, v.Bytes()), nil
		}
	}
	return b, fmt.Errorf("has type %T, expected a string, []byte, number, bool, encoding.TextMarshaler or encoding.BinaryMarshaler", arg)
}

// encodedArgs iterates over the bulk strings of an encoded command. Its input was written by this
// package.
type encodedArgs struct{ rest []byte }

// header returns the number of bulk strings. It must be called before next.
func (a *encodedArgs) header() (n int, ok bool) {
	end := bytes.IndexByte(a.rest, '\n')
	if end < 2 || a.rest[0] != '*' {
		return 0, false
	}
	for _, digit := range a.rest[1 : end-1] {
		n = n*10 + int(digit-'0')
	}
	a.rest = a.rest[end+1:]
	return n, true
}

// next returns the next argument, as a part of the encoded command.
func (a *encodedArgs) next() (arg []byte, ok bool) {
	end := bytes.IndexByte(a.rest, '\n')
	if end < 2 || a.rest[0] != '$' {
		return nil, false
	}
	n := 0
	for _, digit := range a.rest[1 : end-1] {
		n = n*10 + int(digit-'0')
	}
	from := end + 1
	if n > len(a.rest)-from-2 {
		return nil, false
	}
	arg, a.rest = a.rest[from:from+n], a.rest[from+n+2:]
	return arg, true
}

// appendFloat32 keeps 0.1 from becoming 0.10000000149011612.
func appendFloat32(b []byte, f float32) []byte {
	if wide := float64(f); math.IsInf(wide, 0) || math.IsNaN(wide) {
		return resp.AppendBulkFloat(b, wide)
	}
	var text [32]byte
	return resp.AppendBulk(b, strconv.AppendFloat(text[:0], float64(f), 'g', -1, 32))
}
