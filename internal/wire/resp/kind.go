package resp

// Kind is the type of a value: the byte that begins it on the wire.
type Kind byte

// The kinds of values. RESP2 knows the first five, and the first two of them
// may be null there: "$-1" and "*-1".
const (
	SimpleString Kind = '+' // one line of text
	SimpleError  Kind = '-' // one line of text
	Integer      Kind = ':' // signed, 64 bits
	BulkString   Kind = '$' // counted bytes; "$?" comes in parts
	Array        Kind = '*' // "*?" has no count and ends with End

	Null           Kind = '_'
	Boolean        Kind = '#'
	Double         Kind = ','
	BigNumber      Kind = '(' // an integer of any size, kept as text
	BulkError      Kind = '!' // counted bytes
	VerbatimString Kind = '=' // counted bytes, of which the first four name a format
	Map            Kind = '%' // pairs; "%?" has no count and ends with End
	Set            Kind = '~' // "~?" has no count and ends with End
	Attribute      Kind = '|' // pairs in front of the value that they describe

	// End closes an aggregate without a count. It is not a value.
	End Kind = '.'

	part Kind = ';' // of a streamed string
)

// Push is the [Kind] of out-of-band data ('>') and the [Verdict] about a message
// of that kind. It is untyped because both types have it.
const Push = '>'

// Verdict is the result of a scanner for the bytes it scanned.
type Verdict uint8

// The verdicts. The third is [Push].
const (
	Done Verdict = iota // a whole message
	More                // the start of a message
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

// String returns the name of the kind as the specification has it.
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

// What a count can be other than a number.
const (
	null     = -1 // "-1"
	streamed = -2 // "?"
	noCount  = -3 // anything else
)

// streams says whether values of the kind may come without a count.
func (k Kind) streams() bool {
	return k == BulkString || k == Array || k == Map || k == Set
}

// inPairs says whether the count of the kind is one of pairs.
func (k Kind) inPairs() bool { return k == Map || k == Attribute }

// longestNumber is the most bytes of a line that holds a count or an integer:
// a sign and 19 digits, with some room for zeros in front.
const longestNumber = 32

// lineLimit returns how many bytes the first line of a value may have, without
// the kind and the CR LF; text is the limit for those that hold text. It is -1
// if k is not a kind.
func (k Kind) lineLimit(text int) int {
	switch k {
	case SimpleString, SimpleError, Double, BigNumber:
		return text
	case Integer, BulkString, Array, Null, Boolean, BulkError, VerbatimString, Map, Set, Attribute, Push, End, part:
		return longestNumber
	}
	return -1
}
