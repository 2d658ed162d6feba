package iproto

import "errors"

// ErrTruncated is in the chain of an error (errors.Is) if the input ends inside a value.
var ErrTruncated = errors.New("iproto: the input ends inside a value")

// DecodeError says that bytes are not the requested value, or not MessagePack. The message is
// invalid, or has another form than its reader expects. The connection can still be used, because
// messages have a length.
type DecodeError struct {
	// Offset is the offset of the value from the first byte that was passed to the decoder.
	Offset int
	// Want says what was expected there, and Got what was found.
	Want, Got string
	// Err is the cause, if there is one.
	Err error
}

// Error implements error.
func (e *DecodeError) Error() string {
	text := "iproto: "
	if e.Got != "" {
		text += e.Got + " "
	}
	text += "at offset " + itoa(e.Offset)
	if e.Want != "" {
		text += ", expected " + e.Want
	}
	if e.Err != nil && e.Err != ErrTruncated && e.Err != ErrLimit {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Err }
