package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Every subject serves the same bytes, or their costs could not be compared.
func TestSubjectsServeTheSameBytes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	module, err := proc.BenchModule(ctx)
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(module, t.TempDir(), options{}, io.Discard)
	for _, name := range []string{load.Ours, "net/http", "fasthttp", "article"} {
		t.Run(name, func(t *testing.T) {
			program, err := h.program(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			server, err := program.Start(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := server.Stop(); err != nil {
					t.Error(err)
				}
			}()
			for _, n := range []int64{1, 17, depts.Count} {
				d := depts.Make(n)
				want := d.AppendJSON(nil)
				url := fmt.Sprintf("http://%s/depts/%d", server.Address, n)
				got, etag := fetch(t, url, "", http.StatusOK)
				if !bytes.Equal(got, want) {
					t.Fatalf("%s\n%s, want\n%s", url, got, want)
				}
				if name == "article" {
					continue // it does not support validators
				}
				if len(etag) < 3 || etag[0] != '"' {
					t.Fatalf("ETag %q, want a strong one", etag)
				}
				fetch(t, url, etag, http.StatusNotModified)
				fetch(t, url, `"other"`, http.StatusOK)
			}
			fetch(t, fmt.Sprintf("http://%s/depts/%d", server.Address, depts.Count+1), "", http.StatusNotFound)
		})
	}
}

func fetch(t *testing.T, url, ifNoneMatch string, status int) (body []byte, etag string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "identity") // net/http would request gzip, and decode it
	if ifNoneMatch != "" {
		req.Header.Set("If-None-Match", ifNoneMatch)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != status {
		t.Fatalf("%s: %s, want %d", url, resp.Status, status)
	}
	body, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if status == http.StatusOK && resp.ContentLength != int64(len(body)) {
		t.Errorf("%s: Content-Length %d of %d bytes", url, resp.ContentLength, len(body))
	}
	return body, resp.Header.Get("ETag")
}

// Programs read the names of scenarios, which end with the number of callers. The subjects are
// ours, the control and the rivals.
func TestScenarioNames(t *testing.T) {
	h := newHarness("", "", options{}, io.Discard)
	seen := map[string]bool{}
	for _, sc := range h.Scenarios() {
		var callers int
		slash := strings.LastIndexByte(sc.Name, '/')
		if _, err := fmt.Sscanf(sc.Name[slash+1:], "%d", &callers); err != nil || callers < 1 {
			t.Errorf("scenario %q does not end in a number of callers", sc.Name)
		}
		if seen[sc.Name] {
			t.Errorf("two scenarios are named %q", sc.Name)
		}
		seen[sc.Name] = true
		if strings.HasPrefix(sc.Name, "memory-hit/") && len(sc.Subjects) != 2+len(rivals) {
			t.Errorf("%s has %d subjects", sc.Name, len(sc.Subjects))
		}
	}
	for _, name := range []string{"memory-hit/1", "memory-hit/64", "memory-hit/1024", "memory-hit/16384",
		"memory-hit-full/64", "memory-hit-full/1024", "batch-100/16", "batch-100-gzip/16"} {
		if !seen[name] {
			t.Errorf("no scenario %s", name)
		}
	}
}

func TestSubjectsRestrictScenarios(t *testing.T) {
	h := newHarness("", "", options{Flags: command.Flags{Subjects: "article,net/http"}}, io.Discard)
	all := h.options.Restrict(h.Scenarios())
	if len(all) != 6 {
		t.Errorf("%d scenarios have rivals, want 6", len(all))
	}
	for _, sc := range all {
		if len(sc.Subjects) != 2 {
			t.Errorf("%s has %d subjects, want 2", sc.Name, len(sc.Subjects))
		}
	}
	h.options.Subjects = "nobody"
	if len(h.options.Restrict(h.Scenarios())) != 0 {
		t.Error("scenarios without a subject")
	}
}

func TestCheck(t *testing.T) {
	value := func(v float64) *float64 { return &v }
	rows := []load.Row{
		{Scenario: "memory-hit/64", Subject: load.Ours, Allocs: value(19)},
		{Scenario: "memory-hit/64", Subject: "net/http", Allocs: value(18)},
		{Scenario: "memory-hit/1", Subject: load.Ours, Allocs: value(21)},
		{Scenario: "memory-hit/1", Subject: "net/http", Allocs: value(18)},
	}
	h := newHarness("", "", options{}, io.Discard)
	var out bytes.Buffer
	if err := h.Check(&out, rows); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "memory-hit/64: allocs <= those of net/http + 2: met") || !strings.Contains(out.String(), "memory-hit/1: allocs <= those of net/http + 2: missed") {
		t.Errorf("checks:\n%s", &out)
	}
	rows[1].Errors = 3
	if err := h.Check(io.Discard, rows); err == nil || !strings.Contains(err.Error(), "3 requests failed") {
		t.Errorf("error %v", err)
	}
}

// One complete round of a rival has three processes and all figures.
func TestHitHasAllFigures(t *testing.T) {
	module, err := proc.BenchModule(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	program, err := subject.BuildRival(t.Context(), module, t.TempDir(), suiteName, "nethttp")
	if err != nil {
		t.Fatal(err)
	}
	sample, err := subject.Hit{Callers: 8, Window: 200 * time.Millisecond}.Run(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	if sample.Errors != 0 {
		t.Errorf("%d errors: %s", sample.Errors, sample.ErrorSample)
	}
	for _, m := range []load.Metric{load.RPS, load.ClientUS, load.ServerUS, load.P50US, load.P99US, load.P999US, load.Allocs, load.BytesOp} {
		if !(sample.Values[m] > 0) {
			t.Errorf("%s is %v", m, sample.Values[m])
		}
	}
}

func TestRSSAnon(t *testing.T) {
	p, err := proc.Start(nil, "sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	watch := watchRSS(p.PID())
	time.Sleep(10 * time.Millisecond)
	rss, err := watch()
	if err != nil || rss <= 0 || rss > 64<<20 {
		t.Errorf("RssAnon %d, %v", rss, err)
	}
	if _, err := proc.RSSAnon(1 << 30); err == nil {
		t.Error("a process that does not exist has memory")
	}
}
