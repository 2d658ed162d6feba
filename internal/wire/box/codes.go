package box

import "github.com/slipstream-go/slipstream/tarantool/iproto"

// Code is the type of a request or the status of a reply.
type Code uint32

// Types of requests, each with the first server version that supports it. Types without a version
// are older than 1.10.
const (
	CodeOK        Code = 0 // in a reply: success
	CodeSelect    Code = 1
	CodeInsert    Code = 2
	CodeReplace   Code = 3
	CodeUpdate    Code = 4
	CodeDelete    Code = 5
	CodeCall16    Code = 6 // a call whose results are each converted to a tuple
	CodeAuth      Code = 7
	CodeEval      Code = 8
	CodeUpsert    Code = 9
	CodeCall      Code = 10
	CodeExecute   Code = 11
	CodeNop       Code = 12
	CodePrepare   Code = 13 // 2.3
	CodeBegin     Code = 14 // 2.10
	CodeCommit    Code = 15 // 2.10
	CodeRollback  Code = 16 // 2.10
	CodeArrow     Code = 17 // 3.3: insert of an Arrow batch
	CodePing      Code = 64
	CodeID        Code = 73 // 2.10
	CodeWatch     Code = 74 // 2.10
	CodeUnwatch   Code = 75 // 2.10
	CodeEvent     Code = 76 // sent by the server: the value of a watched key
	CodeWatchOnce Code = 77 // 3.0

	CodeChunk Code = 128     // in a reply: data pushed by a call that is still running
	CodeError Code = 1 << 15 // in a reply: this bit plus an [iproto.ErrorCode]
)

var codeNames = map[Code]string{
	CodeOK: "ok", CodeSelect: "select", CodeInsert: "insert", CodeReplace: "replace",
	CodeUpdate: "update", CodeDelete: "delete", CodeCall16: "call_16", CodeAuth: "auth",
	CodeEval: "eval", CodeUpsert: "upsert", CodeCall: "call", CodeExecute: "execute",
	CodeNop: "nop", CodePrepare: "prepare", CodeBegin: "begin", CodeCommit: "commit",
	CodeRollback: "rollback", CodeArrow: "insert_arrow", CodePing: "ping", CodeID: "id",
	CodeWatch: "watch", CodeUnwatch: "unwatch", CodeEvent: "event",
	CodeWatchOnce: "watch_once", CodeChunk: "chunk",
}

// String returns the name of the type in lower case.
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	if c&CodeError != 0 {
		return "error " + iproto.ErrorCode(c&^CodeError).String()
	}
	return "code " + utoa(uint64(c))
}

// Key is a key of a header or a body. All keys are below 0x80, so each is one byte.
type Key byte

// Keys of headers.
const (
	KeyCode          Key = 0x00
	KeySync          Key = 0x01
	KeySchemaVersion Key = 0x05
	KeyStreamID      Key = 0x0a // servers before 2.10 ignore it
)

// Keys of bodies.
const (
	KeySpaceID       Key = 0x10
	KeyIndexID       Key = 0x11
	KeyLimit         Key = 0x12
	KeyOffset        Key = 0x13
	KeyIterator      Key = 0x14
	KeyIndexBase     Key = 0x15 // the number that operations use for the first field
	KeyFetchPosition Key = 0x1f
	KeyKey           Key = 0x20
	KeyTuple         Key = 0x21 // also arguments, and the operations of an update
	KeyFunctionName  Key = 0x22
	KeyUserName      Key = 0x23
	KeyExpression    Key = 0x27
	KeyOperations    Key = 0x28 // of an upsert
	KeyAfterPosition Key = 0x2e
	KeyAfterTuple    Key = 0x2f
	KeyData          Key = 0x30
	KeyErrorText     Key = 0x31
	KeyMetadata      Key = 0x32
	KeyBindMetadata  Key = 0x33
	KeyBindCount     Key = 0x34
	KeyPosition      Key = 0x35
	KeyArrow         Key = 0x36
	KeySQLText       Key = 0x40
	KeySQLBind       Key = 0x41
	KeySQLInfo       Key = 0x42
	KeyStatementID   Key = 0x43
	KeyError         Key = 0x52 // the stack of an error
	KeyVersion       Key = 0x54
	KeyFeatures      Key = 0x55
	KeyTimeout       Key = 0x56
	KeyEventKey      Key = 0x57
	KeyEventData     Key = 0x58
	KeyIsolation     Key = 0x59
	KeyAuthType      Key = 0x5b
	KeySpaceName     Key = 0x5e
	KeyIndexName     Key = 0x5f
	KeyTupleFormats  Key = 0x60
	KeyIsSync        Key = 0x61
)

// Keys of a column's description in [KeyMetadata], and of [KeySQLInfo].
const (
	columnName          = 0
	columnType          = 1
	columnCollation     = 2
	columnNullable      = 3
	columnAutoincrement = 4
	columnSpan          = 5

	sqlRowCount         = 0
	sqlAutoincrementIDs = 1
)

// Feature is an optional part of the protocol. A server lists its features in the reply to
// [CodeID].
type Feature uint32

// The features, each with the first protocol version that has it.
const (
	FeatureStreams        Feature = 0  // 1
	FeatureTransactions   Feature = 1  // 1
	FeatureErrorExtension Feature = 2  // 2
	FeatureWatchers       Feature = 3  // 3
	FeaturePagination     Feature = 4  // 4
	FeatureNames          Feature = 5  // 5: names of spaces and indexes instead of numbers
	FeatureWatchOnce      Feature = 6  // 6
	FeatureTupleExtension Feature = 7  // 7: tuple extensions in replies to requests on a space
	FeatureCallTuples     Feature = 8  // 7: tuple extensions in the results of a call
	FeatureCallArgTuples  Feature = 9  // 7: tuple extensions in the arguments of a call
	FeatureSnapshotCursor Feature = 10 // 8
	FeatureIsSync         Feature = 11 // 9
	FeatureArrow          Feature = 12 // 10
)

// ProtocolVersion is the newest protocol version that this package supports.
const ProtocolVersion = 10
