package httpfront

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/requestlog"
)

// TestRequestLog: each request has its line, refusals too, and the line has the
// caller and the target.
func TestRequestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	log, err := requestlog.Open(requestlog.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	f := newConfigured(t, echo, ServiceConfig{RequestConfig: frontend.RequestConfig{Requests: log}}, nil)
	h := f.handler().(*handler)
	h.trusted = networks("192.0.2.0/24")
	const id = "0af7651916cd43dd8448eb211c80319c"
	f.serve(h, "GET", "/depts/10", "X-Request-Id", "one", "User-Agent", "t\"1", "Referer", "https://a/", "Traceparent", "00-"+id+"-b7ad6b7169203331-01")
	f.serve(h, "HEAD", "/depts/10", "X-Request-Id", "two", "X-Forwarded-For", "198.51.100.7")
	f.serve(h, "POST", "/\x1b", "X-Request-Id", "three", "Authorization", "Bearer secret")
	if err := log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got := make(map[any]map[string]any)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var one map[string]any
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		for _, name := range []string{"time", "took_us"} {
			if one[name] == nil {
				t.Errorf("%s: no %s", lines.Text(), name)
			}
			delete(one, name)
		}
		got[one["request_id"]] = one
	}
	if n := got["three"]["bytes"]; n == 0.0 {
		t.Error("the problem's bytes are missing")
	}
	delete(got["three"], "bytes")
	want := map[any]map[string]any{
		"one": {"protocol": "http", "client": "192.0.2.1", "method": "GET", "target": "/depts/10", "status": 200.0, "bytes": 11.0, "source": "load",
			"resource": "depts", "request_id": "one", "trace_id": id, "referer": "https://a/", "user_agent": "t\"1"},
		"two": {"protocol": "http", "client": "198.51.100.7", "method": "HEAD", "target": "/depts/10", "status": 200.0, "bytes": 0.0, "source": "hit",
			"resource": "depts", "request_id": "two"},
		"three": {"protocol": "http", "client": "192.0.2.1", "method": "POST", "target": "/\x1b", "status": 405.0, "source": "other", "request_id": "three"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestRequestLogAllocations: a line makes no garbage.
func TestRequestLogAllocations(t *testing.T) {
	log, err := requestlog.Open(requestlog.Config{Path: os.DevNull})
	if err != nil {
		t.Fatal(err)
	}
	f := newConfigured(t, echo, ServiceConfig{RequestConfig: frontend.RequestConfig{Requests: log}}, nil)
	defer log.Close(t.Context())
	var req Request
	var rsp Response
	req.Method, req.Target, req.UserAgent, req.ID = "GET", "/depts/10", "curl/8.5.0", "one"
	if n := testing.AllocsPerRun(1000, func() { f.service.Note(&req, &rsp) }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}
