package ladder

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
)

// v10 implements version 1.0, the obvious implementation.
func v10(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fail(w)
		return
	}
	var req []item
	if err := json.Unmarshal(body, &req); err != nil {
		fail(w)
		return
	}
	reply(w, hashEach(nil, req))
}

// hashEach allocates a hasher, two copies of strings, a sum and a text for each item. It does not
// use the buffer.
func hashEach(_ *bytes.Buffer, req []item) []string {
	var hashes []string
	for _, it := range req {
		sha := sha256.New()
		sha.Write([]byte(it.A))
		sha.Write([]byte(it.B))
		hashes = append(hashes, base64.StdEncoding.EncodeToString(sha.Sum(nil)))
	}
	return hashes
}
