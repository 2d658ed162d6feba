package box

import "strconv"

// ProtocolError says that bytes are not IPROTO. The connection cannot be used afterwards: it is unknown where the next message begins.
type ProtocolError struct {
	// Offset counts from the first byte of the message.
	Offset int
	// Wrong is what was found there, Expected what was expected.
	Wrong, Expected string
	// Err is the cause, if there is one: a [*iproto.DecodeError] about the header.
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
