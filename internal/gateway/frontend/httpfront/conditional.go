package httpfront

import "strings"

// tagListed reports whether a header field If-None-Match or If-Match lists the
// tag (RFC 9110, section 8.8.3). weak chooses the comparison: If-None-Match
// compares weakly, If-Match strongly. A field that is not a list of tags matches
// nothing.
func tagListed(field, tag string, weak bool) bool {
	field = strings.Trim(field, " \t")
	if field == "*" {
		return true
	}
	for field != "" {
		isWeak := strings.HasPrefix(field, "W/")
		if isWeak {
			field = field[2:]
		}
		if field == "" || field[0] != '"' {
			return false
		}
		end := strings.IndexByte(field[1:], '"')
		if end < 0 {
			return false
		}
		listed := field[:end+2]
		if listed == tag && (weak || !isWeak) {
			return true
		}
		field = strings.TrimLeft(field[end+2:], " \t")
		if field == "" {
			return false
		}
		if field[0] != ',' {
			return false
		}
		field = strings.TrimLeft(field, ", \t")
	}
	return false
}
