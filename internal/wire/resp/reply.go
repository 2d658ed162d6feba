package resp

// AppendSimpleString appends a line of text. CR and LF, which a simple string cannot contain, are
// replaced by spaces.
func AppendSimpleString(b []byte, s string) []byte { return appendLine(b, SimpleString, s) }

// AppendError appends a line with an error: a code in capitals, a space and a message. CR and LF
// are replaced by spaces.
func AppendError(b []byte, s string) []byte { return appendLine(b, SimpleError, s) }

func appendLine[T string | []byte](b []byte, k Kind, text T) []byte {
	from := len(b) + 1
	b = append(append(b, byte(k)), text...)
	for i := from; i < len(b); i++ {
		if b[i] == '\r' || b[i] == '\n' {
			b[i] = ' '
		}
	}
	return append(b, '\r', '\n')
}

// AppendInt appends an integer.
func AppendInt(b []byte, v int64) []byte {
	b = appendInt(append(b, byte(Integer)), v)
	return append(b, '\r', '\n')
}

// AppendNull appends the null of RESP3.
func AppendNull(b []byte) []byte { return append(b, "_\r\n"...) }

// AppendNullBulk appends the null bulk string of RESP2.
func AppendNullBulk(b []byte) []byte { return append(b, "$-1\r\n"...) }

// AppendNullArray appends the null array of RESP2.
func AppendNullArray(b []byte) []byte { return append(b, "*-1\r\n"...) }

// AppendBool appends a boolean.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, "#t\r\n"...)
	}
	return append(b, "#f\r\n"...)
}

// AppendDouble appends a double with the fewest digits that parse to the same number.
func AppendDouble(b []byte, v float64) []byte {
	b = appendFloat(append(b, byte(Double)), v)
	return append(b, '\r', '\n')
}

// AppendBigNumber appends an integer of any size: digits with an optional sign. CR and LF are
// replaced by spaces; nothing else is checked.
func AppendBigNumber(b []byte, digits string) []byte { return appendLine(b, BigNumber, digits) }

// AppendBulkError appends an error, which may contain any bytes.
func AppendBulkError(b []byte, p []byte) []byte { return appendBody(b, BulkError, p) }

func appendBody(b []byte, k Kind, p []byte) []byte {
	b = append(appendHeader(b, k, len(p)), p...)
	return append(b, '\r', '\n')
}

// AppendVerbatim appends text in a format such as txt or mkd.
func AppendVerbatim(b []byte, format [3]byte, p []byte) []byte {
	b = appendHeader(b, VerbatimString, 4+len(p))
	b = append(b, format[0], format[1], format[2], ':')
	b = append(b, p...)
	return append(b, '\r', '\n')
}

// AppendMapHeader appends the start of a map of n pairs. Alternating keys and values must follow.
func AppendMapHeader(b []byte, n int) []byte { return appendHeader(b, Map, n) }

// AppendSetHeader appends the start of a set of n elements.
func AppendSetHeader(b []byte, n int) []byte { return appendHeader(b, Set, n) }

// AppendPushHeader appends the start of out-of-band data with n elements, of which the first is a
// string with the type of the data.
func AppendPushHeader(b []byte, n int) []byte { return appendHeader(b, Push, n) }

// AppendAttributeHeader appends the start of an attribute with n pairs, which describe the value
// after it.
func AppendAttributeHeader(b []byte, n int) []byte { return appendHeader(b, Attribute, n) }

// AppendStreamedString appends the start of a string in parts. Calls of [AppendStreamedPart] and
// then [AppendStreamedStringEnd] must follow.
func AppendStreamedString(b []byte) []byte { return append(b, "$?\r\n"...) }

// AppendStreamedPart appends a part of a streamed string. For an empty part, it appends nothing,
// because that would end the string.
func AppendStreamedPart(b []byte, p []byte) []byte {
	if len(p) == 0 {
		return b
	}
	return appendBody(b, part, p)
}

// AppendStreamedStringEnd appends the end of a streamed string.
func AppendStreamedStringEnd(b []byte) []byte { return append(b, ";0\r\n"...) }

// AppendStreamedArray appends the start of an array without a count. Its elements and then
// [AppendStreamedEnd] must follow.
func AppendStreamedArray(b []byte) []byte { return append(b, "*?\r\n"...) }

// AppendStreamedMap appends the start of a map without a count.
func AppendStreamedMap(b []byte) []byte { return append(b, "%?\r\n"...) }

// AppendStreamedSet appends the start of a set without a count.
func AppendStreamedSet(b []byte) []byte { return append(b, "~?\r\n"...) }

// AppendStreamedEnd appends the end of an aggregate without a count.
func AppendStreamedEnd(b []byte) []byte { return append(b, ".\r\n"...) }

// AppendValue appends a complete value with its attributes. Strings are sent with their length and
// aggregates with their count. A value of an unknown kind is replaced by a null, and so is the
// missing value of the last key of a map with an odd number of elements.
func AppendValue(b []byte, v Value) []byte {
	if len(v.Attr) > 0 {
		b = appendElems(AppendAttributeHeader(b, (len(v.Attr)+1)/2), v.Attr, true)
	}
	switch v.Kind {
	case SimpleString, SimpleError, BigNumber:
		return appendLine(b, v.Kind, v.Str)
	case Integer:
		return AppendInt(b, v.Int)
	case BulkString:
		if v.Null {
			return AppendNullBulk(b)
		}
		return AppendBulk(b, v.Str)
	case BulkError:
		return AppendBulkError(b, v.Str)
	case VerbatimString:
		return AppendVerbatim(b, v.Format, v.Str)
	case Boolean:
		return AppendBool(b, v.Bool)
	case Double:
		return AppendDouble(b, v.Float)
	case Array:
		if v.Null {
			return AppendNullArray(b)
		}
		return appendElems(AppendArrayHeader(b, len(v.Elems)), v.Elems, false)
	case Set, Push:
		return appendElems(appendHeader(b, v.Kind, len(v.Elems)), v.Elems, false)
	case Map:
		return appendElems(AppendMapHeader(b, (len(v.Elems)+1)/2), v.Elems, true)
	}
	return AppendNull(b)
}

func appendElems(b []byte, elems []Value, inPairs bool) []byte {
	for _, e := range elems {
		b = AppendValue(b, e)
	}
	if inPairs && len(elems)%2 != 0 {
		b = AppendNull(b)
	}
	return b
}
