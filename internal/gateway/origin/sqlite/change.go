package sqlite

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// verdict is what a row of the change table means for a resource.
type verdict uint8

const (
	oneKey     verdict = iota // the document of a key changed
	noKey                     // the changed row is not the row of any key
	everything                // the row cannot be read: any document may have changed
)

// literalKind is the storage class that a literal stands for.
type literalKind uint8

const (
	literalNull literalKind = iota + 1
	literalNumber
	literalText
	literalBlob
)

// changedKey turns the SQL literals of a key, as written by quote(), into the ID
// of the document. scratch is used for the segments.
func changedKey(columns []resource.KeyColumn, literals string, scratch []string) (string, verdict) {
	segments := scratch[:0]
	result := oneKey
	rest := literals
	for i, column := range columns {
		if i > 0 {
			if !strings.HasPrefix(rest, ",") {
				return "", everything
			}
			rest = rest[1:]
		}
		var kind literalKind
		var value string
		kind, value, rest = cutLiteral(rest)
		switch segment, v := canonical(column, kind, value); v {
		case everything:
			return "", everything
		case noKey:
			result = noKey
		default:
			segments = append(segments, segment)
		}
	}
	if rest != "" {
		return "", everything
	}
	if result == noKey {
		return "", noKey
	}
	return resource.JoinID(segments), oneKey
}

// cutLiteral splits off the first literal. kind is 0 if there is none.
func cutLiteral(s string) (kind literalKind, value, rest string) {
	switch {
	case s == "":
		return 0, "", ""
	case s[0] == '\'':
		return cutText(s[1:])
	case s[0] == 'X' || s[0] == 'x':
		if len(s) < 2 || s[1] != '\'' {
			return 0, "", ""
		}
		digits, rest, ok := strings.Cut(s[2:], "'")
		if !ok {
			return 0, "", ""
		}
		return literalBlob, digits, rest
	}
	end := strings.IndexByte(s, ',')
	if end < 0 {
		end = len(s)
	}
	word := s[:end]
	if word == "NULL" {
		return literalNull, "", s[end:]
	}
	if _, err := strconv.ParseFloat(word, 64); err != nil {
		return 0, "", ""
	}
	return literalNumber, word, s[end:]
}

// cutText reads a text literal after its opening quote.
func cutText(s string) (kind literalKind, value, rest string) {
	end := 0
	doubled := false
	for {
		quote := strings.IndexByte(s[end:], '\'')
		if quote < 0 {
			return 0, "", ""
		}
		end += quote
		if end+1 >= len(s) || s[end+1] != '\'' {
			break
		}
		doubled = true
		end += 2
	}
	value = s[:end]
	if doubled {
		value = strings.ReplaceAll(value, "''", "'")
	}
	return literalText, value, s[end+1:]
}

// canonical turns the value of a key column into its path segment.
//
// noKey is valid only for values that no bound parameter of the column's kind
// compares equal to: NULL equals nothing; a blob equals only blobs, text and
// numbers only themselves, and the column's affinity has already turned text that
// looks like a number into one (Integer), or every number into text (Text). Where
// it would have to rely on that last step, the answer is everything.
func canonical(column resource.KeyColumn, kind literalKind, value string) (string, verdict) {
	switch kind {
	case literalNull:
		return "", noKey
	case literalNumber:
		if column.Kind == resource.Bytes {
			return "", noKey
		}
		// Anything but an integer in an Integer column may still equal one:
		// -9223372036854775808.0 stays a float and equals the integer.
		if column.Kind != resource.Integer || column.Check(value) != nil {
			return "", everything
		}
		return value, oneKey
	case literalText:
		switch column.Kind {
		case resource.Bytes:
			return "", noKey
		case resource.Integer:
			if _, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
				return "", everything
			}
			return "", noKey
		}
		// Older libraries end quote() at a NUL. A text with a NUL is not a key, so
		// the shorter one is dropped needlessly.
		if value == "" || len(value) > resource.MaxTextKey || !utf8.ValidString(value) || strings.IndexByte(value, 0) >= 0 {
			return "", noKey
		}
		return value, oneKey
	case literalBlob:
		if _, err := hex.DecodeString(value); err != nil {
			return "", everything
		}
		if column.Kind != resource.Bytes || value == "" || len(value) > 2*resource.MaxBytesKey {
			return "", noKey
		}
		return strings.ToLower(value), oneKey
	default:
		return "", everything
	}
}
