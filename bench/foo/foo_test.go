package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/examples/foo/ladder"
	"github.com/slipstream-go/slipstream/internal/load"
)

// The load process is another process of the test program.
func TestMain(m *testing.M) {
	loadproc.Child(targets())
	m.Run()
}

// newTestHarness measures for a moment.
func newTestHarness(t *testing.T) *harness {
	t.Helper()
	module, err := proc.BenchModule(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(&command.Flags{}, command.Place{Module: module, Scratch: t.TempDir()}, io.Discard)
	h.window, h.warmUp = 100*time.Millisecond, 20*time.Millisecond
	return h
}

// One round of every subject of every scenario: all answers are correct, and no figure is missing.
func TestScenariosMeasure(t *testing.T) {
	h := newTestHarness(t)
	for _, sc := range h.Scenarios() {
		for _, g := range sc.Goals {
			if !slices.ContainsFunc(sc.Subjects, func(s load.Subject) bool { return s.Name == g.Rival }) {
				t.Errorf("%s has a goal against %q, which is not a subject", sc.Name, g.Rival)
			}
		}
		for _, s := range sc.Subjects {
			t.Run(sc.Name+"/"+s.Name, func(t *testing.T) {
				sample, err := s.Run(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				if sample.Errors > 0 {
					t.Errorf("%d errors: %s", sample.Errors, sample.ErrorSample)
				}
				for _, m := range []load.Metric{load.RPS, load.ServerUS} {
					if !(sample.Values[m] > 0) {
						t.Errorf("%s is %v", m, sample.Values[m])
					}
				}
				if bytesOp, ok := sample.Values[load.BytesOp]; !ok || strings.HasPrefix(s.Name, "foo-") && bytesOp < 20_000 {
					t.Errorf("%s is %v, but an answer has 23,000 bytes", load.BytesOp, sample.Values[load.BytesOp])
				}
			})
		}
	}
}

func TestWrongAnswersAreErrors(t *testing.T) {
	for _, version := range []string{"1.0", floorName} {
		for _, wrong := range []bool{false, true} {
			all := exchanges(1, asTagged)
			if wrong {
				all[0].answer[len(`{"hashes":["`)] ^= 1 // another letter of a hash
			}
			target, err := newHandlerTarget(version, all)
			if err != nil {
				t.Fatal(err)
			}
			caller, err := target.NewCaller(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := caller.Do(t.Context()); (err != nil) != wrong {
				t.Errorf("%s: error %v, want one: %v", version, err, wrong)
			}
		}
	}
	if _, err := newHandlerTarget("2", nil); err == nil {
		t.Error("a handler that does not exist")
	}
}

// Both engines give the same answers, including to requests that the loop passes to net/http.
func TestEnginesAnswerAlike(t *testing.T) {
	h := newTestHarness(t)
	program, err := h.catalog.Program(t.Context(), "ladder")
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string]string{}
	for _, engine := range []string{"loop", "net/http"} {
		server, err := program.(*subject.Rival).With("-engine", engine).Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Stop(); err != nil {
				t.Error(err)
			}
		})
		addresses[engine] = server.Address
	}
	body, _ := ladder.Example(1, ladder.ExampleItems, asTagged)
	const small = `[{"srt_a":"foo","str_b":"bar"}]`
	request := func(line, fields, body string) string {
		return fmt.Sprintf("%s\r\nHost: a.example\r\nContent-Length: %d\r\n%s\r\n%s", line, len(body), fields, body)
	}
	const get, end = "GET /foo HTTP/1.1", "GET /end HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	for name, text := range map[string]string{
		"plain":         request(get, "", small) + end,
		"POST":          request("POST /foo HTTP/1.1", "", small) + end,
		"whole":         request(get, "", string(body)) + end,
		"two at once":   request(get, "", small) + request(get, "", string(body)) + request(get, "", small) + end,
		"wrong":         request(get, "", "[1]") + request(get, "", small) + end,
		"empty":         request(get, "", "") + end,
		"close":         request(get, "Connection: close\r\n", small),
		"HTTP/1.0":      request("GET /foo HTTP/1.0", "", small),
		"chunked":       "POST /foo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1f\r\n" + small + "\r\n0\r\n\r\n" + end,
		"another path":  request("GET /bar HTTP/1.1", "", small) + end,
		"much too much": "POST /foo HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\nConnection: close\r\n\r\n",
		"many items":    request(get, "", "["+strings.Repeat("{},", 5000)+"{}]") + end,
	} {
		for _, pieces := range []int{1 << 20, 1000} {
			want := converse(t, addresses["net/http"], text, pieces)
			if got := converse(t, addresses["loop"], text, pieces); got != want {
				t.Errorf("%s, in pieces of %d: the loop answers\n%.500s\nwant\n%.500s", name, pieces, got, want)
			}
		}
	}
}

// converse sends text and returns statuses and bodies that come back, until the server ends the connection.
func converse(t *testing.T, address, text string, piece int) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for part := range slices.Chunk([]byte(text), piece) {
			if _, err := conn.Write(part); err != nil {
				return // the server may have ended the connection
			}
		}
	}()
	got, err := answers(conn)
	if err != nil {
		t.Errorf("%.60q: %v after %.300q", text, err, got)
	}
	<-sent
	return got
}

// answers reads statuses and bodies until the end of the connection.
func answers(conn net.Conn) (string, error) {
	var all strings.Builder
	reader := bufio.NewReader(conn)
	for {
		rsp, err := http.ReadResponse(reader, nil)
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return all.String(), nil
		}
		if err != nil {
			return all.String(), err
		}
		body, err := io.ReadAll(rsp.Body)
		if err != nil {
			return all.String(), err
		}
		fmt.Fprintf(&all, "%d %s\n", rsp.StatusCode, body)
	}
}
