package sqlite

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/cache"
)

// builder is a document under construction.
type builder struct {
	buf []byte
	max int // bytes of a finished document
}

// check fails if the document, with more bytes still to come, is too large. It
// is called before a value is copied, so memory stays within twice the limit.
func (b *builder) check(more int) error {
	if len(b.buf)+more > b.max {
		return cache.ErrTooLarge
	}
	return nil
}

// shape is how the declared type of a column affects its values.
type shape uint8

const (
	shapePlain       shape = iota // only by storage class
	shapeBool                     // 0 and 1 are false and true
	shapeJSON                     // text that is JSON is not quoted
	shapeTimestamp                // without offset
	shapeTimestampTZ              // text with an offset, shown in UTC
)

// field is a column of a document.
type field struct {
	prefix      string // `,"name":`, without the comma for the first
	shape       shape
	quoteBigint bool
}

func newField(c *column, quoteBigint, first bool) field {
	return field{prefix: memberPrefix(c.name, first), shape: shapeOf(c.declared), quoteBigint: quoteBigint}
}

func memberPrefix(name string, first bool) string {
	b := appendString(nil, []byte(name))
	if first {
		return string(b) + ":"
	}
	return "," + string(b) + ":"
}

// shapeOf reads a declared type: case, spaces and a precision do not matter.
func shapeOf(declared string) shape {
	d := strings.ToUpper(declared)
	if open := strings.IndexByte(d, '('); open >= 0 {
		if end := strings.IndexByte(d[open:], ')'); end >= 0 {
			d = d[:open] + " " + d[open+end+1:]
		}
	}
	switch strings.Join(strings.Fields(d), " ") {
	case "BOOL", "BOOLEAN":
		return shapeBool
	case "JSON", "JSONB":
		return shapeJSON
	case "TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE":
		return shapeTimestampTZ
	case "TIMESTAMP", "DATETIME", "TIMESTAMP WITHOUT TIME ZONE":
		return shapeTimestamp
	default:
		return shapePlain
	}
}

// appendTo appends the member for column i of the current row of stmt.
func (f *field) appendTo(b *builder, stmt *sqlite3.Stmt, i int) error {
	b.buf = append(b.buf, f.prefix...)
	switch stmt.ColumnType(i) {
	case sqlite3.INTEGER:
		n := stmt.ColumnInt64(i)
		switch {
		case f.shape == shapeBool && (n == 0 || n == 1):
			b.buf = strconv.AppendBool(b.buf, n == 1)
		case f.quoteBigint && f.shape != shapeBool:
			b.buf = append(b.buf, '"')
			b.buf = strconv.AppendInt(b.buf, n, 10)
			b.buf = append(b.buf, '"')
		default:
			b.buf = strconv.AppendInt(b.buf, n, 10)
		}
	case sqlite3.FLOAT:
		b.buf = appendFloat(b.buf, stmt.ColumnFloat(i))
	case sqlite3.TEXT:
		text := stmt.ColumnRawText(i)
		if err := b.check(len(text)); err != nil {
			return err
		}
		b.buf = f.appendText(b.buf, text)
	case sqlite3.BLOB:
		blob := stmt.ColumnRawBlob(i)
		if err := b.check(base64.StdEncoding.EncodedLen(len(blob))); err != nil {
			return err
		}
		b.buf = append(b.buf, '"')
		b.buf = base64.StdEncoding.AppendEncode(b.buf, blob)
		b.buf = append(b.buf, '"')
	default:
		b.buf = append(b.buf, "null"...)
	}
	return b.check(0)
}

// appendFloat writes the shortest digits that read back as f. A whole number
// keeps ".0", as SQLite itself prints it, so that readers see a float. A value for
// which JSON has no number becomes a string.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	}
	size := math.Abs(f)
	if size != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if f == math.Trunc(f) {
		dst = append(dst, ".0"...)
	}
	return dst
}

func (f *field) appendText(dst, text []byte) []byte {
	switch f.shape {
	case shapeJSON:
		// json.Valid refuses more than 10,000 levels, and does not check the
		// encoding inside strings.
		if json.Valid(text) && utf8.Valid(text) {
			return append(dst, text...)
		}
	case shapeTimestampTZ:
		if done, ok := appendUTC(dst, text); ok {
			return done
		}
	case shapeTimestamp:
		if n, ok := dateTime(text); ok && n == len(text) {
			dst = append(dst, '"')
			at := len(dst)
			dst = append(dst, text...)
			dst[at+len("2006-01-02")] = 'T'
			return append(dst, '"')
		}
	}
	return appendString(dst, text)
}

const hexDigits = "0123456789abcdef"

// appendString writes a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendString(dst, s []byte) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(dst, s[start:i]...)
				dst = append(dst, "\uFFFD"...)
				start = i + 1
			}
			i += size
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
