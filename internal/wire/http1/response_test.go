package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// mutant: http1-response-repeated-length
// mutant: http1-response-length-beside-chunks
func TestResponseHeads(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, tc := range []struct {
		in   string
		want ResponseHead
		err  error
	}{
		{ok + "Content-Length: 12\r\n\r\nabc", ResponseHead{Size: 39, Status: 200, Minor: 1, Length: 12}, nil},
		{ok + "cOnTeNt-LeNgTh:0\r\nX: y\r\n\r\n", ResponseHead{Size: 43, Status: 200, Minor: 1}, nil},
		{"HTTP/1.1 404\r\n\r\n", ResponseHead{Size: 16, Status: 404, Minor: 1, Length: -1}, nil},
		{"HTTP/1.0 200 OK\r\n\r\n", ResponseHead{Size: 19, Status: 200, Length: -1, Close: true}, nil},
		{"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n", ResponseHead{Size: 43, Status: 200, Length: -1}, nil},
		{ok + "Connection: x , Close\r\n\r\n", ResponseHead{Size: 42, Status: 200, Minor: 1, Length: -1, Close: true}, nil},
		{ok + "Transfer-Encoding: gzip, Chunked\r\n\r\n", ResponseHead{Size: 53, Status: 200, Minor: 1, Length: -1, Chunked: true}, nil},
		{ok + "Content-Encoding: br\r\nCache-Status: a; hit\r\n\r\n", ResponseHead{
			Size: 63, Status: 200, Minor: 1, Length: -1, ContentEncoding: []byte("br"), CacheStatus: []byte("a; hit"),
		}, nil},
		{ok + "Content-Length: 12\r\n", ResponseHead{}, nil},
		{"", ResponseHead{}, nil},
		{ok + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", ResponseHead{}, errLengths},
		{ok + "Content-Length: -1\r\n\r\n", ResponseHead{}, errLength},
		{ok + "Content-Length: \r\n\r\n", ResponseHead{}, errLength},
		{ok + "Content-Length: 1, 1\r\n\r\n", ResponseHead{}, errLength},
		{ok + "Content-Length: 9999999999999999999\r\n\r\n", ResponseHead{}, errLength},
		{ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", ResponseHead{}, errBoth},
		{ok + "Transfer-Encoding: chunked, gzip\r\n\r\n", ResponseHead{}, errCoding},
		{ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", ResponseHead{}, errRepeated},
		{ok + "Content-Length: 1\nX: y\r\n\r\n", ResponseHead{}, errResponseLF},
		{ok + "X: a\rb\r\n\r\n", ResponseHead{}, errResponseLF},
		{ok + "nothing\r\n\r\n", ResponseHead{}, errFieldLine},
		{ok + "X: y\r\n folded\r\n\r\n", ResponseHead{}, errFieldLine},
		{ok + "X : y\r\n\r\n", ResponseHead{}, errFieldLine},
		{"HTTP/2 200 OK\r\n\r\n", ResponseHead{}, errNotHTTP},
		{"-ERR unknown command\r\n", ResponseHead{}, errNotHTTP},
		{"-", ResponseHead{}, errNotHTTP},
		{"HTTP/1.1 20 OK\r\n\r\n", ResponseHead{}, errStatusLine},
		{"HTTP/1.1  200\r\n\r\n", ResponseHead{}, errStatusLine},
		{"HTTP/1.1 2000 OK\r\n\r\n", ResponseHead{}, errStatusLine},
		{"HTTP/1.1 200 O\x00K\r\n\r\n", ResponseHead{}, errResponseLF},
	} {
		h, err := ParseResponseHead([]byte(tc.in))
		if !errors.Is(err, tc.err) || err == nil && !sameHead(h, tc.want) {
			t.Errorf("%q:\n%+v, %v; want\n%+v, %v", tc.in, h, err, tc.want, tc.err)
		}
	}
}

func sameHead(a, b ResponseHead) bool {
	same := bytes.Equal(a.ContentEncoding, b.ContentEncoding) && bytes.Equal(a.CacheStatus, b.CacheStatus)
	a.ContentEncoding, a.CacheStatus, b.ContentEncoding, b.CacheStatus = nil, nil, nil, nil
	return same && a.Size == b.Size && a.Status == b.Status && a.Minor == b.Minor && a.Length == b.Length && a.Chunked == b.Chunked && a.Close == b.Close
}

// Every proper prefix of a head must be incomplete rather than an error.
func TestEveryBeginningOfAResponseIsIncomplete(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\nServer: x\r\nTransfer-Encoding: chunked\r\nEmpty:\r\n\r\n"
	for n := range len(head) {
		if h, err := ParseResponseHead([]byte(head[:n])); err != nil || h.Size != 0 {
			t.Errorf("%q: size %d, %v", head[:n], h.Size, err)
		}
	}
	if h, err := ParseResponseHead([]byte(head)); err != nil || h.Size != len(head) {
		t.Errorf("the whole head: %+v, %v", h, err)
	}
}

func TestResponsesWithoutABody(t *testing.T) {
	for status, want := range map[int]bool{100: false, 103: false, 200: true, 204: false, 304: false, 404: true} {
		if h := (ResponseHead{Status: status}); h.HasBody() != want {
			t.Errorf("a response of status %d has a body: %v", status, !want)
		}
	}
}

// However a body is split, its chunks must have the same end and the same data.
//
// mutant: http1-chunk-ends-early
func TestChunksInAnyPieces(t *testing.T) {
	const body = "5\r\nhello\r\nA ; name=\"v\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"
	const after = "HTTP/1.1 200 OK"
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s ChunkScanner
		used, data := 0, int64(0)
		for rest := []byte(body + after); len(rest) > 0 && !s.Done; {
			piece := rest[:1+rng.IntN(len(rest))]
			n, d, err := s.Scan(piece)
			if err != nil || n < len(piece) && !s.Done {
				t.Fatalf("%q: %d bytes, %v", piece, n, err)
			}
			used, data, rest = used+n, data+d, rest[n:]
		}
		if !s.Done || used != len(body) || data != 15 {
			t.Fatalf("%d bytes with %d of data, ended %v; want %d and 15", used, data, s.Done, len(body))
		}
	}
}

func TestBadChunks(t *testing.T) {
	for in, want := range map[string]error{
		"\r\n":                                   errChunk,
		"x\r\n":                                  errChunk,
		"-1\r\n":                                 errChunk,
		"5\nhello\r\n":                           errChunk,
		"5\r\nhello!":                            errChunk,
		"5;a\nb\r\nhello":                        errChunk,
		"1000000000000000\r\n":                   errChunk,
		"0\r\nX: y\n\r\n":                        errChunk,
		"0\r\n\rX":                               errChunk,
		"0;" + strings.Repeat("x", maxSkipped+1): errChunkLong,
	} {
		var s ChunkScanner
		if _, _, err := s.Scan([]byte(in)); !errors.Is(err, want) {
			t.Errorf("%.40q: %v, want %v", in, err, want)
		}
	}
}

// FuzzResponses checks that responses that net/http writes can be read here, and that net/http
// reads whatever is accepted here in the same way.
func FuzzResponses(f *testing.F) {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("X", "y")
	_, _ = recorder.WriteString("hello")
	var text bytes.Buffer
	if err := recorder.Result().Write(&text); err != nil {
		f.Fatal(err)
	}
	f.Add(text.Bytes())
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 204 No Content\r\n\r\n"))
	f.Add([]byte("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx"))
	f.Fuzz(func(t *testing.T, in []byte) {
		h, err := ParseResponseHead(in)
		if err != nil || h.Size == 0 || h.Status < 200 || h.Minor == 0 {
			return
		}
		theirs, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(in)), nil)
		if err != nil {
			return // net/http is stricter in some respects
		}
		defer theirs.Body.Close()
		if theirs.StatusCode != h.Status || h.HasBody() && h.Length != theirs.ContentLength {
			t.Fatalf("%q: status %d and length %d; net/http has %d and %d", in, h.Status, h.Length, theirs.StatusCode, theirs.ContentLength)
		}
		if !h.Chunked || !h.HasBody() {
			return
		}
		var s ChunkScanner
		_, data, err := s.Scan(in[h.Size:])
		body, theirErr := io.ReadAll(theirs.Body)
		if err == nil && s.Done && theirErr == nil && data != int64(len(body)) {
			t.Fatalf("%q: %d bytes of data; net/http has %d", in, data, len(body))
		}
	})
}
