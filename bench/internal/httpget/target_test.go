package httpget

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/internal/wire/http1"
)

func TestHeadsThatAreNotWanted(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for in, problem := range map[string]string{
		ok + "Content-Length: 12\r\n\r\n":                        "",
		ok + "X: y\r\n\r\n":                                      "no field Content-Length",
		ok + "Transfer-Encoding: chunked\r\n\r\n":                "Transfer-Encoding",
		ok + "Content-Length: 1\r\nConnection: close\r\n\r\n":    "closes",
		ok + "Content-Length: 1\r\nContent-Encoding: br\r\n\r\n": "content coding",
		"HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\n":    "want 200",
		"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n":           "want 200",
	} {
		h, err := http1.ParseResponseHead([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		c := &Caller{target: &Target{}}
		if err := c.checkHead(&h); (problem == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: error %v, want one that contains %q", in, err, problem)
		}
	}
}

func serve(t *testing.T, handler http.HandlerFunc) *Target {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &Target{Address: server.Listener.Addr().String(), Path: "/depts/", Member: `{"deptno":`, Keys: 20, Seed: 5}
}

func document(w http.ResponseWriter, key string, size int) {
	body := fmt.Sprintf(`{"deptno":%s,"pad":"%s"}`, key, strings.Repeat("x", size))
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	_, _ = w.Write([]byte(body))
}

func TestAnswersOfAnySize(t *testing.T) {
	for _, size := range []int{0, 1700, 4000, 100_000} {
		target := serve(t, func(w http.ResponseWriter, r *http.Request) {
			document(w, strings.TrimPrefix(r.URL.Path, "/depts/"), size)
		})
		target.Sources = 3
		if err := target.Learn(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := load.Run(t.Context(), load.Config{Callers: 6, Duration: 10 * time.Second, Requests: 3 * sampled}, target)
		if err != nil {
			t.Fatal(err)
		}
		if r.Errors != 0 || r.Completed != 6*3*sampled {
			t.Errorf("size %d: completed %d, errors %d: %s", size, r.Completed, r.Errors, r.ErrorSample)
		}
	}
}

// Each of these is a wrong answer that a load generator must not count as one.
func TestWrongAnswersAreErrors(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"another key": func(w http.ResponseWriter, _ *http.Request) { document(w, "21", 10) },
		"key with a tail": func(w http.ResponseWriter, r *http.Request) {
			document(w, strings.TrimPrefix(r.URL.Path, "/depts/")+"0", 10)
		},
		"not found":        http.NotFound,
		"chunked":          func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"no document":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) },
		"closed too early": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		target := serve(t, handler)
		r, err := load.Run(t.Context(), load.Config{Callers: 1, Duration: 10 * time.Second, Requests: 3}, target)
		if err != nil {
			t.Fatal(err)
		}
		if r.Completed != 0 || r.Errors != 3 {
			t.Errorf("%s: completed %d, errors %d", name, r.Completed, r.Errors)
		}
	}
}

func TestChangedBodyIsNoticed(t *testing.T) {
	size := 100
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		document(w, strings.TrimPrefix(r.URL.Path, "/depts/"), size)
	})
	if err := target.Learn(t.Context()); err != nil {
		t.Fatal(err)
	}
	size = 101
	r, err := load.Run(t.Context(), load.Config{Callers: 1, Duration: 10 * time.Second, Requests: 10 * sampled}, target)
	if err != nil {
		t.Fatal(err)
	}
	if r.Errors != 10 {
		t.Errorf("%d errors, want one in each %d answers", r.Errors, sampled)
	}
}

// An unsolicited answer after the right one is a protocol error, not the answer to the next
// request.
func TestUnaskedBytesAreAnError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	// Ends when the listener is closed; the goroutines of connections end when their clients
	// disconnect.
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					body := `{"deptno":` + strings.TrimPrefix(req.URL.Path, "/depts/") + `}`
					answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
					if _, err := conn.Write([]byte(answer + answer)); err != nil {
						return
					}
				}
			}()
		}
	}()
	target := &Target{Address: listener.Addr().String(), Path: "/depts/", Member: `{"deptno":`, Keys: 20}
	caller, err := target.NewCaller(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	if err := caller.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := caller.Do(t.Context()); err == nil {
		t.Error("the second half of one answer was accepted as the next one")
	}
}

func TestDoDoesNotAllocate(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	body := `{"deptno":1}` + strings.Repeat(" ", 1700)
	answer := []byte(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	// Ends when its client disconnects.
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		buf := make([]byte, 1024)
		for {
			if _, err := conn.Read(buf); err != nil {
				return
			}
			if _, err := conn.Write(answer); err != nil {
				return
			}
		}
	}()
	target := &Target{Address: listener.Addr().String(), Path: "/depts/", Member: `{"deptno":`, Keys: 1}
	caller, err := target.NewCaller(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	ctx := context.Background()
	if n := testing.AllocsPerRun(500, func() { err = errors.Join(err, caller.Do(ctx)) }); n != 0 || err != nil {
		t.Errorf("%v allocations a request, %v", n, err)
	}
}

// A hit that comes from a tier other than the measured one is an error.
func TestCacheStatus(t *testing.T) {
	const want = "slipstream; hit; detail=x"
	var other atomic.Pointer[string] // the Cache-Status of keys above 15
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		key, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/depts/"))
		status := want
		if o := other.Load(); o != nil && key > 15 {
			status = *o
		}
		if status != "" {
			w.Header().Set("Cache-Status", status)
		}
		document(w, strconv.Itoa(key), 10)
	})
	target.CacheStatus, target.Learners = want, 3
	if err := target.Learn(t.Context()); err != nil {
		t.Fatal(err)
	}
	if mean := target.MeanBytes(); mean < 30 || mean > 40 {
		t.Errorf("bodies of %.1f bytes, want 34 or 35", mean)
	}
	for _, status := range []string{"", "slipstream; hit", want + "y", "slipstream; fwd=uri-miss"} {
		other.Store(&status)
		r, err := load.Run(t.Context(), load.Config{Callers: 1, Duration: 10 * time.Second, Requests: 200}, target)
		if err != nil {
			t.Fatal(err)
		}
		if r.Errors == 0 || r.Completed == 0 || !strings.Contains(r.ErrorSample, "Cache-Status") {
			t.Errorf("%q: completed %d, errors %d: %s", status, r.Completed, r.Errors, r.ErrorSample)
		}
		target.Strays = nil
		if err := target.Learn(t.Context()); err == nil || !strings.Contains(err.Error(), "first pass") {
			t.Errorf("%q: the first pass returned %v", status, err)
		}
		target.Strays = new(atomic.Int64)
		if err := target.Learn(t.Context()); err != nil || target.Strays.Load() != 5 {
			t.Errorf("%q: %d strays of 5, %v", status, target.Strays.Load(), err)
		}
	}
}
