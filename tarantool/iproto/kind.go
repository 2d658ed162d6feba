package iproto

// Kind is the type of a value.
type Kind uint8

// The kinds of values.
const (
	KindInvalid Kind = iota // a byte that begins no value
	KindNil
	KindBool
	KindUint // an integer that is not negative in an encoding without sign
	KindInt  // an integer in an encoding with sign
	KindFloat
	KindString
	KindBytes
	KindArray
	KindMap
	KindExt
	KindEnd // no value: the bytes end here, or an error is latched
)

var kindNames = [...]string{
	KindInvalid: "no value",
	KindNil:     "nil",
	KindBool:    "boolean",
	KindUint:    "unsigned integer",
	KindInt:     "integer",
	KindFloat:   "number",
	KindString:  "string",
	KindBytes:   "binary data",
	KindArray:   "array",
	KindMap:     "map",
	KindExt:     "extension",
	KindEnd:     "end of the input",
}

// String returns the name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown kind"
}

// shape says how a value with a certain first byte continues.
type shape struct {
	kind Kind
	// width is how many bytes of a length follow the first byte.
	width uint8
	// fixed is how many bytes follow first byte and length in any case: all
	// the rest of the value if width is 0, the type of an extension else.
	fixed uint8
	// each is how many values follow for each 1 of the length; 0 if the length
	// counts bytes.
	each uint8
}

// shapes is indexed by the first byte. Those of small maps, arrays and strings
// carry their length and are not told apart here.
var shapes = func() (s [256]shape) {
	for c := range s {
		switch {
		case c < fixMap:
			s[c].kind = KindUint
		case c < fixArray:
			s[c] = shape{kind: KindMap, each: 2}
		case c < fixStr:
			s[c] = shape{kind: KindArray, each: 1}
		case c < codeNil:
			s[c].kind = KindString
		case c >= negative:
			s[c].kind = KindInt
		}
	}
	s[codeNil].kind, s[no].kind, s[yes].kind = KindNil, KindBool, KindBool
	s[float32b], s[float64b] = shape{kind: KindFloat, fixed: 4}, shape{kind: KindFloat, fixed: 8}
	for i := range 5 {
		s[fixExt1+i] = shape{kind: KindExt, fixed: 1 + 1<<i}
	}
	for i := range 4 {
		s[uint8b+i] = shape{kind: KindUint, fixed: 1 << i}
		s[int8b+i] = shape{kind: KindInt, fixed: 1 << i}
	}
	for i := range 3 {
		s[bin8+i] = shape{kind: KindBytes, width: 1 << i}
		s[str8+i] = shape{kind: KindString, width: 1 << i}
		s[ext8+i] = shape{kind: KindExt, width: 1 << i, fixed: 1}
	}
	for i := range 2 {
		s[array16+i] = shape{kind: KindArray, width: 2 << i, each: 1}
		s[map16+i] = shape{kind: KindMap, width: 2 << i, each: 2}
	}
	return s
}()
