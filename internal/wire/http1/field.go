package http1

// field identifies a field that has a meaning in this package.
type field uint8

const (
	unknownField field = iota
	fieldHost
	fieldRange
	fieldOrigin
	fieldExpect
	fieldUpgrade
	fieldReferer
	fieldIfMatch
	fieldAPIKey
	fieldConnection
	fieldUserAgent
	fieldTraceparent
	fieldRequestID
	fieldIfNoneMatch
	fieldAuthorization
	fieldContentLength
	fieldAcceptEncoding
	fieldForwardedFor
	fieldTransferEncoding
	fieldRequestMethod
)

// fieldNames contains the names in lower case.
var fieldNames = [...]string{
	fieldHost:             "host",
	fieldRange:            "range",
	fieldOrigin:           "origin",
	fieldExpect:           "expect",
	fieldUpgrade:          "upgrade",
	fieldReferer:          "referer",
	fieldIfMatch:          "if-match",
	fieldAPIKey:           "x-api-key",
	fieldConnection:       "connection",
	fieldUserAgent:        "user-agent",
	fieldTraceparent:      "traceparent",
	fieldRequestID:        "x-request-id",
	fieldIfNoneMatch:      "if-none-match",
	fieldAuthorization:    "authorization",
	fieldContentLength:    "content-length",
	fieldAcceptEncoding:   "accept-encoding",
	fieldForwardedFor:     "x-forwarded-for",
	fieldTransferEncoding: "transfer-encoding",
}

// requestMethod is the name of a field that only preflight requests have (Fetch standard). It is
// too long for the table.
const requestMethod = "access-control-request-method"

// The lengths of the shortest and the longest name, and the maximum number of names with the same
// length.
const (
	minName   = len("host")
	maxName   = len("transfer-encoding")
	perLength = 2
)

// known is the pattern of a name: its first and its last 8 bytes, which may overlap, or 4 bytes
// each if the name is shorter than 8. For each letter, mask contains the bit that distinguishes
// upper from lower case, which is ignored in comparisons.
//
// The pattern and the length identify every name of up to 16 bytes. The longest name has one byte
// more, a hyphen, which lookUp compares separately.
type known struct {
	first, last         uint64
	firstMask, lastMask uint64
	id                  field
}

const hyphenOfLongest = 8

// fieldsByLength contains the names of each length.
var fieldsByLength = indexFields()

func indexFields() (table [maxName + 1][perLength]known) {
	for id, name := range fieldNames {
		if id == int(unknownField) {
			continue
		}
		letters := make([]byte, len(name))
		for i := range len(name) {
			if name[i] != '-' {
				letters[i] = 'a' - 'A'
			}
		}
		k := known{id: field(id)}
		k.first, k.last = ends([]byte(name))
		k.firstMask, k.lastMask = ends(letters)
		slot := 0
		for table[len(name)][slot].id != unknownField {
			slot++
		}
		table[len(name)][slot] = k
	}
	return table
}

// ends returns the words that are compared with a pattern.
func ends(name []byte) (first, last uint64) {
	if len(name) >= 8 {
		return load8(name), load8(name[len(name)-8:])
	}
	return uint64(load4(name)), uint64(load4(name[len(name)-4:]))
}

// lookUp returns the field with the given name, which may consist of any bytes. A name that is
// found is always a token.
func lookUp(name []byte) field {
	if len(name) < minName || len(name) > maxName {
		if len(name) == len(requestMethod) && equalFold(name, requestMethod) {
			return fieldRequestMethod
		}
		return unknownField
	}
	var first, last uint64 // as ends returns them; ends is too large to be inlined
	if len(name) >= 8 {
		first, last = load8(name), load8(name[len(name)-8:])
	} else {
		first, last = uint64(load4(name)), uint64(load4(name[len(name)-4:]))
	}
	candidates := &fieldsByLength[len(name)]
	for i := range candidates {
		k := &candidates[i]
		if ((first^k.first)&^k.firstMask)|((last^k.last)&^k.lastMask) != 0 {
			continue
		}
		if len(name) == maxName && name[hyphenOfLongest] != '-' {
			break
		}
		return k.id // unknownField in an unused slot, where everything is zero
	}
	return unknownField
}
