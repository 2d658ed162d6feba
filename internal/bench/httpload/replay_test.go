package httpload

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/internal/bench/replay"
	"github.com/slipstream-go/slipstream/internal/load"
)

// fileOf returns a file with requests.
func fileOf(t *testing.T, text string) *replay.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "requests")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := replay.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Requests of a file are sent in order, and after the last one again from the start. The window
// begins with the first.
//
// mutant: httpload-replay-goes-on-after-the-warm-up
func TestRequestsOfAFile(t *testing.T) {
	var mu sync.Mutex
	var got []string // guarded by mu
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		mu.Lock()
		got = append(got, strings.Join([]string{r.Method, r.RequestURI, r.Host, user, r.Header.Get("A")}, " "))
		mu.Unlock()
		time.Sleep(time.Millisecond)
	}))
	defer server.Close()
	file := fileOf(t, "/a?b\nhttp://c.example/d\n/e\n")
	warmUp := uint64(0)
	for warmUp%3 == 0 { // until the warm-up ends in the middle of the file
		target, err := New(Options{URL: server.URL + "/unused", User: "me:x", Fields: []string{"Host: a.example", "A: b"}, Replay: file})
		if err != nil {
			t.Fatal(err)
		}
		if name := target.Name(); name != "3 requests of requests at "+server.URL || target.Replayed().Len() != 3 {
			t.Errorf("%s", name)
		}
		r, err := load.Run(t.Context(), load.Config{Callers: 1, Duration: time.Minute, WarmUp: 10 * time.Millisecond, Total: 5, Counters: target.Counters()}, target)
		if err != nil || r.Completed != 5 {
			t.Fatalf("%v, %+v", err, r)
		}
		warmUp = r.WarmUp.Completed
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{"GET /a?b a.example me b", "GET /d a.example me b", "GET /e a.example me b", "GET /a?b a.example me b", "GET /d a.example me b"}
	if window := got[len(got)-5:]; !slices.Equal(window, want) {
		t.Errorf("%q, want %q", window, want)
	}
}

// A response with a 4xx status is also right if the log has the same status, unless --status is
// set.
//
// mutant: httpload-replay-repeats-faults
func TestStatusesOfALog(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/none" {
			w.WriteHeader(http.StatusNotFound)
		} else if r.URL.Path == "/broken" {
			w.WriteHeader(http.StatusInternalServerError)
		} else if r.Method == http.MethodHead {
			w.Header().Set("Content-Length", "1000")
		}
	}))
	defer server.Close()
	const at = `a [22/Nov/2026:07:08:10 +0100] `
	file := fileOf(t, at+`"GET /none HTTP/1.1" 404 1`+"\n"+at+`"HEAD /head HTTP/1.1" 200 1`+"\n"+at+`"GET /none HTTP/1.1" 200 1`+"\n"+at+`"GET /broken HTTP/1.1" 500 1`+"\n")
	for statuses, failed := range map[string]uint64{"": 20, "2xx": 30, "404": 20, "2xx,404": 10} {
		if r, _ := run(t, Options{URL: server.URL, Statuses: statuses, Replay: file}, 40); r.Errors != failed {
			t.Errorf("%q: %d failed %v, want %d", statuses, r.Errors, r.ErrorKinds, failed)
		}
	}
}

func TestWrongReplays(t *testing.T) {
	file := fileOf(t, "/a\n")
	for problem, o := range map[string]Options{
		"a method, a body or a mix": {Method: "POST"}, "both requests of a file": {Body: []byte("x")}, "expected only one of them": {Mix: []mix.Operation{{Weight: 1}}},
		"__key__ in a header": {Fields: []string{"A: __key__"}}, `header "x"`: {Fields: []string{"x"}},
	} {
		o.URL, o.Replay = "http://127.0.0.1:1/", file
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%+v: %v, want an error that contains %q", o, err, problem)
		}
	}
}
