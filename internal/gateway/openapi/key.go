package openapi

import (
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// encodedText matches text that is percent-encoded like a segment of a path, as far
// as necessary. Escapes represent UTF-8 (RFC 3629, section 4) without NUL.
var encodedText = func() string {
	const x, tail = "[0-9A-Fa-f]", "%[89ABab][0-9A-Fa-f]"
	return "(" + strings.Join([]string{
		`[^/%\x00]`,
		"%0[1-9A-Fa-f]", "%[1-7]" + x,
		"%[Cc][2-9A-Fa-f]" + tail, "%[Dd]" + x + tail,
		"%[Ee]0%[ABab]" + x + tail, "%[Ee][1-9A-Ca-cEeFf]" + tail + tail, "%[Ee][Dd]%[89]" + x + tail,
		"%[Ff]0%[9ABab]" + x + tail + tail, "%[Ff][1-3]" + tail + tail + tail, "%[Ff]4%8" + x + tail + tail,
	}, "|") + ")+"
}()

// segments are patterns of the columns in a key of several: what
// [resource.KeyColumn.Check] accepts, percent-encoded, except for the lengths of months
// and maximum lengths.
var segments = func() map[resource.Kind]string {
	const day, clock = "[0-9]{4}-[0-9]{2}-[0-9]{2}", "T[0-9]{2}(:|%3[Aa])[0-9]{2}(:|%3[Aa])[0-9]{2}[.][0-9]{6}"
	return map[resource.Kind]string{
		resource.Integer:     "(0|-?(" + positiveInt64() + ")|-9223372036854775808)",
		resource.Text:        encodedText,
		resource.Bytes:       "([0-9a-f]{2})+",
		resource.Decimal:     "(0|-?(0[.][0-9]*[1-9]|[1-9][0-9]*([.][0-9]*[1-9])?))",
		resource.UUID:        "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
		resource.Date:        day,
		resource.Timestamp:   day + clock,
		resource.TimestampTZ: day + clock + "Z",
		resource.Boolean:     "(true|false)",
	}
}()

// positiveInt64 is a pattern of 1 to 9223372036854775807: up to 18 digits, that number,
// or 19 digits that begin like it and then have a smaller digit.
func positiveInt64() string {
	const greatest = "9223372036854775807"
	all := []string{"[1-9][0-9]{0,17}", greatest}
	for i, digit := range []byte(greatest) {
		least := byte('0')
		if i == 0 {
			least = '1'
		}
		if digit <= least {
			continue
		}
		smaller := "[" + string(least) + "-" + string(digit-1) + "]"
		if rest := len(greatest) - i - 1; rest > 0 {
			smaller += "[0-9]{" + strconv.Itoa(rest) + "}"
		}
		all = append(all, greatest[:i]+smaller)
	}
	return strings.Join(all, "|")
}

// keyPattern is the pattern of a key of several columns as a value of a query.
func keyPattern(columns []resource.KeyColumn) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = segments[c.Kind]
		if parts[i] == "" {
			parts[i] = encodedText
		}
	}
	return "^" + strings.Join(parts, "/") + "$"
}
