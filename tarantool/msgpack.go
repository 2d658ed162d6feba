package tarantool

import "github.com/slipstream-go/slipstream/tarantool/iproto"

// An Appender appends itself as one MessagePack value, which is an array for a tuple or for
// arguments, with the functions of package [iproto] or any other library.
type Appender interface {
	AppendMsgpack(b []byte) ([]byte, error)
}

// A Reader decodes itself from one MessagePack value. It must not retain what the decoder's
// View methods return. The error that it returns, or otherwise the decoder's Err, is the error
// of the call.
type Reader interface {
	ReadMsgpack(d *iproto.Decoder) error
}
