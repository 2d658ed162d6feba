package box

import (
	"math"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// syncAt is the offset of the sync of a request, after its first byte.
const syncAt = 10

// BeginRequest appends what precedes the body of a request: its length,
// which [EndRequest] fills in, its type and its sync, which [PutSync] does.
func BeginRequest(b []byte, code Code) []byte {
	return append(b, uint32b, 0, 0, 0, 0, // length
		fixMap|2, byte(KeyCode), byte(code), byte(KeySync), uint64b, 0, 0, 0, 0, 0, 0, 0, 0)
}

// EndRequest fills in the length of the request that begins at from. It must be
// below 4 GiB, and servers have lower limits.
func EndRequest(b []byte, from int) []byte {
	putBE32(b[from+1:], uint32(len(b)-from-5))
	return b
}

// PutSync writes the sync of the request that begins with frame.
func PutSync(frame []byte, sync uint64) { putBE64(frame[syncAt:], sync) }

// Sync returns the sync of a request that was begun by [BeginRequest].
func Sync(frame []byte) uint64 { return be64(frame[syncAt:]) }

// AppendKey appends the key of a body's pair.
func AppendKey(b []byte, k Key) []byte { return append(b, byte(k)) }

// appendPair appends a key and a number.
func appendPair(b []byte, k Key, v uint32) []byte {
	return iproto.AppendUint(append(b, byte(k)), uint64(v))
}

// The functions whose names end in Head append the body of a request without its last value,
// which the caller appends: an array of the parts of the key, of the fields of the tuple, of
// arguments or of operations.

// AppendSelectHead appends the body of a select without the key that ends it.
func AppendSelectHead(b []byte, space, index, limit, offset, iterator uint32) []byte {
	b = append(b, fixMap|6)
	b = appendPair(b, KeySpaceID, space)
	b = appendPair(b, KeyIndexID, index)
	b = appendPair(b, KeyLimit, limit)
	b = appendPair(b, KeyOffset, offset)
	b = appendPair(b, KeyIterator, iterator)
	return append(b, byte(KeyKey))
}

// Target is the space, and the index, that a request is about: by numbers, or by
// names for a server with [FeatureNames].
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
	// AfterPosition is a position from an earlier reply, after which the select starts.
	AfterPosition []byte
	// AfterTuple is an encoded tuple, after which the select starts.
	AfterTuple []byte
}

// AppendHead appends the body without the key that ends it.
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

// AppendInsertHead appends the body of an insert or replace without the tuple
// that ends it.
func AppendInsertHead(b []byte, space uint32) []byte {
	b = appendPair(append(b, fixMap|2), KeySpaceID, space)
	return append(b, byte(KeyTuple))
}

// AppendInsertHead is like the function [AppendInsertHead].
func (t *Target) AppendInsertHead(b []byte) []byte {
	return append(t.appendSpace(append(b, fixMap|2)), byte(KeyTuple))
}

// AppendUpdateHead appends the body of an update without the key and what
// follows it: [KeyTuple] and the operations. Fields count from 0.
func AppendUpdateHead(b []byte, space, index uint32) []byte {
	b = appendPair(append(b, fixMap|4), KeySpaceID, space)
	b = appendPair(b, KeyIndexID, index)
	return append(b, byte(KeyKey))
}

// AppendUpdateHead is like the function [AppendUpdateHead].
func (t *Target) AppendUpdateHead(b []byte) []byte {
	return append(t.appendIndex(t.appendSpace(append(b, fixMap|4))), byte(KeyKey))
}

// AppendUpsertHead appends the body of an upsert without the tuple and what
// follows it: [KeyOperations] and the operations. Fields count from 0.
func AppendUpsertHead(b []byte, space uint32) []byte {
	b = appendPair(append(b, fixMap|3), KeySpaceID, space)
	return append(b, byte(KeyTuple))
}

// AppendUpsertHead is like the function [AppendUpsertHead].
func (t *Target) AppendUpsertHead(b []byte) []byte {
	return append(t.appendSpace(append(b, fixMap|3)), byte(KeyTuple))
}

// AppendDeleteHead appends the body of a delete without the key that ends it.
func AppendDeleteHead(b []byte, space, index uint32) []byte {
	b = appendPair(append(b, fixMap|3), KeySpaceID, space)
	b = appendPair(b, KeyIndexID, index)
	return append(b, byte(KeyKey))
}

// AppendDeleteHead is like the function [AppendDeleteHead].
func (t *Target) AppendDeleteHead(b []byte) []byte {
	return append(t.appendIndex(t.appendSpace(append(b, fixMap|3))), byte(KeyKey))
}

// AppendCallHead appends the body of a call without the arguments that end it.
func AppendCallHead(b []byte, function string) []byte {
	b = iproto.AppendString(append(b, fixMap|2, byte(KeyFunctionName)), function)
	return append(b, byte(KeyTuple))
}

// AppendEvalHead appends the body of an eval without the arguments that end it.
func AppendEvalHead(b []byte, expression string) []byte {
	b = iproto.AppendString(append(b, fixMap|2, byte(KeyExpression)), expression)
	return append(b, byte(KeyTuple))
}

// AppendExecuteHead appends the body of an execute without the parameters that
// end it: an array of values, in which a named value is a map of one pair.
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

// Begin is the body of a begin. The zero value leaves all to the server.
type Begin struct {
	// Timeout is in seconds; after it the server rolls back.
	Timeout float64
	// Isolation is a level of Tarantool, or 0 for the one in box.cfg.
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

// AppendWatch appends the body of watch, unwatch and watch once.
func AppendWatch(b []byte, key string) []byte {
	return iproto.AppendString(append(b, fixMap|1, byte(KeyEventKey)), key)
}
