package box

import "strconv"

// ProtocolError reports that bytes are not valid IPROTO. The connection cannot be used afterwards,
// because it is unknown where the next message starts.
type ProtocolError struct {
	// Offset is relative to the first byte of the message.
	Offset int
	// Wrong describes what was found there, and Expected what was expected.
	Wrong, Expected string
	// Err is the cause, if there is one: a [*iproto.DecodeError] for the header.
	Err error
}

// Error implements error.
func (e *ProtocolError) Error() string {
	text := "iproto: " + e.Wrong + " at offset " + strconv.Itoa(e.Offset) + ", expected " + e.Expected
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *ProtocolError) Unwrap() error { return e.Err }
