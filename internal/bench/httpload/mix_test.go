package httpload

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/internal/bench/clientload"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
)

// Each operation of a mix has its own method, path, header, body and right statuses; what it does
// not specify comes from the options.
//
// mutant: httpload-mix-has-one-status
func TestMixes(t *testing.T) {
	var mu sync.Mutex
	got := map[string]int64{} // guarded by mu
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		got[strings.Join([]string{r.Method, r.RequestURI, r.Header.Get("A"), r.Header.Get("B"), string(body)}, " ")]++
		mu.Unlock()
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	r, tally := run(t, Options{URL: server.URL + "/base?q", Fields: []string{"A: a"}, Mix: []mix.Operation{
		{Weight: 2}, {Weight: 1, Method: "POST", Path: "/orders?open=1", Header: []string{"B: b"}, Body: "x", Status: "404"}, {Weight: 1, Method: "HEAD", Path: "/b%20c"},
	}}, 400)
	if r.Completed != 400 {
		t.Errorf("%d completed: %s", r.Completed, r.ErrorSample)
	}
	posts := got["POST /orders?open=1 a b x"]
	if sum := got["GET /base?q a  "] + posts + got["HEAD /b%20c a  "]; sum != 400 || len(got) != 3 || tally.Statuses[404] != uint64(posts) {
		t.Errorf("%v, statuses %v", got, tally.Statuses)
	}
	if posts < 50 || posts > 150 {
		t.Errorf("%d of 400 requests are POSTs, want about 100", posts)
	}
}

func TestWrongMixes(t *testing.T) {
	for problem, o := range map[string]mix.Operation{
		`path "orders"`:            {Path: "orders"},
		`path "http://b.example/"`: {Path: "http://b.example/"},
		"path \"/a\\n\"":           {Path: "/a\n"},
		`method "GE T"`:            {Method: "GE T"},
		`header "x"`:               {Header: []string{"x"}},
		`status "1"`:               {Status: "1"},
	} {
		o.Weight = 1
		if _, err := New(Options{URL: "http://127.0.0.1:1/", Mix: []mix.Operation{o}}); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%+v: %v, want an error that contains %q", o, err, problem)
		}
	}
}

// Keys are inserted into the path, the query, the header and the body, and the length of the body
// is adjusted.
//
// mutant: httpload-length-without-key
func TestKeysInRequests(t *testing.T) {
	var mu sync.Mutex
	got := map[string]int{} // guarded by mu
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		got[strings.Join([]string{r.Method, r.RequestURI, r.Header.Get("A"), string(body)}, " ")]++
		mu.Unlock()
	}))
	defer server.Close()
	o := Options{
		URL: server.URL + "/depts/__key__?id=__key__", Method: "POST", Fields: []string{"A: x__key__y"}, Body: []byte(`{"id": "__key__", "of": "__key__"}`),
		Keys: clientload.Keys{Prefix: "k", Count: 12, Distribution: clientload.Sequential}, Connections: 3,
	}
	if r, _ := run(t, o, 120); r.Completed != 120 {
		t.Fatalf("%d completed: %s", r.Completed, r.ErrorSample)
	}
	for i := range 12 {
		k := fmt.Sprintf("k%d", i)
		if want := fmt.Sprintf(`POST /depts/%s?id=%s x%sy {"id": "%s", "of": "%s"}`, k, k, k, k, k); got[want] == 0 {
			t.Errorf("no %s in %v", want, got)
		}
	}
	if len(got) != 12 {
		t.Errorf("%v", got)
	}
	o.Keys.Prefix = "a b"
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), `keys that begin with "a b"`) {
		t.Errorf("%v", err)
	}
	o.Keys.Prefix, o.Keys.Count = "", 0
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "0 keys") {
		t.Errorf("%v", err)
	}
}
