package iproto

// ErrorCode is what a server gives as the reason of an error.
type ErrorCode uint32

// The codes that a client is likely to tell apart, with the names that
// Tarantool has for them: see [ErrorCode.String].
const (
	// What a request says is wrong.
	ErrIllegalParams              ErrorCode = 1
	ErrUnsupported                ErrorCode = 5
	ErrKeyPartType                ErrorCode = 18
	ErrExactMatch                 ErrorCode = 19
	ErrInvalidMessagePack         ErrorCode = 20
	ErrTupleNotArray              ErrorCode = 22
	ErrFieldType                  ErrorCode = 23
	ErrUpdateSplice               ErrorCode = 25
	ErrUpdateArgumentType         ErrorCode = 26
	ErrUnknownUpdateOp            ErrorCode = 28
	ErrUpdateField                ErrorCode = 29
	ErrKeyPartCount               ErrorCode = 31
	ErrNoSuchFieldNo              ErrorCode = 37
	ErrExactFieldCount            ErrorCode = 38
	ErrFieldMissing               ErrorCode = 39
	ErrUnknownRequestType         ErrorCode = 48
	ErrMissingRequestField        ErrorCode = 69
	ErrIteratorType               ErrorCode = 72
	ErrUpdateIntegerOverflow      ErrorCode = 95
	ErrProtocol                   ErrorCode = 104
	ErrWrongSchemaVersion         ErrorCode = 109
	ErrUnsupportedIndexFeature    ErrorCode = 112
	ErrViewIsReadOnly             ErrorCode = 113
	ErrNoSuchFieldName            ErrorCode = 201
	ErrUnableToProcessInStream    ErrorCode = 229
	ErrUnableToProcessOutOfStream ErrorCode = 230
	ErrIteratorPosition           ErrorCode = 247
	ErrUnknownAuthMethod          ErrorCode = 249

	// What it names does not exist, exists already, or is not to be had.
	ErrTupleFound           ErrorCode = 3
	ErrTupleNotFound        ErrorCode = 4
	ErrNoSuchProcedure      ErrorCode = 33
	ErrNoSuchIndexID        ErrorCode = 35
	ErrNoSuchSpace          ErrorCode = 36
	ErrMoreThanOneTuple     ErrorCode = 41
	ErrAccessDenied         ErrorCode = 42
	ErrNoSuchUser           ErrorCode = 45
	ErrPasswordMismatch     ErrorCode = 47
	ErrUnknownSchemaObject  ErrorCode = 49
	ErrFunctionExists       ErrorCode = 52
	ErrCantUpdatePrimaryKey ErrorCode = 94
	ErrGuestUserPassword    ErrorCode = 96
	ErrNoSuchIndexName      ErrorCode = 148

	// The state of the server, and of transactions.
	ErrMemoryIssue         ErrorCode = 2
	ErrNonMaster           ErrorCode = 6
	ErrReadOnly            ErrorCode = 7
	ErrWALIO               ErrorCode = 40
	ErrNoSuchSavepoint     ErrorCode = 61
	ErrTimeout             ErrorCode = 78
	ErrActiveTransaction   ErrorCode = 79
	ErrTransactionConflict ErrorCode = 97
	ErrMemtxMaxTupleSize   ErrorCode = 110
	ErrNoTransaction       ErrorCode = 114
	ErrLoading             ErrorCode = 116
	ErrReadViewAborted     ErrorCode = 130
	ErrTransactionYield    ErrorCode = 154
	ErrSyncMasterMismatch  ErrorCode = 215
	ErrSyncQuorumTimeout   ErrorCode = 216
	ErrSyncRollback        ErrorCode = 217
	ErrQuorumWait          ErrorCode = 222
	ErrTxnRollback         ErrorCode = 225
	ErrNotLeader           ErrorCode = 226
	ErrSyncQueueUnclaimed  ErrorCode = 227
	ErrTransactionTimeout  ErrorCode = 231

	// Lua and SQL.
	ErrLua                        ErrorCode = 32
	ErrConfig                     ErrorCode = 59
	ErrNoConnection               ErrorCode = 77
	ErrSQLBindValue               ErrorCode = 156
	ErrSQLBindType                ErrorCode = 157
	ErrSQLExecute                 ErrorCode = 159
	ErrSQLSyntaxWithPos           ErrorCode = 179
	ErrSQLSyntaxNearToken         ErrorCode = 184
	ErrSQLParserGeneric           ErrorCode = 186
	ErrSessionSettingInvalidValue ErrorCode = 209
	ErrSQLPrepare                 ErrorCode = 210
	ErrWrongQueryID               ErrorCode = 211

	ErrUnknown ErrorCode = 0
)

var errorNames = map[ErrorCode]string{
	ErrUnknown:                    "UNKNOWN",
	ErrIllegalParams:              "ILLEGAL_PARAMS",
	ErrMemoryIssue:                "MEMORY_ISSUE",
	ErrTupleFound:                 "TUPLE_FOUND",
	ErrTupleNotFound:              "TUPLE_NOT_FOUND",
	ErrUnsupported:                "UNSUPPORTED",
	ErrNonMaster:                  "NONMASTER",
	ErrReadOnly:                   "READONLY",
	ErrKeyPartType:                "KEY_PART_TYPE",
	ErrExactMatch:                 "EXACT_MATCH",
	ErrInvalidMessagePack:         "INVALID_MSGPACK",
	ErrTupleNotArray:              "TUPLE_NOT_ARRAY",
	ErrFieldType:                  "FIELD_TYPE",
	ErrUpdateSplice:               "UPDATE_SPLICE",
	ErrUpdateArgumentType:         "UPDATE_ARG_TYPE",
	ErrUnknownUpdateOp:            "UNKNOWN_UPDATE_OP",
	ErrUpdateField:                "UPDATE_FIELD",
	ErrKeyPartCount:               "KEY_PART_COUNT",
	ErrLua:                        "PROC_LUA",
	ErrNoSuchProcedure:            "NO_SUCH_PROC",
	ErrNoSuchIndexID:              "NO_SUCH_INDEX_ID",
	ErrNoSuchSpace:                "NO_SUCH_SPACE",
	ErrNoSuchFieldNo:              "NO_SUCH_FIELD_NO",
	ErrExactFieldCount:            "EXACT_FIELD_COUNT",
	ErrFieldMissing:               "FIELD_MISSING",
	ErrWALIO:                      "WAL_IO",
	ErrMoreThanOneTuple:           "MORE_THAN_ONE_TUPLE",
	ErrAccessDenied:               "ACCESS_DENIED",
	ErrNoSuchUser:                 "NO_SUCH_USER",
	ErrPasswordMismatch:           "PASSWORD_MISMATCH",
	ErrUnknownRequestType:         "UNKNOWN_REQUEST_TYPE",
	ErrUnknownSchemaObject:        "UNKNOWN_SCHEMA_OBJECT",
	ErrFunctionExists:             "FUNCTION_EXISTS",
	ErrConfig:                     "CFG",
	ErrNoSuchSavepoint:            "NO_SUCH_SAVEPOINT",
	ErrMissingRequestField:        "MISSING_REQUEST_FIELD",
	ErrIteratorType:               "ITERATOR_TYPE",
	ErrNoConnection:               "NO_CONNECTION",
	ErrTimeout:                    "TIMEOUT",
	ErrActiveTransaction:          "ACTIVE_TRANSACTION",
	ErrCantUpdatePrimaryKey:       "CANT_UPDATE_PRIMARY_KEY",
	ErrUpdateIntegerOverflow:      "UPDATE_INTEGER_OVERFLOW",
	ErrGuestUserPassword:          "GUEST_USER_PASSWORD",
	ErrTransactionConflict:        "TRANSACTION_CONFLICT",
	ErrProtocol:                   "PROTOCOL",
	ErrWrongSchemaVersion:         "WRONG_SCHEMA_VERSION",
	ErrMemtxMaxTupleSize:          "MEMTX_MAX_TUPLE_SIZE",
	ErrUnsupportedIndexFeature:    "UNSUPPORTED_INDEX_FEATURE",
	ErrViewIsReadOnly:             "VIEW_IS_RO",
	ErrNoTransaction:              "NO_TRANSACTION",
	ErrLoading:                    "LOADING",
	ErrReadViewAborted:            "READ_VIEW_ABORTED",
	ErrNoSuchIndexName:            "NO_SUCH_INDEX_NAME",
	ErrTransactionYield:           "TRANSACTION_YIELD",
	ErrSQLBindValue:               "SQL_BIND_VALUE",
	ErrSQLBindType:                "SQL_BIND_TYPE",
	ErrSQLExecute:                 "SQL_EXECUTE",
	ErrSQLSyntaxWithPos:           "SQL_SYNTAX_WITH_POS",
	ErrSQLSyntaxNearToken:         "SQL_SYNTAX_NEAR_TOKEN",
	ErrSQLParserGeneric:           "SQL_PARSER_GENERIC",
	ErrNoSuchFieldName:            "NO_SUCH_FIELD_NAME",
	ErrSessionSettingInvalidValue: "SESSION_SETTING_INVALID_VALUE",
	ErrSQLPrepare:                 "SQL_PREPARE",
	ErrWrongQueryID:               "WRONG_QUERY_ID",
	ErrSyncMasterMismatch:         "SYNC_MASTER_MISMATCH",
	ErrSyncQuorumTimeout:          "SYNC_QUORUM_TIMEOUT",
	ErrSyncRollback:               "SYNC_ROLLBACK",
	ErrQuorumWait:                 "QUORUM_WAIT",
	ErrTxnRollback:                "TXN_ROLLBACK",
	ErrNotLeader:                  "NOT_LEADER",
	ErrSyncQueueUnclaimed:         "SYNC_QUEUE_UNCLAIMED",
	ErrUnableToProcessInStream:    "UNABLE_TO_PROCESS_IN_STREAM",
	ErrUnableToProcessOutOfStream: "UNABLE_TO_PROCESS_OUT_OF_STREAM",
	ErrTransactionTimeout:         "TRANSACTION_TIMEOUT",
	ErrIteratorPosition:           "ITERATOR_POSITION",
	ErrUnknownAuthMethod:          "UNKNOWN_AUTH_METHOD",
}

// String returns the name of the code as Tarantool's box.error has it, such as
// TUPLE_FOUND.
func (c ErrorCode) String() string {
	if name, ok := errorNames[c]; ok {
		return name
	}
	return "error code " + utoa(uint64(c))
}
