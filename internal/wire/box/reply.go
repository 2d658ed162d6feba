package box

import "github.com/slipstream-go/slipstream/tarantool/iproto"

// BeginReply appends everything that precedes the body of a message of a server, exactly as
// Tarantool writes it: the length, which [EndReply] fills in, the code, the sync and the version of
// the schema.
func BeginReply(b []byte, code uint32, sync uint64, schema uint32) []byte {
	b = append(b, uint32b, 0, 0, 0, 0, fixMap|3) // length first
	b = append32(append(b, byte(KeyCode)), uint32b, code)
	b = append64(append(b, byte(KeySync)), uint64b, sync)
	return append32(append(b, byte(KeySchemaVersion)), uint32b, schema)
}

// EndReply fills in the length of the message that starts at offset from.
func EndReply(b []byte, from int) []byte { return EndRequest(b, from) }

// AppendDataHead appends the body of a reply up to its n tuples or values, which the caller
// appends.
func AppendDataHead(b []byte, n int) []byte {
	return append32(append(b, fixMap|1, byte(KeyData)), array32, uint32(n))
}

// AppendReply appends a reply without a body, such as the reply to a ping.
func AppendReply(b []byte, sync uint64, schema uint32) []byte {
	from := len(b)
	return EndReply(append(BeginReply(b, uint32(CodeOK), sync, schema), fixMap), from)
}

// AppendError appends a reply with an error and its causes.
func AppendError(b []byte, sync uint64, schema uint32, e *iproto.BoxError) []byte {
	from := len(b)
	b = BeginReply(b, uint32(CodeError)|e.Code&(uint32(CodeError)-1), sync, schema)
	b = iproto.AppendString(append(b, fixMap|2, byte(KeyErrorText)), e.Message)
	// The error stack in the body has the same encoding as the data of the error extension.
	d := iproto.NewDecoder(iproto.AppendBoxError(nil, e))
	_, stack := d.Ext()
	return EndReply(append(append(b, byte(KeyError)), stack...), from)
}

// AppendPush appends a message that a call sends before its reply. The data must be the n encoded
// values of an array.
func AppendPush(b []byte, sync uint64, schema uint32, n int, data []byte) []byte {
	from := len(b)
	b = AppendDataHead(BeginReply(b, uint32(CodeChunk), sync, schema), n)
	return EndReply(append(b, data...), from)
}

// AppendEvent appends a message with the encoded value of a watched key. If value is empty, the key
// has no value.
func AppendEvent(b []byte, key string, value []byte) []byte {
	from := len(b)
	b = BeginReply(b, uint32(CodeEvent), 0, 0)
	if len(value) == 0 {
		b = iproto.AppendString(append(b, fixMap|1, byte(KeyEventKey)), key)
		return EndReply(b, from)
	}
	b = iproto.AppendString(append(b, fixMap|2, byte(KeyEventKey)), key)
	return EndReply(append(append(b, byte(KeyEventData)), value...), from)
}
