package http1

// Reason says why a request is handed over.
type Reason uint8

// Reasons. Of several that are true of one head, the one of the first line counts.
const (
	// NotHandedOver is the reason that goes with Done and More.
	NotHandedOver Reason = iota
	// ReasonMethod: none of GET, HEAD and OPTIONS, or not HTTP at all.
	ReasonMethod
	// ReasonBody: a Content-Length other than one of 0, which HttpClient of Java 17
	// sends with every GET, or a Transfer-Encoding.
	ReasonBody
	// ReasonExpect: an Expect field.
	ReasonExpect
	// ReasonUpgrade: an Upgrade field to anything but h2c, or Connection: upgrade.
	ReasonUpgrade
	// ReasonConnection: Connection has another value than close, keep-alive or
	// "Upgrade, HTTP2-Settings".
	ReasonConnection
	// ReasonTarget: not in origin form, with a fragment, with bytes that are not
	// visible ASCII, or with a percent sign in the path that encodes nothing.
	ReasonTarget
	// ReasonVersion: neither HTTP/1.0 nor HTTP/1.1.
	ReasonVersion
	// ReasonHost: missing in HTTP/1.1, repeated, or not a plain host.
	ReasonHost
	// ReasonLineEnd: a lone CR or LF, or an empty line before the request.
	ReasonLineEnd
	// ReasonFolding: a field line that begins with white space.
	ReasonFolding
	// ReasonFieldName: no colon, or a name that is not a token.
	ReasonFieldName
	// ReasonFieldValue: a control byte in a value.
	ReasonFieldValue
	// ReasonSpace: white space before a colon, or other than single spaces in the
	// request line.
	ReasonSpace
	// ReasonRepeated: a field came twice that has one value, or whose lines would
	// have to be joined.
	ReasonRepeated
	// ReasonTooLarge: the head does not end within the limit.
	ReasonTooLarge
	// ReasonTooMany: more than 100 fields, or more than 8 of X-Forwarded-For.
	ReasonTooMany

	// ReasonCount is how many values a Reason has, for tables of counters.
	ReasonCount
)

// malformed is replaced before it gets out: diagnose finds which reason it is.
const malformed = ReasonCount

// String returns the word for the reason in metrics.
func (r Reason) String() string {
	if r >= ReasonCount {
		return "unknown"
	}
	return [ReasonCount]string{
		NotHandedOver:    "none",
		ReasonMethod:     "method",
		ReasonBody:       "body",
		ReasonExpect:     "expect",
		ReasonUpgrade:    "upgrade",
		ReasonConnection: "connection",
		ReasonTarget:     "target",
		ReasonVersion:    "version",
		ReasonHost:       "host",
		ReasonLineEnd:    "line-end",
		ReasonFolding:    "folding",
		ReasonFieldName:  "field-name",
		ReasonFieldValue: "field-value",
		ReasonSpace:      "space",
		ReasonRepeated:   "repeated",
		ReasonTooLarge:   "too-large",
		ReasonTooMany:    "too-many",
	}[r]
}

// diagnose says what is wrong with a line that did not parse. The line has its LF;
// first says that it is a request line, whose method is right.
func diagnose(line []byte, first bool) Reason {
	text := line[:len(line)-1]
	if len(text) == 0 || text[len(text)-1] != '\r' {
		return ReasonLineEnd
	}
	text = text[:len(text)-1]
	if index(text, '\r') >= 0 {
		return ReasonLineEnd
	}
	if first {
		return diagnoseRequest(text)
	}
	return diagnoseField(text)
}

func diagnoseRequest(text []byte) Reason {
	text = text[index(text, ' ')+1:] // the method
	end := index(text, ' ')
	if end == 0 {
		return ReasonSpace
	}
	target := text
	if end > 0 {
		target = text[:end]
	}
	for _, c := range target {
		if c == '\t' || c == '\v' || c == '\f' {
			return ReasonSpace
		}
	}
	if n, ok := scanTarget(target, 0); !ok || n != len(target) {
		return ReasonTarget
	}
	if end < 0 {
		return ReasonVersion
	}
	version := text[end+1:]
	if index(version, ' ') >= 0 || index(version, '\t') >= 0 {
		return ReasonSpace
	}
	return ReasonVersion
}

func diagnoseField(text []byte) Reason {
	if isBlank(text[0]) {
		return ReasonFolding
	}
	colon := index(text, ':')
	if colon <= 0 {
		return ReasonFieldName
	}
	if isBlank(text[colon-1]) {
		return ReasonSpace
	}
	if span(text[:colon], classToken) < colon {
		return ReasonFieldName
	}
	return ReasonFieldValue
}
