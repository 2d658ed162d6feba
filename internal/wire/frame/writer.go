package frame

import (
	"encoding/binary"
	"math"

	"github.com/slipstream-go/slipstream/thrift"
)

// A Writer appends a header to a slice. Keys with numbers must come before keys with names.
type Writer struct {
	b     []byte
	start int
	block byte // kind of the block that is being written, or blockPadding
	count int  // offset of its number of pairs
	err   *Error
}

// BeginHeader begins a header at the end of b.
func BeginHeader(b []byte, flags uint16, seq int32, compact bool) Writer {
	w := Writer{start: len(b)}
	id := byte(idBinary)
	if compact {
		id = idCompact
	}
	b = append(b, 0, 0, 0, 0, magicHeader>>8, magicHeader&0xFF)
	b = binary.BigEndian.AppendUint16(b, flags)
	b = binary.BigEndian.AppendUint32(b, uint32(seq))
	w.b = append(b, 0, 0, id, 0)
	return w
}

// Int adds a key with a number.
func (w *Writer) Int(key uint16, value string) {
	w.enter(blockInts)
	w.b = binary.BigEndian.AppendUint16(w.b, key)
	w.text(value)
}

// Fixed adds a key with a number whose value has n bytes, and returns its offset in the result of End. The value
// is zeros until it is replaced.
func (w *Writer) Fixed(key uint16, n int) (offset int) {
	w.Int(key, "00000000000000000000"[:n])
	return len(w.b) - n
}

// String adds a key with a name.
func (w *Writer) String(name, value string) {
	w.enter(blockStrings)
	w.text(name)
	w.text(value)
}

// enter counts a pair of a block, which it begins if necessary.
func (w *Writer) enter(kind byte) {
	if w.block != kind {
		w.block, w.count = kind, len(w.b)+1
		w.b = append(w.b, kind, 0, 0)
	}
	n := binary.BigEndian.Uint16(w.b[w.count:])
	if n == math.MaxUint16 {
		w.fail("has more than 65,535 keys")
		return
	}
	binary.BigEndian.PutUint16(w.b[w.count:], n+1)
}

func (w *Writer) text(s string) {
	if len(s) > math.MaxUint16 {
		w.fail("has a text of more than 65,535 bytes")
		return
	}
	w.b = append(binary.BigEndian.AppendUint16(w.b, uint16(len(s))), s...)
}

func (w *Writer) fail(what string) {
	if w.err == nil {
		w.err = fail(TooLarge, "its header %s", what)
	}
}

// End ends the header. The message follows it, and then [EndMessage] must be called. If the header
// is too large, End returns the slice as it was, and an error.
func (w *Writer) End() ([]byte, error) {
	size := len(w.b) - w.start - headSize
	for ; size%infoUnit != 0; size++ {
		w.b = append(w.b, blockPadding)
	}
	if size > mostInfo {
		w.fail("has more than 262,140 bytes")
	}
	if w.err != nil {
		return w.b[:w.start], w.err
	}
	binary.BigEndian.PutUint16(w.b[w.start+headSize-2:], uint16(size/infoUnit))
	return w.b, nil
}

// EndMessage sets the length of what begins at start: a frame, or a header with what follows it.
// extra is the number of bytes that follow those of b.
func EndMessage(b []byte, start, extra int) error {
	n := len(b) - start - 4 + extra
	if uint(n) > math.MaxInt32 {
		return fail(TooLarge, "it has %d bytes", n)
	}
	binary.BigEndian.PutUint32(b[start:], uint32(n))
	return nil
}

// paddedID is how many bytes AppendCompactHead reserves for a sequence ID.
const paddedID = 5

// AppendCompactHead appends what precedes the struct of a message in the Compact protocol, with a sequence ID of
// zero that takes as many bytes as the largest, so that PutSeq can replace it.
func AppendCompactHead(b []byte, name string, messageType byte) []byte {
	b = append(b, compactID, messageType<<5|1, 0x80, 0x80, 0x80, 0x80, 0)
	return append(binary.AppendUvarint(b, uint64(len(name))), name...)
}

// PutSeq writes the sequence ID into a message, which this package's functions have made: into that of the
// protocol and, if there is one, into the header.
func PutSeq(b []byte, seq uint32) {
	if _, plain := begins(b); !plain {
		at := headerToMagic
		if binary.BigEndian.Uint16(b[headerToMagic:]) == magicHeader {
			binary.BigEndian.PutUint32(b[8:], seq)
			at = headSize + infoUnit*int(binary.BigEndian.Uint16(b[12:]))
			if _, plain := begins(b[at:]); !plain {
				at += 4
			}
		}
		b = b[at:]
	}
	if b[0] != compactID {
		binary.BigEndian.PutUint32(b[8+binary.BigEndian.Uint32(b[4:]):], seq)
		return
	}
	for i := range paddedID {
		b[2+i] = byte(seq>>(7*i))&0x7F | 0x80
	}
	b[1+paddedID] &= 0x7F
}

// AppendControl appends a message that answers no call (sequence ID 0), with a key in its header. The format must
// have one.
func AppendControl(b []byte, f Format, key string) []byte {
	start := len(b)
	w := BeginHeader(b, 0, 0, f.Compact)
	w.String(key, "1")
	out, err := w.End()
	if err != nil {
		return b
	}
	inner := len(out)
	if f.Transport == HeaderFramed {
		out = append(out, 0, 0, 0, 0)
	}
	const name = "none"
	if f.Compact {
		out = thrift.AppendCompactMessage(out, name, thrift.Reply, 0)
	} else {
		out = thrift.AppendMessage(out, name, thrift.Reply, 0)
	}
	out = append(out, thrift.TypeStop)
	if f.Transport == HeaderFramed {
		_ = EndMessage(out, inner, 0) // the message is short
	}
	_ = EndMessage(out, start, 0)
	return out
}
