package thrift

import (
	"fmt"
	"strconv"
)

// EnumError is the error for a text that is not a value of an enum.
type EnumError struct {
	Enum string // the name of the enum
	Text string
}

// Error returns the name of the enum and the text.
func (e *EnumError) Error() string {
	text := e.Text
	if len(text) > 40 {
		text = text[:37] + "..."
	}
	return fmt.Sprintf("thrift: %q is not a value of the enum %s: expected one of its names or a number of 32 bits", text, e.Enum)
}

// ParseEnum returns the value of an enum for a text that is a number. Generated code calls it for
// texts that are not names of values. Errors are of type *EnumError.
func ParseEnum(enum, text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, &EnumError{Enum: enum, Text: text}
	}
	return int32(n), nil
}

// EnumText returns the text of the value v of the enum T. [TypeInfo].Enum is set to it.
func EnumText[T interface {
	~int32
	String() string
}](v int32) string {
	return T(v).String()
}
