package main

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

func TestBenchReplays(t *testing.T) {
	var mu sync.Mutex
	var got []string // guarded by mu
	url := server(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.RequestURI)
	})
	sent := func() []string {
		mu.Lock()
		defer mu.Unlock()
		all := got
		got = nil
		return all
	}
	list := blackbox.WriteFile(t, "paths.txt", "# two\n/a\nhttp://elsewhere.example/b\n")
	const at = `192.0.2.7 - - [22/Nov/2026:07:08:10 +0100] `
	log := blackbox.WriteFile(t, "access.log", at+`"GET /a HTTP/1.1" 200 1`+"\n"+at+`"GET /b HTTP/1.1" 200 1`+"\n"+at+`"POST /b HTTP/1.1" 200 1`+"\n")
	for _, test := range []struct {
		stdout string
		args   []string
		want   []string
	}{
		{"closed loop, ", []string{"--replay", list}, []string{"/a", "/b"}},
		{"closed loop, ", []string{"--replay", list, "-n", "3"}, []string{"/a", "/b", "/a"}},
		{"open loop, constant arrivals, ", []string{"--replay", list, "-q", "1000"}, []string{"/a", "/b"}},
		{"open loop, at the times of the file, ", []string{"--replay", log}, []string{"/a", "/b"}},
		{"open loop, at the times of the file, ", []string{"--replay", log, "--replay-speed", "10", "-n", "1"}, []string{"/a"}},
		{"replay   2 requests in access.log (access log); skipped: 1 other methods\n", []string{"--replay", log, "--replay-speed", "0"}, []string{"/a", "/b"}},
		{"open loop, constant arrivals, ", []string{"--replay", log, "-q", "1000"}, []string{"/a", "/b"}},
	} {
		expectBench(t, exitOK, test.stdout, "", slices.Concat([]string{"http", "-c", "1"}, test.args, []string{url})...)
		if all := sent(); !slices.Equal(all, test.want) {
			t.Errorf("%v: %q, want %q", test.args, all, test.want)
		}
	}
	wrong := blackbox.WriteFile(t, "wrong.txt", "/a\nb\n")
	for _, test := range []struct {
		stderr string
		args   []string
	}{
		{wrong + ":2:1: expected a path such as /depts/1", []string{"--replay", wrong}},
		{".none", []string{"--replay", wrong + ".none"}},
		{"--replay-speed needs --replay", []string{"--replay-speed", "2"}},
		{"is a list, which has no times", []string{"--replay", list, "--replay-speed", "2"}},
		{"expected 0.001 to 1e+06, or 0", []string{"--replay", log, "--replay-speed", "-1"}},
		{"none of the others can be", []string{"--replay", log, "--replay-speed", "2", "-q", "5"}},
		{"none of the others can be", []string{"--replay", log, "-m", "POST"}},
		{"none of the others can be", []string{"--replay", log, "--mix", list}},
		{"without a rate", []string{"--replay", log, "--arrivals", "poisson"}},
	} {
		expectBench(t, exitUsage, "", test.stderr, slices.Concat([]string{"http"}, test.args, []string{url})...)
	}
}
