package frame

import "encoding/binary"

// Kinds of frames of streams: the values of the key keyFrameType.
const (
	StreamMeta    = '1' // what the peers tell each other about a stream or their connection
	StreamHeader  = '2' // the first frame of a side
	StreamData    = '3' // a message
	StreamTrailer = '4' // the last frame of a side
	StreamReset   = '5' // the stream has ended on both sides
)

const (
	keyFrameType = 27
	idStruct     = 0x10 // protocol: the payload is a struct of the Binary protocol without the name of a message
	// sniffedStream is how many bytes tell whether a message is a frame of a stream.
	sniffedStream = 8
	// kindAt is the offset of the kind in frames that BeginStream begins.
	kindAt = headSize + leastInfo + 3 + 2 + 2
)

// A Stream is a frame of a stream. It refers to the bytes that it was read from.
type Stream struct {
	Info    Info // Seq is the ID of the stream, or 0
	Kind    byte
	Payload []byte
}

// IsStream reports whether the first bytes of a connection are those of a frame of a stream. If there are too few to
// tell, known is false.
func IsStream(b []byte) (is, known bool) {
	switch {
	case len(b) < headerToMagic+2:
		return false, false
	case binary.BigEndian.Uint16(b[headerToMagic:]) != magicHeader || b[0] >= 0x80:
		return false, true
	case len(b) < sniffedStream:
		return false, false
	}
	return b[7]&FlagStreaming != 0, true
}

// OpenStream opens the frame b of a stream, whose length is known by [Scanner.Size]. Errors are of type *Error.
func OpenStream(b []byte) (f Stream, err error) {
	if is, _ := IsStream(b); !is || len(b) < leastPlain {
		return f, fail(Malformed, "it is no frame of a stream, on a connection that began with one")
	}
	size := infoUnit * int(binary.BigEndian.Uint16(b[12:]))
	at := headSize + size
	switch {
	case size < leastInfo:
		return f, fail(Malformed, "the header has no protocol")
	case at > len(b):
		return f, fail(Malformed, "the header has %d bytes, and the frame only %d", at, len(b))
	}
	if id := b[headSize]; id != idStruct && id != idBinary {
		return f, fail(Malformed, "the frame has the protocol %d; expected 16 (a struct of Thrift)", id)
	}
	if n := b[headSize+1]; n != 0 {
		return f, fail(Malformed, "the header has %d transforms; expected none", n)
	}
	f.Info = Info{binary.BigEndian.Uint16(b[6:]), int32(binary.BigEndian.Uint32(b[8:])), b[headSize+leastInfo : at : at]}
	if kind := plainKind(b); kind == StreamData {
		f.Kind, f.Payload = kind, b[at:]
		return f, nil
	}
	if err := checkBlocks(f.Info.blocks); err != nil {
		return f, err
	}
	kind := f.Info.Int(keyFrameType)
	if len(kind) != 1 || kind[0] < StreamMeta || kind[0] > StreamReset {
		return f, fail(Malformed, "the frame of a stream has the kind %.20q; expected 1 to 5", kind)
	}
	f.Kind, f.Payload = kind[0], b[at:]
	return f, nil
}

// plainHead is what precedes the kind in a frame that BeginStream begins, after its sequence ID, if the header has no
// other key, and plainTail what follows it.
const (
	plainHead = "\x00\x03\x10\x00\x10\x00\x01\x00\x1b\x00\x01"
	plainTail = "\x00\x00"
)

// plainKind returns the kind of a frame whose header has nothing else, or 0 if the header is another one.
func plainKind(b []byte) byte {
	if len(b) < kindAt+3 || string(b[12:kindAt]) != plainHead || string(b[kindAt+1:kindAt+3]) != plainTail {
		return 0
	}
	return b[kindAt]
}

// BeginStream begins a frame of a stream at the end of b. Keys with numbers come before keys with names. The struct
// follows the result of End, and then [EndMessage] must be called.
func BeginStream(b []byte, stream int32, kind byte) Writer {
	w := BeginHeader(b, FlagStreaming, stream, false)
	w.b[w.start+headSize] = idStruct
	w.Int(keyFrameType, string(kind))
	return w
}

// AppendStreamData begins a frame with a message. The struct follows it, and then [EndMessage] must be called.
func AppendStreamData(b []byte, stream int32) []byte {
	b = append(b, 0, 0, 0, 0, magicHeader>>8, magicHeader&0xFF, 0, FlagStreaming)
	b = binary.BigEndian.AppendUint32(b, uint32(stream))
	return append(append(append(b, plainHead...), StreamData), plainTail...)
}

// StreamMessageCost is what a message counts in addition to its bytes: the head of its frame, and streamOverhead.
const StreamMessageCost = StreamDataHead + streamOverhead

// StreamDataHead is the size of what AppendStreamData appends.
const StreamDataHead = kindAt + 3

// streamOverhead is what a message of a stream counts in addition to its frame: what keeping it costs.
const streamOverhead = 64

// StreamCost returns how many bytes of the credit of a stream a frame of size bytes takes that begins with b: those of
// messages count, and no others. It knows only frames whose header has no key besides the kind, which are those of this
// package.
func StreamCost(b []byte, size int) int {
	if plainKind(b) != StreamData {
		return 0
	}
	return size + streamOverhead
}

// PutStream writes the ID of a stream into a frame.
func PutStream(b []byte, stream uint32) { binary.BigEndian.PutUint32(b[8:], stream) }
