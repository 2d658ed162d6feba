package resource

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind is the family of a key column's type. Each kind has one canonical text
// form; a path segment in any other form is refused, so that one row never has
// two cache entries.
type Kind uint8

// Kinds of key columns.
const (
	Integer     Kind = iota + 1 // decimal int64: no sign but '-', no leading zero
	Text                        // UTF-8 without NUL, not empty, compared byte by byte
	Bytes                       // lower-case hexadecimal
	Decimal                     // exact number: as Integer without bounds, and a fraction without trailing zeros
	UUID                        // 8-4-4-4-12 lower-case hexadecimal digits
	Date                        // YYYY-MM-DD, years 0001 to 9999
	Timestamp                   // YYYY-MM-DDTHH:MM:SS.ffffff, no offset
	TimestampTZ                 // the same in UTC, followed by Z
	Boolean                     // true or false
)

// Limits of one key column, so that keys can neither fill the memory nor make
// statements of megabytes.
const (
	MaxTextKey  = 1024 // bytes of a Text column
	MaxBytesKey = 1024 // bytes of a Bytes column, two digits each
	// MaxDecimalKey is the length of a Decimal column, sign and point
	// included; a decimal128 has up to 36.
	MaxDecimalKey = 128
)

// String returns the name of the kind for messages.
func (k Kind) String() string {
	switch k {
	case Integer:
		return "integer"
	case Text:
		return "text"
	case Bytes:
		return "bytes"
	case Decimal:
		return "decimal"
	case UUID:
		return "uuid"
	case Date:
		return "date"
	case Timestamp:
		return "timestamp"
	case TimestampTZ:
		return "timestamp with time zone"
	case Boolean:
		return "boolean"
	default:
		return "unknown kind"
	}
}

// KeyColumn is a key column as found by the origin.
type KeyColumn struct {
	Name string
	Kind Kind
}

// KeyError says why a key is not one of the resource. It is always a mistake in
// the key, never a fault of the gateway.
type KeyError struct {
	Column   string // name of the key column, empty if the number of segments is wrong
	Expected string // what would have been accepted
	Input    string // the segment, shortened for messages
}

func (e *KeyError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("key has %s", e.Expected)
	}
	return fmt.Sprintf("key column %s: expected %s, got %s", e.Column, e.Expected, e.Input)
}

// Check returns nil if segment, already percent-decoded, is the canonical form
// of a value of the column, and a *[KeyError] otherwise. There is no conversion: a
// segment that passes is its own canonical form.
func (c KeyColumn) Check(segment string) error {
	var expected string
	switch c.Kind {
	case Integer:
		expected = checkInteger(segment)
	case Text:
		expected = checkText(segment)
	case Bytes:
		expected = checkBytes(segment)
	case Decimal:
		expected = checkDecimal(segment)
	case UUID:
		expected = checkUUID(segment)
	case Date:
		expected = checkDate(segment)
	case Timestamp:
		expected = checkTimestamp(segment)
	case TimestampTZ:
		expected = checkTimestampTZ(segment)
	case Boolean:
		expected = checkBoolean(segment)
	default:
		expected = "a column of a known kind"
	}
	if expected == "" {
		return nil
	}
	return &KeyError{Column: c.Name, Expected: expected, Input: shorten(segment)}
}

func checkInteger(s string) (expected string) {
	const want = "a decimal integer without '+' or leading zeros"
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || (digits[0] == '0' && s != "0") {
		return want
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return want
		}
	}
	if _, err := strconv.ParseInt(s, 10, 64); err != nil {
		return "an integer between -9223372036854775808 and 9223372036854775807"
	}
	return ""
}

func checkText(s string) (expected string) {
	switch {
	case s == "":
		return "at least one character"
	case len(s) > MaxTextKey:
		return fmt.Sprintf("at most %d bytes of text", MaxTextKey)
	case !utf8.ValidString(s):
		return "valid UTF-8"
	case strings.IndexByte(s, 0) >= 0:
		return "text without NUL"
	}
	return ""
}

func checkBytes(s string) (expected string) {
	switch {
	case s == "" || len(s)%2 != 0:
		return "an even, non-zero number of lower-case hexadecimal digits"
	case len(s) > 2*MaxBytesKey:
		return fmt.Sprintf("at most %d hexadecimal digits", 2*MaxBytesKey)
	}
	for i := range len(s) {
		if !(s[i] >= '0' && s[i] <= '9' || s[i] >= 'a' && s[i] <= 'f') {
			return "lower-case hexadecimal digits"
		}
	}
	return ""
}

func checkDecimal(s string) (expected string) {
	const want = "a decimal number without '+', exponent, leading zeros or trailing zeros of a fraction"
	if len(s) > MaxDecimalKey {
		return fmt.Sprintf("a number of at most %d characters", MaxDecimalKey)
	}
	whole, fraction, hasPoint := strings.Cut(strings.TrimPrefix(s, "-"), ".")
	switch {
	case !allDigits(whole), whole[0] == '0' && len(whole) > 1:
		return want
	case hasPoint && (!allDigits(fraction) || fraction[len(fraction)-1] == '0'):
		return want
	case s == "-0":
		return "0 without a sign"
	}
	return ""
}

// allDigits reports whether s consists of one or more digits.
func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func checkUUID(s string) (expected string) {
	const want = "a UUID of 8-4-4-4-12 lower-case hexadecimal digits"
	if !shaped(s, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
		return want
	}
	return ""
}

// shaped reports whether s has the shape of pattern, in which 0 stands for a
// decimal digit, x for a lower-case hexadecimal one, and everything else for
// itself.
func shaped(s, pattern string) bool {
	if len(s) != len(pattern) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		digit := c >= '0' && c <= '9'
		switch pattern[i] {
		case '0':
			if !digit {
				return false
			}
		case 'x':
			if !digit && (c < 'a' || c > 'f') {
				return false
			}
		default:
			if c != pattern[i] {
				return false
			}
		}
	}
	return true
}

const datePattern = "0000-00-00"

func checkDate(s string) (expected string) {
	if !shaped(s, datePattern) {
		return "a date written YYYY-MM-DD"
	}
	if !dayExists(s) {
		return "a day of the calendar between 0001-01-01 and 9999-12-31"
	}
	return ""
}

// dayExists reports whether s, of the shape datePattern, is a day of the
// proleptic Gregorian calendar.
func dayExists(s string) bool {
	year, month, day := number(s[0:4]), number(s[5:7]), number(s[8:10])
	if year < 1 || month < 1 || month > 12 || day < 1 {
		return false
	}
	// Day 0 of the next month is the last day of this one.
	return day <= time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// number reads a few decimal digits.
func number(digits string) int {
	n := 0
	for i := range len(digits) {
		n = n*10 + int(digits[i]-'0')
	}
	return n
}

func checkTimestamp(s string) (expected string) {
	const want = "a timestamp written YYYY-MM-DDTHH:MM:SS.ffffff"
	if !shaped(s, datePattern+"T00:00:00.000000") {
		return want
	}
	if !dayExists(s) || number(s[11:13]) > 23 || number(s[14:16]) > 59 || number(s[17:19]) > 59 {
		return "a day and time that exist, between 0001-01-01 and 9999-12-31"
	}
	return ""
}

func checkTimestampTZ(s string) (expected string) {
	local, ok := strings.CutSuffix(s, "Z")
	if !ok || len(local) != len(datePattern+"T00:00:00.000000") {
		return "a timestamp in UTC written YYYY-MM-DDTHH:MM:SS.ffffffZ"
	}
	return checkTimestamp(local)
}

func checkBoolean(s string) (expected string) {
	if s != "true" && s != "false" {
		return "true or false"
	}
	return ""
}

// shorten quotes s for a message: control characters escaped, at most 40
// characters of it, so that a hostile key cannot forge a log line.
func shorten(s string) string {
	const limit = 40
	if len(s) <= limit {
		return strconv.QuoteToASCII(s)
	}
	return fmt.Sprintf("%s... (%d bytes)", strconv.QuoteToASCII(s[:limit]), len(s))
}

// ID returns the internal ID of a key from its percent-decoded path segments,
// one per column: every column but the last as "<byte length>:<bytes>", the last
// unchanged. So a key of one column is its own ID, and no two lists of segments
// have one ID. An error is a *[KeyError].
func ID(columns []KeyColumn, segments []string) (string, error) {
	if err := checkSegments(columns, segments); err != nil {
		return "", err
	}
	return JoinID(segments), nil
}

// checkSegments returns nil if each segment is the canonical form of a value of its
// column, or a *[KeyError].
func checkSegments(columns []KeyColumn, segments []string) error {
	if len(columns) != len(segments) || len(columns) == 0 {
		return &KeyError{Expected: fmt.Sprintf("%d segments, expected %d (%s)",
			len(segments), len(columns), columnNames(columns))}
	}
	for i, c := range columns {
		if err := c.Check(segments[i]); err != nil {
			return err
		}
	}
	return nil
}

// JoinID returns the ID of segments that are known to be canonical.
func JoinID(segments []string) string {
	if len(segments) == 1 {
		return segments[0]
	}
	size := 0
	for _, s := range segments {
		size += len(s) + 5
	}
	return string(appendID(make([]byte, 0, size), segments))
}

func appendID(id []byte, segments []string) []byte {
	for i, s := range segments {
		if i < len(segments)-1 {
			id = strconv.AppendInt(id, int64(len(s)), 10)
			id = append(id, ':')
		}
		id = append(id, s...)
	}
	return id
}

// CutID splits the first of several columns off an ID. It does not allocate.
func CutID(id string) (segment, rest string, ok bool) {
	colon := strings.IndexByte(id, ':')
	if colon < 1 || colon > 4 || (id[0] == '0' && colon > 1) {
		return "", "", false
	}
	n := 0
	for i := range colon {
		if id[i] < '0' || id[i] > '9' {
			return "", "", false
		}
		n = n*10 + int(id[i]-'0')
	}
	rest = id[colon+1:]
	if n > len(rest) {
		return "", "", false
	}
	return rest[:n], rest[n:], true
}

// Split is the inverse of [ID]: the segments of an ID, checked again.
func Split(columns []KeyColumn, id string) ([]string, error) {
	segments := make([]string, 0, len(columns))
	rest := id
	for i := range columns {
		segment := rest
		if i < len(columns)-1 {
			var ok bool
			if segment, rest, ok = CutID(rest); !ok {
				return nil, &KeyError{Column: columns[i].Name, Expected: "a length and a colon", Input: shorten(rest)}
			}
		}
		if err := columns[i].Check(segment); err != nil {
			return nil, err
		}
		segments = append(segments, segment)
	}
	return segments, nil
}

// Path returns the percent-encoded path of a document: /{name}/{k1}/{k2}.
// "." and ".." are escaped too: a client that resolves dot segments before it
// sends would otherwise request another document.
func Path(name string, columns []KeyColumn, id string) (string, error) {
	segments, err := Split(columns, id)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteByte('/')
	b.WriteString(url.PathEscape(name))
	for _, s := range segments {
		b.WriteByte('/')
		switch s {
		case ".":
			b.WriteString("%2E")
		case "..":
			b.WriteString("%2E%2E")
		default:
			b.WriteString(url.PathEscape(s))
		}
	}
	return b.String(), nil
}

func columnNames(columns []KeyColumn) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return strings.Join(names, "/")
}
