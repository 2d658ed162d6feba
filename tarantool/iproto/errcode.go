package iproto

// ErrorCode is the code that a server uses for an error.
type ErrorCode uint32

// The codes that a client is likely to distinguish, with Tarantool's names: see
// [ErrorCode.String].
const (
	// Invalid requests.
	CodeIllegalParams              ErrorCode = 1
	CodeUnsupported                ErrorCode = 5
	CodeKeyPartType                ErrorCode = 18
	CodeExactMatch                 ErrorCode = 19
	CodeInvalidMessagePack         ErrorCode = 20
	CodeTupleNotArray              ErrorCode = 22
	CodeFieldType                  ErrorCode = 23
	CodeUpdateSplice               ErrorCode = 25
	CodeUpdateArgumentType         ErrorCode = 26
	CodeUnknownUpdateOp            ErrorCode = 28
	CodeUpdateField                ErrorCode = 29
	CodeKeyPartCount               ErrorCode = 31
	CodeNoSuchFieldNo              ErrorCode = 37
	CodeExactFieldCount            ErrorCode = 38
	CodeFieldMissing               ErrorCode = 39
	CodeUnknownRequestType         ErrorCode = 48
	CodeMissingRequestField        ErrorCode = 69
	CodeIteratorType               ErrorCode = 72
	CodeUpdateIntegerOverflow      ErrorCode = 95
	CodeProtocol                   ErrorCode = 104
	CodeWrongSchemaVersion         ErrorCode = 109
	CodeUnsupportedIndexFeature    ErrorCode = 112
	CodeViewIsReadOnly             ErrorCode = 113
	CodeNoSuchFieldName            ErrorCode = 201
	CodeUnableToProcessInStream    ErrorCode = 229
	CodeUnableToProcessOutOfStream ErrorCode = 230
	CodeIteratorPosition           ErrorCode = 247
	CodeUnknownAuthMethod          ErrorCode = 249

	// Objects in the request that do not exist, already exist, or must not be used.
	CodeTupleFound           ErrorCode = 3
	CodeTupleNotFound        ErrorCode = 4
	CodeNoSuchProcedure      ErrorCode = 33
	CodeNoSuchIndexID        ErrorCode = 35
	CodeNoSuchSpace          ErrorCode = 36
	CodeMoreThanOneTuple     ErrorCode = 41
	CodeAccessDenied         ErrorCode = 42
	CodeNoSuchUser           ErrorCode = 45
	CodePasswordMismatch     ErrorCode = 47
	CodeUnknownSchemaObject  ErrorCode = 49
	CodeFunctionExists       ErrorCode = 52
	CodeCantUpdatePrimaryKey ErrorCode = 94
	CodeGuestUserPassword    ErrorCode = 96
	CodeNoSuchIndexName      ErrorCode = 148

	// The state of the server and of transactions.
	CodeMemoryIssue         ErrorCode = 2
	CodeNonMaster           ErrorCode = 6
	CodeReadOnly            ErrorCode = 7
	CodeWALIO               ErrorCode = 40
	CodeNoSuchSavepoint     ErrorCode = 61
	CodeTimeout             ErrorCode = 78
	CodeActiveTransaction   ErrorCode = 79
	CodeTransactionConflict ErrorCode = 97
	CodeMemtxMaxTupleSize   ErrorCode = 110
	CodeNoTransaction       ErrorCode = 114
	CodeLoading             ErrorCode = 116
	CodeReadViewAborted     ErrorCode = 130
	CodeTransactionYield    ErrorCode = 154
	CodeSyncMasterMismatch  ErrorCode = 215
	CodeSyncQuorumTimeout   ErrorCode = 216
	CodeSyncRollback        ErrorCode = 217
	CodeQuorumWait          ErrorCode = 222
	CodeTxnRollback         ErrorCode = 225
	CodeNotLeader           ErrorCode = 226
	CodeSyncQueueUnclaimed  ErrorCode = 227
	CodeTransactionTimeout  ErrorCode = 231

	// Lua and SQL.
	CodeLua                        ErrorCode = 32
	CodeConfig                     ErrorCode = 59
	CodeNoConnection               ErrorCode = 77
	CodeSQLBindValue               ErrorCode = 156
	CodeSQLBindType                ErrorCode = 157
	CodeSQLExecute                 ErrorCode = 159
	CodeSQLSyntaxWithPos           ErrorCode = 179
	CodeSQLSyntaxNearToken         ErrorCode = 184
	CodeSQLParserGeneric           ErrorCode = 186
	CodeSessionSettingInvalidValue ErrorCode = 209
	CodeSQLPrepare                 ErrorCode = 210
	CodeWrongQueryID               ErrorCode = 211

	CodeUnknown ErrorCode = 0
)

var errorNames = map[ErrorCode]string{
	CodeUnknown:                    "UNKNOWN",
	CodeIllegalParams:              "ILLEGAL_PARAMS",
	CodeMemoryIssue:                "MEMORY_ISSUE",
	CodeTupleFound:                 "TUPLE_FOUND",
	CodeTupleNotFound:              "TUPLE_NOT_FOUND",
	CodeUnsupported:                "UNSUPPORTED",
	CodeNonMaster:                  "NONMASTER",
	CodeReadOnly:                   "READONLY",
	CodeKeyPartType:                "KEY_PART_TYPE",
	CodeExactMatch:                 "EXACT_MATCH",
	CodeInvalidMessagePack:         "INVALID_MSGPACK",
	CodeTupleNotArray:              "TUPLE_NOT_ARRAY",
	CodeFieldType:                  "FIELD_TYPE",
	CodeUpdateSplice:               "UPDATE_SPLICE",
	CodeUpdateArgumentType:         "UPDATE_ARG_TYPE",
	CodeUnknownUpdateOp:            "UNKNOWN_UPDATE_OP",
	CodeUpdateField:                "UPDATE_FIELD",
	CodeKeyPartCount:               "KEY_PART_COUNT",
	CodeLua:                        "PROC_LUA",
	CodeNoSuchProcedure:            "NO_SUCH_PROC",
	CodeNoSuchIndexID:              "NO_SUCH_INDEX_ID",
	CodeNoSuchSpace:                "NO_SUCH_SPACE",
	CodeNoSuchFieldNo:              "NO_SUCH_FIELD_NO",
	CodeExactFieldCount:            "EXACT_FIELD_COUNT",
	CodeFieldMissing:               "FIELD_MISSING",
	CodeWALIO:                      "WAL_IO",
	CodeMoreThanOneTuple:           "MORE_THAN_ONE_TUPLE",
	CodeAccessDenied:               "ACCESS_DENIED",
	CodeNoSuchUser:                 "NO_SUCH_USER",
	CodePasswordMismatch:           "PASSWORD_MISMATCH",
	CodeUnknownRequestType:         "UNKNOWN_REQUEST_TYPE",
	CodeUnknownSchemaObject:        "UNKNOWN_SCHEMA_OBJECT",
	CodeFunctionExists:             "FUNCTION_EXISTS",
	CodeConfig:                     "CFG",
	CodeNoSuchSavepoint:            "NO_SUCH_SAVEPOINT",
	CodeMissingRequestField:        "MISSING_REQUEST_FIELD",
	CodeIteratorType:               "ITERATOR_TYPE",
	CodeNoConnection:               "NO_CONNECTION",
	CodeTimeout:                    "TIMEOUT",
	CodeActiveTransaction:          "ACTIVE_TRANSACTION",
	CodeCantUpdatePrimaryKey:       "CANT_UPDATE_PRIMARY_KEY",
	CodeUpdateIntegerOverflow:      "UPDATE_INTEGER_OVERFLOW",
	CodeGuestUserPassword:          "GUEST_USER_PASSWORD",
	CodeTransactionConflict:        "TRANSACTION_CONFLICT",
	CodeProtocol:                   "PROTOCOL",
	CodeWrongSchemaVersion:         "WRONG_SCHEMA_VERSION",
	CodeMemtxMaxTupleSize:          "MEMTX_MAX_TUPLE_SIZE",
	CodeUnsupportedIndexFeature:    "UNSUPPORTED_INDEX_FEATURE",
	CodeViewIsReadOnly:             "VIEW_IS_RO",
	CodeNoTransaction:              "NO_TRANSACTION",
	CodeLoading:                    "LOADING",
	CodeReadViewAborted:            "READ_VIEW_ABORTED",
	CodeNoSuchIndexName:            "NO_SUCH_INDEX_NAME",
	CodeTransactionYield:           "TRANSACTION_YIELD",
	CodeSQLBindValue:               "SQL_BIND_VALUE",
	CodeSQLBindType:                "SQL_BIND_TYPE",
	CodeSQLExecute:                 "SQL_EXECUTE",
	CodeSQLSyntaxWithPos:           "SQL_SYNTAX_WITH_POS",
	CodeSQLSyntaxNearToken:         "SQL_SYNTAX_NEAR_TOKEN",
	CodeSQLParserGeneric:           "SQL_PARSER_GENERIC",
	CodeNoSuchFieldName:            "NO_SUCH_FIELD_NAME",
	CodeSessionSettingInvalidValue: "SESSION_SETTING_INVALID_VALUE",
	CodeSQLPrepare:                 "SQL_PREPARE",
	CodeWrongQueryID:               "WRONG_QUERY_ID",
	CodeSyncMasterMismatch:         "SYNC_MASTER_MISMATCH",
	CodeSyncQuorumTimeout:          "SYNC_QUORUM_TIMEOUT",
	CodeSyncRollback:               "SYNC_ROLLBACK",
	CodeQuorumWait:                 "QUORUM_WAIT",
	CodeTxnRollback:                "TXN_ROLLBACK",
	CodeNotLeader:                  "NOT_LEADER",
	CodeSyncQueueUnclaimed:         "SYNC_QUEUE_UNCLAIMED",
	CodeUnableToProcessInStream:    "UNABLE_TO_PROCESS_IN_STREAM",
	CodeUnableToProcessOutOfStream: "UNABLE_TO_PROCESS_OUT_OF_STREAM",
	CodeTransactionTimeout:         "TRANSACTION_TIMEOUT",
	CodeIteratorPosition:           "ITERATOR_POSITION",
	CodeUnknownAuthMethod:          "UNKNOWN_AUTH_METHOD",
}

// String returns the name of the code in Tarantool's box.error, such as TUPLE_FOUND.
func (c ErrorCode) String() string {
	if name, ok := errorNames[c]; ok {
		return name
	}
	return "error code " + utoa(uint64(c))
}
