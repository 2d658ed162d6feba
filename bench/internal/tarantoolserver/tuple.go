package tarantoolserver

import (
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// The tuples contain their key twice, as a number and at the end of a text, so that a reply passed
// to the wrong caller is detected.

const (
	// Keys is the number of keys. The first is 1.
	Keys = 100_000

	// SpaceName and SpaceNumber identify the space with the tuples.
	SpaceName   = "bench"
	SpaceNumber = 512

	textPrefix = "value:"
	textDigits = 10
	// TextSize is the length of every text.
	TextSize = len(textPrefix) + textDigits
)

// Text is the second field of the tuple of a key.
func Text(key uint64) string { return fmt.Sprintf("%s%0*d", textPrefix, textDigits, key) }

// ErrNoTuple reports that the server has no tuple with the key.
var ErrNoTuple = errors.New("no tuple")

// A Tuple is the result type of a select for all subjects: neither of its fields
// makes a decoder allocate. The zero value is not a tuple.
type Tuple struct {
	ID     uint64
	Length int // of the text, which may be longer than the buffer
	Text   [TextSize]byte
}

// Check returns an error if t is not the tuple of key.
func (t *Tuple) Check(key uint64) error {
	var n uint64
	for _, c := range t.Text[len(textPrefix):] {
		n = n*10 + uint64(c-'0')
	}
	if t.ID == key && t.Length == TextSize && n == key {
		return nil
	}
	return wrongTuple(key, t.ID, string(t.Text[:min(max(t.Length, 0), TextSize)]))
}

func wrongTuple(key, id uint64, text string) error {
	return fmt.Errorf("the tuple of key %d is [%d, %q], want [%d, %q]", key, id, text, key, Text(key))
}

// ReadMsgpack implements [tarantool.Reader].
func (t *Tuple) ReadMsgpack(d *iproto.Decoder) error {
	if n := d.Array(); n != 2 {
		return fmt.Errorf("%d fields, want 2", n)
	}
	t.ID = d.Uint()
	text := d.StringView()
	t.Length = len(text)
	copy(t.Text[:], text)
	return nil
}
