package box

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// keyed is the body of a request: the value for each key.
type keyed map[any]any

func TestBodies(t *testing.T) {
	key := func(b []byte) []byte { return iproto.AppendUint(iproto.AppendArray(b, 1), 7) }
	ops := func(b []byte) []byte { return iproto.AppendArray(b, 0) }
	byName := Target{SpaceName: "s", IndexName: "i"}
	none := []any{}
	seven := []any{int64(7)}
	for _, c := range []struct {
		name string
		body []byte
		want keyed
	}{
		{"select", key(AppendSelectHead(nil, 512, 1, 1000, 2, 5)), keyed{KeySpaceID: 512, KeyIndexID: 1, KeyLimit: 1000, KeyOffset: 2, KeyIterator: 5, KeyKey: seven}},
		{"select of all", key((&Select{
			Target: Target{Space: 512, Index: 1}, Limit: 1000, Offset: 2, Iterator: 5,
			FetchPosition: true, AfterPosition: []byte("pos"), AfterTuple: key(nil),
		}).AppendHead(nil)), keyed{
			KeySpaceID: 512, KeyIndexID: 1, KeyLimit: 1000, KeyOffset: 2, KeyIterator: 5, KeyKey: seven,
			KeyFetchPosition: true, KeyAfterPosition: "pos", KeyAfterTuple: seven,
		}},
		{"select by name", key((&Select{Target: byName, Limit: math.MaxUint32}).AppendHead(nil)), keyed{KeySpaceName: "s", KeyIndexName: "i", KeyLimit: math.MaxUint32, KeyOffset: 0, KeyIterator: 0, KeyKey: seven}},
		{"insert", key(AppendInsertHead(nil, 512)), keyed{KeySpaceID: 512, KeyTuple: seven}},
		{"insert by name", key(byName.AppendInsertHead(nil)), keyed{KeySpaceName: "s", KeyTuple: seven}},
		{"update", ops(AppendKey(key(AppendUpdateHead(nil, 512, 1)), KeyTuple)), keyed{KeySpaceID: 512, KeyIndexID: 1, KeyKey: seven, KeyTuple: none}},
		{"update by name", ops(AppendKey(key(byName.AppendUpdateHead(nil)), KeyTuple)), keyed{KeySpaceName: "s", KeyIndexName: "i", KeyKey: seven, KeyTuple: none}},
		{"upsert", ops(AppendKey(key(AppendUpsertHead(nil, 512)), KeyOperations)), keyed{KeySpaceID: 512, KeyTuple: seven, KeyOperations: none}},
		{"upsert by name", ops(AppendKey(key(byName.AppendUpsertHead(nil)), KeyOperations)), keyed{KeySpaceName: "s", KeyTuple: seven, KeyOperations: none}},
		{"delete", key(AppendDeleteHead(nil, 512, 1)), keyed{KeySpaceID: 512, KeyIndexID: 1, KeyKey: seven}},
		{"delete by name", key(byName.AppendDeleteHead(nil)), keyed{KeySpaceName: "s", KeyIndexName: "i", KeyKey: seven}},
		{"call", ops(AppendCallHead(nil, "f.g")), keyed{KeyFunctionName: "f.g", KeyTuple: none}},
		{"eval", ops(AppendEvalHead(nil, "return 1")), keyed{KeyExpression: "return 1", KeyTuple: none}},
		{"execute", key(AppendExecuteHead(nil, "select ?")), keyed{KeySQLText: "select ?", KeySQLBind: seven}},
		{"execute a statement", key(AppendExecuteIDHead(nil, 1<<31)), keyed{KeyStatementID: 1 << 31, KeySQLBind: seven}},
		{"prepare", AppendPrepare(nil, "select 1"), keyed{KeySQLText: "select 1"}},
		{"unprepare", AppendUnprepare(nil, 3), keyed{KeyStatementID: 3}},
		{"auth", AppendAuth(nil, "alice", AuthSHA1, []byte("proof")), keyed{KeyUserName: "alice", KeyTuple: []any{"chap-sha1", "proof"}}},
		{"id", AppendID(nil, 3, []Feature{FeatureStreams, FeatureArrow}, ""), keyed{KeyVersion: 3, KeyFeatures: []any{int64(0), int64(12)}}},
		{"id with auth", AppendID(nil, 10, nil, AuthSHA256), keyed{KeyVersion: 10, KeyFeatures: none, KeyAuthType: "pap-sha256"}},
		{"begin", Begin{}.Append(nil), keyed{}},
		{"begin with all", Begin{1.5, 4, true}.Append(nil), keyed{KeyTimeout: 1.5, KeyIsolation: 4, KeyIsSync: true}},
		{"begin without end", Begin{Timeout: math.Inf(1)}.Append(nil), keyed{}},
		{"commit", AppendCommit(nil, false), keyed{}},
		{"commit with quorum", AppendCommit(nil, true), keyed{KeyIsSync: true}},
		{"rollback", AppendRollback(nil), keyed{}},
		{"watch", AppendWatch(nil, "box.shutdown"), keyed{KeyEventKey: "box.shutdown"}},
	} {
		want := make(map[any]any)
		for k, v := range c.want {
			if n, ok := v.(int); ok {
				v = int64(n)
			}
			want[int64(k.(Key))] = v
		}
		d := iproto.NewDecoder(c.body)
		if got := d.Any(); d.Err() != nil || d.Len() != 0 || !reflect.DeepEqual(got, any(want)) {
			t.Errorf("%s: %x is %v, %v, want %v", c.name, c.body, got, d.Err(), want)
		}
	}
}

// The functions append, and they leave the existing bytes unchanged.
func TestBodiesAreAppended(t *testing.T) {
	before := []byte("before")
	for name, f := range map[string]func(b []byte) []byte{
		"commit": func(b []byte) []byte { return AppendCommit(b, true) },
		"begin":  Begin{1, 1, true}.Append,
		"ping":   AppendPing,
		"reply":  func(b []byte) []byte { return AppendReply(b, 1, 1) },
		"error":  func(b []byte) []byte { return AppendError(b, 1, 1, &iproto.BoxError{}) },
		"id":     func(b []byte) []byte { return AppendID(b, 1, nil, "") },
	} {
		alone, behind := f(nil), f(bytes.Clone(before))
		if !bytes.Equal(behind, append(bytes.Clone(before), alone...)) {
			t.Errorf("%s: %x, and after a prefix %x", name, alone, behind)
		}
	}
}
