package floor

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
)

var (
	errTooLarge = errors.New("floor: a request larger than the read buffer")
	headEnd     = []byte("\r\n\r\n")
	getDept     = []byte("GET /depts/")
	notFound    = []byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
)

// Documents answers GET /depts/<n> with the departments of the benchmarks: the answers are prepared
// in advance, with head and body in one piece, and have Content-Type, Content-Length and ETag.
// Everything else is not found. Header fields are skipped.
func Documents() Answerer {
	ready := make([][]byte, depts.Count+1)
	ready[0] = notFound
	for n := int64(1); n <= depts.Count; n++ {
		d := depts.Make(n)
		ready[n] = ReadyAnswer(d.AppendJSON(nil))
	}
	return func(in []byte, answers [][]byte) (int, [][]byte, error) {
		consumed := 0
		for {
			end := bytes.Index(in[consumed:], headEnd)
			if end < 0 {
				return consumed, answers, nil
			}
			answers = append(answers, ready[deptOf(in[consumed:consumed+end])])
			consumed += end + len(headEnd)
		}
	}
}

// ReadyAnswer returns a complete answer with a body.
func ReadyAnswer(body []byte) []byte {
	sum := sha256.Sum256(body)
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nETag: \"%s\"\r\n\r\n",
		len(body), base64.RawURLEncoding.EncodeToString(sum[:15]))
	return append([]byte(head), body...)
}

// deptOf returns the number in a request's path, or 0 if there is no such department.
func deptOf(head []byte) int {
	if !bytes.HasPrefix(head, getDept) {
		return 0
	}
	n := 0
	for _, b := range head[len(getDept):] {
		if b == ' ' {
			return n
		}
		if b < '0' || b > '9' {
			return 0
		}
		if n = n*10 + int(b-'0'); n > depts.Count {
			return 0
		}
	}
	return 0
}
