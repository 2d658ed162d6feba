package tarantool

import (
	"errors"
	"reflect"
	"testing"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// sized is a destination with fields of every kind.
type sized struct {
	Numbers [4]uint64
	Text    string
	Any     any
	List    []sized
	Map     map[string]*sized
	Pointer *[32]uint64
	Bytes   []byte
}

// memory returns approximately what a value takes in addition to its own size, as counted by
// Limits.
func memory(v reflect.Value) (bytes int) {
	switch v.Kind() {
	case reflect.String:
		bytes = v.Len()
	case reflect.Slice:
		bytes = v.Len() * int(v.Type().Elem().Size())
		for i := range v.Len() {
			bytes += memory(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			bytes += int(v.Type().Key().Size()+v.Type().Elem().Size()) + memory(key) + memory(v.MapIndex(key))
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			bytes = memory(v.Elem())
			if v.Kind() == reflect.Pointer {
				bytes += int(v.Type().Elem().Size())
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			bytes += memory(v.Field(i))
		}
	}
	return bytes
}

// FuzzLimits: whatever a reply contains, its decoded form takes no more than the limit, and a limit
// has no other effect.
func FuzzLimits(f *testing.F) {
	for _, v := range []any{
		[]any{[]any{nil, nil}, []any{}}, []any{"text", []any{int64(1), map[any]any{"k": nil}}},
		[]any{[]any{nil, "a text", []any{int64(1)}, []any{[]any{}}, map[any]any{"k": []any{}}, nil, "bytes"}},
	} {
		f.Add(iproto.AppendAny(nil, v), uint16(10), uint16(1000))
	}
	f.Add([]byte("\xdc\x00\x20\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0\xc0"), uint16(100), uint16(100))
	// Most of the memory of these values is a pointer, or a pair of a map.
	pointer := []any{[]any{[]any{int64(1), int64(2), int64(3), int64(4)}, "", nil, nil, nil, make([]any, 32)}}
	f.Add(iproto.AppendAny(nil, pointer), uint16(1000), uint16(300))
	f.Add(iproto.AppendAny(nil, []any{map[any]any{"k": []any{}}}), uint16(1000), uint16(100))
	f.Fuzz(func(t *testing.T, data []byte, elements, bytes uint16) {
		limits := iproto.Limits{Elements: int(elements) + 1, Bytes: int(bytes) + 1}
		for _, make := range []func() any{
			func() any { return new([]any) }, func() any { return new(any) }, func() any { return new([]sized) },
			func() any { return new([]*sized) }, func() any { return new([]map[string]sized) }, func() any { return new([][]string) },
		} {
			free, again, bounded := make(), make(), make()
			want := errors.Join(decodeData(iproto.Limits{}, data, free), decodeData(iproto.Limits{}, data, again))
			if !reflect.DeepEqual(free, again) {
				continue // it contains NaN, which is not equal to itself
			}
			err := decodeData(limits, data, bounded)
			if errors.Is(want, ErrLimit) {
				t.Fatalf("%x into %T: %v without a limit", data, free, want)
			}
			if err == nil {
				if got := memory(reflect.ValueOf(bounded).Elem()); got > limits.Bytes {
					t.Fatalf("%x into %T: %d bytes, limit %d", data, bounded, got, limits.Bytes)
				}
			}
			if !errors.Is(err, ErrLimit) && ((err == nil) != (want == nil) || !reflect.DeepEqual(bounded, free)) {
				t.Fatalf("%x into %T: %v, %v; without a limit %v, %v", data, free, bounded, err, free, want)
			}
		}
	})
}
