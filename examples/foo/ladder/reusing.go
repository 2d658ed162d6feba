package ladder

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"unsafe"
)

// reusing implements the version after 1.3 and versions 1.4 and 1.5, which differ in how they hash:
// requests are also decoded into slices from a list.
//
// It has the bug of the article's versions. encoding/json does not clear the items between length
// and capacity of a slice before it decodes into them (golang/go#21092), so a member that a request
// omits keeps the value of an earlier request, possibly of another client. Calling
// clear((*req)[:cap(*req)]) before put would fix that.
type reusing struct {
	buffers freeList[*bytes.Buffer]
	slices  freeList[*[]item]
	hash    func(*bytes.Buffer, []item) []string
}

func newReusing(n int, hash func(*bytes.Buffer, []item) []string) *reusing {
	return &reusing{newBuffers(n), newFreeList(n, func() *[]item {
		items := make([]item, 0, 100)
		return &items
	}), hash}
}

// ServeHTTP implements [http.Handler].
func (u *reusing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	buf := u.buffers.get()
	defer func() {
		buf.Reset()
		u.buffers.put(buf)
	}()
	if _, err := io.Copy(buf, r.Body); err != nil {
		fail(w)
		return
	}
	req := u.slices.get()
	defer func() {
		*req = (*req)[:0]
		u.slices.put(req)
	}()
	if err := json.Unmarshal(buf.Bytes(), req); err != nil {
		fail(w)
		return
	}
	reply(w, u.hash(buf, *req))
}

// hashReused is the hash function of 1.4: it uses a single hasher, a single sum and a single buffer
// for texts, and allocates room for all hashes at once. If there are no items, it returns an empty
// slice, not nil: from 1.4 on the answer to [] is {"hashes":[]} instead of {"hashes":null}.
func hashReused(buf *bytes.Buffer, req []item) []string {
	hashes := make([]string, 0, len(req))
	sha := sha256.New()
	var sum [sha256.Size]byte
	text := roomForText(buf)
	for i := range req {
		sha.Reset()
		sha.Write([]byte(req[i].A))
		sha.Write([]byte(req[i].B))
		base64.StdEncoding.Encode(text, sha.Sum(sum[:0]))
		hashes = append(hashes, string(text))
	}
	return hashes
}

// roomForText returns the memory of buf for the text of a hash. It overwrites the body, whose
// strings encoding/json has copied.
func roomForText(buf *bytes.Buffer) []byte {
	n := base64.StdEncoding.EncodedLen(sha256.Size)
	buf.Reset()
	buf.Grow(n)
	return buf.AvailableBuffer()[:n]
}

// hashUnsafe is the hash function of 1.5: strings are hashed without a copy. In the article, the
// strings of hashes also shared the buffer for texts, until a reader noticed that all hashes of an
// answer were then equal to the last one.
func hashUnsafe(buf *bytes.Buffer, req []item) []string {
	hashes := make([]string, 0, len(req))
	sha := sha256.New()
	var sum [sha256.Size]byte
	text := roomForText(buf)
	for i := range req {
		sha.Reset()
		sha.Write(bytesOf(req[i].A))
		sha.Write(bytesOf(req[i].B))
		base64.StdEncoding.Encode(text, sha.Sum(sum[:0]))
		hashes = append(hashes, string(text))
	}
	return hashes
}

// bytesOf returns the bytes of s without a copy. They must not be changed.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
