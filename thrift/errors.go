package thrift

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream"
)

// Codes of errors. Functions that read return them in place of the next offset.
const (
	CodeShort   = -1 - iota // The input ends inside a value.
	CodeLength              // A length or a count is negative or exceeds the rest of the input.
	CodeElem                // Elements of a container have a type other than the declared one.
	CodeDeep                // Values are nested deeper than MaxDepth.
	CodeType                // The type is not a type of the protocol.
	CodeMissing             // A required field is missing.
	CodeMemory              // Values would take more memory than Reader.MaxMemory allows.
	CodeNumber              // A number of the Compact protocol does not fit into its type.
	CodeVersion             // A message begins with an unknown version or another protocol.
	CodeMessage             // The type of a message is not one of the four message types.
	CodeUnion               // A union does not have exactly one field.
)

var codeTexts = [...]string{
	"the input ends inside a value",
	"a length exceeds the input",
	"the elements of a container have an unexpected type",
	"values are nested too deeply",
	"unknown type",
	"a required field is missing",
	"the values need more memory than allowed",
	"a number does not fit into its type",
	"unknown protocol version",
	"unknown message type",
	"a union does not have exactly one field",
}

// Error reports why bytes are not a valid encoding of a struct.
type Error struct {
	// Code is one of the constants that begin with Code.
	Code int
	// Offset is the offset in the input at which the invalid value begins.
	Offset int
	// Path leads from the struct to that value: IDs of fields, and indexes of elements. The third
	// field of the first element of field 12 is "12[0].3". In maps, the keys and values of the
	// entry at index 0 are "[0].key" and "[0].value". It is empty if the struct itself is invalid.
	Path string
	// Names is Path with the names of fields, if the struct is Described: "lines[0].quantity".
	Names string
}

// Error returns a description of the code and where the error occurred.
func (e *Error) Error() string {
	var s strings.Builder
	s.WriteString("thrift: ")
	if path := cmp.Or(e.Names, e.Path); path != "" {
		s.WriteString("field " + path + ": ")
	}
	if i := -1 - e.Code; i >= 0 && i < len(codeTexts) {
		s.WriteString(codeTexts[i])
	} else {
		s.WriteString("error " + strconv.Itoa(e.Code))
	}
	s.WriteString(", at byte " + strconv.Itoa(e.Offset))
	return s.String()
}

// DeliveryOutcome returns [slipstream.Executed]: a server whose reply cannot be decoded may have
// executed the call, and sending the call again could execute it twice.
func (e *Error) DeliveryOutcome() slipstream.Outcome { return slipstream.Executed }
