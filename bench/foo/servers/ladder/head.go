package main

import (
	"bytes"
	"slices"
)

// maxHead is the maximum size of a head that is parsed here.
const maxHead = 8 << 10

// A verdict classifies the bytes of a client.
type verdict uint8

const (
	headComplete   verdict = iota
	headIncomplete         // more bytes are needed
	headOther              // for net/http
)

// A head is the head of a request that is answered here.
type head struct {
	size   int // bytes of the head
	length int // bytes of the body
}

var requestLines = []string{"GET /foo HTTP/1.1", "POST /foo HTTP/1.1"}

// harmless lists fields that do not affect the answer.
var harmless = []string{"user-agent", "accept", "accept-encoding", "content-type"}

// readHead reads the head of a request. It knows a few fields and refuses all others, so that it
// never interprets a request differently from net/http.
func readHead(b []byte) (h head, v verdict) {
	line, at, v := nextLine(b, 0)
	if v != headComplete {
		return h, v
	}
	if !slices.Contains(requestLines, string(line)) {
		return h, headOther
	}
	host := false
	h.length = -1
	for {
		if line, at, v = nextLine(b, at); v != headComplete {
			return h, v
		}
		if len(line) == 0 {
			break
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		value = bytes.Trim(value, " \t")
		switch {
		case !ok, bytes.ContainsFunc(value, isControl):
			return h, headOther
		case equalFold(name, "host") && !host && isHost(value):
			host = true
		case equalFold(name, "content-length") && h.length < 0 && isLength(value):
			h.length = 0
			for _, digit := range value {
				h.length = h.length*10 + int(digit-'0')
			}
		case !slices.ContainsFunc(harmless, func(known string) bool { return equalFold(name, known) }):
			return h, headOther
		}
	}
	h.size = at
	if !host || h.length < 0 {
		return h, headOther
	}
	return h, headComplete
}

// nextLine returns the line that begins at b[at], without its end, and where the next one begins.
func nextLine(b []byte, at int) (line []byte, next int, v verdict) {
	i := bytes.IndexByte(b[at:], '\n')
	switch {
	case i < 0 && len(b) < maxHead:
		return nil, 0, headIncomplete
	case i < 1 || at+i >= maxHead || b[at+i-1] != '\r':
		return nil, 0, headOther
	}
	return b[at : at+i-1], at + i + 1, headComplete
}

func equalFold(name []byte, want string) bool {
	return len(name) == len(want) && bytes.EqualFold(name, []byte(want))
}

// isControl reports whether a rune is not allowed in a value here. Bytes that are not ASCII are left
// to net/http.
func isControl(r rune) bool { return r < ' ' && r != '\t' || r > '~' }

// isHost reports whether value is a name or an IPv4 address, optionally with a port.
func isHost(value []byte) bool {
	return len(value) > 0 && !bytes.ContainsFunc(value, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '.' && r != '-' && r != ':'
	})
}

// isLength reports whether value is a number of at most eight digits.
func isLength(value []byte) bool {
	return len(value) > 0 && len(value) <= 8 && !bytes.ContainsFunc(value, func(r rune) bool { return r < '0' || r > '9' })
}
