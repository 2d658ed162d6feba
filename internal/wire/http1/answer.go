package http1

// AppendStatus appends the status line of a response to an HTTP/1.minor request (RFC 9112, section
// 4). A status without a registered reason phrase gets an empty one. A status that does not have
// three digits is a mistake of the caller, and is replaced by 500.
func AppendStatus(b []byte, minor int, status int) []byte {
	if minor == 0 {
		b = append(b, "HTTP/1.0 "...)
	} else {
		b = append(b, "HTTP/1.1 "...)
	}
	switch status {
	case 200:
		return append(b, "200 OK\r\n"...)
	case 304:
		return append(b, "304 Not Modified\r\n"...)
	case 404:
		return append(b, "404 Not Found\r\n"...)
	}
	if status < 100 || status > 999 {
		status = 500
	}
	b = append(b, byte('0'+status/100), byte('0'+status/10%10), byte('0'+status%10), ' ')
	if status < len(phrases) {
		b = append(b, phrases[status]...)
	}
	return append(b, '\r', '\n')
}

// AppendField appends a field line. The name must be a token that the program chose. CR, LF and NUL
// in the value are replaced by spaces (RFC 9110, section 5.5), so that no value can end its line.
func AppendField(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, ':', ' ')
	from := len(b)
	b = append(b, value...)
	for i, c := range b[from:] {
		if c == '\r' || c == '\n' || c == 0 {
			b[from+i] = ' '
		}
	}
	return append(b, '\r', '\n')
}

// phrases contains the reason phrases from the IANA registry of status codes, and the additional
// ones from net/http.
var phrases = [...]string{
	100: "Continue",
	101: "Switching Protocols",
	102: "Processing",
	103: "Early Hints",

	200: "OK",
	201: "Created",
	202: "Accepted",
	203: "Non-Authoritative Information",
	204: "No Content",
	205: "Reset Content",
	206: "Partial Content",
	207: "Multi-Status",
	208: "Already Reported",
	226: "IM Used",

	300: "Multiple Choices",
	301: "Moved Permanently",
	302: "Found",
	303: "See Other",
	304: "Not Modified",
	305: "Use Proxy",
	307: "Temporary Redirect",
	308: "Permanent Redirect",

	400: "Bad Request",
	401: "Unauthorized",
	402: "Payment Required",
	403: "Forbidden",
	404: "Not Found",
	405: "Method Not Allowed",
	406: "Not Acceptable",
	407: "Proxy Authentication Required",
	408: "Request Timeout",
	409: "Conflict",
	410: "Gone",
	411: "Length Required",
	412: "Precondition Failed",
	413: "Request Entity Too Large",
	414: "Request URI Too Long",
	415: "Unsupported Media Type",
	416: "Requested Range Not Satisfiable",
	417: "Expectation Failed",
	418: "I'm a teapot",
	421: "Misdirected Request",
	422: "Unprocessable Entity",
	423: "Locked",
	424: "Failed Dependency",
	425: "Too Early",
	426: "Upgrade Required",
	428: "Precondition Required",
	429: "Too Many Requests",
	431: "Request Header Fields Too Large",
	451: "Unavailable For Legal Reasons",

	500: "Internal Server Error",
	501: "Not Implemented",
	502: "Bad Gateway",
	503: "Service Unavailable",
	504: "Gateway Timeout",
	505: "HTTP Version Not Supported",
	506: "Variant Also Negotiates",
	507: "Insufficient Storage",
	508: "Loop Detected",
	510: "Not Extended",
	511: "Network Authentication Required",
}
