package main

import (
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// The tuples carry their key twice, as a number and at the end of a text, so
// that a reply handed to the wrong caller shows.

const (
	// keyCount keys begin at 1.
	keyCount = 100_000

	spaceName   = "bench"
	spaceNumber = 512

	textPrefix = "value:"
	textDigits = 10
	textSize   = len(textPrefix) + textDigits
)

// textOf is the second field of the tuple of a key, as the server makes it.
func textOf(key uint64) string { return fmt.Sprintf("%s%0*d", textPrefix, textDigits, key) }

// errNoTuple: the server has none with the key.
var errNoTuple = errors.New("no tuple")

// A tuple is what a select is decoded into, for all subjects alike: neither of
// its fields makes a decoder allocate. The zero value is no tuple.
type tuple struct {
	id     uint64
	length int // of the text, which may be longer than there is room
	text   [textSize]byte
}

// check says what is wrong with t as the tuple of key.
func (t *tuple) check(key uint64) error {
	var n uint64
	for _, c := range t.text[len(textPrefix):] {
		n = n*10 + uint64(c-'0')
	}
	if t.id == key && t.length == textSize && n == key {
		return nil
	}
	return wrongTuple(key, t.id, string(t.text[:min(max(t.length, 0), textSize)]))
}

func wrongTuple(key, id uint64, text string) error {
	return fmt.Errorf("the tuple of key %d is [%d, %q], want [%d, %q]", key, id, text, key, textOf(key))
}

// checkGeneral is check for the data of a reply that was decoded in general:
// one tuple, as a list of fields.
func checkGeneral(key uint64, data []any) error {
	if len(data) != 1 {
		return fmt.Errorf("%d tuples of key %d, want one: %w", len(data), key, errNoTuple)
	}
	fields, _ := data[0].([]any)
	if len(fields) != 2 {
		return fmt.Errorf("the tuple of key %d is %v, want two fields", key, data[0])
	}
	t := tuple{id: general(fields[0])}
	text, _ := fields[1].(string)
	t.length = len(text)
	copy(t.text[:], text)
	return t.check(key)
}

// general returns a number that a general decoder made of an unsigned one, 0
// for anything else: decoders differ in the type that they choose.
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

// ReadMsgpack implements [tarantool.Reader].
func (t *tuple) ReadMsgpack(d *iproto.Decoder) error {
	if n := d.Array(); n != 2 {
		return fmt.Errorf("%d fields, want 2", n)
	}
	t.id = d.Uint()
	text := d.StringView()
	t.length = len(text)
	copy(t.text[:], text)
	return nil
}

// oneTuple is the whole data of a reply to a select of one tuple, for clients
// that decode all of it at once.
type oneTuple struct{ tuple }

// ReadMsgpack implements [tarantool.Reader].
func (t *oneTuple) ReadMsgpack(d *iproto.Decoder) error {
	switch n := d.Array(); n {
	case 0:
		return errNoTuple
	case 1:
		return t.tuple.ReadMsgpack(d)
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
				return errNoTuple
			}
			return fmt.Errorf("an array of %d, want %d", n, want)
		}
	}
	var err error
	if t.id, err = d.DecodeUint64(); err != nil {
		return err
	}
	if t.length, err = d.DecodeBytesLen(); err != nil {
		return err
	}
	if t.length < 0 || t.length > textSize {
		return fmt.Errorf("a text of %d bytes, want %d", t.length, textSize)
	}
	return d.ReadFull(t.text[:t.length])
}

// A oneKey is a key of one part that changes from request to request, so that
// the request around it can be used again.
type oneKey struct{ key uint64 }

// EncodeMsgpack implements [msgpack.CustomEncoder].
func (k *oneKey) EncodeMsgpack(e *msgpack.Encoder) error {
	if err := e.EncodeArrayLen(1); err != nil {
		return err
	}
	return e.EncodeUint(k.key)
}
