package frame

import (
	"encoding/binary"
	"iter"
)

// Flags of a header.
const (
	FlagAnyOrder  = 0x01 // The sender takes answers in any order.
	FlagStreaming = 0x02 // The message is a frame of a stream.
)

// Protocol IDs of a header.
const (
	idBinary   = 0 // also of Protobuf, as Kitex writes it
	idCompact  = 2
	idProtobuf = 4
)

// Keys with numbers.
const (
	KeyTransport   = 1  // "framed" or "unframed"
	KeyLogID       = 2  // of the request that caused this one
	KeyFromService = 3  // name of the client's service
	KeyToService   = 6  // name of the service
	KeyToMethod    = 9  // name of the function
	KeyTimeout     = 12 // milliseconds that the client waits, in decimal digits
	KeyFromMethod  = 20 // name of the function that the client is serving
	KeyMessageType = 22 // type of the message, in decimal digits
)

// Keys with names.
const (
	KeyService       = "isn"         // name of the service in its IDL
	KeyReset         = "crrst"       // "1": the sender will close the connection
	KeyStatus        = "biz-status"  // status of the application that is not 0, in decimal digits
	KeyStatusMessage = "biz-message" // its text
	KeyStatusExtra   = "biz-extra"   // its details, a map as JSON
	// KeyAnyOrder is the key by which our clients ask whether a server answers in any order, and by which it says that
	// it does.
	KeyAnyOrder = "slipstream-any-order"
	keyToken    = "RPC_TRANSIT_gdpr-token"
)

// Sizes of a header: LENGTH, magic number, flags, sequence ID and size, and the fixed part after
// them, which is the first that the size counts.
const (
	headSize   = 14
	leastInfo  = 2 // the protocol ID and the number of transforms
	infoUnit   = 4
	mostInfo   = infoUnit * 0xFFFF
	leastPlain = headSize + infoUnit
)

// Kinds of blocks.
const (
	blockPadding = 0x00
	blockStrings = 0x01
	blockInts    = 0x10
	blockToken   = 0x11
)

// Info is the information in a header in addition to the message. It refers to the bytes
// of the header.
type Info struct {
	Flags uint16
	Seq   int32
	// blocks holds the keys and values, which are valid.
	blocks []byte
}

// readInfo reads the header of a message, whose first headSize bytes are there. It returns the
// offset of the payload.
func readInfo(b []byte) (h Info, compact bool, payload int, err error) {
	size := infoUnit * int(binary.BigEndian.Uint16(b[12:]))
	payload = headSize + size
	switch {
	case size < leastInfo:
		return h, false, 0, fail(Malformed, "the header has no protocol")
	case payload > len(b):
		return h, false, 0, fail(Malformed, "the header has %d bytes, and the message only %d", payload, len(b))
	}
	h.Flags = binary.BigEndian.Uint16(b[6:])
	h.Seq = int32(binary.BigEndian.Uint32(b[8:]))
	switch id := b[headSize]; {
	case h.Flags&FlagStreaming != 0:
		return h, false, 0, &Error{Reason: Streaming}
	case id == idCompact:
		compact = true
	case id != idBinary && id != idProtobuf:
		return h, false, 0, fail(Malformed, "the header has the protocol %d; expected 0 (Binary), 2 (Compact) or 4 (Protobuf)", id)
	}
	if n := b[headSize+1]; n != 0 {
		return h, false, 0, fail(Malformed, "the header has %d transforms; expected none", n)
	}
	h.blocks = b[headSize+leastInfo : payload : payload]
	if err := checkBlocks(h.blocks); err != nil {
		return h, false, 0, err
	}
	return h, compact, payload, nil
}

// checkBlocks checks all lengths in blocks.
func checkBlocks(b []byte) error {
	for len(b) > 0 {
		kind := b[0]
		b = b[1:]
		if kind == blockPadding {
			continue
		}
		n := 1
		if kind != blockToken {
			if len(b) < 2 {
				return fail(Malformed, "the header ends inside of a block")
			}
			n, b = int(binary.BigEndian.Uint16(b)), b[2:]
		}
		if kind != blockStrings && kind != blockInts && kind != blockToken {
			return fail(Malformed, "the header has a block of the kind %d; expected 1, 16 or 17", kind)
		}
		for ; n > 0; n-- {
			end := 0
			switch kind {
			case blockStrings:
				end = textEnd(b, textEnd(b, 0))
			case blockInts:
				end = textEnd(b, 2)
			case blockToken:
				end = textEnd(b, 0)
			}
			if end < 0 {
				return fail(Malformed, "the header ends inside of a block")
			}
			b = b[end:]
		}
	}
	return nil
}

// textEnd returns the offset after the text at off, or -1. It returns -1 if off is negative.
func textEnd(b []byte, off int) int {
	if off < 0 || len(b)-off < 2 {
		return -1
	}
	if off += 2 + int(binary.BigEndian.Uint16(b[off:])); off > len(b) {
		return -1
	}
	return off
}

// A Pair is a key and a value of a header. It refers to the header.
type Pair struct {
	Number uint16 // if Name is nil
	Name   []byte
	Value  []byte
}

// Pairs iterates over all keys and values in their order, so a caller that needs several of them reads the header
// once. If the header has a key several times, the last one is valid.
func (h *Info) Pairs(yield func(Pair) bool) {
	for b := h.blocks; len(b) > 0; {
		kind := b[0]
		b = b[1:]
		n := 1
		switch kind {
		case blockPadding:
			continue
		case blockStrings, blockInts:
			n, b = int(binary.BigEndian.Uint16(b)), b[2:]
		}
		for ; n > 0; n-- {
			p := Pair{Name: tokenName}
			at := 0
			switch kind {
			case blockStrings:
				at = textEnd(b, 0)
				p.Name = b[2:at]
			case blockInts:
				p.Number, p.Name = binary.BigEndian.Uint16(b), nil
				at = 2
			}
			end := textEnd(b, at)
			p.Value = b[at+2 : end]
			b = b[end:]
			if !yield(p) {
				return
			}
		}
	}
}

var tokenName = []byte(keyToken)

// Int returns the value of a key with a number, or nil. It refers to the header. If the header has
// the key several times, it is the last one.
func (h *Info) Int(key uint16) (value []byte) {
	for p := range h.Pairs {
		if p.Name == nil && p.Number == key {
			value = p.Value
		}
	}
	return value
}

// String returns the value of a key with a name, or nil. It refers to the header. If the header has
// the key several times, it is the last one.
func (h *Info) String(name string) (value []byte) {
	for p := range h.Pairs {
		if string(p.Name) == name && p.Name != nil {
			value = p.Value
		}
	}
	return value
}

// Strings iterates over the keys with names, and their values. They refer to the header.
func (h *Info) Strings() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for p := range h.Pairs {
			if p.Name != nil && !yield(p.Name, p.Value) {
				return
			}
		}
	}
}

// AllowsAnyOrder reports whether the message whose first bytes are b has a header, by which its sender
// takes answers in any order.
func AllowsAnyOrder(b []byte) bool {
	return len(b) >= headSize && binary.BigEndian.Uint16(b[headerToMagic:]) == magicHeader && b[7]&FlagAnyOrder != 0
}

// ReadInfo reads the header of a message whose first bytes are b. If the message has none, or it is incomplete or
// malformed, ok is false.
func ReadInfo(b []byte) (h Info, compact, ok bool) {
	if len(b) < headSize || binary.BigEndian.Uint16(b[headerToMagic:]) != magicHeader || b[0] >= 0x80 {
		return h, false, false
	}
	h, compact, _, err := readInfo(b)
	return h, compact, err == nil
}

// HasKeys reports whether the header has keys, or more padding than it needs.
func (h *Info) HasKeys() bool { return len(h.blocks) >= infoUnit }
