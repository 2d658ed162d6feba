package http1

// field is a field that means something here.
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
)

// fieldNames are the names in lower case.
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

// The shortest and the longest name, and the most names of one length.
const (
	minName   = len("host")
	maxName   = len("transfer-encoding")
	perLength = 2
)

// known is a name as fold sees it.
type known struct {
	first, last uint64
	id          field
}

// fieldsByLength holds the names of each length.
var fieldsByLength = indexFields()

func indexFields() (table [maxName + 1][perLength]known) {
	for id, name := range fieldNames {
		if id == int(unknownField) {
			continue
		}
		k := known{id: field(id)}
		k.first, k.last = fold([]byte(name))
		slot := 0
		for table[len(name)][slot].id != unknownField {
			slot++
		}
		table[len(name)][slot] = k
	}
	return table
}

// fold returns the first and the last bytes of a name in lower case, overlapping:
// 8 of each, or 4 if it is shorter than 8. Names of up to 16 bytes are told apart by
// them and their length; the longest known has 17, so lookUp checks its middle byte.
//
// Setting one bit makes lower case of a token: the bytes that it turns into a
// hyphen or a letter otherwise, or a digit, are none of a token.
func fold(name []byte) (first, last uint64) {
	if len(name) >= 8 {
		return load8(name) | 0x20*ones, load8(name[len(name)-8:]) | 0x20*ones
	}
	const ones4 = ones >> 32
	return uint64(load4(name) | 0x20*ones4), uint64(load4(name[len(name)-4:]) | 0x20*ones4)
}

// lookUp returns which field a name is that is a token.
func lookUp(name []byte) field {
	if len(name) < minName || len(name) > maxName {
		return unknownField
	}
	candidates := &fieldsByLength[len(name)]
	if candidates[0].id == unknownField {
		return unknownField
	}
	first, last := fold(name)
	for i := range candidates {
		if k := &candidates[i]; k.first == first && k.last == last {
			if len(name) > 16 && name[8]|0x20 != fieldNames[k.id][8] {
				return unknownField
			}
			return k.id
		}
	}
	return unknownField
}
