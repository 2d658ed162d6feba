package http1

// take stores the value of a known field.
func (s *Scanner) take(h *Head, id field, value []byte) Reason {
	again := s.met&(1<<id) != 0
	s.met |= 1 << id
	var to *[]byte
	switch id {
	case fieldHost:
		if again || !plainHost(value) {
			return ReasonHost
		}
		to = &h.Host
	case fieldUserAgent:
		return takeFirst(&h.UserAgent, value, again)
	case fieldReferer:
		return takeFirst(&h.Referer, value, again)
	case fieldAuthorization:
		h.RepeatedCredentials = h.RepeatedCredentials || again
		return takeFirst(&h.Authorization, value, again)
	case fieldAPIKey:
		h.RepeatedCredentials = h.RepeatedCredentials || again
		return takeFirst(&h.APIKey, value, again)
	case fieldConnection:
		return s.takeConnection(value, again)
	case fieldForwardedFor:
		return s.takeForwarded(h, value)
	case fieldContentLength:
		if again || len(value) != 1 || value[0] != '0' {
			return ReasonBody
		}
	case fieldTransferEncoding:
		return ReasonBody
	case fieldExpect:
		return ReasonExpect
	case fieldUpgrade:
		if again || !equalFold(value, "h2c") {
			return ReasonUpgrade
		}
	case fieldRange:
		h.Ranged = true
	case fieldAcceptEncoding:
		to = &h.AcceptEncoding
	case fieldIfNoneMatch:
		to = &h.IfNoneMatch
	case fieldIfMatch:
		to = &h.IfMatch
	case fieldOrigin:
		to = &h.Origin
	case fieldRequestMethod:
		to = &h.RequestMethod
	case fieldRequestID:
		to = &h.RequestID
	case fieldTraceparent:
		to = &h.Traceparent
	}
	if again {
		return ReasonRepeated
	}
	if to != nil {
		*to = value
	}
	return NotHandedOver
}

// takeFirst keeps the first of several lines, like Header.Get of net/http.
func takeFirst(to *[]byte, value []byte, again bool) Reason {
	if !again {
		*to = value
	}
	return NotHandedOver
}

// takeConnection accepts the two options that do not refer to other fields, and the list with which
// the clients of Java and "curl --http2" offer HTTP/2 in every request. An HTTP/1.1 response
// declines the offer (RFC 9110, section 7.8). Other lists are left to net/http, because every other
// list that clients send contains an option of another kind.
func (s *Scanner) takeConnection(value []byte, again bool) Reason {
	switch {
	case again:
		return ReasonRepeated
	case equalFold(value, "keep-alive"):
		s.met |= metKeepAlive
	case equalFold(value, "close"):
		s.met |= metClose
	case equalFold(value, "upgrade, http2-settings"):
	case equalFold(value, "upgrade"):
		return ReasonUpgrade
	default:
		return ReasonConnection
	}
	return NotHandedOver
}

func (s *Scanner) takeForwarded(h *Head, value []byte) Reason {
	if s.hops == maxForwarded {
		return ReasonTooMany
	}
	h.forwarded[s.hops] = value
	s.hops++
	h.Forwarded = h.forwarded[:s.hops]
	return NotHandedOver
}

// equalFold compares value with word, which must be in lower case, ignoring case.
func equalFold(value []byte, word string) bool {
	if len(value) != len(word) {
		return false
	}
	for i, c := range value {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// plainHost reports whether a value of Host is a name or an address, optionally with a port (RFC
// 3986, section 3.2.2, without percent encoding and sub-delimiters).
func plainHost(value []byte) bool {
	var i int
	if len(value) > 0 && value[0] == '[' {
		i = 1 + span(value[1:], classAddr)
		if i == 1 || i == len(value) || value[i] != ']' {
			return false
		}
		i++
	} else if i = span(value, classHost); i == 0 {
		return false
	}
	if i == len(value) {
		return true
	}
	port := value[i+1:]
	return value[i] == ':' && len(port) > 0 && len(port) <= len("65535") && span(port, classDigit) == len(port)
}
