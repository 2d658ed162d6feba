package sqlite

import "time"

// dateTime measures the "YYYY-MM-DD HH:MM:SS[.f]" (or with a T) that text
// begins with. The digits must be a day and an hour that exist, otherwise a
// document would contain a time that no reader can parse.
func dateTime(text []byte) (n int, ok bool) {
	const pattern = "0000-00-00 00:00:00"
	if len(text) < len(pattern) {
		return 0, false
	}
	for i := range len(pattern) {
		switch c := text[i]; pattern[i] {
		case '0':
			if c < '0' || c > '9' {
				return 0, false
			}
		case ' ':
			if c != ' ' && c != 'T' {
				return 0, false
			}
		default:
			if c != pattern[i] {
				return 0, false
			}
		}
	}
	n = len(pattern)
	if n < len(text) && text[n] == '.' {
		end := n + 1
		for end < len(text) && text[end] >= '0' && text[end] <= '9' {
			end++
		}
		if end == n+1 {
			return 0, false
		}
		n = end
	}
	year, month, day := digits(text[0:4]), digits(text[5:7]), digits(text[8:10])
	if month < 1 || month > 12 || day < 1 || digits(text[11:13]) > 23 || digits(text[14:16]) > 59 || digits(text[17:19]) > 59 {
		return 0, false
	}
	// Day 0 of the next month is the last one of this.
	if day > time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day() {
		return 0, false
	}
	return n, true
}

func digits(text []byte) int {
	n := 0
	for _, c := range text {
		n = n*10 + int(c-'0')
	}
	return n
}

// appendUTC formats a date and time with an offset as RFC 3339 in UTC. The
// fraction is copied unchanged: it does not depend on the offset.
func appendUTC(dst, text []byte) ([]byte, bool) {
	n, ok := dateTime(text)
	if !ok {
		return dst, false
	}
	offset, ok := offsetSeconds(text[n:])
	if !ok {
		return dst, false
	}
	moment := time.Date(digits(text[0:4]), time.Month(digits(text[5:7])), digits(text[8:10]),
		digits(text[11:13]), digits(text[14:16]), digits(text[17:19])-offset, 0, time.UTC)
	if year := moment.Year(); year < 0 || year > 9999 {
		return dst, false // RFC 3339 has four digits for it
	}
	dst = append(dst, '"')
	dst = moment.AppendFormat(dst, "2006-01-02T15:04:05")
	dst = append(dst, text[len("2006-01-02 15:04:05"):n]...)
	return append(dst, 'Z', '"'), true
}

// offsetSeconds reads Z, z, ±HH, ±HHMM or ±HH:MM.
func offsetSeconds(text []byte) (seconds int, ok bool) {
	if len(text) == 1 && (text[0] == 'Z' || text[0] == 'z') {
		return 0, true
	}
	if len(text) < 3 || (text[0] != '+' && text[0] != '-') {
		return 0, false
	}
	var number [4]byte
	copy(number[:], "0000")
	copy(number[:2], text[1:3])
	switch rest := text[3:]; {
	case len(rest) == 0:
	case len(rest) == 2:
		copy(number[2:], rest)
	case len(rest) == 3 && rest[0] == ':':
		copy(number[2:], rest[1:])
	default:
		return 0, false
	}
	for _, c := range number {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	hours, minutes := digits(number[:2]), digits(number[2:])
	if hours > 23 || minutes > 59 {
		return 0, false
	}
	seconds = hours*3600 + minutes*60
	if text[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}
