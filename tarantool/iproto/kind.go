package iproto

// Kind is the type of a value.
type Kind uint8

// The kinds of values.
const (
	KindInvalid Kind = iota // a byte that starts no value
	KindNil
	KindBool
	KindUint // a nonnegative integer in an unsigned encoding
	KindInt  // an integer in a signed encoding
	KindFloat
	KindString
	KindBytes
	KindArray
	KindMap
	KindExt
	KindEnd // no value: the input ends here, or there was an error
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

// shape says what follows a given first byte of a value.
type shape struct {
	kind Kind
	// width is the number of bytes of the length that follows the first byte.
	width uint8
	// fixed is the number of further bytes that always follow: the rest of the value if width is 0,
	// or otherwise the type of an extension.
	fixed uint8
	// each is the number of values for each unit of the length, or 0 if the length counts bytes.
	each uint8
}

// shapes is indexed by the first byte. Small maps, arrays and strings contain their length in the
// first byte, and are not distinguished here.
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
