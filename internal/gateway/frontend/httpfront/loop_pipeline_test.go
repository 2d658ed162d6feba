package httpfront

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/http1"
)

// gatedFrom is the first key whose load waits for the gate.
const gatedFrom = 5_000_000

// gated is jsonOrigin behind a gate: documents of keys from gatedFrom on, of 100 bytes,
// are loaded when open is closed. Those of another resource have 70,000 bytes and no gate.
func gated(open <-chan struct{}) originFunc {
	return func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		if r != 0 {
			return jsonOrigin(ctx, r, "70000")
		}
		if len(id) < len("5000000") || id[0] == '-' {
			return jsonOrigin(ctx, r, id)
		}
		select {
		case <-open:
			return fmt.Appendf(nil, `{"id":%s,"rows":[%s]}`, id, strings.Repeat(" ", 80)), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ask is a request of a pipeline and its expected answer.
type ask struct {
	text   string
	method string
	id     string // X-Request-Id
	status int
	doc    string // id in the document
}

// asking returns a request for a document that exists.
func asking(method, key, id string, fields ...string) ask {
	return ask{requestText(method, "/depts/"+key, append(fields, "X-Request-Id", id)...), method, id, 200, key}
}

func texts(list []ask) string {
	var all strings.Builder
	for _, a := range list {
		all.WriteString(a.text)
	}
	return all.String()
}

// check reads the answers to a pipeline.
func check(t *testing.T, r *bufio.Reader, list []ask) {
	t.Helper()
	for i, a := range list {
		answer, err := readAnswer(r, a.method)
		if err != nil {
			t.Fatalf("answer %d of %d, to %.60q: %v", i, len(list), a.text, err)
		}
		text := body(t, answer)
		if id := answer.Header.Get("X-Request-Id"); answer.StatusCode != a.status || id != a.id {
			t.Fatalf("answer %d, to %.60q: got %d to request %q, want %d to %q", i, a.text, answer.StatusCode, id, a.status, a.id)
		}
		if answer.Close && i < len(list)-1 {
			t.Fatalf("answer %d of %d says that it is the last", i, len(list))
		}
		switch {
		case a.method == "HEAD":
			if text != "" || answer.ContentLength <= 0 {
				t.Fatalf("answer %d, to a HEAD: %q, %d bytes", i, text, answer.ContentLength)
			}
		case !strings.HasPrefix(text, `{"id":`+a.doc+`,`):
			t.Fatalf("answer %d, to %.60q: %.80q", i, a.text, text)
		}
	}
}

// checkEnd fails unless the server has closed in order.
func checkEnd(t *testing.T, r io.Reader) {
	t.Helper()
	if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil {
		t.Fatalf("%.100q and %v, want the end of the connection", rest, err)
	}
}

// silent fails if anything comes from c for a moment.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		t.Errorf("%d bytes, %v before the first answer is there, want nothing", n, err)
	}
	c.SetReadDeadline(time.Now().Add(patience))
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// oddRequests has one for each reason for a handover, with the id "odd".
var oddRequests = map[http1.Reason]string{
	http1.ReasonMethod:     "DELETE /depts/300 HTTP/1.1\r\nHost: h\r\nX-Request-Id: odd\r\n\r\n",
	http1.ReasonBody:       "GET /depts/300 HTTP/1.1\r\nHost: h\r\nX-Request-Id: odd\r\nContent-Length: 40\r\n\r\nGET /depts/400 HTTP/1.1\r\nHost: h\r\n\r\n    ",
	http1.ReasonExpect:     "GET /depts/300 HTTP/1.1\r\nHost: h\r\nX-Request-Id: odd\r\nExpect: 100-continue\r\n\r\n",
	http1.ReasonUpgrade:    "GET /depts/300 HTTP/1.1\r\nHost: h\r\nX-Request-Id: odd\r\nUpgrade: websocket\r\n\r\n",
	http1.ReasonConnection: "GET /depts/300 HTTP/1.1\r\nHost: h\r\nX-Request-Id: odd\r\nConnection: keep-alive, X-Y\r\n\r\n",
	http1.ReasonTarget:     "GET http://h/depts/300 HTTP/1.1\r\nHost: h\r\nX-Request-Id: odd\r\n\r\n",
	http1.ReasonVersion:    "GET /depts/300 HTTP/1.2\r\nHost: h\r\nX-Request-Id: odd\r\n\r\n",
	http1.ReasonHost:       "GET /depts/300 HTTP/1.1\r\nHost: h\r\nHost: i\r\nX-Request-Id: odd\r\n\r\n",
	http1.ReasonLineEnd:    "GET /depts/300 HTTP/1.1\nHost: h\nX-Request-Id: odd\n\n",
	http1.ReasonFolding:    "GET /depts/300 HTTP/1.1\r\nHost: h\r\nX-Request-Id: odd\r\nX: y\r\n z\r\n\r\n",
	http1.ReasonFieldName:  "GET /depts/300 HTTP/1.1\r\nHost: h\r\nX-Request-Id: odd\r\nX Y: z\r\n\r\n",
	http1.ReasonFieldValue: "GET /depts/300 HTTP/1.1\r\nHost: h\r\nX-Request-Id: odd\r\nX: \x1b\r\n\r\n",
	http1.ReasonSpace:      "GET /depts/300  HTTP/1.1\r\nHost: h\r\nX-Request-Id: odd\r\n\r\n",
	http1.ReasonRepeated:   "GET /depts/300 HTTP/1.1\r\nHost: h\r\nX-Request-Id: odd\r\nIf-None-Match: \"x\"\r\nIf-None-Match: *\r\n\r\n",
	http1.ReasonTooLarge:   "GET /depts/300 HTTP/1.1\r\nHost: h\r\nX-Request-Id: odd\r\nCookie: " + strings.Repeat("x", 96<<10) + "\r\n\r\n",
	http1.ReasonTooMany:    "GET /depts/300 HTTP/1.1\r\nHost: h\r\nX-Request-Id: odd\r\n" + strings.Repeat("X: y\r\n", 100) + "\r\n",
}

// oddAnswers reads what follows an odd request until the connection ends.
func oddAnswers(t *testing.T, r *bufio.Reader) (all []string) {
	t.Helper()
	for {
		answer, err := http.ReadResponse(r, nil)
		if err != nil {
			return all
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil && !answer.Close { // net/http may reset what it leaves unread
			t.Errorf("%s: %v", answer.Status, err)
		}
		all = append(all, fmt.Sprintf("%s %s %q %.60s", answer.Proto, answer.Status, answer.Header.Get("X-Request-Id"), text))
	}
}

// TestHandedOverBehindMisses: a request that is handed over waits for the answers before
// it and is answered by net/http, like all that follow it.
func TestHandedOverBehindMisses(t *testing.T) {
	behind := texts([]ask{asking("GET", "2000", "behind-1"), asking("GET", "300", "behind-2"), asking("GET", "100", "behind-3", "Connection", "close")})
	want := make(map[http1.Reason][]string)
	reference := listen(t, newFixture(t, jsonOrigin), Config{Engine: EngineNetHTTP})
	for why := http1.NotHandedOver + 1; why < http1.ReasonCount; why++ {
		text := oddRequests[why]
		if _, verdict, got := new(http1.Scanner).Scan([]byte(text), 64<<10, new(http1.Head)); verdict != http1.Other || got != why {
			t.Fatalf("%q is handed over for %v, want %v", text, got, why)
		}
		c := dial(t, reference)
		defer c.Close()
		io.WriteString(c, text+behind)
		if want[why] = oddAnswers(t, bufio.NewReader(c)); len(want[why]) == 0 {
			t.Fatalf("%v: net/http does not answer", why)
		}
	}
	eachLoop(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		open := make(chan struct{})
		f := newConfigured(t, gated(open), ServiceConfig{Compression: []string{"gzip"}}, nil)
		s := listen(t, f, by.config(Config{}))
		conns := make(map[http1.Reason]net.Conn)
		front := make(map[http1.Reason][]ask)
		for why, text := range oddRequests {
			c := dial(t, s)
			defer c.Close()
			conns[why] = c
			key, id := fmt.Sprint(gatedFrom+int(why)), why.String()
			front[why] = []ask{asking("GET", key, "miss-"+id), asking("GET", "300", "hit-"+id), asking("HEAD", key, "head-"+id), asking("GET", "301", "late-"+id)}
			io.WriteString(c, texts(front[why])+text+behind)
		}
		for _, c := range conns {
			silent(t, c)
		}
		close(open)
		for why, c := range conns {
			r := bufio.NewReader(c)
			check(t, r, front[why])
			if got := oddAnswers(t, r); strings.Join(got, "\n") != strings.Join(want[why], "\n") {
				t.Errorf("%v: got %q, want %q", why, got, want[why])
			}
		}
		handed := make(map[string]int64)
		s.EachHandover(func(reason string, n int64) { handed[reason] = n })
		for why := range oddRequests {
			if n := handed[why.String()]; n != 1 {
				t.Errorf("%d were handed over for %v, want 1", n, why)
			}
		}
		checkNothingWaits(t, s)
	})
}

// checkNothingWaits: however requests ended, none is counted forever.
func checkNothingWaits(t *testing.T, s *Server) {
	t.Helper()
	testkit.Eventually(t, patience, func() error {
		stats, _ := s.EngineStats()
		if w, c := s.front.waiting.Load(), s.LargePending(); w != 0 || c != 0 || stats.Owed != 0 || stats.Unwritten != 0 {
			return fmt.Errorf("%d requests wait, %d bytes are complete, %d answers owed, %d bytes unwritten, want 0", w, c, stats.Owed, stats.Unwritten)
		}
		return nil
	})
}

// TestLongPipelines: more misses than a connection may wait for, hits and HEADs between
// them, in any order of their loads.
func TestLongPipelines(t *testing.T) { eachServer(t, testLongPipelines) }

func testLongPipelines(t *testing.T, by way) {
	testkit.NoLeaks(t)
	f := newConfigured(t, func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		time.Sleep(time.Duration(id[len(id)-1]-'0') * time.Millisecond / 8)
		return jsonOrigin(ctx, r, id)
	}, ServiceConfig{Compression: []string{"gzip"}}, nil)
	s := listen(t, f, by.config(Config{}))
	random := testkit.Rand(t)
	for round := range 3 {
		var list []ask
		for i := range 250 {
			method, key := "GET", fmt.Sprint(random.IntN(1000)+1)
			if random.IntN(4) == 0 {
				method = "HEAD"
			}
			if random.IntN(20) == 0 {
				key = fmt.Sprint(65<<10 + random.IntN(1000))
			}
			list = append(list, asking(method, key, fmt.Sprintf("r-%d-%d", round, i)))
		}
		c := dial(t, s)
		defer c.Close()
		if round == 2 {
			list[len(list)-1] = asking("GET", "7", "last", "Connection", "close")
		}
		sent := make(chan error, 1)
		go func() { // ends when all is sent, or c closed
			_, err := io.WriteString(c, texts(list))
			if round == 1 && by.engine == EngineLoop { // net/http would treat it as a client that has left
				err = errors.Join(err, c.(*net.TCPConn).CloseWrite())
			}
			sent <- err
		}()
		r := bufio.NewReader(c)
		check(t, r, list)
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if round == 2 || round == 1 && by.engine == EngineLoop {
			checkEnd(t, r)
		}
	}
	if by.engine == EngineLoop {
		checkNothingWaits(t, s)
	}
}

// TestPipelineEnds: nothing after the last request of a connection is answered.
func TestPipelineEnds(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		s := listen(t, newFixture(t, jsonOrigin), by.config(Config{}))
		behind := asking("GET", "300", "behind").text
		old := func(key, id, more string) ask {
			return ask{"GET /depts/" + key + " HTTP/1.0\r\nX-Request-Id: " + id + "\r\n" + more + "\r\n", "GET", id, 200, key}
		}
		for name, list := range map[string][]ask{
			"a hit":               {asking("GET", "300", "one"), asking("GET", "300", "two", "Connection", "close")},
			"a miss":              {asking("GET", "300", "one"), asking("GET", "401", "two", "Connection", "close")},
			"a hit behind a miss": {asking("GET", "402", "one"), asking("GET", "300", "two", "Connection", "Close")},
			"a HEAD":              {asking("GET", "403", "one"), asking("HEAD", "404", "two", "connection", "close")},
			"HTTP/1.0":            {old("300", "one", "Connection: keep-alive\r\n"), old("405", "two", "connection: Keep-Alive\r\n"), old("406", "three", "")},
			"HTTP/1.0 with close": {asking("GET", "300", "one"), old("407", "two", "Connection: close\r\n")},
			"HTTP/1.1 behind 1.0": {old("408", "one", "Connection: keep-alive\r\n"), asking("GET", "300", "two"), asking("GET", "300", "three", "Connection", "close")},
		} {
			c := dial(t, s)
			defer c.Close()
			io.WriteString(c, texts(list)+behind)
			r := bufio.NewReader(c)
			check(t, r, list)
			if rest, _ := io.ReadAll(r); len(rest) > 0 { // net/http may reset what it leaves unread
				t.Fatalf("%s: %.100q after the last answer", name, rest)
			}
		}
	})
}

// TestResetWhileLoading: a client that disconnects leaves nothing behind, whatever it had
// requested and however much of it was complete.
func TestResetWhileLoading(t *testing.T) {
	eachLoop(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		open := make(chan struct{})
		defer close(open)
		f := newConfigured(t, gated(open), ServiceConfig{}, nil)
		s := listen(t, f, by.config(Config{ConnConfig: frontend.ConnConfig{RequestTimeout: time.Second}}))
		key := gatedFrom
		for _, test := range []struct {
			misses int
			reset  bool // else it closes, and might still read
		}{{1, true}, {50, true}, {50, false}, {130, true}} {
			var list []ask
			waiting := min(test.misses, 128)
			for range test.misses {
				key++
				list = append(list, asking("GET", fmt.Sprint(key), "x"))
			}
			for range 5 { // complete, and large
				key++
				list = append(list, ask{text: requestText("GET", fmt.Sprintf("/orders/EU/%d", key))})
			}
			complete := int64(5 * 70_000)
			if test.misses > 123 {
				complete = 0 // they were not reached
			}
			c := dial(t, s).(*net.TCPConn)
			io.WriteString(c, texts(list))
			testkit.Eventually(t, patience, func() error {
				if w, n := s.front.waiting.Load(), s.LargePending(); w != int64(waiting) || n < complete {
					return fmt.Errorf("%d requests wait, %d bytes are complete, want %d and %d", w, n, waiting, complete)
				}
				return nil
			})
			if test.reset {
				c.SetLinger(0)
			}
			c.Close()
			checkNothingWaits(t, s)
		}
		if answer := askOnce(t, s, "GET", "/orders/EU/1"); answer.StatusCode != http.StatusOK {
			t.Errorf("the next client gets %s", answer.Status)
		}
	})
}

// TestBatchKeysAreOwned: while a batch loads, its connection reads the next request into
// the memory that held the keys.
func TestBatchKeysAreOwned(t *testing.T) {
	eachLoop(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		open := make(chan struct{})
		f := newConfigured(t, func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
			if id == "1" {
				<-open
			}
			return jsonOrigin(ctx, r, id)
		}, ServiceConfig{}, nil)
		s := listen(t, f, by.config(Config{}))
		c := dial(t, s)
		defer c.Close()
		io.WriteString(c, requestText("GET", "/depts?key=1&key=2000"))
		testkit.Eventually(t, patience, func() error {
			if s.front.waiting.Load() == 0 {
				return errors.New("nothing waits")
			}
			return nil
		})
		io.WriteString(c, strings.Repeat(requestText("GET", "/xxxxx?xxxxx&xxx=3000"), 20))
		for range 10 {
			other := dial(t, s)
			defer other.Close()
			io.WriteString(other, strings.Repeat(requestText("GET", "/xxxxx?xxxxx&xxx=3000"), 20))
			if _, err := readAnswer(bufio.NewReader(other), "GET"); err != nil {
				t.Fatal(err)
			}
		}
		close(open)
		answer, err := readAnswer(bufio.NewReader(c), "GET")
		if err != nil {
			t.Fatal(err)
		}
		if text := body(t, answer); !strings.Contains(text, `{"id":1,`) || !strings.Contains(text, `{"id":2000,`) {
			t.Errorf("got %.100q", text)
		}
		key := cache.Key{ID: "2000"}
		if a, ok := f.cache.Peek(key, f.cache.Now()); !ok || a.Doc.Missing() {
			t.Errorf("the document that was loaded is not kept under its key")
		}
	})
}
