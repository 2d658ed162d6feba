package http1

// Method is one of the methods that are read here.
type Method uint8

// Methods.
const (
	MethodGet Method = iota
	MethodHead
	MethodOptions
)

// String returns the method as written in a request line.
func (m Method) String() string {
	return [...]string{"GET", "HEAD", "OPTIONS"}[m]
}

// maxForwarded is how many lines of X-Forwarded-For a Head holds. One proxy adds
// one line or a part of one; more than a few are not a chain of proxies.
const maxForwarded = 8

// Head is the head of a request. Its slices point into the buffer that was given
// to [Scanner.Scan], and are valid as long as that is. A nil slice is a missing
// field, an empty one a field without a value. White space around values is not part
// of them (RFC 9110, section 5.5).
//
// A Head must not be copied: Forwarded points into it.
type Head struct {
	Method Method
	// Minor is 0 or 1: the version is HTTP/1.Minor.
	Minor int
	// KeepAlive is what the version and Connection say together: another request
	// may follow on the connection (RFC 9112, section 9.3).
	KeepAlive bool
	// Ranged says that there is a Range field.
	Ranged bool
	// RepeatedCredentials says that Authorization or X-Api-Key came more than
	// once. The fields hold the first of each.
	RepeatedCredentials bool

	// Target is in origin form, path and query as they were sent (RFC 9112,
	// section 3.2.1): "/", then visible ASCII without "#". Percent signs of the
	// path are followed by two hexadecimal digits.
	Target []byte
	// Host is a name or an address, with or without a port. Only HTTP/1.0 goes
	// without.
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
	UserAgent      []byte // the first
	Referer        []byte // the first

	// Forwarded are the lines of X-Forwarded-For in their order, at most 8.
	Forwarded [][]byte

	forwarded [maxForwarded][]byte

	// rest is the head from the end of the target on, for [Again]; nil if the method is not GET.
	rest []byte
}

// clear removes an earlier head. The lines of Forwarded are left: only the length
// of Forwarded says how many of them count.
func (h *Head) clear() {
	h.Method, h.Minor, h.KeepAlive, h.Ranged, h.RepeatedCredentials = 0, 0, false, false, false
	h.Target, h.Host = nil, nil
	h.IfMatch, h.IfNoneMatch, h.AcceptEncoding = nil, nil, nil
	h.Authorization, h.APIKey, h.Origin, h.RequestMethod, h.RequestID = nil, nil, nil, nil, nil
	h.Traceparent, h.UserAgent, h.Referer = nil, nil, nil
	h.Forwarded = nil
	h.rest = nil
}
