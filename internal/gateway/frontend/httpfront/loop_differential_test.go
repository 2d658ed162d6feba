package httpfront

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/http1"
)

// lastRequest ends a connection if it is parsed as a request.
const lastRequest = "GET /depts/300 HTTP/1.1\r\nHost: h\r\nX-Request-Id: last\r\nConnection: close\r\n\r\n"

// hear sends bytes and returns everything that comes back. If the server waits for more,
// the connection is closed for writing after a moment.
func hear(t testing.TB, s *Server, text []byte, silence time.Duration) []byte {
	t.Helper()
	c := dial(t, s).(*net.TCPConn)
	defer c.Close()
	sent := make(chan struct{})
	go func() { // ends when all is sent, or c closed
		defer close(sent)
		c.Write(text)
	}()
	var heard []byte
	buffer := make([]byte, 16<<10)
	c.SetReadDeadline(time.Now().Add(silence))
	for {
		n, err := c.Read(buffer)
		heard = append(heard, buffer[:n]...)
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			<-sent
			c.CloseWrite()
			c.SetReadDeadline(time.Now().Add(patience))
			if rest, err := io.ReadAll(c); err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
				return append(heard, rest...)
			}
			t.Errorf("%.300q: the server neither answers nor closes", text)
			return heard
		default: // the end; net/http may reset what it leaves unread
			return heard
		}
	}
}

var (
	variable   = regexp.MustCompile(`(?m)^(Date|X-Request-Id|Cache-Status|Traceresponse): .*\r$`)
	fieldName  = regexp.MustCompile(`(?m)^[A-Za-z-]+: `)
	statusLine = regexp.MustCompile(`HTTP/1\.[01] [0-9]{3}[^\r]*\r\n`)
	sentID     = regexp.MustCompile(`(?m)^X-Request-Id: (plain|odd|last)\r$`)
)

// meaning is the content of answers, without parts that differ each time and without
// the order of fields: the statuses and the ids that were sent in their order, and
// all lines.
func meaning(answers []byte) string {
	var all strings.Builder
	for _, s := range statusLine.FindAll(answers, -1) {
		all.Write(s)
	}
	for _, id := range sentID.FindAll(answers, -1) {
		all.Write(id)
	}
	text := variable.ReplaceAll(answers, []byte("$1: (any)\r"))
	text = fieldName.ReplaceAllFunc(text, bytes.ToLower)
	lines := strings.Split(string(text), "\r\n")
	slices.Sort(lines)
	return all.String() + strings.Join(lines, "\n")
}

// ends returns what follows the plain requests at the start of text: nothing, the beginning
// of another, or something to be handed over.
func ends(text []byte) (rest int, verdict http1.Verdict) {
	var scanner http1.Scanner
	var head http1.Head
	for len(text) > 0 {
		n, verdict, _ := scanner.Scan(text, 64<<10, &head)
		if verdict != http1.Done {
			return len(text), verdict
		}
		if text = text[n:]; !head.KeepAlive {
			return 0, http1.Done
		}
	}
	return 0, http1.Done
}

// checkMeaning sends the bytes to a server of each kind and compares the answers.
func checkMeaning(t testing.TB, subject, reference *Server, text []byte) {
	t.Helper()
	var got, want []byte
	// If the client closes the connection, an answer that is not ready is cut off, so on a busy
	// machine the client may have to wait longer for silence.
	for _, silence := range []time.Duration{50 * time.Millisecond, time.Second, 5 * time.Second} {
		got, want = hear(t, subject, text, silence), hear(t, reference, text, silence)
		if meaning(got) == meaning(want) {
			return
		}
		// An incomplete request whose client closes: net/http sends no error.
		if rest, verdict := ends(text); verdict == http1.More && rest > 0 {
			if at := bytes.LastIndex(want, []byte("HTTP/1.1 400 Bad Request\r\n")); at >= 0 && meaning(got) == meaning(want[:at]) {
				return
			}
		}
	}
	t.Errorf("%.300q:\n the loop says %.600q\nnet/http says %.600q", text, got, want)
}

// oddTexts are requests, some of them valid, some odd and some invalid.
func oddTexts() (all []string) {
	const host, id = "Host: h\r\n", "X-Request-Id: odd\r\n"
	add := func(text string) { all = append(all, text) }
	for _, line := range []string{
		"GET / HTTP/1.1", "GET /depts/300 HTTP/1.1", "HEAD /depts/300 HTTP/1.1", "HEAD /nobody HTTP/1.1", "POST /depts/300 HTTP/1.1", "OPTIONS * HTTP/1.1", "get /depts/300 HTTP/1.1",
		"Get /depts/300 HTTP/1.1", "GETS /depts/300 HTTP/1.1", "G", "", "GET", "GET ", "GET /depts/300", "GET /depts/300 ", "GET  /depts/300 HTTP/1.1", "GET /depts/300  HTTP/1.1",
		"GET /depts/300 HTTP/1.1 ", " GET /depts/300 HTTP/1.1", "GET\t/depts/300\tHTTP/1.1", "GET /depts/300\tHTTP/1.1", "GET /depts/3 00 HTTP/1.1", "GET /depts/300 HTTP/1.0", "GET /depts/300 HTTP/0.9", "GET /depts/300 HTTP/1.2",
		"GET /depts/300 HTTP/2.0", "GET /depts/300 HTTP/1.10", "GET /depts/300 HTTP/1", "GET /depts/300 http/1.1", "GET /depts/300 HTTP/1,1", "GET /depts/300 HTTP/11", "GET /depts/300 ICY", "GET /depts/300 HTTP/1.1\x00",
		"GET http://h/depts/300 HTTP/1.1", "GET HTTP://h/depts/300 HTTP/1.1", "GET http://other/depts/300 HTTP/1.1", "GET //depts/300 HTTP/1.1", "GET ///depts/300 HTTP/1.1", "GET /./depts/300 HTTP/1.1", "GET /x/../depts/300 HTTP/1.1",
		"GET /depts/300#x HTTP/1.1", "GET /depts/300?#x HTTP/1.1", "GET /depts/%33%30%30 HTTP/1.1", "GET /depts/%3 HTTP/1.1", "GET /depts/%zz HTTP/1.1", "GET /depts/300?%zz HTTP/1.1", "GET /depts/300%00 HTTP/1.1", "GET /depts/300%0d%0aX:y HTTP/1.1",
		"GET /depts/\xc3\xa4 HTTP/1.1", "GET /depts/300?\xff HTTP/1.1", "GET /depts/3\x0000 HTTP/1.1", "GET /depts/300\x7f HTTP/1.1", "GET /depts/\"<>\\^`{|} HTTP/1.1", "GET depts/300 HTTP/1.1", "GET * HTTP/1.1", "GET h:80 HTTP/1.1", "GET ?x HTTP/1.1",
		"GET /depts;x/300 HTTP/1.1", "GET /depts?key=300&key=0 HTTP/1.1", "GET /depts?key=300;x HTTP/1.1", "CONNECT h:80 HTTP/1.1", "PRI * HTTP/2.0", "GET /" + strings.Repeat("x", 9000) + " HTTP/1.1",
	} {
		add(line + "\r\n" + host + id + "\r\n")
	}
	for _, fields := range []string{
		"", "host: h\r\n", "HOST:h\r\n", "Host: h\r\nHost: h\r\n", "Host: h\r\nhost: i\r\n", "Host:\r\n", "Host: a b\r\n", "Host: h:80\r\n", "Host: h:\r\n", "Host: h:x\r\n", "Host: [::1]:80\r\n", "Host: [::1\r\n", "Host: u@h\r\n", "Host: h/x\r\n", "Host: \xff\r\n", "Host: h,i\r\n", "Host : h\r\n",
	} {
		add("GET /depts/300 HTTP/1.1\r\n" + fields + id + "\r\n")
		add("GET /depts/300 HTTP/1.0\r\n" + fields + id + "Connection: keep-alive\r\n\r\n")
	}
	for _, fields := range []string{
		"X: y\r\n", "X:y\r\n", "X:\r\n", "X: \t y \t\r\n", ": y\r\n", "X\r\n", "X Y: z\r\n", "X : y\r\n", "X\t: y\r\n", " X: y\r\n", "X: y\r\n z\r\n", "X: y\r\n\tz\r\n", "X: \x00\r\n", "X: \x01\r\n", "X: \x7f\r\n", "X: \xff\xc3\r\n", "X\x00: y\r\n", "\xc3\xa4: y\r\n", "\"X\": y\r\n", "(X): y\r\n",
		"!#$%&'*+-.^_`|~: y\r\n", "X: a\rb\r\n", "X\r: y\r\n", "X: y\n", "X: y\r\r\n", "X: y\n\r\n",
		"Content-Length: 0\r\n", "Content-Length: 5\r\n\r\nhello", "Content-Length: +5\r\n", "Content-Length: -1\r\n", "Content-Length: 5, 5\r\n", "Content-Length: 0\r\nContent-Length: 0\r\n", "Content-Length: 0\r\nContent-Length: 1\r\n", "Content-Length:\r\n", "Content-Length: 00\r\n", "Content-Length: 0x0\r\n", "Content-Length: 99999999999999999999\r\n",
		"Transfer-Encoding: chunked\r\n\r\n0\r\n", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", "Transfer-Encoding: identity\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n", "Transfer-Encoding : chunked\r\n", "Transfer_Encoding: chunked\r\n", "Transfer-Encoding:\vchunked\r\n",
		"Connection: close\r\n", "Connection: Close\r\n", "connection:close\r\n", "Connection: keep-alive\r\n", "Connection: close, x\r\n", "Connection: x, close\r\n", "Connection: keep-alive, close\r\n", "Connection: keep-alive\r\nConnection: close\r\n", "Connection:\r\n", "Connection: closed\r\n", "Connection: upgrade\r\nUpgrade: websocket\r\n", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n", "Connection: TE\r\nTE: trailers\r\n",
		"Expect: 100-continue\r\n", "Expect: x\r\n", "Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello", "Upgrade: h2c\r\n", "Trailer: X\r\n", "Proxy-Connection: close\r\n", "Keep-Alive: timeout=5\r\n",
		"If-None-Match: *\r\n", "If-None-Match: *\r\nIf-None-Match: \"x\"\r\n", "If-Match: \"x\"\r\n", "If-Match: \"x\"\r\nIf-Match: *\r\n", "Accept-Encoding: gzip\r\n", "Accept-Encoding: *;q=0\r\n", "Accept-Encoding: gzip\r\nAccept-Encoding: identity;q=0\r\n", "Range: bytes=0-1\r\n", "Range: bytes=0-1\r\nRange: x\r\n", "Range:\r\n", "X-Api-Key: x\r\nX-Api-Key: y\r\n", "Authorization: Bearer x\r\n", "Origin: https://app.example\r\nOrigin: x\r\n",
		"Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n", "Cookie: " + strings.Repeat("x", 60<<10) + "\r\n", strings.Repeat("X: y\r\n", 98), strings.Repeat("X: y\r\n", 99), strings.Repeat("X-Forwarded-For: 192.0.2.1\r\n", 9),
	} {
		add("GET /depts/300 HTTP/1.1\r\n" + host + id + fields + "\r\n")
	}
	for _, text := range []string{
		"\r\n", "\n", "\r\n\r\n", "\x00", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", "*1\r\n$4\r\nPING\r\n", "GET /depts/300 HTTP/1.1\nHost: h\n\n", "GET /depts/300 HTTP/1.1\r\nHost: h\r\n\n", "GET /depts/300 HTTP/1.1\r\nHost: h\r\n\r",
	} {
		add(text)
	}
	return all
}

// upTo5Digits is jsonOrigin for documents that are not too large.
func upTo5Digits(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
	if len(id) > 5 {
		return echo(ctx, r, id)
	}
	return jsonOrigin(ctx, r, id)
}

// differential returns a server with a loop and one without, which have answered the
// same requests. Both refuse names that are not configured.
func differential(t testing.TB, by way) (subject, reference *Server) {
	config := ServiceConfig{Compression: []string{"gzip"}, CORS: CORS{Origins: []string{"https://app.example"}}}
	limits := Config{ConnConfig: frontend.ConnConfig{MaxConnections: 1000}, HeaderTimeout: patience}
	subject = listen(t, newConfigured(t, upTo5Digits, config, nil), by.config(limits))
	reference = listen(t, newConfigured(t, upTo5Digits, config, nil), ways[1].config(limits))
	for _, s := range []*Server{subject, reference} {
		for _, accept := range []string{"gzip", "identity"} { // makes the forms of the document
			askOnce(t, s, "GET", "/depts/300", "Accept-Encoding", accept)
		}
	}
	return subject, reference
}

// TestLoopAgainstNetHTTP: whatever a client sends, the answer is the same as that of
// net/http, and so are the answers to later requests on the connection.
func TestLoopAgainstNetHTTP(t *testing.T) {
	plain := requestText("GET", "/depts/2000", "X-Request-Id", "plain")
	texts := oddTexts()
	if len(texts) < 180 {
		t.Fatalf("%d texts, want at least 180", len(texts))
	}
	eachLoop(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		subject, reference := differential(t, by)
		var checks sync.WaitGroup
		places := make(chan struct{}, 16) // most of the time is waiting for silence
		for _, text := range texts {
			for _, whole := range []string{text + lastRequest, plain + plain + text + plain + lastRequest} {
				places <- struct{}{}
				checks.Go(func() {
					defer func() { <-places }()
					checkMeaning(t, subject, reference, []byte(whole))
				})
			}
		}
		checks.Wait()
		checkNothingWaits(t, subject)
	})
}

func FuzzLoopAgainstNetHTTP(f *testing.F) {
	for i, text := range oddTexts() {
		if len(text) < 4<<10 {
			f.Add([]byte(text), i%3)
		}
	}
	f.Add([]byte(fmt.Sprint(requestText("HEAD", "/depts/0"), "GET /depts?key=300&key=0 HTTP/1.0\r\n\r\n")), 1)
	subject, reference := differential(f, ways[2])
	plain := requestText("GET", "/depts/300", "X-Request-Id", "plain")
	f.Fuzz(func(t *testing.T, text []byte, before int) {
		if len(text) > 80<<10 {
			return
		}
		whole := strings.Repeat(plain, before&3) + string(text) + lastRequest
		checkMeaning(t, subject, reference, []byte(whole))
	})
}
