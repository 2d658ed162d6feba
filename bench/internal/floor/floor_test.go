package floor

import (
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
)

func TestDocuments(t *testing.T) {
	d := depts.Make(17)
	ready := string(ReadyAnswer(d.AppendJSON(nil)))
	answer := Documents()
	for _, tc := range []struct {
		in       string
		consumed int
		want     []string
	}{
		{"GET /depts/17 HTTP/1.1\r\nHost: bench\r\n\r\n", 39, []string{ready}},
		{"GET /depts/17 HTTP/1.1\r\nHost: bench\r\n\r\nGET /dep", 39, []string{ready}},
		{"GET /depts/17 HTTP/1.1\r\n\r\nGET /depts/17 HTTP/1.1\r\n\r\n", 52, []string{ready, ready}},
		{"GET /depts/17 HTTP/1.1\r\n", 0, nil},
		{"GET /depts/1001 HTTP/1.1\r\n\r\n", 28, []string{string(notFound)}},
		{"GET /depts/1x HTTP/1.1\r\n\r\n", 26, []string{string(notFound)}},
		{"GET /depts/ HTTP/1.1\r\n\r\n", 24, []string{string(notFound)}},
		{"GET /depts/99999999999999999999 HTTP/1.1\r\n\r\n", 44, []string{string(notFound)}},
		{"POST /depts/1 HTTP/1.1\r\n\r\n", 26, []string{string(notFound)}},
	} {
		consumed, got, err := answer([]byte(tc.in), nil)
		if err != nil || consumed != tc.consumed || joined(got) != strings.Join(tc.want, "") {
			t.Errorf("%q: consumed %d, %d answers, %v, want %d and %d", tc.in, consumed, len(got), err, tc.consumed, len(tc.want))
		}
	}
	if !strings.HasPrefix(ready, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1") || !strings.Contains(ready, "\r\nETag: \"") {
		t.Errorf("answer %.200q", ready)
	}
}

func joined(parts [][]byte) string {
	var b strings.Builder
	for _, p := range parts {
		b.Write(p)
	}
	return b.String()
}

func TestValues(t *testing.T) {
	answer := Values(map[string][]byte{"depts:1": []byte("one"), "depts:2": []byte("two")})
	for _, tc := range []struct {
		in       string
		consumed int
		want     string
	}{
		{"*2\r\n$3\r\nGET\r\n$7\r\ndepts:1\r\n", 26, "$3\r\none\r\n"},
		{"*2\r\n$3\r\nget\r\n$7\r\ndepts:1\r\n*2\r\n$3\r\nGET\r\n$7\r\ndepts:2\r\n*2\r\n", 52, "$3\r\none\r\n$3\r\ntwo\r\n"},
		{"*2\r\n$3\r\nGET\r\n$7\r\ndepts:3\r\n", 26, "$-1\r\n"},
		{"*1\r\n$4\r\nPING\r\n", 14, "+PONG\r\n"},
		{"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n", 22, "-ERR unknown command\r\n"},
		{"*2\r\n$3\r\nGET\r\n$7\r\ndepts", 0, ""},
		{"*2\r", 0, ""},
		{"", 0, ""},
	} {
		consumed, got, err := answer([]byte(tc.in), nil)
		if err != nil || consumed != tc.consumed || joined(got) != tc.want {
			t.Errorf("%q: consumed %d, answers %q, %v, want %d and %q", tc.in, consumed, joined(got), err, tc.consumed, tc.want)
		}
	}
	for _, bad := range []string{"GET depts:1\r\n", "*x\r\n", "*\r\n", "*1\r\n*1\r\n", "*1\r\n$99999999\r\n"} {
		if _, _, err := answer([]byte(bad), nil); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}
