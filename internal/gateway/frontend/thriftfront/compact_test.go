package thriftfront

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// compactMessage is message for the Compact protocol, in a frame.
func compactMessage(method string, seq int32, args []byte) []byte {
	body := append(thrift.AppendCompactMessage(nil, method, thrift.Call, seq), args...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func compactKey(key string) []byte {
	b := thrift.AppendCompactHead(nil, thrift.CompactTypeString, 1, 0)
	return append(thrift.AppendCompactString(b, key), thrift.TypeStop)
}

func compactKeys(keys ...string) []byte {
	b := thrift.AppendCompactHead(nil, thrift.CompactTypeList, 1, 0)
	return append(thrift.AppendCompactStrings(b, keys), thrift.TypeStop)
}

// TestCompactArguments checks that arguments in the Compact protocol are read as strictly as in the Binary protocol.
func TestCompactArguments(t *testing.T) {
	bothBackends(t, echo, Config{}, func(t *testing.T, f *fixture) {
		c := f.raw(t)
		list := func(b ...byte) []byte { return append([]byte{1<<4 | thrift.CompactTypeList}, b...) }
		newer := append([]byte{thrift.CompactTypeTrue, 9 << 1}, append([]byte{thrift.CompactTypeString, 1 << 1, 2}, "42\x00"...)...)
		many := make([]string, maxKeys+1)
		const wrong = "the arguments do not match the method"
		for name, row := range map[string]struct {
			method string
			args   []byte
			want   string
		}{
			"none":                 {"get_depts", []byte{0}, wrong},
			"nothing":              {"get_depts", nil, wrong},
			"twice":                {"get_depts", append(compactKey("1")[:3], append([]byte{thrift.CompactTypeString, 1 << 1}, compactKey("2")[1:]...)...), wrong},
			"another type":         {"get_depts", []byte{1<<4 | thrift.CompactTypeI32, 2, 0}, wrong},
			"trailing":             {"get_depts", append(compactKey("1"), 0), wrong},
			"short":                {"get_depts", []byte{1<<4 | thrift.CompactTypeString, 9, 'x', 0}, wrong},
			"a huge length":        {"get_depts", []byte{1<<4 | thrift.CompactTypeString, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0}, wrong},
			"a long key":           {"get_depts", compactKey(strings.Repeat("9", maxKey+1)), "longer than 8192 bytes"},
			"no key":               {"list_depts", list(thrift.CompactTypeString, 0), "1 to 1000 keys"},
			"too many keys":        {"list_depts", compactKeys(many...), "1 to 1000 keys"},
			"a huge count":         {"list_depts", list(0xF0|thrift.CompactTypeString, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0), wrong},
			"numbers":              {"list_depts", list(1<<4|thrift.CompactTypeI32, 2, 0), wrong},
			"a field of newer IDL": {"get_depts", newer, "42"},
			"many keys":            {"list_depts", compactKeys(strings.Split(strings.Repeat("42 ", 20)+"43", " ")...), "43"},
			"an unknown method":    {"get_x", compactKey("1"), "there is no method"},
		} {
			c.send(compactMessage(row.method, 300, row.args))
			got := c.reply()
			if !strings.Contains(got, row.want) {
				t.Errorf("%s: %q", name, got)
			}
			var m thrift.Message
			if at := thrift.ReadCompactMessage([]byte(got), 4, &m); at < 0 || m.Seq != 300 || thrift.SkipCompact([]byte(got), at, thrift.CompactTypeStruct, thrift.MaxDepth) != len(got) {
				t.Errorf("%s: the answer is not a message: %q", name, got)
			}
		}
	})
}

// TestCompactIsConvertedByWorkers checks that a turn converts only a few KiB for a call, and that forms stay as they
// are.
func TestCompactIsConvertedByWorkers(t *testing.T) {
	load := func(_ context.Context, _ cache.ResourceID, id string) ([]byte, error) {
		return fmt.Appendf(nil, `{"id":%q,"n":300,"text":%q}`, id, strings.Repeat("x", 1500)), nil
	}
	f := newFixture(t, load, Config{})
	k := &call{session: &session{server: f.server}, method: f.server.live.Load().methods["list_depts"], format: frame.Format{Compact: true}}
	for i := range 3 {
		a, err := f.cache.Get(t.Context(), cache.Key{ID: fmt.Sprint(i)}, f.cache.Now())
		if err != nil {
			t.Fatal(err)
		}
		k.slots = append(k.slots, slot{doc: a.Doc})
	}
	again := func() {
		t.Helper()
		if k.fresh = 0; k.encode(false) != nil {
			t.Fatal("the documents have no forms")
		}
		k.fresh = 0
	}
	again()
	form := string(k.slots[0].body)
	if got := k.convert(true); got != errLater || k.fresh != 0 || string(k.slots[0].body) != form {
		t.Errorf("in a turn: %+v after %d bytes", got, k.fresh)
	}
	if got := k.convert(false); got != nil || k.fresh < 4500 {
		t.Errorf("by a worker: %+v after %d bytes", got, k.fresh)
	}
	want := append([]byte{1<<4 | thrift.CompactTypeString, 1, '0', 1<<4 | thrift.CompactTypeI64, 0xD8, 0x04, 1<<4 | thrift.CompactTypeString, 0xDC, 0x0B}, strings.Repeat("x", 1500)+"\x00"...)
	if got := string(k.slots[0].body); got != string(want) {
		t.Errorf("the document is %.60q, want %.60q", got, want)
	}
	k.slots = k.slots[:2]
	again()
	if string(k.slots[0].body) != form {
		t.Error("the form was changed")
	}
	if got := k.convert(true); got != nil {
		t.Errorf("two documents in a turn: %+v", got)
	}
	if got := k.fits(maxTogether + 1); got != failTogether {
		t.Errorf("a large batch: %+v", got)
	}
}
