package httpfront

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"unsafe"

	"github.com/slipstream-go/slipstream/cache"
)

// tagBytes is how much of the hash is in the entity tag: 120 bits are 20 characters
// without padding, and in practice no two versions of a document share them.
const tagBytes = 15

const tagLength = 20 + len(`""`)

// head is the HTTP form of a document: the field values that depend on its body,
// in the form of net/http, made once. Then a hit sets them without allocating.
type head struct {
	etag   [1]string
	length [1]string
	// fields are the two as lines, for the loop.
	fields string
	// text is what the strings point to, so that a form is one allocation.
	text [len(lengthName) + maxLength + len(tagName) + tagLength + len("\r\n")]byte
}

// The lines of head.fields.
const (
	lengthName = "Content-Length: "
	maxLength  = 10 // digits; bodies with more are not served
	tagName    = "\r\nETag: "
)

// headSize is what a head is charged: its allocation and that of the Form
// around it.
const headSize = int(unsafe.Sizeof(head{})) + int(unsafe.Sizeof(cache.Form{}))

// newHead makes the form of a body. sum is the beginning of its SHA-256, or nil if
// unknown.
func newHead(body, sum []byte) *head {
	h := new(head)
	if sum == nil {
		made := sha256.Sum256(body)
		sum = made[:]
	}
	b := append(h.text[:0], lengthName...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	length := len(b)
	b = append(b, tagName...)
	b = append(b, '"')
	b = base64.RawURLEncoding.AppendEncode(b, sum[:tagBytes])
	b = append(b, '"')
	// The text is not modified anymore, and lives as long as the strings do.
	h.length[0] = unsafe.String(&b[len(lengthName)], length-len(lengthName))
	h.etag[0] = unsafe.String(&b[len(b)-tagLength], tagLength)
	b = append(b, '\r', '\n')
	h.fields = unsafe.String(&b[0], len(b))
	return h
}

// EntityTag returns the entity tag of documents with this body.
func EntityTag(body []byte) string { return newHead(body, nil).etag[0] }

// headOf returns the form of the document, made on first use.
func (s *Service) headOf(d *cache.Document) *head {
	if f := d.Form(cache.FormHTTP); f != nil {
		return f.Value.(*head)
	}
	f := s.cache.KeepForm(d, cache.FormHTTP, &cache.Form{Value: newHead(d.Body(), d.Sum()), Size: headSize})
	return f.Value.(*head)
}
