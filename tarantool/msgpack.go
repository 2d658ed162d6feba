package tarantool

import "github.com/slipstream-go/slipstream/tarantool/iproto"

// An Appender appends itself as one MessagePack value, an array for a tuple or for
// arguments, with the functions of package [iproto] or any other library.
type Appender interface {
	AppendMsgpack(b []byte) ([]byte, error)
}

// A Reader reads itself from one MessagePack value. It may keep nothing that the decoder's
// View methods return. What it returns, or else what the decoder's Err says, is the error of
// the call.
type Reader interface {
	ReadMsgpack(d *iproto.Decoder) error
}
