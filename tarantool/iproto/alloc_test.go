package iproto

import (
	"strings"
	"testing"
)

// noAllocs fails if f allocates.
func noAllocs(t *testing.T, name string, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%s: %v allocations, want none", name, n)
	}
}

func TestReadingDoesNotAllocate(t *testing.T) {
	values := AppendAny(nil, []any{
		nil, true, int64(1 << 40), int64(-5), 1.5, "string", []byte("bytes"), decimal("-1.5"), UUID{1},
		Datetime{1, 2, 3, 4}, Interval{Years: 1, Hours: -5}, Tuple{1, []byte{0x90}}, Arrow{1}, []any{map[any]any{"k": int64(1)}},
	})
	noAllocs(t, "values of all types", func() {
		d := NewDecoder(values)
		d.Array()
		d.Nil()
		d.Bool()
		d.Int()
		d.Int()
		d.Float()
		d.StringView()
		d.BytesView()
		d.Decimal()
		d.UUID()
		d.Datetime()
		d.Interval()
		d.Tuple()
		d.Arrow()
		d.Raw()
		if d.Err() != nil || d.Len() != 0 {
			t.Fatal(d.Err())
		}
		d.Reset(values)
		if d.Skip(); d.Err() != nil || d.Len() != 0 {
			t.Fatal(d.Err())
		}
	})
}

func TestAppendersDoNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 4096)
	text, data := strings.Repeat("x", 300), make([]byte, 300)
	d, u := decimal("-99999999999999999999999999999999999999"), UUID{1}
	for name, f := range map[string]func(b []byte) []byte{
		"scalars": func(b []byte) []byte {
			return AppendFloat64(AppendFloat32(AppendUint(AppendInt(AppendBool(AppendNil(b), true), -1<<63), 1<<63), 1), 2)
		},
		"strings": func(b []byte) []byte { return AppendBytes(AppendStringBytes(AppendString(b, text), data), data) },
		"heads":   func(b []byte) []byte { return AppendExt(AppendMap(AppendArray(b, 1<<20), 1<<20), 5, data) },
		"extensions": func(b []byte) []byte {
			return AppendInterval(AppendDatetime(AppendUUID(AppendDecimal(b, d), u), Datetime{1, 2, 3, 4}), Interval{1, 2, 3, 4, 5, 6, 7, 8, 1})
		},
		"tuple": func(b []byte) []byte { return AppendArrow(AppendTuple(b, Tuple{1 << 40, data}), data) },
	} {
		noAllocs(t, name, func() {
			if len(f(buf)) == 0 {
				t.Fatal(name)
			}
		})
	}
}
