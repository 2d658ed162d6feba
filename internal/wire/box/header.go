package box

import "github.com/slipstream-go/slipstream/tarantool/iproto"

// Header is the header of a request without its sync.
type Header struct {
	Code Code
	// Stream is the stream of the request, or 0 if it has none.
	Stream uint64
	// Schema is the version of the schema that the numbers of spaces and indexes refer to. A server
	// whose schema has another version refuses the request. If it is 0, any version is accepted.
	Schema uint64
}

// Append appends everything that precedes the body of a request, like [BeginRequest].
func (h Header) Append(b []byte) []byte {
	n := byte(2)
	if h.Stream != 0 {
		n++
	}
	if h.Schema != 0 {
		n++
	}
	b = append(b, uint32b, 0, 0, 0, 0, // length
		fixMap|n, byte(KeyCode), byte(h.Code), byte(KeySync), uint64b, 0, 0, 0, 0, 0, 0, 0, 0)
	if h.Schema != 0 {
		b = iproto.AppendUint(append(b, byte(KeySchemaVersion)), h.Schema)
	}
	if h.Stream != 0 {
		b = iproto.AppendUint(append(b, byte(KeyStreamID)), h.Stream)
	}
	return b
}
