package generic_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/generic"
)

func TestMessagesOfAFunction(t *testing.T) {
	s := file(t, `exception Gone { 1: string why }
service Base { void ping() }
service S extends Base { i32 add(1: i32 a, 2: i32 b = 7) throws (1: Gone gone) oneway void tell(1: string s) }`).Service("S")
	add, tell, ping := s.Function("add"), s.Function("tell"), s.Function("ping")
	for name, c := range codecs {
		for _, m := range []*generic.Message{
			{Function: add, Type: thrift.Call, Seq: 5, Value: map[string]any{"a": int32(1), "b": int32(2)}},
			{Function: add, Type: thrift.Reply, Seq: -5, Value: map[string]any{"success": int32(3)}},
			{Function: add, Type: thrift.Reply, Value: map[string]any{"gone": map[string]any{"why": "x"}}},
			{Function: add, Type: thrift.Exception, Exception: &thrift.ApplicationException{Kind: thrift.InternalError, Message: "y"}},
			{Function: tell, Type: thrift.Oneway, Value: map[string]any{"s": "x"}},
			{Function: ping, Type: thrift.Reply, Value: map[string]any{}},
		} {
			b, err := c.AppendMessage([]byte("x"), m)
			if err != nil {
				t.Fatal(name, err)
			}
			got, n, err := c.ReadMessage(append(b, "rest"...), 1, s)
			if err != nil || n != len(b) || !reflect.DeepEqual(got, m) {
				t.Errorf("%s: %d of %d, %v: %+v, not %+v", name, n, len(b), err, got, m)
			}
		}
		b, err := c.AppendMessage(nil, &generic.Message{Function: add, Type: thrift.Call, Value: map[string]any{}})
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := c.ReadMessage(b, 0, s); err != nil || !reflect.DeepEqual(got.Value, map[string]any{"a": int32(0), "b": int32(7)}) {
			t.Errorf("%s: %v: the defaults are %+v", name, err, got)
		}
		if _, n, err := c.ReadMessage(b[:len(b)-1], 0, s); err == nil {
			t.Errorf("%s: read %d bytes of a truncated message", name, n)
		}
		for _, m := range []*generic.Message{{Function: add, Type: thrift.Exception}, {Function: add, Type: 9}, {Function: add, Type: thrift.Call, Value: map[string]any{"c": 1}}} {
			if out, err := c.AppendMessage(b, m); err == nil || len(out) != len(b) {
				t.Errorf("%s: %+v was written", name, m)
			}
		}
		b = thrift.AppendMessage(nil, "lose", thrift.Call, 9)
		if c.Compact {
			b = thrift.AppendCompactMessage(nil, "lose", thrift.Call, 9)
		}
		m, _, err := c.ReadMessage(append(b, 0), 0, s)
		if unknown, ok := errors.AsType[*thrift.ApplicationException](err); !ok || unknown.Kind != thrift.UnknownMethod || m.Seq != 9 || m.Type != thrift.Call || m.Function != nil {
			t.Errorf("%s: %v, %+v", name, err, m)
		}
		if m, _, err := c.ReadMessage(nil, 0, s); err == nil || m != nil {
			t.Errorf("%s: an empty input is %+v", name, m)
		}
	}
}
