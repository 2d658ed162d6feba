package httpget

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// net/http answers pipelined requests in order.
func TestPipelinesOfAnySize(t *testing.T) {
	for _, size := range []int{0, 1700, 9000, 100_000} {
		target := serve(t, func(w http.ResponseWriter, r *http.Request) {
			document(w, strings.TrimPrefix(r.URL.Path, "/depts/"), size)
		})
		if err := target.Learn(t.Context()); err != nil {
			t.Fatal(err)
		}
		const batches = 20
		r, err := load.Run(t.Context(), load.Config{Callers: 3, Duration: 20 * time.Second, Requests: 16 * batches, Batch: 16}, target)
		if err != nil {
			t.Fatal(err)
		}
		if r.Errors != 0 || r.Completed != 3*16*batches {
			t.Errorf("bodies of %d bytes: %d answers, %d errors: %s", size, r.Completed, r.Errors, r.ErrorSample)
		}
	}
}

// Answers in the wrong order, one too few and one too many are errors.
func TestPipelinesAreChecked(t *testing.T) {
	answer := func(key string) string {
		body := fmt.Sprintf(`{"deptno":%s}`, key)
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	for _, tc := range []struct {
		name    string
		answers func(keys []string) string
		problem string
	}{
		{"swapped", func(keys []string) string { return answer(keys[1]) + answer(keys[0]) }, "not that of the requested key"},
		{"too many", func(keys []string) string { return answer(keys[0]) + answer(keys[1]) + answer("1") }, "unexpected bytes"},
		{"too few", func(keys []string) string { return answer(keys[0]) }, "answer 2 of 2"},
		{"refused", func(keys []string) string {
			return answer(keys[0]) + "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
		}, "want 200"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			// Ends with the listener; the test need not wait for it.
			go answerPairs(listener, tc.answers)
			target := &Target{Address: listener.Addr().String(), Path: "/depts/", Member: `{"deptno":`, Keys: 1000, Seed: 7}
			r, err := load.Run(t.Context(), load.Config{Callers: 1, Duration: 5 * time.Second, Requests: 6, Batch: 2}, target)
			if err != nil {
				t.Fatal(err)
			}
			if r.Errors == 0 || !strings.Contains(r.ErrorSample, tc.problem) {
				t.Errorf("%d errors: %q, want one that contains %q", r.Errors, r.ErrorSample, tc.problem)
			}
		})
	}
}

func answerPairs(listener net.Listener, answers func([]string) string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		lines := bufio.NewReader(conn)
		var keys []string
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				break
			}
			if path, ok := strings.CutPrefix(line, "GET /depts/"); ok {
				keys = append(keys, strings.Fields(path)[0])
			}
			if line == "\r\n" && len(keys) == 2 {
				_, _ = conn.Write([]byte(answers(keys)))
				if keys = nil; !strings.Contains(answers([]string{"1", "2"}), `2}`) {
					break // the missing answer never arrives
				}
			}
		}
		conn.Close()
	}
}
