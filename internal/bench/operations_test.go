package bench

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipstream-go/slipstream/internal/bench/httpload"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
)

// The report of a mix has a row for each operation.
func TestMixesAreShownByOperation(t *testing.T) {
	var posts atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	target, err := httpload.New(httpload.Options{URL: server.URL, Mix: []mix.Operation{{Weight: 3, Path: "/a?secret=1"}, {Weight: 1, Method: "POST", Name: "order"}}})
	if err != nil {
		t.Fatal(err)
	}
	p := Plan{Callers: 2, Total: 80}
	r, err := p.Run(t.Context(), HTTP{target})
	if err != nil {
		t.Fatal(err)
	}
	if want := "GET /a and order, 3 to 1, at " + server.URL; r.Target != want {
		t.Errorf("%s, want %s", r.Target, want)
	}
	if o := r.Operations; len(o) != 2 || o[0].Completed != r.Completed || o[0].Service.Count() != int64(r.Completed) || o[1].Failed != r.Failed || int64(r.Failed) != posts.Load() || r.Completed+r.Failed != 80 {
		t.Errorf("%+v of %d completed and %d failed", o, r.Completed, r.Failed)
	}
	var text, object strings.Builder
	_ = r.WriteText(&text) // a Builder returns no errors
	for _, want := range []string{"\noperation    completed     failed        p50", "\nGET /a ", "\norder                0 "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if err := r.WriteJSON(&object); err != nil || !strings.Contains(object.String(), `"operations": [`) || strings.Contains(object.String(), "secret") {
		t.Errorf("%v: %s", err, object.String())
	}
}

// mutant: bench-stale-answers-are-right
// mutant: bench-duplicates-are-right
func TestRepliesOfClients(t *testing.T) {
	for want, r := range map[string]*Report{
		"replies  1 SET, 5 GET (3 hits, 1 of them wrong, 2 stale; 2 misses), 4 replies, 6 values of other programs, not checked\n": {Redis: &RedisReport{Sets: 1, Hits: 3, Misses: 2, Others: 4, Wrong: 1, Stale: 2, Foreign: 6}},
		"replies  5 select (3 hits, 1 of them wrong, stale ones not detected with so many keys; 2 misses)\n":                       {Tarantool: &TarantoolReport{Hits: 3, Misses: 2, Wrong: 1, Untracked: true}},
		"replies  7 without an exception, 2 wrong\n": {Thrift: &ThriftReport{Replies: 7, Wrong: 2}},
		"": {},
	} {
		var b strings.Builder
		r.writeReplies(&b)
		if b.String() != want {
			t.Errorf("%s, want %s", b.String(), want)
		}
	}
	for want, r := range map[uint64]*Report{
		3: {Redis: &RedisReport{Wrong: 1, Stale: 2}}, 5: {Tarantool: &TarantoolReport{Wrong: 1, Stale: 4}}, 2: {Thrift: &ThriftReport{Wrong: 2}}, 6: {HTTP: &HTTPReport{Duplicates: 6}}, 0: {},
	} {
		if got := r.Wrong(); got != want {
			t.Errorf("%d answers are wrong, want %d", got, want)
		}
	}
}
