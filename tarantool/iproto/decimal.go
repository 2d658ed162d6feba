package iproto

import (
	"errors"
	"math/bits"
	"strconv"
)

// Limits of a [Decimal].
const (
	// MaxDigits is the maximum number of digits of the unscaled number.
	MaxDigits = 38
	// MaxScale is the maximum scale, and its negative is the minimum.
	MaxScale = 1 << 20
)

// Decimal is a decimal number: an integer of up to [MaxDigits] digits, and the number of digits
// after the decimal point. The zero value is 0.
//
// Two Decimals are == only if they have the same digits and the same scale. So 1.5 and 1.50 are not
// ==, although [Decimal.Compare] considers them equal. There is no negative zero.
type Decimal struct {
	hi, lo   uint64 // the digits as an integer: hi<<64 + lo
	scale    int32  // number of digits after the point; if negative, number of zeros before it
	negative bool
}

var (
	errDigits = errors.New("more than " + itoa(MaxDigits) + " digits")
	errScale  = errors.New("scale beyond " + itoa(MaxScale))
	errSyntax = errors.New("not a decimal number")
)

// greatest is 10^38 - 1.
const (
	greatestHi = 0x4b3b4ca85a86c47a
	greatestLo = 0x098a223fffffffff
)

// ten19 is 10^19, the greatest power of ten that fits into 64 bits.
const ten19 = 10_000_000_000_000_000_000

// NewDecimal returns the number hi<<64 + lo, with a sign, divided by 10^scale. The error says which
// part is out of range.
func NewDecimal(negative bool, hi, lo uint64, scale int) (Decimal, error) {
	if hi > greatestHi || hi == greatestHi && lo > greatestLo {
		return Decimal{}, errDigits
	}
	if scale < -MaxScale || scale > MaxScale {
		return Decimal{}, errScale
	}
	return Decimal{hi: hi, lo: lo, scale: int32(scale), negative: negative && hi|lo != 0}, nil
}

// DecimalFromInt returns v as a Decimal.
func DecimalFromInt(v int64) Decimal {
	if v < 0 {
		return Decimal{lo: -uint64(v), negative: true}
	}
	return Decimal{lo: uint64(v)}
}

// Parts returns the parts of d, for [NewDecimal].
func (d Decimal) Parts() (negative bool, hi, lo uint64, scale int) {
	return d.negative, d.hi, d.lo, int(d.scale)
}

// Sign returns -1, 0 or 1.
func (d Decimal) Sign() int {
	switch {
	case d.hi|d.lo == 0:
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// shift multiplies the digits of d by ten and adds one digit. If that exceeds the limit, it returns
// false and does not change d.
func (d *Decimal) shift(digit byte) bool {
	over, hi := bits.Mul64(d.hi, 10)
	carry, lo := bits.Mul64(d.lo, 10)
	lo, c := bits.Add64(lo, uint64(digit), 0)
	hi, c = bits.Add64(hi, carry, c)
	if over|c != 0 || hi > greatestHi || hi == greatestHi && lo > greatestLo {
		return false
	}
	d.hi, d.lo = hi, lo
	return true
}

// digits appends the digits without leading zeros, or "0" for zero.
func (d Decimal) digits(b []byte) []byte {
	// The number is less than 10^38, so the quotient is less than 10^19.
	upper, lower := bits.Div64(d.hi, d.lo, ten19)
	if upper == 0 {
		return strconv.AppendUint(b, lower, 10)
	}
	b = strconv.AppendUint(b, upper, 10)
	var low [19]byte
	for i := len(low) - 1; i >= 0; i-- {
		low[i] = '0' + byte(lower%10)
		lower /= 10
	}
	return append(b, low[:]...)
}

// ParseDecimal parses a decimal number: an optional sign, digits with an optional point, and an
// optional exponent after an e. It never rounds: more than [MaxDigits] digits are an error.
func ParseDecimal(s string) (Decimal, error) {
	var d Decimal
	fail := func(err error) (Decimal, error) {
		return Decimal{}, &DecodeError{Got: "text " + quoted([]byte(s)), Want: "a decimal", Err: err}
	}
	i, seen, behind, point := 0, 0, 0, false
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		d.negative = s[i] == '-'
		i++
	}
	for ; i < len(s); i++ {
		c := s[i]
		if c == '.' && !point {
			point = true
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		if !d.shift(c - '0') {
			return fail(errDigits)
		}
		seen++
		if point {
			behind++
		}
	}
	if seen == 0 {
		return fail(errSyntax)
	}
	exponent := 0
	if i < len(s) {
		var err error
		// strconv accepts a sign and no other prefix.
		if s[i]|0x20 != 'e' {
			return fail(errSyntax)
		}
		if exponent, err = strconv.Atoi(s[i+1:]); errors.Is(err, strconv.ErrSyntax) {
			return fail(errSyntax)
		}
	}
	// Both are bounded, so that the difference does not overflow.
	if behind > 2*MaxScale || exponent > 4*MaxScale || exponent < -4*MaxScale {
		return fail(errScale)
	}
	d, err := NewDecimal(d.negative, d.hi, d.lo, behind-exponent)
	if err != nil {
		return fail(err)
	}
	return d, nil
}

// Append appends d as text that [ParseDecimal] parses to the same d. The text has an exponent if
// the scale is negative or greater than twice [MaxDigits].
func (d Decimal) Append(b []byte) []byte {
	if d.negative {
		b = append(b, '-')
	}
	from := len(b)
	b = d.digits(b)
	scale, n := int(d.scale), len(b)-from
	const longest = 2 * MaxDigits
	switch {
	case scale == 0:
	case scale < 0 || scale > longest:
		b = strconv.AppendInt(append(b, 'e'), int64(-scale), 10)
	case scale < n:
		b = append(b, 0)
		copy(b[from+n-scale+1:], b[from+n-scale:])
		b[from+n-scale] = '.'
	default:
		text := append([]byte(nil), b[from:]...)
		b = append(b[:from], '0', '.')
		for range scale - n {
			b = append(b, '0')
		}
		b = append(b, text...)
	}
	return b
}

// String returns what [Decimal.Append] appends.
func (d Decimal) String() string { return string(d.Append(nil)) }

// Float64 returns the nearest float64.
func (d Decimal) Float64() float64 {
	f, _ := strconv.ParseFloat(d.String(), 64) // the greatest float64 if out of range
	return f
}

// Compare returns -1 if d is less than o, 0 if they are the same number, and 1 if d is greater.
func (d Decimal) Compare(o Decimal) int {
	s, t := d.Sign(), o.Sign()
	switch {
	case s != t && s < t:
		return -1
	case s != t:
		return 1
	case s == 0:
		return 0
	}
	return s * d.compareSize(o)
}

// compareSize compares the absolute values, neither of which is zero.
func (d Decimal) compareSize(o Decimal) int {
	var buf [2][MaxDigits]byte
	p, q := d.digits(buf[0][:0]), o.digits(buf[1][:0])
	// The number of digits before the point decides, and then the digits.
	if before := (len(p) - int(d.scale)) - (len(q) - int(o.scale)); before != 0 {
		return sign(before)
	}
	for i := range max(len(p), len(q)) {
		c, e := byte('0'), byte('0')
		if i < len(p) {
			c = p[i]
		}
		if i < len(q) {
			e = q[i]
		}
		if c != e {
			return sign(int(c) - int(e))
		}
	}
	return 0
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// The nibbles after the digits of a packed decimal. Other nibbles have the meaning of one of these,
// and are accepted.
const (
	packedPlus  = 0x0c
	packedMinus = 0x0d
)

// AppendDecimal appends d as an extension: the scale, followed by the digits, four bits each, and
// the sign.
func AppendDecimal(b []byte, d Decimal) []byte {
	var scale [5]byte
	var buf [MaxDigits + 2]byte
	p := AppendInt(scale[:0], int64(d.scale))
	// Because the sign takes the last four bits, the number of digits must be odd.
	text := d.digits(append(buf[:0], '0'))
	if len(text)%2 == 0 {
		text = text[1:]
	}
	text = append(text, '0') // replaced by the sign
	last := byte(packedPlus)
	if d.negative {
		last = packedMinus
	}
	b = append(appendExtHead(b, TypeDecimal, len(p)+len(text)/2), p...)
	for i := 0; i < len(text); i += 2 {
		low := text[i+1] - '0'
		if i+2 == len(text) {
			low = last
		}
		b = append(b, (text[i]-'0')<<4|low)
	}
	return b
}

// decimal reads the data of an extension.
func (d *Decoder) decimal(offset int, data []byte) Decimal {
	p := Decoder{b: data}
	scale := p.Int()
	var v Decimal
	packed := p.Rest()
	if p.err != nil || len(packed) == 0 {
		d.failAt(offset, "decimal "+quoted(data), "a scale and digits", p.err)
		return Decimal{}
	}
	for i, c := range packed {
		low := c & 15
		if i == len(packed)-1 {
			if low < 10 {
				d.failAt(offset, "decimal without a sign", "one in the last four bits", nil)
				return Decimal{}
			}
			v.negative = low == packedMinus || low == 0x0b
			low = 0
		}
		if c>>4 > 9 || low > 9 {
			d.failAt(offset, "decimal "+quoted(data), "decimal digits", nil)
			return Decimal{}
		}
		if !v.shift(c>>4) || i < len(packed)-1 && !v.shift(low) {
			d.failAt(offset, "decimal", "at most "+itoa(MaxDigits)+" digits", errDigits)
			return Decimal{}
		}
	}
	scale = min(max(scale, -MaxScale-1), MaxScale+1)
	v, err := NewDecimal(v.negative, v.hi, v.lo, int(scale))
	if err != nil {
		d.failAt(offset, "decimal", "a scale within "+itoa(MaxScale), err)
	}
	return v
}
