package rpc

import "bytes"

// A server that shuts down announces it in the header of its answers, so that clients send nothing more on the
// connection. A message without a header has no field for that, so its struct gets a field that neither results nor
// exceptions have. Other implementations skip it. If a reply ends with the same bytes by chance, its connection is
// replaced, and there is no other effect.
const (
	goodbyeBinary  = "\x02\x7f\xff\x01\x00" // the bool field 32767, true, and the end of the struct
	goodbyeCompact = "\x01\xfe\xff\x03\x00"
)

func goodbye(compact bool) string {
	if compact {
		return goodbyeCompact
	}
	return goodbyeBinary
}

// appendGoodbye adds the field to the struct that b ends with.
func appendGoodbye(b []byte, compact bool) []byte {
	return append(b[:len(b)-1], goodbye(compact)...)
}

// hasGoodbye reports whether the struct that b ends with has the field.
func hasGoodbye(b []byte, compact bool) bool {
	if compact {
		return bytes.HasSuffix(b, []byte(goodbyeCompact))
	}
	return bytes.HasSuffix(b, []byte(goodbyeBinary))
}
