package resp

// Kind is the type of a value: its first byte on the wire.
type Kind byte

// The kinds of values. RESP2 has only the first five. In RESP2, bulk strings and arrays may be
// null: "$-1" and "*-1".
const (
	SimpleString Kind = '+' // one line of text
	SimpleError  Kind = '-' // one line of text
	Integer      Kind = ':' // signed, 64 bits
	BulkString   Kind = '$' // counted bytes; "$?" is sent in parts
	Array        Kind = '*' // "*?" has no count and ends with End

	Null           Kind = '_'
	Boolean        Kind = '#'
	Double         Kind = ','
	BigNumber      Kind = '(' // an integer of any size, kept as text
	BulkError      Kind = '!' // counted bytes
	VerbatimString Kind = '=' // counted bytes; the first four name a format
	Map            Kind = '%' // pairs; "%?" has no count and ends with End
	Set            Kind = '~' // "~?" has no count and ends with End
	Attribute      Kind = '|' // pairs before the value that they describe

	// End marks the end of an aggregate without a count. It is not a value.
	End Kind = '.'

	part Kind = ';' // a part of a streamed string
)

// Push is both the [Kind] of out-of-band data ('>') and the [Verdict] for a message of that kind.
// It is untyped so that it can be either.
const Push = '>'

// Verdict is the result of a scan.
type Verdict uint8

// The verdicts. The third one is [Push].
const (
	Done Verdict = iota // a complete message
	More                // an incomplete message
)

// String returns the name of the verdict.
func (v Verdict) String() string {
	switch v {
	case Done:
		return "done"
	case More:
		return "more"
	case Push:
		return "push"
	}
	return "unknown verdict"
}

// String returns the name of the kind as in the specification.
func (k Kind) String() string {
	switch k {
	case SimpleString:
		return "simple string"
	case SimpleError:
		return "simple error"
	case Integer:
		return "integer"
	case BulkString:
		return "bulk string"
	case Array:
		return "array"
	case Null:
		return "null"
	case Boolean:
		return "boolean"
	case Double:
		return "double"
	case BigNumber:
		return "big number"
	case BulkError:
		return "bulk error"
	case VerbatimString:
		return "verbatim string"
	case Map:
		return "map"
	case Set:
		return "set"
	case Attribute:
		return "attribute"
	case Push:
		return "push"
	case End:
		return "end of a streamed aggregate"
	case part:
		return "part of a streamed string"
	}
	return "unknown kind"
}

// The values of a count that is not a number.
const (
	null     = -1 // "-1"
	streamed = -2 // "?"
	noCount  = -3 // anything else
)

// streams reports whether values of the kind may be sent without a count.
func (k Kind) streams() bool {
	return k == BulkString || k == Array || k == Map || k == Set
}

// inPairs reports whether the count of the kind is a number of pairs.
func (k Kind) inPairs() bool { return k == Map || k == Attribute }

// longestNumber is the maximum length of a line that contains a count or an integer: a sign and 19
// digits, and some leading zeros.
const longestNumber = 32

// lineLimit returns the maximum length of the first line of a value, without the kind and the CR
// LF. For lines of text, that is the parameter text. It returns -1 if k is not a kind.
func (k Kind) lineLimit(text int) int {
	switch k {
	case SimpleString, SimpleError, Double, BigNumber:
		return text
	case Integer, BulkString, Array, Null, Boolean, BulkError, VerbatimString, Map, Set, Attribute, Push, End, part:
		return longestNumber
	}
	return -1
}
