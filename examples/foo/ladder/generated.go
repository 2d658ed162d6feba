package ladder

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"

	"github.com/mailru/easyjson"

	"github.com/slipstream-go/slipstream/examples/foo/ladder/model"
)

// generated is version 1.6: 1.5 with the code that easyjson generates instead of encoding/json. That
// code appends new items, so that the bug of the earlier versions is gone. It compares names byte for
// byte, leaves bytes that are not UTF-8 as they are, and has no bound for the depth of values that it
// skips.
type generated struct {
	buffers  freeList[*bytes.Buffer]
	requests freeList[*model.Request]
}

func newGenerated(n int) *generated {
	return &generated{newBuffers(n), newFreeList(n, func() *model.Request {
		items := make(model.Request, 0, 100)
		return &items
	})}
}

// ServeHTTP implements [http.Handler].
func (g *generated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	buf := g.buffers.get()
	defer func() {
		buf.Reset()
		g.buffers.put(buf)
	}()
	if _, err := io.Copy(buf, r.Body); err != nil {
		fail(w)
		return
	}
	req := g.requests.get()
	defer func() {
		*req = (*req)[:0]
		g.requests.put(req)
	}()
	if err := easyjson.Unmarshal(buf.Bytes(), req); err != nil {
		fail(w)
		return
	}
	answer, err := easyjson.Marshal(model.Result{Hashes: hashModel(buf, *req)})
	if err != nil {
		fail(w)
		return
	}
	_, _ = w.Write(answer) // a client that is gone cannot be notified
}

// hashModel is hashUnsafe for the types of the generated code.
func hashModel(buf *bytes.Buffer, req model.Request) []string {
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
