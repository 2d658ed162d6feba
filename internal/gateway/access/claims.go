package access

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is kept of a token.
const (
	maxClaims = 64      // claims of the kinds that are kept
	maxValues = 1024    // of all claims
	maxValue  = 1 << 10 // bytes of a name or a value; longer ones are left out
	maxNumber = 32      // bytes of a number
	maxName   = 64      // bytes of the subject in a caller's name
)

// maxSeconds is the end of the year 9999 in Unix time. A time beyond it is usually
// in milliseconds, which would make the token last for 50,000 years.
const maxSeconds = 253_402_300_799

// numericDate is a time in a token (RFC 7519, section 2).
type numericDate struct {
	seconds float64
	given   bool
}

// nanos is the time in Unix nanoseconds, clamped to the year 2255: 9e9 seconds
// leave room for the leeway below the greatest number.
func (d numericDate) nanos() int64 { return int64(min(d.seconds, 9e9) * 1e9) }

// claims is what is read from a payload.
type claims struct {
	values        map[string][]string
	exp, nbf, iat numericDate
	count, bytes  int
}

// readClaims reads a payload whose signature was valid.
func readClaims(payload []byte) (*claims, *Refusal) {
	c := &claims{values: make(map[string][]string)}
	var refusal *Refusal
	err := eachMember(payload, func(name string, value json.RawMessage, _ int64) error {
		if r := c.member(name, value); refusal == nil {
			refusal = r
		}
		return nil
	})
	if err != nil {
		return nil, refusedPayload
	}
	return c, refusal
}

// member keeps a claim, or refuses the token because of it.
func (c *claims) member(name string, value json.RawMessage) *Refusal {
	times := map[string]*numericDate{"exp": &c.exp, "nbf": &c.nbf, "iat": &c.iat}
	if d := times[name]; d != nil {
		if !d.read(value) {
			return refusedTime
		}
	}
	list := claimValues(name, value)
	if (name == "sub" || name == "iss") && (list == nil || value[0] != '"') {
		return refusedSubject // tokens without a subject share their rate limit
	}
	if list == nil {
		return nil
	}
	c.count += len(list)
	if len(c.values) == maxClaims || c.count > maxValues {
		return refusedManyClaims
	}
	c.values[name] = list
	c.bytes += len(name) + 64 // about the part of the map
	for _, v := range list {
		c.bytes += len(v) + 16
	}
	return nil
}

// read parses a JSON number, integer or not.
func (d *numericDate) read(value json.RawMessage) bool {
	if value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return false
	}
	seconds, err := strconv.ParseFloat(string(value), 64)
	if err != nil || seconds < 0 || seconds > maxSeconds {
		return false
	}
	*d = numericDate{seconds, true}
	return true
}

// claimValues returns the values of a claim, or nil for one that is not kept.
func claimValues(name string, value json.RawMessage) []string {
	if len(name) > maxValue {
		return nil
	}
	switch value[0] {
	case '{', 'n':
		return nil
	case 't', 'f':
		return []string{string(value)}
	case '[':
		var elements []json.RawMessage
		if json.Unmarshal(value, &elements) != nil {
			return nil
		}
		list := make([]string, 0, len(elements))
		for _, e := range elements {
			s, ok := claimString(e)
			if !ok || len(s) > maxValue {
				return nil
			}
			list = append(list, s)
		}
		return list
	case '"':
		s, ok := claimString(value)
		if !ok {
			return nil
		}
		list := []string{s}
		if name == "scope" {
			list = strings.Fields(s)
		}
		for _, s := range list {
			if len(s) > maxValue {
				return nil
			}
		}
		return list
	}
	if len(value) > maxNumber {
		return nil
	}
	return []string{string(value)}
}

func claimString(value json.RawMessage) (string, bool) {
	var s string
	if value[0] != '"' || json.Unmarshal(value, &s) != nil {
		return "", false
	}
	return s, true
}

// caller returns the caller that the claims describe. The subject is sub or, for
// programs without one, client_id (RFC 9068) or azp.
func (c *claims) caller() *Caller {
	first := func(name string) string {
		if v := c.values[name]; len(v) > 0 {
			return v[0]
		}
		return ""
	}
	kind, subject := "", ""
	for _, kind = range []string{"sub", "client_id", "azp"} {
		if subject = first(kind); subject != "" {
			break
		}
	}
	return &Caller{
		name:   "jwt:" + printable(subject),
		id:     callerID("jwt", first("iss"), kind, subject),
		claims: c.values,
		token:  &signed{subject: subject},
	}
}

// printable returns at most 64 bytes of a subject in a form that is safe to log.
func printable(subject string) string {
	var b strings.Builder
	for _, r := range subject {
		if r == ' ' || !unicode.IsPrint(r) || r == utf8.RuneError {
			r = '_'
		}
		if b.Len()+utf8.RuneLen(r) > maxName {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}
