package box

import "github.com/slipstream-go/slipstream/tarantool/iproto"

// Header is what stands in the header of a request beside its sync.
type Header struct {
	Code Code
	// Stream is that of the request, 0 if it is in none.
	Stream uint64
	// Schema is the version of the schema that the request's numbers are of. A server that
	// has another one refuses the request. 0: any.
	Schema uint64
}

// Append appends what stands before the body of a request, as [BeginRequest] does.
func (h Header) Append(b []byte) []byte {
	n := byte(2)
	if h.Stream != 0 {
		n++
	}
	if h.Schema != 0 {
		n++
	}
	b = append(b, uint32b, 0, 0, 0, 0, // length
		fixMap|n, byte(KeyCode), byte(h.Code), byte(KeySync), uint32b, 0, 0, 0, 0)
	if h.Schema != 0 {
		b = iproto.AppendUint(append(b, byte(KeySchemaVersion)), h.Schema)
	}
	if h.Stream != 0 {
		b = iproto.AppendUint(append(b, byte(KeyStreamID)), h.Stream)
	}
	return b
}
