package resp

// SizeBulk returns the encoded size of a bulk string of n bytes.
func SizeBulk(n int) int { return 1 + digits(uint64(n)) + 2 + n + 2 }

// AppendCommand appends a command: an array of bulk strings.
func AppendCommand(b []byte, args ...string) []byte {
	b = AppendArrayHeader(b, len(args))
	for _, a := range args {
		b = AppendBulkString(b, a)
	}
	return b
}

// AppendArrayHeader appends the start of an array of n elements. A command of n
// words is an array of n bulk strings.
func AppendArrayHeader(b []byte, n int) []byte { return appendHeader(b, Array, n) }

// appendHeader appends a kind and a count, which must not be negative.
func appendHeader(b []byte, k Kind, n int) []byte {
	if uint(n) < 10 {
		return append(b, byte(k), '0'+byte(n), '\r', '\n')
	}
	if uint(n) < 100 {
		return append(b, byte(k), pairs[2*n], pairs[2*n+1], '\r', '\n')
	}
	b = appendUint(append(b, byte(k)), uint64(n))
	return append(b, '\r', '\n')
}

// AppendBulk appends a bulk string.
func AppendBulk(b []byte, p []byte) []byte {
	b = appendHeader(b, BulkString, len(p))
	b = append(b, p...)
	return append(b, '\r', '\n')
}

// AppendBulkString appends a bulk string.
func AppendBulkString(b []byte, s string) []byte {
	b = appendHeader(b, BulkString, len(s))
	b = append(b, s...)
	return append(b, '\r', '\n')
}

// AppendBulkInt appends a bulk string that contains a decimal number.
func AppendBulkInt(b []byte, v int64) []byte {
	if v >= 0 {
		return AppendBulkUint(b, uint64(v))
	}
	u := -uint64(v) // also correct for the smallest number, which is its own negative
	b = appendHeader(b, BulkString, 1+digits(u))
	b = appendUint(append(b, '-'), u)
	return append(b, '\r', '\n')
}

// AppendBulkUint appends a bulk string that contains a decimal number.
func AppendBulkUint(b []byte, v uint64) []byte {
	b = appendHeader(b, BulkString, digits(v))
	b = appendUint(b, v)
	return append(b, '\r', '\n')
}

// AppendBulkFloat appends a bulk string that contains a number, with the fewest digits that parse
// to the same number, or inf, -inf or nan.
func AppendBulkFloat(b []byte, v float64) []byte {
	var buf [32]byte
	return AppendBulk(b, appendFloat(buf[:0], v))
}
