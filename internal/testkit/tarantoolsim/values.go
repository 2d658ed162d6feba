package tarantoolsim

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// kinds maps the types of fields to the classes of values that they accept.
var kinds = map[string]string{
	"": "*", "any": "*", "unsigned": "u", "integer": "ui", "number": "uifd", "double": "f", "decimal": "d", "boolean": "b", "string": "s",
	"varbinary": "v", "uuid": "U", "datetime": "t", "interval": "I", "array": "a", "map": "m", "scalar": "buifdsvUt",
}

func knownType(name string) bool { _, ok := kinds[name]; return ok }

// class is a letter for the type of a value, and classes are in the order in which Tarantool
// compares values of different ones.
func class(v any) byte {
	switch v := v.(type) {
	case nil:
		return 'n'
	case bool:
		return 'b'
	case int64:
		if v < 0 {
			return 'i'
		}
		return 'u'
	case uint64:
		return 'u'
	case float64:
		return 'f'
	case iproto.Decimal:
		return 'd'
	case string:
		return 's'
	case []byte:
		return 'v'
	case iproto.UUID:
		return 'U'
	case iproto.Datetime:
		return 't'
	case iproto.Interval:
		return 'I'
	case []any:
		return 'a'
	case map[any]any:
		return 'm'
	}
	return '?'
}

var classNames = map[byte]string{
	'n': "nil", 'b': "boolean", 'i': "integer", 'u': "unsigned", 'f': "double", 'd': "decimal", 's': "string", 'v': "varbinary", 'U': "uuid",
	't': "datetime", 'I': "interval", 'a': "array", 'm': "map", '?': "extension",
}

func typeOf(v any) string { return classNames[class(v)] }

// fits reports whether a field of a type accepts a value, which is not nil.
func fits(kind string, v any) bool {
	accepted := kinds[kind]
	return accepted == "*" || strings.IndexByte(accepted, class(v)) >= 0
}

// rank is the position of a class in the order of values: numbers share one.
func rank(c byte) int {
	if c == 'u' || c == 'f' || c == 'd' {
		c = 'i'
	}
	return strings.IndexByte("nbisvUtIam?", c)
}

// compareValues orders values of any types, as an index of scalars does.
func compareValues(a, b any) int {
	if c := cmp.Compare(rank(class(a)), rank(class(b))); c != 0 {
		return c
	}
	switch x := a.(type) {
	case bool:
		y := b.(bool)
		switch {
		case x == y:
			return 0
		case y:
			return -1
		}
		return 1
	case string:
		return strings.Compare(x, b.(string))
	case []byte:
		return bytes.Compare(x, b.([]byte))
	case iproto.UUID:
		y := b.(iproto.UUID)
		return bytes.Compare(x[:], y[:])
	case iproto.Datetime:
		y := b.(iproto.Datetime)
		return cmp.Or(cmp.Compare(x.Seconds, y.Seconds), cmp.Compare(x.Nanoseconds, y.Nanoseconds))
	case int64, uint64, float64, iproto.Decimal:
		return compareNumbers(a, b)
	}
	return 0
}

// compareNumbers orders numbers of different types without rounding. NaN is below all others.
func compareNumbers(a, b any) int {
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y)
		}
	}
	x, xFinite := finite(a)
	y, yFinite := finite(b)
	if xFinite && yFinite {
		return x.Cmp(y)
	}
	return cmp.Compare(float(a), float(b))
}

// finite returns a number as a fraction. It returns false if the number is
// infinite or NaN.
func finite(v any) (*big.Rat, bool) {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v), true
	case uint64:
		return new(big.Rat).SetUint64(v), true
	case iproto.Decimal:
		return new(big.Rat).SetString(v.String())
	case float64:
		if r := new(big.Rat).SetFloat64(v); r != nil {
			return r, true
		}
	}
	return nil, false
}

// float returns the nearest float of a number.
func float(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	case iproto.Decimal:
		return v.Float64()
	case float64:
		return v
	}
	return math.NaN()
}

// appender is the interface Appender of package tarantool.
type appender interface {
	AppendMsgpack(b []byte) ([]byte, error)
}

// encode appends the encoding of a value of a test.
func encode(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil, bool, int64, uint64, float64, float32, string, []byte, iproto.Decimal, iproto.UUID, iproto.Datetime, iproto.Interval,
		*iproto.BoxError, iproto.Tuple, iproto.Arrow, iproto.Ext:
		return iproto.AppendAny(b, v), nil
	case appender:
		return v.AppendMsgpack(b)
	}
	rv := reflect.ValueOf(v)
	switch {
	case rv.CanInt():
		return iproto.AppendInt(b, rv.Int()), nil
	case rv.CanUint():
		return iproto.AppendUint(b, rv.Uint()), nil
	case rv.Kind() == reflect.String:
		return iproto.AppendString(b, rv.String()), nil
	case rv.Kind() == reflect.Bool:
		return iproto.AppendBool(b, rv.Bool()), nil
	case rv.Kind() == reflect.Slice, rv.Kind() == reflect.Array:
		b = iproto.AppendArray(b, rv.Len())
		var err error
		for i := range rv.Len() {
			if b, err = encode(b, rv.Index(i).Interface()); err != nil {
				return b, err
			}
		}
		return b, nil
	case rv.Kind() == reflect.Map:
		return encodeMap(b, rv)
	}
	return b, fmt.Errorf("tarantooltest: a value of type %T cannot be sent", v)
}

// encodeMap appends a map in the order of its encoded pairs.
func encodeMap(b []byte, m reflect.Value) ([]byte, error) {
	var pairs [][]byte
	for _, key := range m.MapKeys() {
		pair, err := encode(nil, key.Interface())
		if err == nil {
			pair, err = encode(pair, m.MapIndex(key).Interface())
		}
		if err != nil {
			return b, err
		}
		pairs = append(pairs, pair)
	}
	slices.SortFunc(pairs, bytes.Compare)
	b = iproto.AppendMap(b, len(pairs))
	for _, p := range pairs {
		b = append(b, p...)
	}
	return b, nil
}

// parseTuple reads an encoded tuple.
func parseTuple(raw []byte) (*tuple, error) {
	d := iproto.NewDecoder(raw)
	if d.Kind() != iproto.KindArray {
		return nil, fail(iproto.CodeTupleNotArray, "Tuple/Key must be MsgPack array")
	}
	fields, _ := d.Any().([]any)
	if d.Err() != nil {
		return nil, fail(iproto.CodeInvalidMessagePack, "Invalid MsgPack - tuple")
	}
	return &tuple{raw: slices.Clone(raw[:d.Offset()]), fields: fields}, nil
}

// makeTuple builds a tuple from encoded fields.
func makeTuple(fields [][]byte) (*tuple, error) {
	raw := iproto.AppendArray(nil, len(fields))
	for _, f := range fields {
		raw = append(raw, f...)
	}
	return parseTuple(raw)
}
