package httpfront

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"unsafe"

	"github.com/slipstream-go/slipstream/cache"
)

// tagBytes is how much of the hash makes the entity tag: 120 bits are 20
// characters without padding, and no two versions of a document will ever share them.
const tagBytes = 15

const tagLength = 20 + len(`""`)

// head is the HTTP form of a document: the field values that depend on its body,
// as net/http wants them, made once. Then a hit sets them without allocating.
type head struct {
	etag   [1]string
	length [1]string
	// text is what the two strings point to, so that a form is one allocation.
	text [tagLength + 10]byte
}

// headSize is what a head is charged: its allocation and that of the Form
// around it.
const headSize = int(unsafe.Sizeof(head{})) + int(unsafe.Sizeof(cache.Form{}))

// newHead makes the form of a body.
func newHead(body []byte) *head {
	h := new(head)
	sum := sha256.Sum256(body)
	h.text[0], h.text[tagLength-1] = '"', '"'
	base64.RawURLEncoding.Encode(h.text[1:tagLength-1], sum[:tagBytes])
	digits := strconv.AppendInt(h.text[tagLength:tagLength], int64(len(body)), 10)
	// The text is not written again, and lives as long as the strings do.
	h.etag[0] = unsafe.String(&h.text[0], tagLength)
	if len(digits) <= len(h.text)-tagLength {
		h.length[0] = unsafe.String(&h.text[tagLength], len(digits))
	} else {
		h.length[0] = string(digits)
	}
	return h
}

// EntityTag returns the entity tag that documents with this body are sent with.
func EntityTag(body []byte) string { return newHead(body).etag[0] }

// headOf returns the form of the document, made on first use.
func (s *Service) headOf(d *cache.Document) *head {
	if f := d.Form(cache.FormHTTP); f != nil {
		return f.Value.(*head)
	}
	f := s.cache.KeepForm(d, cache.FormHTTP, &cache.Form{Value: newHead(d.Body()), Size: headSize})
	return f.Value.(*head)
}
