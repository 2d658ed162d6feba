package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"
)

// Resolutions of the times of logs.
const (
	accessLogTicks  = time.Second
	requestLogTicks = time.Millisecond
)

// skip counts a line that cannot be sent again.
func (r *reader) skip(reason string, n uint64) error {
	r.file.Skipped[reason] += n
	return nil
}

// timesOf is the format of times in access logs.
const timesOf = "02/Jan/2006:15:04:05 -0700"

// accessLine parses a line of the Common Log Format. More fields may follow, as in the Combined Log
// Format:
//
//	192.0.2.7 - - [22/Nov/2026:07:08:09 +0100] "GET /depts/1 HTTP/1.1" 200 135
//
// Escapes are decoded as Apache httpd and nginx write them.
func (r *reader) accessLine(line []byte) error {
	open := bytes.IndexByte(line, '[')
	if open < 0 {
		return r.wrong(line, 0, "no time in brackets; expected a line of the Common Log Format")
	}
	size := bytes.IndexByte(line[open:], ']')
	if size < 0 {
		return r.wrong(line, open, "a time without a closing bracket")
	}
	at, ok := parseTime(timesOf, string(line[open+1:open+size]))
	if !ok {
		return r.wrong(line, open+1, "the time %s; expected one such as 22/Nov/2026:07:08:09 +0100", quote(line[open+1:open+size]))
	}
	next := open + size + 1
	if !bytes.HasPrefix(line[next:], []byte(` "`)) {
		return r.wrong(line, next, "expected the request after the time, in quotation marks")
	}
	next += len(` "`)
	quoted := quotedSize(line[next:])
	if quoted < 0 {
		return r.wrong(line, next-1, "a request without a closing quotation mark")
	}
	text := line[next : next+quoted]
	next += quoted + 1
	status, ok := statusAt(line[next:])
	if !ok {
		return r.wrong(line, next, "expected the status after the request, three digits")
	}
	method, rest, _ := bytes.Cut(unescape(text), []byte(" "))
	end := bytes.LastIndex(rest, []byte(" HTTP/"))
	if end < 0 {
		return r.skip(NoPath, 1)
	}
	return r.logged(line, string(method), rest[:end], request{at: at, status: status})
}

// parseTime parses a time and returns it in Unix nanoseconds.
func parseTime(layout, text string) (at int64, ok bool) {
	t, err := time.Parse(layout, text)
	if err != nil || t.Year() < 1970 || t.Year() > 2200 {
		return 0, false
	}
	return t.UnixNano(), true
}

// logged adds a request from a log, or skips it.
func (r *reader) logged(line []byte, method string, target []byte, one request) error {
	switch method {
	case "GET":
	case "HEAD":
		one.head = true
	default:
		return r.skip(OtherMethod, 1)
	}
	if r.take(target, one) >= 0 {
		return r.skip(NoPath, 1)
	}
	return r.room(line)
}

// quotedSize returns the length of a text up to its closing quotation mark, or -1.
func quotedSize(text []byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// statusAt parses a space and three digits.
func statusAt(text []byte) (status uint16, ok bool) {
	if len(text) < 4 || text[0] != ' ' || len(text) > 4 && text[4] != ' ' {
		return 0, false
	}
	for _, c := range text[1:4] {
		if c < '0' || c > '9' {
			return 0, false
		}
		status = 10*status + uint16(c-'0')
	}
	return status, true
}

// unescape decodes \xHH, \" and \\. Escapes of control characters with a letter, such as \n, are
// kept: a target cannot contain them.
func unescape(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	plain := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\\' && i+1 < len(text) {
			if hex := text[i+1:]; hex[0] == 'x' && len(hex) >= 3 && unhex(hex[1]) >= 0 && unhex(hex[2]) >= 0 {
				c = byte(unhex(hex[1])<<4 | unhex(hex[2]))
				i += 3
			} else if hex[0] == '"' || hex[0] == '\\' {
				c = hex[0]
				i++
			}
		}
		plain = append(plain, c)
	}
	return plain
}

// unhex returns the value of a hexadecimal digit, or -1.
func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// A requestLogLine holds the fields that are used of a line of the request log.
type requestLogLine struct {
	Time        string `json:"time"`
	Protocol    string `json:"protocol"`
	Method      string `json:"method"`
	Target      string `json:"target"`
	TargetBytes int    `json:"target_bytes"` // of a truncated target
	Status      int    `json:"status"`
	Lost        uint64 `json:"lost"` // number of missing lines
}

// requestLine parses a line of the request log.
func (r *reader) requestLine(line []byte) error {
	var l requestLogLine
	if err := json.Unmarshal(line, &l); err != nil {
		at := int64(0)
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = syntax.Offset - 1
		} else if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			at = kind.Offset - 1
		}
		return r.wrong(line, int(min(max(at, 0), int64(len(line)))), "%w; expected a line of the request log", err)
	}
	at, ok := parseTime(time.RFC3339Nano, l.Time)
	switch {
	case !ok:
		return r.wrong(line, max(bytes.Index(line, []byte(`"time"`)), 0), "the time %s; expected one such as 2026-11-22T07:08:09.045Z", quote([]byte(l.Time)))
	case l.Lost > 0:
		return r.skip(Lost, l.Lost)
	case l.Protocol != "" && l.Protocol != "http":
		return r.skip(OtherProtocol, 1)
	case l.TargetBytes > 0:
		return r.skip(Truncated, 1)
	case l.Status < 0 || l.Status > 999:
		return r.wrong(line, max(bytes.Index(line, []byte(`"status"`)), 0), "status %d; expected three digits", l.Status)
	}
	return r.logged(line, l.Method, []byte(l.Target), request{at: at, status: uint16(l.Status)})
}
