package ladder

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// DefaultMaxBody is the maximum size of a body in bytes if [Handler.MaxBody] is zero.
const DefaultMaxBody = 1 << 20

// A Handler is the service at the end of the ladder. It reads a body in pieces, hashes the strings
// of each item in place, and writes the text of the hash directly to the answer. Therefore only the
// memory of the answer, which is at most 16 times as long as the body, grows with a request, and
// large memory is not kept.
//
// It answers with the status and the body of version 1.0, and with 413 to a body of more than
// MaxBody bytes. The zero value is ready to use. It is safe for concurrent use.
type Handler struct {
	// MaxBody is the maximum size of a body in bytes. If zero, it is [DefaultMaxBody].
	MaxBody int64

	requests sync.Pool // of *request
}

// pieceSize is the maximum number of bytes per read.
const pieceSize = 64 << 10

// A request holds the memory of one request.
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
		q.length = []string{strconv.Itoa(q.size)} // not changed in place, because the header of an earlier answer may still refer to it
	}
	header := w.Header()
	header["Content-Type"], header["Content-Length"] = contentType, q.length
	_, _ = w.Write(answer) // a client that has disconnected cannot be notified
}

var errTooLarge = errors.New("foo: the body is too large")

// answer reads the body and returns the answer to it, which is valid until the next call.
func (q *request) answer(r *http.Request, most int64) ([]byte, error) {
	q.hasher.Reset()
	// Read exactly as many bytes as the client has announced or, if it has not announced a length,
	// one more than allowed.
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
