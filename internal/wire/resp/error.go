package resp

import (
	"errors"
	"strconv"
)

// ErrTruncated matches, with errors.Is, an error of [Parse] or [Decoder] if the input ends inside a
// value and could be the start of a valid message.
var ErrTruncated = errors.New("resp: the input ends inside a value")

// ErrEndOfFrame is returned by [Decoder.Next] after the last value.
var ErrEndOfFrame = errors.New("resp: no further value in the message")

// ProtocolError means that bytes are not valid RESP or exceed a limit. Afterwards, the connection
// is unusable, because it is unknown where the next message starts.
type ProtocolError struct {
	// Offset is relative to the first byte of the message, or to the first byte passed to the
	// function.
	Offset int
	// Wrong describes what was found, and Expected what was expected.
	Wrong, Expected string

	truncated bool
}

// Error implements error.
func (e *ProtocolError) Error() string {
	return "resp: " + e.Wrong + " at offset " + strconv.Itoa(e.Offset) + ", expected " + e.Expected
}

// Is reports whether e is [ErrTruncated].
func (e *ProtocolError) Is(target error) bool { return e.truncated && target == ErrTruncated }

func truncated(offset int, expected string) *ProtocolError {
	return &ProtocolError{Offset: offset, Wrong: "the input ends", Expected: expected, truncated: true}
}

// quoted returns the beginning of p as a Go string literal. It truncates p to keep long data from a
// peer out of logs.
func quoted(p []byte) string {
	const enough = 40
	if len(p) > enough {
		return strconv.Quote(string(p[:enough])) + "..."
	}
	return strconv.Quote(string(p))
}

func errUnknownKind(offset int, k byte) *ProtocolError {
	return &ProtocolError{Offset: offset, Wrong: "byte " + quoted([]byte{k}), Expected: "one that begins a value"}
}

func errMisplaced(offset int, k Kind) *ProtocolError {
	return &ProtocolError{Offset: offset, Wrong: k.String(), Expected: "a value"}
}

func errNoPart(offset int, k Kind) *ProtocolError {
	return &ProtocolError{Offset: offset, Wrong: k.String(), Expected: part.String()}
}

func errText(offset int, k Kind, line []byte) *ProtocolError {
	e := &ProtocolError{Offset: offset, Wrong: k.String() + " " + quoted(line)}
	switch k {
	case Integer:
		e.Expected = "a decimal number of 64 bits"
	case Double:
		e.Expected = "a decimal number, inf, -inf or nan"
	case BigNumber:
		e.Expected = "a decimal number"
	case Boolean:
		e.Expected = "t or f"
	case Null, End:
		e.Expected = "nothing before CR LF"
	default:
		e.Expected = "a count"
	}
	return e
}

func errTooLong(offset int, what string, n, limit int) *ProtocolError {
	return &ProtocolError{Offset: offset, Wrong: what + " " + strconv.Itoa(n), Expected: "at most " + strconv.Itoa(limit)}
}

func errDepth(offset, limit int) *ProtocolError {
	return errTooLong(offset, "nesting depth", limit+1, limit)
}

func errLineEnd(offset int, got []byte) *ProtocolError {
	return &ProtocolError{Offset: offset, Wrong: quoted(got), Expected: "CR LF"}
}
