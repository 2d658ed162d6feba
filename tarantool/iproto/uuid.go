package iproto

import "errors"

// UUID is a universally unique identifier, with bytes in the order of its text. The zero value is
// the nil UUID.
type UUID [16]byte

var errUUID = errors.New("not a UUID")

// dashes has a bit for each byte of a UUID that is preceded by a dash in the text.
const dashes = 1<<4 | 1<<6 | 1<<8 | 1<<10

// ParseUUID parses the text of a UUID: 32 hexadecimal digits of either case and four dashes.
func ParseUUID(s string) (UUID, error) {
	var u UUID
	fail := func() (UUID, error) {
		return UUID{}, &DecodeError{Got: "text " + quoted([]byte(s)), Want: "a UUID", Err: errUUID}
	}
	if len(s) != 36 {
		return fail()
	}
	at := 0
	for i := range u {
		if dashes>>i&1 == 1 {
			if s[at] != '-' {
				return fail()
			}
			at++
		}
		high, ok1 := unhexDigit(s[at])
		low, ok2 := unhexDigit(s[at+1])
		if !ok1 || !ok2 {
			return fail()
		}
		u[i] = high<<4 | low
		at += 2
	}
	return u, nil
}

func unhexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// Append appends the text of u in lower case.
func (u UUID) Append(b []byte) []byte {
	const hex = "0123456789abcdef"
	for i, c := range u {
		if dashes>>i&1 == 1 {
			b = append(b, '-')
		}
		b = append(b, hex[c>>4], hex[c&15])
	}
	return b
}

// String returns the text of u.
func (u UUID) String() string { return string(u.Append(nil)) }

// AppendUUID appends u as an extension.
func AppendUUID(b []byte, u UUID) []byte { return AppendExt(b, TypeUUID, u[:]) }

func (d *Decoder) uuid(offset int, data []byte) (u UUID) {
	if len(data) != len(u) {
		d.failAt(offset, "UUID of "+itoa(len(data))+" bytes", "16", nil)
		return u
	}
	return UUID(data)
}
