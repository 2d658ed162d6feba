package http1

// Reason is the reason why a request is handed over.
type Reason uint8

// The reasons. If a head has several, the one on the earliest line is reported.
const (
	// NotHandedOver goes with the verdicts Done and More.
	NotHandedOver Reason = iota
	// ReasonMethod means that the method is not GET, HEAD or OPTIONS, or that the bytes are not
	// HTTP at all.
	ReasonMethod
	// ReasonBody means that there is a Transfer-Encoding, or a Content-Length other than a single
	// 0, which the HttpClient of Java 17 sends with every GET.
	ReasonBody
	// ReasonExpect means that there is an Expect field.
	ReasonExpect
	// ReasonUpgrade means that there is an Upgrade field for a protocol other than h2c, or
	// Connection: upgrade.
	ReasonUpgrade
	// ReasonConnection means that Connection has a value other than close, keep-alive or "Upgrade,
	// HTTP2-Settings".
	ReasonConnection
	// ReasonTarget means that the target is not in origin form, or has a fragment, bytes that are
	// not visible ASCII, or a percent sign in the path without two hexadecimal digits after it.
	ReasonTarget
	// ReasonVersion means that the version is neither HTTP/1.0 nor HTTP/1.1.
	ReasonVersion
	// ReasonHost means that Host is missing in HTTP/1.1, is repeated, or is not a plain host.
	ReasonHost
	// ReasonLineEnd means that there is a lone CR or LF, or an empty line before the request.
	ReasonLineEnd
	// ReasonFolding means that a field line starts with white space.
	ReasonFolding
	// ReasonFieldName means that a field line has no colon, or a name that is not a token.
	ReasonFieldName
	// ReasonFieldValue means that a value contains a control byte.
	ReasonFieldValue
	// ReasonSpace means that there is white space before a colon, or other than single spaces in
	// the request line.
	ReasonSpace
	// ReasonRepeated means that a field appears twice that can have only one value, or whose lines
	// would have to be joined.
	ReasonRepeated
	// ReasonTooLarge means that the head does not end within the limit.
	ReasonTooLarge
	// ReasonTooMany means that there are more than 100 fields, or more than 8 of them are
	// X-Forwarded-For.
	ReasonTooMany

	// ReasonCount is the number of reasons, for tables of counters.
	ReasonCount
)

// malformed never leaves the package: diagnose replaces it with the actual reason.
const malformed = ReasonCount

// String returns the name of the reason in metrics.
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

// diagnose determines what is wrong with a line that could not be parsed. The line includes its LF.
// If first is set, it is a request line with a valid method.
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
