package httpfront

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/trace"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// logBuffer collects the log.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// faulty is a sink of spans that panics at the request named bad.
type faulty struct{ recorder }

func (f *faulty) Request(s trace.Span) {
	if s.RequestID == "bad" {
		panic("a fault in a hook")
	}
	f.recorder.Request(s)
}

// TestPanicsOfHooks: a hook that panics fails the request for which it was called, and at
// most its connection, but not others and not the server.
func TestPanicsOfHooks(t *testing.T) { eachServer(t, testPanicsOfHooks) }

func testPanicsOfHooks(t *testing.T, by way) {
	testkit.NoLeaks(t)
	var log logBuffer
	f := newConfigured(t, jsonOrigin, ServiceConfig{Spans: &faulty{}, OpenAPI: func(func(int) bool) []byte { panic("a fault in another hook") }}, nil)
	s := listen(t, f, by.config(Config{ConnConfig: frontend.ConnConfig{Log: log.logger()}}))
	beside := dial(t, s)
	defer beside.Close()
	besideReader := bufio.NewReader(beside)
	good := func(i int) {
		t.Helper()
		a := asking("GET", fmt.Sprint(300+i%2), fmt.Sprint("good-", i))
		io.WriteString(beside, a.text)
		check(t, besideReader, []ask{a})
	}
	good(0)
	for i, test := range []struct {
		name, text string
		loop       string // the answer of the loop; "" if the connection ends
	}{
		{"a hit", requestText("GET", "/depts/300", "X-Request-Id", "bad"), ""},
		{"a hit in a pipeline", requestText("GET", "/depts/300", "X-Request-Id", "bad") + requestText("GET", "/depts/300"), ""},
		{"a miss", requestText("GET", "/depts/777", "X-Request-Id", "bad"), "500"},
		{"a refusal", requestText("GET", "/nobody", "X-Request-Id", "bad"), ""},
		{"the description", requestText("GET", "/openapi.json"), ""},
		{"behind a miss", requestText("GET", "/depts/778") + requestText("GET", "/openapi.json"), ""},
		{"handed over", requestText("POST", "/depts/300", "X-Request-Id", "bad"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := dial(t, s)
			defer c.Close()
			io.WriteString(c, test.text)
			r := bufio.NewReader(c)
			answer, err := readAnswer(r, "GET")
			if by.engine == EngineLoop && test.loop != "" {
				if err != nil || fmt.Sprint(answer.StatusCode) != test.loop {
					t.Errorf("got %v, %v, want status %s", answer, err, test.loop)
				}
				io.WriteString(c, requestText("GET", "/depts/300", "X-Request-Id", "next"))
				check(t, r, []ask{{"", "GET", "next", 200, "300"}})
			} else {
				// net/http has answered the first of a pipeline before it looks at the next.
				for err == nil && by.engine == EngineNetHTTP {
					answer, err = readAnswer(r, "GET")
				}
				if err == nil {
					t.Errorf("got %s, want the end of the connection", answer.Status)
				}
			}
			good(i + 1)
		})
	}
	if text := log.String(); by.engine == EngineLoop && (!strings.Contains(text, "a fault in a hook") || !strings.Contains(text, "a fault in another hook") || !strings.Contains(text, "stack")) {
		t.Errorf("the log does not report the panics: %s", text)
	}
	if by.engine == EngineLoop {
		checkNothingWaits(t, s)
	}
}
