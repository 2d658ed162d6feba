package httpload

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/internal/bench/clientload"
)

// keyPlace is the placeholder for a key in the path, the query, the headers and the body of a
// request.
const keyPlace = "__key__"

// A template is a request with placeholders for a key.
type template struct {
	head, body [][]byte // the parts between the placeholders
	hasLength  bool     // the head contains the length of the body
	size       int      // of the body without keys
}

// newTemplate returns the template of a request, or nil if it has no placeholders.
func newTemplate(head, body []byte, hasLength bool) *template {
	t := &template{head: bytes.Split(head, []byte(keyPlace)), body: bytes.Split(body, []byte(keyPlace)), hasLength: hasLength}
	if len(t.head)+len(t.body) == 2 {
		return nil
	}
	for _, part := range t.body {
		t.size += len(part)
	}
	return t
}

// append appends the request with a key.
func (t *template) append(b, key []byte) []byte {
	b = appendJoined(b, t.head, key)
	b = endHead(b, t.hasLength, t.size+(len(t.body)-1)*len(key))
	return appendJoined(b, t.body, key)
}

func appendJoined(b []byte, parts [][]byte, key []byte) []byte {
	for i, part := range parts {
		if i > 0 {
			b = append(b, key...)
		}
		b = append(b, part...)
	}
	return b
}

// endHead appends the end of a head.
func endHead(b []byte, hasLength bool, length int) []byte {
	if hasLength {
		b = strconv.AppendInt(append(b, "Content-Length: "...), int64(length), 10)
		b = append(b, "\r\n"...)
	}
	return append(b, "\r\n"...)
}

// checkKeys checks keys, whose names are inserted into a URL unchanged.
func checkKeys(k *clientload.Keys) error {
	if strings.ContainsFunc(k.Prefix, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~:", r))
	}) {
		return fmt.Errorf("keys that begin with %q; expected only letters, digits and the characters -._~: in a URL", k.Prefix)
	}
	return k.Check()
}
