package box

import (
	"math"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// syncAt is the offset of the sync in a request, not counting the sync's type byte.
const syncAt = 10

// BeginRequest appends everything that precedes the body of a request: its length, which
// [EndRequest] fills in, its type, and its sync, which [PutSync] fills in.
func BeginRequest(b []byte, code Code) []byte {
	return append(b, uint32b, 0, 0, 0, 0, // length
		fixMap|2, byte(KeyCode), byte(code), byte(KeySync), uint64b, 0, 0, 0, 0, 0, 0, 0, 0)
}

// EndRequest fills in the length of the request that starts at offset from. The length must be less
// than 4 GiB, and servers have lower limits.
func EndRequest(b []byte, from int) []byte {
	putBE32(b[from+1:], uint32(len(b)-from-5))
	return b
}

// PutSync sets the sync of the request at the start of frame.
func PutSync(frame []byte, sync uint64) { putBE64(frame[syncAt:], sync) }

// Sync returns the sync of a request that [BeginRequest] wrote.
func Sync(frame []byte) uint64 { return be64(frame[syncAt:]) }

// AppendKey appends the key of a pair of the body.
func AppendKey(b []byte, k Key) []byte { return append(b, byte(k)) }

// appendPair appends a key and a number.
func appendPair(b []byte, k Key, v uint32) []byte {
	return iproto.AppendUint(append(b, byte(k)), uint64(v))
}

// The functions whose names end in Head append the body of a request except its last value, which
// the caller appends: the parts of a key, the fields of a tuple, the arguments or the operations,
// always as an array.

// AppendSelectHead appends the body of a select except the key at its end.
func AppendSelectHead(b []byte, space, index, limit, offset, iterator uint32) []byte {
	b = append(b, fixMap|6)
	b = appendPair(b, KeySpaceID, space)
	b = appendPair(b, KeyIndexID, index)
	b = appendPair(b, KeyLimit, limit)
	b = appendPair(b, KeyOffset, offset)
	b = appendPair(b, KeyIterator, iterator)
	return append(b, byte(KeyKey))
}

// Target identifies the space, and the index if any, of a request: by number or, if the server has
// [FeatureNames], by name.
type Target struct {
	Space, Index uint32
	// SpaceName and IndexName, if not empty, are sent instead of the numbers.
	SpaceName, IndexName string
}

func (t *Target) appendSpace(b []byte) []byte {
	if t.SpaceName != "" {
		return iproto.AppendString(append(b, byte(KeySpaceName)), t.SpaceName)
	}
	return appendPair(b, KeySpaceID, t.Space)
}

func (t *Target) appendIndex(b []byte) []byte {
	if t.IndexName != "" {
		return iproto.AppendString(append(b, byte(KeyIndexName)), t.IndexName)
	}
	return appendPair(b, KeyIndexID, t.Index)
}

// Select is the body of a select with all its options.
type Select struct {
	Target
	Limit, Offset uint32
	Iterator      uint32
	// FetchPosition requests the position of the last tuple. This and the
	// following fields need [FeaturePagination]. Other servers ignore them.
	FetchPosition bool
	// AfterPosition is a position from an earlier reply. The select starts after it.
	AfterPosition []byte
	// AfterTuple is an encoded tuple. The select starts after it.
	AfterTuple []byte
}

// AppendHead appends the body except the key at its end.
func (s *Select) AppendHead(b []byte) []byte {
	n := 6
	if s.FetchPosition {
		n++
	}
	if s.AfterPosition != nil {
		n++
	}
	if s.AfterTuple != nil {
		n++
	}
	b = s.appendIndex(s.appendSpace(append(b, fixMap|byte(n))))
	b = appendPair(b, KeyLimit, s.Limit)
	b = appendPair(b, KeyOffset, s.Offset)
	b = appendPair(b, KeyIterator, s.Iterator)
	if s.FetchPosition {
		b = append(b, byte(KeyFetchPosition), yes)
	}
	if s.AfterPosition != nil {
		b = iproto.AppendStringBytes(append(b, byte(KeyAfterPosition)), s.AfterPosition)
	}
	if s.AfterTuple != nil {
		b = append(append(b, byte(KeyAfterTuple)), s.AfterTuple...)
	}
	return append(b, byte(KeyKey))
}

// AppendInsertHead appends the body of an insert or replace except the tuple at its end.
func AppendInsertHead(b []byte, space uint32) []byte {
	b = appendPair(append(b, fixMap|2), KeySpaceID, space)
	return append(b, byte(KeyTuple))
}

// AppendInsertHead is like the function [AppendInsertHead], for a Target.
func (t *Target) AppendInsertHead(b []byte) []byte {
	return append(t.appendSpace(append(b, fixMap|2)), byte(KeyTuple))
}

// AppendUpdateHead appends the body of an update except the key and what follows it: [KeyTuple] and
// the operations. The operations number fields from 0.
func AppendUpdateHead(b []byte, space, index uint32) []byte {
	b = appendPair(append(b, fixMap|4), KeySpaceID, space)
	b = appendPair(b, KeyIndexID, index)
	return append(b, byte(KeyKey))
}

// AppendUpdateHead is like the function [AppendUpdateHead], for a Target.
func (t *Target) AppendUpdateHead(b []byte) []byte {
	return append(t.appendIndex(t.appendSpace(append(b, fixMap|4))), byte(KeyKey))
}

// AppendUpsertHead appends the body of an upsert except the tuple and what follows it:
// [KeyOperations] and the operations. The operations number fields from 0.
func AppendUpsertHead(b []byte, space uint32) []byte {
	b = appendPair(append(b, fixMap|3), KeySpaceID, space)
	return append(b, byte(KeyTuple))
}

// AppendUpsertHead is like the function [AppendUpsertHead], for a Target.
func (t *Target) AppendUpsertHead(b []byte) []byte {
	return append(t.appendSpace(append(b, fixMap|3)), byte(KeyTuple))
}

// AppendDeleteHead appends the body of a delete except the key at its end.
func AppendDeleteHead(b []byte, space, index uint32) []byte {
	b = appendPair(append(b, fixMap|3), KeySpaceID, space)
	b = appendPair(b, KeyIndexID, index)
	return append(b, byte(KeyKey))
}

// AppendDeleteHead is like the function [AppendDeleteHead], for a Target.
func (t *Target) AppendDeleteHead(b []byte) []byte {
	return append(t.appendIndex(t.appendSpace(append(b, fixMap|3))), byte(KeyKey))
}

// AppendCallHead appends the body of a call except the arguments at its end.
func AppendCallHead(b []byte, function string) []byte {
	b = iproto.AppendString(append(b, fixMap|2, byte(KeyFunctionName)), function)
	return append(b, byte(KeyTuple))
}

// AppendEvalHead appends the body of an eval except the arguments at its end.
func AppendEvalHead(b []byte, expression string) []byte {
	b = iproto.AppendString(append(b, fixMap|2, byte(KeyExpression)), expression)
	return append(b, byte(KeyTuple))
}

// AppendExecuteHead appends the body of an execute except the parameters at its end: an array of
// values, in which a named value is a map with one pair.
func AppendExecuteHead(b []byte, sql string) []byte {
	b = iproto.AppendString(append(b, fixMap|2, byte(KeySQLText)), sql)
	return append(b, byte(KeySQLBind))
}

// AppendExecuteIDHead is like [AppendExecuteHead] for a prepared statement.
func AppendExecuteIDHead(b []byte, statement uint32) []byte {
	b = appendPair(append(b, fixMap|2), KeyStatementID, statement)
	return append(b, byte(KeySQLBind))
}

// AppendPrepare appends the body of a prepare.
func AppendPrepare(b []byte, sql string) []byte {
	return iproto.AppendString(append(b, fixMap|1, byte(KeySQLText)), sql)
}

// AppendUnprepare appends the body of a prepare that releases a statement.
func AppendUnprepare(b []byte, statement uint32) []byte {
	return appendPair(append(b, fixMap|1), KeyStatementID, statement)
}

// AppendPing appends a whole request, with sync 0.
func AppendPing(b []byte) []byte {
	from := len(b)
	return EndRequest(append(BeginRequest(b, CodePing), fixMap), from)
}

// AppendID appends the body of the request that lists the features of the client and requests
// those of the server. If authType is empty, it is omitted.
func AppendID(b []byte, version uint32, features []Feature, authType string) []byte {
	n := byte(2)
	if authType != "" {
		n++
	}
	b = appendPair(append(b, fixMap|n), KeyVersion, version)
	b = iproto.AppendArray(append(b, byte(KeyFeatures)), len(features))
	for _, f := range features {
		b = iproto.AppendUint(b, uint64(f))
	}
	if authType != "" {
		b = iproto.AppendString(append(b, byte(KeyAuthType)), authType)
	}
	return b
}

// Begin is the body of a begin request. The zero value leaves every choice to the server.
type Begin struct {
	// Timeout is in seconds. When it expires, the server rolls back the transaction.
	Timeout float64
	// Isolation is one of Tarantool's isolation levels, or 0 for the one set in box.cfg.
	Isolation uint8
	// IsSync makes the commit wait for the quorum. It needs [FeatureIsSync].
	IsSync bool
}

// Append appends the body.
func (o Begin) Append(b []byte) []byte {
	head := len(b)
	b = append(b, fixMap)
	if o.Timeout > 0 && !math.IsInf(o.Timeout, 1) {
		b[head]++
		b = iproto.AppendFloat64(append(b, byte(KeyTimeout)), o.Timeout)
	}
	if o.Isolation != 0 {
		b[head]++
		b = append(b, byte(KeyIsolation), o.Isolation)
	}
	return appendIsSync(b, head, o.IsSync)
}

func appendIsSync(b []byte, head int, isSync bool) []byte {
	if isSync {
		b[head]++
		b = append(b, byte(KeyIsSync), yes)
	}
	return b
}

// AppendCommit appends the body of a commit.
func AppendCommit(b []byte, isSync bool) []byte {
	return appendIsSync(append(b, fixMap), len(b), isSync)
}

// AppendRollback appends the body of a rollback.
func AppendRollback(b []byte) []byte { return append(b, fixMap) }

// AppendWatch appends the body of a watch, unwatch or watch-once request.
func AppendWatch(b []byte, key string) []byte {
	return iproto.AppendString(append(b, fixMap|1, byte(KeyEventKey)), key)
}
