package resp

import (
	"math"
	"math/bits"
	"strconv"
	"unsafe"
)

// ParseInt parses a decimal 64-bit number with an optional sign, in the format of integers and of
// counters in Redis. The error is a [*ProtocolError].
func ParseInt(b []byte) (int64, error) {
	v, ok := parseInt(b)
	if !ok {
		return 0, errText(0, Integer, b)
	}
	return v, nil
}

func parseInt(b []byte) (int64, bool) {
	digits, negative := b, false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		digits, negative = b[1:], b[0] == '-'
	}
	if len(digits) == 0 {
		return 0, false
	}
	if len(digits) > 18 {
		return parseLongInt(digits, negative)
	}
	// 18 digits fit into 64 bits, so overflow is impossible.
	var v int64
	for _, c := range digits {
		c -= '0'
		if c > 9 {
			return 0, false
		}
		v = v*10 + int64(c)
	}
	if negative {
		v = -v
	}
	return v, true
}

func parseLongInt(digits []byte, negative bool) (int64, bool) {
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	var v uint64
	for _, c := range digits {
		c -= '0'
		if c > 9 || v > limit/10 {
			return 0, false
		}
		// v*10 is at most limit, so the sum is below 2^64.
		if v = v*10 + uint64(c); v > limit {
			return 0, false
		}
	}
	if negative {
		v = -v
	}
	return int64(v), true
}

// parseCount parses the number after the kind of a string or an aggregate: it returns a number
// without sign and unnecessary zeros, [null], [streamed], or [noCount]. A number that exceeds an
// int becomes the largest int, which the limits reject.
func parseCount(line []byte) int {
	switch {
	case len(line) == 0:
		return noCount
	case len(line) == 1 && line[0] == '?':
		return streamed
	case len(line) == 2 && line[0] == '-' && line[1] == '1':
		return null
	case len(line) > 1 && line[0] == '0':
		return noCount
	}
	n := 0
	for _, c := range line {
		c -= '0'
		if c > 9 {
			return noCount
		}
		if n > (math.MaxInt-9)/10 {
			n = math.MaxInt
			continue
		}
		n = n*10 + int(c)
	}
	return n
}

// ParseFloat parses a decimal number with optional sign, fraction and exponent, or inf, infinity or
// nan with an optional sign, ignoring case. A number that is too large for a float64 becomes an
// infinity. The error is a [*ProtocolError].
func ParseFloat(b []byte) (float64, error) {
	v, ok := parseFloat(b)
	if !ok {
		return 0, errText(0, Double, b)
	}
	return v, nil
}

func parseFloat(b []byte) (float64, bool) {
	if !isFloat(b) {
		return 0, false
	}
	if b[len(b)-1]|0x20 == 'n' { // strconv does not accept nan with a sign
		return math.NaN(), true
	}
	// The string does not outlive the call, and b does not change during the call. The only
	// possible error is that the number is out of range, and then v is correct.
	v, _ := strconv.ParseFloat(unsafe.String(unsafe.SliceData(b), len(b)), 64)
	return v, true
}

// isFloat reports whether b is a number that parseFloat accepts. strconv would also accept
// hexadecimal numbers and underscores.
func isFloat(b []byte) bool {
	i := skipSign(b, 0)
	if i < len(b) && (b[i]|0x20 == 'i' || b[i]|0x20 == 'n') {
		return isWord(b[i:], "inf") || isWord(b[i:], "nan") || isWord(b[i:], "infinity")
	}
	from := i
	if i = skipDigits(b, i); i == from {
		return false
	}
	if i < len(b) && b[i] == '.' {
		from = i + 1
		if i = skipDigits(b, from); i == from {
			return false
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		from = skipSign(b, i+1)
		if i = skipDigits(b, from); i == from {
			return false
		}
	}
	return i == len(b)
}

// isBigNumber reports whether b consists of digits with an optional sign.
func isBigNumber(b []byte) bool {
	from := skipSign(b, 0)
	return len(b) > from && skipDigits(b, from) == len(b)
}

func skipSign(b []byte, i int) int {
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		i++
	}
	return i
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

// isWord compares b with word, which must be in lower case, ignoring case.
func isWord(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if c|0x20 != word[i] {
			return false
		}
	}
	return true
}

func itoa(n int) string { return strconv.Itoa(n) }

// powers[i] is 10^i.
var powers = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// digits returns the number of decimal digits of v.
func digits(v uint64) int {
	// log10(2) is about 1233/4096, so the guess is correct or one too small.
	guess := bits.Len64(v|1) * 1233 >> 12
	if v >= powers[guess] {
		guess++
	}
	return max(guess, 1)
}

// pairs contains "00" to "99".
const pairs = "00010203040506070809" +
	"10111213141516171819" +
	"20212223242526272829" +
	"30313233343536373839" +
	"40414243444546474849" +
	"50515253545556575859" +
	"60616263646566676869" +
	"70717273747576777879" +
	"80818283848586878889" +
	"90919293949596979899"

// appendUint appends v, two digits at a time.
func appendUint(b []byte, v uint64) []byte {
	if v < 10 {
		return append(b, '0'+byte(v))
	}
	var buf [20]byte
	i := len(buf)
	for v >= 100 {
		i -= 2
		p := v % 100 * 2
		v /= 100
		buf[i], buf[i+1] = pairs[p], pairs[p+1]
	}
	if v >= 10 {
		i -= 2
		buf[i], buf[i+1] = pairs[v*2], pairs[v*2+1]
	} else {
		i--
		buf[i] = '0' + byte(v)
	}
	return append(b, buf[i:]...)
}

// appendInt appends v.
func appendInt(b []byte, v int64) []byte {
	if v < 0 {
		// This is also correct for the smallest number, which is its own negative.
		return appendUint(append(b, '-'), -uint64(v))
	}
	return appendUint(b, uint64(v))
}

// appendFloat appends v with the fewest digits that parse to the same number.
func appendFloat(b []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(b, "inf"...)
	case math.IsInf(v, -1):
		return append(b, "-inf"...)
	case math.IsNaN(v):
		return append(b, "nan"...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}
