package http1

// A ResponseHead contains what the head of a response says about the end and the body of the
// response. Its slices alias the bytes that were parsed.
type ResponseHead struct {
	Size   int   // length of the head, including the empty line
	Status int   // three digits
	Minor  int   // minor version: 1 for HTTP/1.1
	Length int64 // Content-Length, or -1 if missing
	// Chunked is set if the body has the transfer coding chunked. A body that is neither chunked
	// nor has a Length ends when the connection is closed.
	Chunked bool
	Close   bool // the server closes the connection after the response

	ContentEncoding []byte // nil if missing
	CacheStatus     []byte // nil if missing
}

// A ResponseError is the reason why bytes are not an HTTP/1.1 response.
type ResponseError string

// Error returns what is wrong.
func (e ResponseError) Error() string { return "http1: malformed response: " + string(e) }

// The errors of responses.
const (
	errNotHTTP    ResponseError = "it does not begin with HTTP/1."
	errStatusLine ResponseError = "a status line without a status of three digits"
	errResponseLF ResponseError = "a line that does not end with CR LF, or has a control byte"
	errFieldLine  ResponseError = "a header line without a name"
	errLength     ResponseError = "Content-Length is not a number of bytes"
	errLengths    ResponseError = "two fields Content-Length"
	errCoding     ResponseError = "a Transfer-Encoding whose last coding is not chunked"
	errBoth       ResponseError = "both Content-Length and Transfer-Encoding"
	errRepeated   ResponseError = "a field that may occur once occurs twice"
	errChunk      ResponseError = "a chunk without a size, or without CR LF at its end"
	errChunkLong  ResponseError = "a chunk with too long extensions, or too many trailers"
)

// HasBody reports whether a body, possibly empty, follows the head of a response to a request whose
// method is not HEAD (RFC 9112, section 6.3).
func (h *ResponseHead) HasBody() bool {
	return h.Status >= 200 && h.Status != 204 && h.Status != 304
}

// ParseResponseHead reads the head at the start of b, strictly according to RFC 9112. If the head
// is not complete yet, Size is 0. Errors in the lines received so far are detected immediately.
func ParseResponseHead(b []byte) (ResponseHead, error) {
	h := ResponseHead{Length: -1}
	i, err := h.statusLine(b)
	if i == 0 {
		return ResponseHead{}, err
	}
	var seen responseFields
	for {
		if i+1 < len(b) && b[i] == '\r' && b[i+1] == '\n' {
			h.Size = i + 2
			return h, h.finish(&seen)
		}
		if i >= len(b) || i+1 == len(b) && b[i] == '\r' {
			return ResponseHead{}, nil
		}
		name := b[i : i+span(b[i:], classToken)]
		i += len(name)
		switch {
		case i == len(b):
			return ResponseHead{}, nil
		case len(name) == 0 || b[i] != ':':
			return ResponseHead{}, errFieldLine
		}
		i++
		for i < len(b) && isBlank(b[i]) {
			i++
		}
		value := i
		i = valueEnd(b, i)
		switch {
		case i == len(b) || i+1 == len(b) && b[i] == '\r':
			return ResponseHead{}, nil
		case b[i] != '\r' || b[i+1] != '\n':
			return ResponseHead{}, errResponseLF
		}
		end := i
		for end > value && isBlank(b[end-1]) {
			end--
		}
		i += 2
		if err := h.take(&seen, name, b[value:end:end]); err != nil {
			return ResponseHead{}, err
		}
	}
}

// statusLine reads the first line and returns its length, or 0 if it is incomplete.
func (h *ResponseHead) statusLine(b []byte) (int, error) {
	const begin, least = "HTTP/1.", len("HTTP/1.1 200\r\n")
	for i := range min(len(b), len(begin)) {
		if b[i] != begin[i] {
			return 0, errNotHTTP
		}
	}
	if len(b) < least {
		return 0, nil
	}
	if b[7] < '0' || b[7] > '9' || b[8] != ' ' || b[9] < '1' || span(b[9:12], classDigit) < 3 || b[12] != ' ' && b[12] != '\r' {
		return 0, errStatusLine
	}
	h.Minor = int(min(b[7]-'0', 1))
	h.Status = int(b[9]-'0')*100 + int(b[10]-'0')*10 + int(b[11]-'0')
	i := valueEnd(b, 12)
	switch {
	case i == len(b) || i+1 == len(b) && b[i] == '\r':
		return 0, nil
	case b[i] != '\r' || b[i+1] != '\n':
		return 0, errResponseLF
	}
	return i + 2, nil
}

// responseFields holds the information from the fields that a ResponseHead does not contain.
type responseFields struct {
	coding, keepAlive, close bool
}

// take stores the value of a known field.
func (h *ResponseHead) take(seen *responseFields, name, value []byte) error {
	switch len(name) { // excludes most fields
	case len("connection"):
		if equalFold(name, "connection") {
			seen.close = seen.close || hasOption(value, "close")
			seen.keepAlive = seen.keepAlive || hasOption(value, "keep-alive")
		}
	case len("cache-status"):
		if equalFold(name, "cache-status") {
			if h.CacheStatus != nil {
				return errRepeated
			}
			h.CacheStatus = value
		}
	case len("content-length"):
		if equalFold(name, "content-length") {
			if h.Length >= 0 {
				return errLengths
			}
			return h.takeLength(value)
		}
	case len("content-encoding"):
		if equalFold(name, "content-encoding") {
			if h.ContentEncoding != nil {
				return errRepeated
			}
			h.ContentEncoding = value
		}
	case len("transfer-encoding"):
		if equalFold(name, "transfer-encoding") {
			if seen.coding {
				return errRepeated
			}
			seen.coding = true
			if !endsWithOption(value, "chunked") {
				return errCoding
			}
			h.Chunked = true
		}
	}
	return nil
}

// maxLengthDigits keeps lengths far below the limit of an int64.
const maxLengthDigits = 18

func (h *ResponseHead) takeLength(value []byte) error {
	if len(value) == 0 || len(value) > maxLengthDigits || span(value, classDigit) < len(value) {
		return errLength
	}
	h.Length = 0
	for _, c := range value {
		h.Length = h.Length*10 + int64(c-'0')
	}
	return nil
}

// finish checks a complete head.
func (h *ResponseHead) finish(seen *responseFields) error {
	if h.Chunked && h.Length >= 0 {
		return errBoth
	}
	h.Close = seen.close || h.Minor == 0 && !seen.keepAlive
	return nil
}

// hasOption reports whether a list contains an option. The option must be in lower case.
func hasOption(list []byte, option string) bool {
	for len(list) > 0 {
		var first []byte
		if first, list = cutOption(list); equalFold(first, option) {
			return true
		}
	}
	return false
}

// endsWithOption reports whether option is the last element of a list.
func endsWithOption(list []byte, option string) bool {
	var last []byte
	for len(list) > 0 {
		last, list = cutOption(list)
	}
	return equalFold(last, option)
}

// cutOption returns the first element of a list and the elements after it.
func cutOption(list []byte) (first, rest []byte) {
	first = list
	if comma := index(list, ','); comma >= 0 {
		first, rest = list[:comma], list[comma+1:]
	}
	for len(first) > 0 && isBlank(first[0]) {
		first = first[1:]
	}
	for len(first) > 0 && isBlank(first[len(first)-1]) {
		first = first[:len(first)-1]
	}
	return first, rest
}
