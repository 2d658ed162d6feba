package tarantoolload

import (
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// A key of a space is its number or, if there is a prefix, its name.
type key struct {
	number int64
	name   []byte // if nil, the key is the number
}

// part returns the key as a part of a request.
func (k *key) part() tarantool.Part {
	if k.name == nil {
		return tarantool.Int(k.number)
	}
	return tarantool.String(string(k.name))
}

func (k *key) append(b []byte) []byte {
	if k.name == nil {
		return iproto.AppendInt(b, k.number)
	}
	return iproto.AppendStringBytes(b, k.name)
}

// A row is a tuple of a key and a value.
type row struct {
	key   key // only for writing
	value []byte
}

// AppendMsgpack implements [tarantool.Appender].
func (r *row) AppendMsgpack(b []byte) ([]byte, error) {
	return iproto.AppendStringBytes(r.key.append(iproto.AppendArray(b, 2)), r.value), nil
}

// ReadMsgpack implements [tarantool.Reader]. The value of a tuple of another program is empty if it
// is not a string.
func (r *row) ReadMsgpack(d *iproto.Decoder) error {
	r.value = r.value[:0]
	for i := range d.Array() {
		if i == 1 && d.Kind() == iproto.KindString {
			r.value = append(r.value, d.StringView()...)
		} else {
			d.Skip()
		}
	}
	return d.Err()
}
