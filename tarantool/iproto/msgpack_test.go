package iproto

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// vectors are values with their smallest encodings according to the MessagePack specification.
var vectors = []struct {
	encoded string // in hexadecimal, up to "..."
	v       any
}{
	{"c0", nil},
	{"c2", false},
	{"c3", true},
	{"00", int64(0)},
	{"7f", int64(127)},
	{"cc80", int64(128)},
	{"ccff", int64(255)},
	{"cd0100", int64(256)},
	{"cdffff", int64(65535)},
	{"ce00010000", int64(65536)},
	{"ceffffffff", int64(math.MaxUint32)},
	{"cf0000000100000000", int64(math.MaxUint32 + 1)},
	{"cf7fffffffffffffff", int64(math.MaxInt64)},
	{"cf8000000000000000", uint64(math.MaxInt64 + 1)},
	{"cfffffffffffffffff", uint64(math.MaxUint64)},
	{"ff", int64(-1)},
	{"e0", int64(-32)},
	{"d0df", int64(-33)},
	{"d080", int64(-128)},
	{"d1ff7f", int64(-129)},
	{"d18000", int64(math.MinInt16)},
	{"d2ffff7fff", int64(math.MinInt16 - 1)},
	{"d280000000", int64(math.MinInt32)},
	{"d3ffffffff7fffffff", int64(math.MinInt32 - 1)},
	{"d38000000000000000", int64(math.MinInt64)},
	{"ca3fc00000", float32(1.5)},
	{"cb3ff8000000000000", 1.5},
	{"cbfff0000000000000", math.Inf(-1)},
	{"a0", ""},
	{"a3666f6f", "foo"},
	{"bf61...", strings.Repeat("a", 31)},
	{"d92061...", strings.Repeat("a", 32)},
	{"d9ff61...", strings.Repeat("a", 255)},
	{"da010061...", strings.Repeat("a", 256)},
	{"daffff61...", strings.Repeat("a", 65535)},
	{"db0001000061...", strings.Repeat("a", 65536)},
	{"c400", []byte{}},
	{"c403010203", []byte{1, 2, 3}},
	{"c4ff61...", bytes.Repeat([]byte("a"), 255)},
	{"c5010061...", bytes.Repeat([]byte("a"), 256)},
	{"c60001000061...", bytes.Repeat([]byte("a"), 65536)},
	{"90", []any{}},
	{"93c0c301", []any{nil, true, int64(1)}},
	{"9fc0...", make([]any, 15)},
	{"dc0010c0...", make([]any, 16)},
	{"dcffffc0...", make([]any, 65535)},
	{"dd00010000c0...", make([]any, 65536)},
	{"80", map[any]any{}},
	{"81a16101", map[any]any{"a": int64(1)}},
	{"81ff92c202", map[any]any{int64(-1): []any{false, int64(2)}}},
	{"d46501", Ext{101, []byte{1}}},
	{"d5650102", Ext{101, []byte{1, 2}}},
	{"d66501020304", Ext{101, []byte{1, 2, 3, 4}}},
	{"d7650102030405060708", Ext{101, []byte{1, 2, 3, 4, 5, 6, 7, 8}}},
	{"d86561...", Ext{101, bytes.Repeat([]byte("a"), 16)}},
	{"c70065", Ext{101, []byte{}}},
	{"c7ff6561...", Ext{101, bytes.Repeat([]byte("a"), 255)}},
	{"c803e89c61...", Ext{-100, bytes.Repeat([]byte("a"), 1000)}},
	{"c9000100006561...", Ext{101, bytes.Repeat([]byte("a"), 65536)}},
}

func TestVectors(t *testing.T) {
	for _, c := range vectors {
		prefix, open := strings.CutSuffix(c.encoded, "...")
		want := testkit.Unhex(t, prefix)
		got := AppendAny([]byte("x"), c.v)[1:]
		if !bytes.HasPrefix(got, want) || !open && len(got) != len(want) {
			t.Errorf("AppendAny(%.40v) = %x..., want %s", c.v, got[:min(len(got), len(want)+2)], c.encoded)
		}
		d := NewDecoder(got)
		wantV := c.v
		if f, ok := c.v.(float32); ok {
			wantV = float64(f)
		}
		if v := d.Any(); d.Err() != nil || d.Len() != 0 || !reflect.DeepEqual(v, wantV) {
			t.Errorf("%s: Any() = %.40v, %v, %d bytes left; want %.40v", c.encoded, v, d.Err(), d.Len(), wantV)
		}
		d.Reset(got)
		if raw := d.Raw(); d.Err() != nil || !bytes.Equal(raw, got) {
			t.Errorf("%s: Raw() = %x, %v", c.encoded, raw, d.Err())
		}
		for n := range min(len(got), 100) {
			d.Reset(got[:n])
			if d.Skip(); d.Err() == nil {
				t.Errorf("%s: Skip over the first %d bytes does not fail", c.encoded, n)
			}
			d.Reset(got[:n])
			if v := d.Any(); d.Err() == nil || v != nil {
				t.Errorf("%s: Any of the first %d bytes does not fail", c.encoded, n)
			}
		}
	}
}
