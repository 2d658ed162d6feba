package ladder

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// DefaultMaxBody is the most bytes of a body if [Handler.MaxBody] is zero.
const DefaultMaxBody = 1 << 20

// A Handler is the service at the end of the ladder. It reads a body in pieces, hashes the strings of
// each item in place, and writes the text of the hash to where the answer is made. So it has no memory
// that grows with a request except that of the answer, which is at most 16 times as long as the body,
// and none of it stays if it is large.
//
// It answers with the status and the body of version 1.0, and to a body of more than MaxBody bytes with 413. The zero
// value is ready. It is safe for concurrent use.
type Handler struct {
	// MaxBody is the most bytes of a body. If zero, it is [DefaultMaxBody].
	MaxBody int64

	requests sync.Pool // of *request
}

// pieceSize is the most that is read in one go.
const pieceSize = 64 << 10

// A request is the memory of one request.
type request struct {
	hasher Hasher
	piece  [pieceSize]byte
	length []string // the value of Content-Length for answers of size bytes
	size   int
}

var contentType = []string{"application/json"}

// ServeHTTP implements [http.Handler].
func (s *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q, _ := s.requests.Get().(*request)
	if q == nil {
		q = new(request)
	}
	defer s.requests.Put(q)
	answer, err := q.answer(r, cmp.Or(s.MaxBody, DefaultMaxBody))
	switch {
	case errors.Is(err, errTooLarge):
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		fail(w)
		return
	}
	if len(answer) != q.size {
		q.size = len(answer)
		q.length = []string{strconv.Itoa(q.size)} // not changed in place: the header of an earlier answer may have it
	}
	header := w.Header()
	header["Content-Type"], header["Content-Length"] = contentType, q.length
	_, _ = w.Write(answer) // a client that is gone cannot be notified
}

var errTooLarge = errors.New("foo: the body is too large")

// answer reads the body and returns the answer to it, which is valid until the next call.
func (q *request) answer(r *http.Request, most int64) ([]byte, error) {
	q.hasher.Reset()
	// Exactly as many bytes as the client has announced; if it has not, one more than are allowed.
	left, announced := r.ContentLength, r.ContentLength >= 0
	switch {
	case left > most:
		return nil, errTooLarge
	case !announced:
		left = most + 1
	}
	for left > 0 {
		n, err := r.Body.Read(q.piece[:min(left, pieceSize)])
		left -= int64(n)
		if !announced && left == 0 {
			return nil, errTooLarge
		}
		if _, err := q.hasher.Write(q.piece[:n]); err != nil {
			return nil, err
		}
		if err == io.EOF && (left == 0 || !announced) {
			break
		}
		if err == io.EOF {
			return nil, io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
	return q.hasher.Answer()
}
