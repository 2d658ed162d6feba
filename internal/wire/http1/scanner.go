package http1

// Verdict classifies the bytes passed to [Scanner.Scan].
type Verdict uint8

// The verdicts.
const (
	// More means that the bytes are the beginning of a head that may be accepted.
	More Verdict = iota
	// Done means that the bytes start with a head that is accepted.
	Done
	// Other means that the bytes start with something that net/http must answer.
	Other
)

// maxFields is the maximum number of field lines in a head. Browsers send about 15.
const maxFields = 100

// Scanner finds the heads in the data from a client. Between calls it remembers how much of an
// incomplete head it has scanned. The zero value is ready for use. Each connection needs its own
// Scanner.
type Scanner struct {
	line   int    // where the first line that has not been accepted starts
	seen   int    // there is no LF between line and this offset
	fields int    // number of field lines accepted
	met    uint32 // a bit for each known field seen, and the bits below
	hops   uint8  // number of X-Forwarded-For lines
}

// The bits of Scanner.met other than those of the fields.
const (
	metMinor     uint32 = 1 << (31 - iota) // HTTP/1.1
	metClose                               // Connection: close
	metKeepAlive                           // Connection: keep-alive
)

// Reset makes the scanner expect the first byte of a head.
func (s *Scanner) Reset() { *s = Scanner{} }

// Scan scans b, which starts with the first byte of a head. The verdict is one of these:
//
//   - Done: the head has n bytes and is stored in h. The next head starts at b[n].
//   - More: call Scan again with the same bytes, which may have moved, and at least one more. A
//     head longer than limit bytes, including the empty line, is not accepted, so b never needs to
//     have more than limit bytes.
//   - Other: hand over all of b. The reason is why. It is reported as soon as the line that
//     contains it is complete, even if the head is not, and for the method at the first byte that
//     rules out the accepted methods.
//
// The result does not depend on how the bytes were split between calls. Unless the verdict is Done,
// n is 0 and h is meaningless. Done and Other reset the scanner. Scan never allocates memory and
// keeps no reference to b or h, and all calls for a head together take time linear in its length.
func (s *Scanner) Scan(b []byte, limit int, h *Head) (n int, v Verdict, why Reason) {
	head := b[:min(len(b), max(limit, 0))]
	if len(head) < s.seen {
		s.Reset() // a mistake of the caller; treat these bytes as a new head
	}
	again := s.line > 0
	// An incomplete method is scanned again on each call.
	if s.seen > s.line && s.seen >= len("OPTIONS ") && index(head[s.seen:], '\n') < 0 {
		return s.suspend(len(head), limit)
	}
	n, why = s.scan(head, h)
	if why == malformed {
		end := index(head[s.line:], '\n')
		if end < 0 {
			return s.suspend(len(head), limit)
		}
		why = diagnose(head[s.line:s.line+end+1], s.line == 0)
	}
	if why != NotHandedOver {
		s.Reset()
		return 0, Other, why
	}
	s.Reset()
	if again {
		// Earlier calls read the first lines, which may have moved since. They are all known to be
		// valid, so this call only fills h.
		n, _ = s.scan(head, h)
		s.Reset()
	}
	if h.Method == MethodGet {
		h.rest = head[len("GET ")+len(h.Target) : n : n]
	}
	return n, Done, NotHandedOver
}

// suspend ends a call that did not find the end of a line.
func (s *Scanner) suspend(have, limit int) (int, Verdict, Reason) {
	if have >= limit {
		s.Reset()
		return 0, Other, ReasonTooLarge
	}
	s.seen = have
	return 0, More, NotHandedOver
}

// scan reads the lines from s.line on. It returns the length of the head. The reason is malformed
// if the line at s.line does not end in b, or has an error that diagnose must identify.
func (s *Scanner) scan(b []byte, h *Head) (int, Reason) {
	i := s.line
	if i == 0 {
		h.clear()
		n, why := s.requestLine(b, h)
		if why != NotHandedOver {
			return 0, why
		}
		i = n
		s.line = i
	}
	for {
		if i+1 < len(b) && b[i] == '\r' && b[i+1] == '\n' {
			return i + 2, s.finish(h)
		}
		colon := index(b[i:], ':')
		if colon <= 0 {
			return 0, malformed
		}
		name := b[i : i+colon]
		id := lookUp(name)
		if id == unknownField && span(name, classToken) < len(name) {
			return 0, malformed
		}
		i += colon + 1
		for i < len(b) && isBlank(b[i]) {
			i++
		}
		value := i
		i = valueEnd(b, i)
		if i+1 >= len(b) || b[i] != '\r' || b[i+1] != '\n' {
			return 0, malformed
		}
		end := i
		for end > value && isBlank(b[end-1]) {
			end--
		}
		i += 2
		if s.fields++; s.fields > maxFields {
			return 0, ReasonTooMany
		}
		if id != unknownField {
			if why := s.take(h, id, b[value:end:end]); why != NotHandedOver {
				return 0, why
			}
		}
		s.line = i
	}
}

// finish checks a complete head.
func (s *Scanner) finish(h *Head) Reason {
	if s.met&metMinor == 0 {
		h.KeepAlive = s.met&metKeepAlive != 0
		return NotHandedOver
	}
	if s.met&(1<<fieldHost) == 0 {
		return ReasonHost
	}
	h.Minor = 1
	h.KeepAlive = s.met&metClose == 0
	return NotHandedOver
}

// requestLine reads the first line (RFC 9112, section 3) and returns its length.
func (s *Scanner) requestLine(b []byte, h *Head) (int, Reason) {
	m, i, why := scanMethod(b)
	if why != NotHandedOver {
		return 0, why
	}
	target := i
	i, ok := scanTarget(b, i)
	const rest = len(" HTTP/1.1\r\n")
	if !ok || len(b)-i < rest || b[i] != ' ' || b[i+9] != '\r' || b[i+10] != '\n' {
		return 0, malformed
	}
	switch load8(b[i+1:]) {
	case http11:
		s.met |= metMinor
	case http10:
	default:
		return 0, malformed
	}
	h.Method, h.Target = m, b[target:i:i]
	return i + rest, NotHandedOver
}

// scanMethod returns the method and where the target starts. It reports anything else at the first
// byte that does not match GET, HEAD or OPTIONS, because a client that uses another protocol may
// never send an LF.
func scanMethod(b []byte) (Method, int, Reason) {
	if len(b) >= len("HEAD ") {
		switch load4(b) {
		case get4:
			return MethodGet, len("GET "), NotHandedOver
		case head4:
			if b[4] == ' ' {
				return MethodHead, len("HEAD "), NotHandedOver
			}
		}
	}
	m, word := MethodGet, "GET "
	switch {
	case len(b) == 0:
	case b[0] == 'H':
		m, word = MethodHead, "HEAD "
	case b[0] == 'O':
		m, word = MethodOptions, "OPTIONS "
	}
	for i := range len(word) {
		if i == len(b) {
			return 0, 0, malformed
		}
		if b[i] == word[i] {
			continue
		}
		switch b[i] {
		case '\r', '\n':
			return 0, 0, ReasonLineEnd
		case ' ', '\t', '\v', '\f':
			return 0, 0, ReasonSpace
		}
		return 0, 0, ReasonMethod
	}
	return m, len(word), NotHandedOver
}

// scanTarget returns where the origin-form target that starts at b[i] ends, and whether it is valid
// so far.
func scanTarget(b []byte, i int) (int, bool) {
	if i >= len(b) || b[i] != '/' {
		return i, false
	}
	for {
		i = pathEnd(b, i)
		if i == len(b) || b[i] != '%' {
			break
		}
		// net/http rejects such a path with its own error response.
		if len(b)-i < 3 || class[b[i+1]]&classHex == 0 || class[b[i+2]]&classHex == 0 {
			return i, false
		}
		i += 3
	}
	if i < len(b) && b[i] == '?' {
		i += span(b[i:], classQuery)
	}
	return i, true
}
