package main

import (
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/slipstream-go/slipstream/bench/internal/tarantoolserver"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// checkGeneral is like check, for the data of a reply that was decoded to general types: one tuple,
// as a list of fields.
func checkGeneral(key uint64, data []any) error {
	if len(data) != 1 {
		return fmt.Errorf("%d tuples of key %d, want one: %w", len(data), key, tarantoolserver.ErrNoTuple)
	}
	fields, _ := data[0].([]any)
	if len(fields) != 2 {
		return fmt.Errorf("the tuple of key %d is %v, want two fields", key, data[0])
	}
	t := tarantoolserver.Tuple{ID: general(fields[0])}
	text, _ := fields[1].(string)
	t.Length = len(text)
	copy(t.Text[:], text)
	return t.Check(key)
}

// general returns a number that was decoded to a general type, or 0 for anything else: decoders
// choose different types for unsigned numbers.
func general(v any) uint64 {
	switch v := v.(type) {
	case uint64:
		return v
	case int64:
		return uint64(v)
	case uint32:
		return uint64(v)
	case uint16:
		return uint64(v)
	case uint8:
		return uint64(v)
	case int8:
		return uint64(v)
	case int:
		return uint64(v)
	case uint:
		return uint64(v)
	}
	return 0
}

// oneTuple is the complete data of a reply to a select of one tuple, for clients that decode all of
// it at once.
type oneTuple struct{ tarantoolserver.Tuple }

// ReadMsgpack implements [tarantool.Reader].
func (t *oneTuple) ReadMsgpack(d *iproto.Decoder) error {
	switch n := d.Array(); n {
	case 0:
		return tarantoolserver.ErrNoTuple
	case 1:
		return t.Tuple.ReadMsgpack(d)
	default:
		return fmt.Errorf("%d tuples, want one", n)
	}
}

// DecodeMsgpack implements [msgpack.CustomDecoder].
func (t *oneTuple) DecodeMsgpack(d *msgpack.Decoder) error {
	for _, want := range []int{1, 2} {
		n, err := d.DecodeArrayLen()
		if err != nil {
			return err
		}
		if n != want {
			if n == 0 {
				return tarantoolserver.ErrNoTuple
			}
			return fmt.Errorf("an array of %d, want %d", n, want)
		}
	}
	var err error
	if t.ID, err = d.DecodeUint64(); err != nil {
		return err
	}
	if t.Length, err = d.DecodeBytesLen(); err != nil {
		return err
	}
	if t.Length < 0 || t.Length > tarantoolserver.TextSize {
		return fmt.Errorf("a text of %d bytes, want %d", t.Length, tarantoolserver.TextSize)
	}
	return d.ReadFull(t.Text[:t.Length])
}

// A oneKey is a key of one part that changes from request to request, so that the request that
// contains it can be reused.
type oneKey struct{ key uint64 }

// EncodeMsgpack implements [msgpack.CustomEncoder].
func (k *oneKey) EncodeMsgpack(e *msgpack.Encoder) error {
	if err := e.EncodeArrayLen(1); err != nil {
		return err
	}
	return e.EncodeUint(k.key)
}
