package box

import (
	"errors"
	"reflect"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// captured contains messages from a Tarantool 2.6.0 server.
var captured = map[string]string{
	"ping":      "ce00000018 8300ce0000000001cf000000000000000705ce00000050 80",
	"select":    "ce00000024 8300ce0000000001cf000000000000000705ce00000050 8130dd000000019201a36f6e65",
	"push":      "ce0000001f 8300ce0000008001cf000000000000000705ce00000050 8130dd0000000101",
	"eval":      "ce00000024 8300ce0000000001cf000000000000000705ce00000050 8130dd00000003c3c081a16101",
	"no space":  "ce0000007c 8300ce0000802401cf000000000000000705ce00000050 8231ba537061636520273939392720646f6573206e6f74206578697374528100918600ab436c69656e744572726f72025401b22e2f7372632f626f782f736368656d612e6803ba537061636520273939392720646f6573206e6f7420657869737404000524",
	"lua error": "ce00000061 8300ce0000802001cf000000000000000705ce00000050 8231ac6576616c3a313a20626f6f6d528100918600ab4c75616a69744572726f7202cd03ed01b12e2f7372632f6c75612f7574696c732e6303ac6576616c3a313a20626f6f6d04000520",
	"two errors": "ce00000081 8300ce0000800101cf000000000000000705ce00000050 8231b5496c6c6567616c20706172616d65746572732c2061528100928600ab436c69656e744572726f72020101a46576616c03" +
		"b5496c6c6567616c20706172616d65746572732c2061040005018600ab436c69656e744572726f72020101a46576616c03a16204000507",
	"returned errors": "ce00000085 8300ce0000000001cf000000000000000705ce00000050 8130dd00000001c764038100928600ab436c69656e744572726f72020101a46576616c03b5496c6c6567616c20706172616d65746572732c2061" +
		"040005018700ab437573746f6d4572726f72020101a46576616c03a162040005070681ab637573746f6d5f74797065a44d696e65",
	"create table": "ce0000001c 8300ce0000000001cf000000000000000705ce00000052 8142810001",
	"insert":       "ce00000020 8300ce0000000001cf000000000000000705ce00000052 814282000201920102",
	"columns":      "ce0000003e 8300ce0000000001cf000000000000000705ce00000052 8232928200a2494401a7696e74656765728200a15601a6737472696e6730929201a1619202a162",
	"all of columns": "ce00000067 8300ce0000000001cf000000000000000705ce00000052 8232938500a2494401a7696e746567657203c204c305a269648400a15801a6737472696e6703c305a1768300a8434f4c554d4e5f31" +
		"01a7696e746567657205a469642b3130929301a161029302a16203",
	"prepare": "ce00000055 8300ce0000000001cf000000000000000705ce00000052 8443ce36b41152340133918200a23a6101a3414e5932928500a2494401a7696e746567657203c204c305a269648400a15601a6737472696e6703c305a176",
}

// parseCaptured scans a captured message and reads its body.
func parseCaptured(t *testing.T, name string) (Message, Response) {
	t.Helper()
	b := testkit.Unhex(t, captured[name])
	m, err := new(Scanner).Scan(b)
	if err != nil || m.Len != len(b) || m.Sync != 7 || m.BodyAt != replyHead {
		t.Fatalf("%s: %+v, %v", name, m, err)
	}
	r, err := ParseBody(m.Code, b[m.BodyAt:])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m, r
}

func TestCapturedData(t *testing.T) {
	for _, c := range []struct {
		name   string
		kind   MessageKind
		schema uint64
		data   any
	}{
		{"ping", Reply, 80, nil},
		{"select", Reply, 80, []any{[]any{int64(1), "one"}}},
		{"push", Push, 80, []any{int64(1)}},
		{"eval", Reply, 80, []any{true, nil, map[any]any{"a": int64(1)}}},
		{"create table", Reply, 82, nil},
		{"columns", Reply, 82, []any{[]any{int64(1), "a"}, []any{int64(2), "b"}}},
		{"returned errors", Reply, 80, []any{&iproto.BoxError{
			Type: "ClientError", File: "eval", Line: 1, Message: "Illegal parameters, a", Code: 1,
			Cause: &iproto.BoxError{Type: "CustomError", File: "eval", Line: 1, Message: "b", Code: 7, Fields: map[string]any{"custom_type": "Mine"}},
		}}},
	} {
		m, r := parseCaptured(t, c.name)
		if m.Kind != c.kind || m.Schema != c.schema || r.Error != nil {
			t.Errorf("%s: %+v, error %v", c.name, m, r.Error)
		}
		if c.data == nil {
			if r.Data != nil {
				t.Errorf("%s: data %x", c.name, r.Data)
			}
			continue
		}
		d := iproto.NewDecoder(r.Data)
		if v := d.Any(); d.Err() != nil || d.Len() != 0 || !reflect.DeepEqual(v, c.data) {
			t.Errorf("%s: %v, %v, want %v", c.name, v, d.Err(), c.data)
		}
	}
}

func TestCapturedErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		want *iproto.BoxError
		text string
	}{
		{"no space", &iproto.BoxError{Type: "ClientError", File: "./src/box/schema.h", Line: 84, Message: "Space '999' does not exist", Code: 36}, "Space '999' does not exist (NO_SUCH_SPACE)"},
		{"lua error", &iproto.BoxError{Type: "LuajitError", File: "./src/lua/utils.c", Line: 1005, Message: "eval:1: boom", Code: 32}, "eval:1: boom (PROC_LUA)"},
		{"two errors", &iproto.BoxError{
			Type: "ClientError", File: "eval", Line: 1, Message: "Illegal parameters, a", Code: 1,
			Cause: &iproto.BoxError{Type: "ClientError", File: "eval", Line: 1, Message: "b", Code: 7},
		}, "Illegal parameters, a (ILLEGAL_PARAMS)"},
	} {
		m, r := parseCaptured(t, c.name)
		if m.Kind != Reply || m.Code != uint32(CodeError)|c.want.Code || !reflect.DeepEqual(r.Error, c.want) || r.Error.Error() != c.text {
			t.Errorf("%s: %+v, %v", c.name, m, r.Error)
		}
		if got, want := errors.Unwrap(r.Error) != nil, c.want.Cause != nil; got != want {
			t.Errorf("%s: has a cause: %v", c.name, got)
		}
	}
}

func TestCapturedSQL(t *testing.T) {
	for _, c := range []struct {
		name      string
		rows      uint64
		generated []int64
		columns   []Column
		params    []Column
	}{
		{name: "create table", rows: 1},
		{name: "insert", rows: 2, generated: []int64{1, 2}},
		{name: "columns", columns: []Column{{Name: "ID", Type: "integer"}, {Name: "V", Type: "string"}}},
		{name: "all of columns", columns: []Column{
			{Name: "ID", Type: "integer", Autoincrement: true, Span: "id"},
			{Name: "X", Type: "string", Nullable: true, Span: "v"},
			{Name: "COLUMN_1", Type: "integer", Span: "id+1"},
		}},
		{
			name: "prepare", params: []Column{{Name: ":a", Type: "ANY"}},
			columns: []Column{{Name: "ID", Type: "integer", Autoincrement: true, Span: "id"}, {Name: "V", Type: "string", Nullable: true, Span: "v"}},
		},
	} {
		_, r := parseCaptured(t, c.name)
		rows, generated, err := ParseSQLInfo(r.SQLInfo)
		if rows != c.rows || !reflect.DeepEqual(generated, c.generated) || err != nil {
			t.Errorf("%s: %d rows, generated %d, %v", c.name, rows, generated, err)
		}
		columns, err := columnsOf(r.Metadata)
		if !reflect.DeepEqual(columns, c.columns) || err != nil {
			t.Errorf("%s: columns %+v, %v", c.name, columns, err)
		}
		params, err := columnsOf(r.BindMetadata)
		if !reflect.DeepEqual(params, c.params) || len(params) != int(r.BindCount) || err != nil {
			t.Errorf("%s: parameters %+v of %d, %v", c.name, params, r.BindCount, err)
		}
	}
	if _, r := parseCaptured(t, "prepare"); r.StatementID != 0x36b41152 {
		t.Errorf("statement %x", r.StatementID)
	}
}

func TestParseBody(t *testing.T) {
	const failed = uint32(CodeError) | uint32(iproto.CodeReadOnly)
	for _, c := range []struct {
		name, body string
		code       uint32
		want       Response
	}{
		{"empty", "", 0, Response{}},
		{"empty map", "80", 0, Response{}},
		{"data, not checked", "8130 c1ff", 0, Response{Data: []byte{0xc1, 0xff}}},
		{"data twice", "8230 9101 30 9102", 0, Response{Data: []byte{0x91, 2}}},
		{"data in a long key", "81cc30 9101", 0, Response{Data: []byte{0x91, 1}}},
		{"data in a long map", "de0001 30 9101", 0, Response{Data: []byte{0x91, 1}}},
		{"unknown keys", "83 7f 9201c0 cd1030 00 30 90", 0, Response{Data: []byte{0x90}}},
		{"key that is not a number", "83 a130 00 ff 01 30 90", 0, Response{Data: []byte{0x90}}},
		{"position", "8230 90 35 a2abcd", 0, Response{Data: []byte{0x90}, Position: []byte{0xab, 0xcd}}},
		{"formats", "8230 90 60 8100 90", 0, Response{Data: []byte{0x90}, TupleFormats: []byte{0x81, 0, 0x90}}},
		{"id", "83 54 0a 55 920003 5b a9636861702d73686131", 0, Response{Version: 10, Features: []byte{0x92, 0, 3}, AuthType: []byte("chap-sha1")}},
		{"event", "82 57 a16b 58 01", uint32(CodeEvent), Response{EventKey: []byte("k"), EventData: []byte{1}}},
		{"event without a value", "81 57 a16b", uint32(CodeEvent), Response{EventKey: []byte("k")}},
		{"text only", "81 31 a3626164", failed, Response{Error: &iproto.BoxError{Type: "ClientError", Message: "bad", Code: 7}}},
		{"text twice", "82 31 a161 31 a162", failed, Response{Error: &iproto.BoxError{Type: "ClientError", Message: "b", Code: 7}}},
		{"error without a body", "", failed, Response{Error: &iproto.BoxError{Type: "ClientError", Code: 7}}},
		{"empty stack", "82 31 a161 52 8100 90", failed, Response{Error: &iproto.BoxError{Type: "ClientError", Message: "a", Code: 7}}},
		{"stack", "81 52 8100 91 81 03 a161", failed, Response{Error: &iproto.BoxError{Message: "a"}}},
		{"error of a success", "82 31 a161 52 8100 91 80", 0, Response{}},
	} {
		r, err := ParseBody(c.code, testkit.Unhex(t, c.body))
		if err != nil || !reflect.DeepEqual(r, c.want) {
			t.Errorf("%s: %+v, %v, want %+v", c.name, r, err, c.want)
		}
	}
	for _, c := range []struct {
		body string
		code uint32
	}{
		{"90", 0}, {"c0", 0}, {"81", 0}, {"8130", 0}, {"82 30 90", 0}, {"82 30 90 31", 0}, {"81 43 a0", 0}, {"81 43 cf0000000100000000", 0},
		{"81 57 01", 0}, {"81 35 90", 0}, {"81 7f c1", 0}, {"81 31 01", failed}, {"81 52 01", failed}, {"81 52 8100", failed},
	} {
		r, err := ParseBody(c.code, testkit.Unhex(t, c.body))
		if !errors.As(err, new(*iproto.DecodeError)) || !reflect.DeepEqual(r, Response{}) {
			t.Errorf("%s: %+v, %v, want an error", c.body, r, err)
		}
	}
}

func TestParseSmallParts(t *testing.T) {
	if set, err := ParseFeatures([]byte{0x94, 0, 3, 63, 64}); set != 1|1<<3|1<<63 || err != nil {
		t.Errorf("features %b, %v", set, err)
	}
	for name, err := range map[string]error{
		"features":                     second(ParseFeatures([]byte{0x92, 0})),
		"features of another type":     second(ParseFeatures([]byte{0x91, 0xc0})),
		"columns":                      second(columnsOf([]byte{0x91})),
		"column that is not a map":     second(columnsOf([]byte{0x91, 0xc0})),
		"column with a number as name": second(columnsOf([]byte{0x91, 0x81, 0, 0})),
	} {
		if !errors.As(err, new(*iproto.DecodeError)) {
			t.Errorf("%s: %v, want an error", name, err)
		}
	}
	if _, _, err := ParseSQLInfo([]byte{0x81, 1, 0xdd, 0xff, 0xff, 0xff, 0xff}); !errors.As(err, new(*iproto.DecodeError)) {
		t.Errorf("SQL info: %v", err)
	}
	columns, err := columnsOf([]byte{0x91, 0x83, 0, 0xa1, 'n', 2, 0xc0, 99, 0x90})
	if err != nil || !reflect.DeepEqual(columns, []Column{{Name: "n"}}) {
		t.Errorf("columns %+v, %v", columns, err)
	}
}

func TestReplies(t *testing.T) {
	e := &iproto.BoxError{Type: "ClientError", File: "f", Line: 2, Message: "no", Code: 7, Cause: &iproto.BoxError{Type: "X", Message: "why", Fields: map[string]any{"k": true}}}
	for _, c := range []struct {
		name  string
		frame []byte
		want  Message
		body  Response
	}{
		{"reply", AppendReply([]byte("x"), 1<<40, 3), Message{Len: 29, Sync: 1 << 40, Schema: 3, BodyAt: 28}, Response{}},
		{"error", AppendError([]byte("x"), 5, 3, e), Message{Len: 86, Code: 0x8007, Sync: 5, Schema: 3, BodyAt: 28}, Response{Error: e}},
		{"push", AppendPush([]byte("x"), 5, 3, 1, []byte{9}), Message{Len: 36, Kind: Push, Code: 128, Sync: 5, Schema: 3, BodyAt: 28}, Response{Data: []byte{0xdd, 0, 0, 0, 1, 9}}},
		{"event", AppendEvent([]byte("x"), "k", []byte{9}), Message{Len: 34, Kind: Event, Code: 76, BodyAt: 28}, Response{EventKey: []byte("k"), EventData: []byte{9}}},
		{"event without a value", AppendEvent([]byte("x"), "k", nil), Message{Len: 32, Kind: Event, Code: 76, BodyAt: 28}, Response{EventKey: []byte("k")}},
	} {
		frame := c.frame[1:]
		m, err := new(Scanner).Scan(frame)
		if err != nil || m != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.name, m, err, c.want)
			continue
		}
		if r, err := ParseBody(m.Code, frame[m.BodyAt:]); err != nil || !reflect.DeepEqual(r, c.body) {
			t.Errorf("%s: %+v, %v, want %+v", c.name, r, err, c.body)
		}
	}
	// These functions write the same bytes as a server of version 2.6.0.
	want := testkit.Unhex(t, captured["ping"])
	if got := AppendReply(nil, 7, 80); string(got) != string(want) {
		t.Errorf("ping: %x, want %x", got, want)
	}
	want = testkit.Unhex(t, captured["two errors"])
	_, r := parseCaptured(t, "two errors")
	if got := AppendError(nil, 7, 80, r.Error); string(got) != string(want) {
		t.Errorf("error: %x, want %x", got, want)
	}
	want = testkit.Unhex(t, captured["push"])
	if got := AppendPush(nil, 7, 80, 1, []byte{1}); string(got) != string(want) {
		t.Errorf("push: %x, want %x", got, want)
	}
}
