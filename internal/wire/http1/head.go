package http1

// Method is a method that this package reads.
type Method uint8

// The methods.
const (
	MethodGet Method = iota
	MethodHead
	MethodOptions
)

// String returns the method as written in a request line.
func (m Method) String() string {
	return [...]string{"GET", "HEAD", "OPTIONS"}[m]
}

// maxForwarded is the maximum number of X-Forwarded-For lines in a Head. Each proxy adds one line
// or extends one, so a request with more lines did not come through a normal chain of proxies.
const maxForwarded = 8

// Head is the head of a request. Its slices point into the buffer that was passed to
// [Scanner.Scan], and are valid only as long as that buffer. A nil slice means that the field is
// missing; an empty one, that it has no value. Values do not include the white space around them
// (RFC 9110, section 5.5).
//
// A Head must not be copied, because Forwarded points into it.
type Head struct {
	Method Method
	// Minor is 0 or 1: the version is HTTP/1.Minor.
	Minor int
	// KeepAlive reports whether another request may follow on the connection, according to the
	// version and the Connection field (RFC 9112, section 9.3).
	KeepAlive bool
	// Ranged reports whether there is a Range field.
	Ranged bool
	// RepeatedCredentials reports whether Authorization or X-Api-Key appeared more than once. The
	// fields below contain the first of each.
	RepeatedCredentials bool

	// Target is in origin form, with path and query as they were sent (RFC 9112, section 3.2.1): a
	// slash and then visible ASCII characters except "#". Each percent sign in the path is followed
	// by two hexadecimal digits.
	Target []byte
	// Host is a name or an address, with or without a port. It is missing only in HTTP/1.0.
	Host []byte

	IfMatch        []byte
	IfNoneMatch    []byte
	AcceptEncoding []byte
	Authorization  []byte
	APIKey         []byte // X-Api-Key
	Origin         []byte
	RequestMethod  []byte // Access-Control-Request-Method
	RequestID      []byte // X-Request-Id
	Traceparent    []byte
	UserAgent      []byte // the first of several
	Referer        []byte // the first of several

	// Forwarded contains the X-Forwarded-For lines in order, at most 8.
	Forwarded [][]byte

	forwarded [maxForwarded][]byte

	// rest is the head from the end of the target on, for [Again]. It is nil if the method is not
	// GET.
	rest []byte
}

// clear removes an earlier head. It need not clear the lines of Forwarded, because the length of
// Forwarded determines how many of them are valid.
func (h *Head) clear() {
	h.Method, h.Minor, h.KeepAlive, h.Ranged, h.RepeatedCredentials = 0, 0, false, false, false
	h.Target, h.Host = nil, nil
	h.IfMatch, h.IfNoneMatch, h.AcceptEncoding = nil, nil, nil
	h.Authorization, h.APIKey, h.Origin, h.RequestMethod, h.RequestID = nil, nil, nil, nil, nil
	h.Traceparent, h.UserAgent, h.Referer = nil, nil, nil
	h.Forwarded = nil
	h.rest = nil
}
