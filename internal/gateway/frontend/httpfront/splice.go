package httpfront

import (
	"crypto/sha256"
	"encoding/base64"
	"hash/crc32"
	"strconv"

	"github.com/slipstream-go/slipstream/cache"
)

// The answer to a batch is a JSON array that is spliced from the bytes that the cache
// holds: nothing is decoded, encoded or copied except commas. In gzip it is one
// member, spliced from the deflate blocks of the documents' own gzip forms (RFC 1951,
// section 3.2.3: a block may follow any other); commas are sent in stored blocks, and
// only the checksum reads the documents once more.

var (
	openBracket  = []byte("[")
	closeBracket = []byte("]")
	comma        = []byte(",")
	null         = []byte("null")

	storedOpen  = storedBlock(openBracket)
	storedClose = storedBlock(closeBracket)
	storedComma = storedBlock(comma)
	storedNull  = storedBlock(null)
)

// maxStored is the maximum length of a stored block.
const maxStored = 1<<16 - 1

// storedHeader begins a stored block that is not the last (RFC 1951, section 3.2.4).
func storedHeader(n int) []byte {
	return []byte{0, byte(n), byte(n >> 8), ^byte(n), ^byte(n >> 8)}
}

func storedBlock(text []byte) []byte { return append(storedHeader(len(text)), text...) }

// splicer collects the parts of an answer.
type splicer struct {
	parts [][]byte
	size  int
	sum   uint32 // of the text in gzip
	plain int    // its length
}

func (p *splicer) add(part []byte) {
	p.parts = append(p.parts, part)
	p.size += len(part)
}

// spliceIdentity returns the array uncompressed.
func spliceIdentity(answers []cache.Answer) splicer {
	p := splicer{parts: make([][]byte, 0, 2*len(answers)+1)}
	p.add(openBracket)
	for i, a := range answers {
		if i > 0 {
			p.add(comma)
		}
		if a.Doc.Missing() {
			p.add(null)
		} else {
			p.add(a.Doc.Body())
		}
	}
	p.add(closeBracket)
	return p
}

// spliceGzip returns the array as one gzip member. forms has a document's gzip form,
// or nil if it has none.
func spliceGzip(answers []cache.Answer, forms []*encoded) splicer {
	p := splicer{parts: make([][]byte, 0, 2*len(answers)+3)}
	p.add(gzipHead)
	p.glue(storedOpen, openBracket)
	for i, a := range answers {
		if i > 0 {
			p.glue(storedComma, comma)
		}
		switch body := a.Doc.Body(); {
		case a.Doc.Missing():
			p.glue(storedNull, null)
		case forms[i] != nil:
			p.glue(forms[i].blocks(), body)
		default:
			p.stored(body)
		}
	}
	p.glue(storedClose, closeBracket)
	p.add(appendGzipEnd(nil, p.sum, p.plain))
	return p
}

// glue adds a part that represents text.
func (p *splicer) glue(part, text []byte) {
	p.add(part)
	p.sum = crc32.Update(p.sum, crc32.IEEETable, text)
	p.plain += len(text)
}

// stored adds text in stored blocks.
func (p *splicer) stored(text []byte) {
	for len(text) > 0 {
		n := min(len(text), maxStored)
		p.add(storedHeader(n))
		p.glue(text[:n], text[:n])
		text = text[n:]
	}
}

// batchTag is the entity tag of an array: it changes with the tag of any document in
// it, with a row that appears or disappears, and with the order.
func (s *Service) batchTag(answers []cache.Answer, c coding) string {
	text := make([]byte, 0, tagLength*len(answers))
	for _, a := range answers {
		if a.Doc.Missing() {
			text = append(text, null...)
			continue
		}
		text = append(text, s.headOf(a.Doc).etag[0]...)
	}
	sum := sha256.Sum256(text)
	tag := make([]byte, 0, tagLength+8)
	tag = append(tag, '"')
	tag = base64.RawURLEncoding.AppendEncode(tag, sum[:tagBytes])
	tag = append(tag, suffixes[c]...)
	return string(append(tag, '"'))
}

// sizeOf is the length of the uncompressed array.
func sizeOf(answers []cache.Answer) int {
	size := 2 + len(answers) - 1
	for _, a := range answers {
		if a.Doc.Missing() {
			size += len(null)
		} else {
			size += len(a.Doc.Body())
		}
	}
	return size
}

func lengthField(n int) []string { return []string{strconv.Itoa(n)} }
