package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pgdepts"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// The load process is another process of the test program.
func TestMain(m *testing.M) {
	loadproc.Child()
	m.Run()
}

// newTestHarness measures a few documents for a moment.
func newTestHarness(t *testing.T) *harness {
	t.Helper()
	module, err := proc.BenchModule(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(options{documents: 3000}, command.Place{Module: module, Scratch: t.TempDir()}, io.Discard)
	h.window, h.warmUp = 150*time.Millisecond, 50*time.Millisecond
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// Both subjects serve the same bytes, or their costs could not be compared; and
// ours serves them from disk.
func TestSubjectsServeTheSameBytes(t *testing.T) {
	h := newTestHarness(t)
	for name, status := range map[string]string{load.Ours: diskStatus, articleBBolt: ""} {
		t.Run(name, func(t *testing.T) {
			p, err := h.program(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			server, err := p.Start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := server.Stop(); err != nil {
					t.Error(err)
				}
			}()
			for _, n := range []int64{1, 17, h.options.documents} {
				for range 2 { // documents found on disk are not moved to memory
					rsp, body := get(t, fmt.Sprintf("http://%s/depts/%d", server.Address, n))
					if rsp.StatusCode != http.StatusOK || !bytes.Equal(body, document(n)) {
						t.Fatalf("document %d: %s %.200q, want %.200q", n, rsp.Status, body, document(n))
					}
					if rsp.ContentLength != int64(len(body)) || !strings.HasPrefix(rsp.Header.Get("Content-Type"), "application/json") {
						t.Errorf("document %d: length %d, type %q", n, rsp.ContentLength, rsp.Header.Get("Content-Type"))
					}
					if got := rsp.Header.Get("Cache-Status"); got != status {
						t.Errorf("document %d: Cache-Status %q, want %q", n, got, status)
					}
				}
			}
			if rsp, _ := get(t, fmt.Sprintf("http://%s/depts/%d", server.Address, h.options.documents+1)); rsp.StatusCode != http.StatusNotFound {
				t.Errorf("a document that does not exist: %s", rsp.Status)
			}
		})
	}
}

func get(t *testing.T, url string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "identity") // net/http would request gzip, and decode it
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	body, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return rsp, body
}

// One complete round of each kind of scenario, over a few connections.
func TestScenariosMeasure(t *testing.T) {
	h := newTestHarness(t)
	scenarios := []load.Scenario{h.diskHit(8), h.fillScenario()}
	for _, m := range modes {
		scenarios = append(scenarios, h.curve(m, 8))
	}
	for _, sc := range scenarios {
		for _, s := range sc.Subjects {
			if s.Name == load.Control {
				continue
			}
			t.Run(sc.Name+"/"+s.Name, func(t *testing.T) {
				sample, err := s.Run(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				if sample.Errors > 0 {
					t.Errorf("%d errors: %s", sample.Errors, sample.ErrorSample)
				}
				metrics := []load.Metric{load.RPS, load.ServerUS, load.MeanUS, load.P50US, load.P99US}
				if d, ok := sample.Details.(fillDetails); ok {
					metrics = []load.Metric{load.RPS, load.ServerUS}
					if d.Documents != h.options.documents || d.FileBytes < d.DocumentBytes || d.RSSAnon == 0 {
						t.Errorf("%+v", d)
					}
				}
				for _, m := range metrics {
					if !(sample.Values[m] > 0) {
						t.Errorf("%s is %v", m, sample.Values[m])
					}
				}
			})
		}
	}
}

// An answer that did not come from disk fails the round.
func TestAnotherTierFailsTheRound(t *testing.T) {
	h := newTestHarness(t)
	p, err := h.program(t.Context(), memoryOurs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.hit(2, 1, diskStatus).Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), "Cache-Status") {
		t.Errorf("error %v, want one about Cache-Status", err)
	}
}

// Programs read the names of scenarios, which end with the number of connections.
func TestScenarioNames(t *testing.T) {
	h := newHarness(options{documents: 1}, command.Place{}, io.Discard)
	seen := map[string]bool{}
	for _, sc := range h.Scenarios() {
		var connections int
		slash := strings.LastIndexByte(sc.Name, '/')
		if _, err := fmt.Sscanf(sc.Name[slash+1:], "%d", &connections); err != nil || connections < 1 {
			t.Errorf("scenario %q does not end in a number of connections", sc.Name)
		}
		if seen[sc.Name] {
			t.Errorf("two scenarios are named %q", sc.Name)
		}
		seen[sc.Name] = true
		for _, g := range sc.Goals {
			if !slices.ContainsFunc(sc.Subjects, func(s load.Subject) bool { return s.Name == g.Rival }) {
				t.Errorf("%s has a goal against %q, which is not a subject", sc.Name, g.Rival)
			}
		}
	}
	for _, name := range []string{"disk-hit/1", "disk-hit/64", "disk-hit/1024", "disk-hit/4096", "disk-hit/16384", "fill/32",
		"curve/direct/1", "curve/bbolt/256", "curve/memory/16384"} {
		if !seen[name] {
			t.Errorf("no scenario %s", name)
		}
	}
}

func TestCheck(t *testing.T) {
	value := func(v float64) *float64 { return &v }
	h := newHarness(options{documents: 1}, command.Place{}, io.Discard)
	h.fills[load.Ours] = []fillDetails{{Documents: 10, Seconds: 2, Amplification: 1.5, FileBytes: 3 << 20, DocumentBytes: 2 << 20, RSSAnon: 7 << 20}}
	rows := []load.Row{
		{Scenario: "disk-hit/1", Subject: load.Ours, ServerUS: value(20), RPS: value(5000)},
		{Scenario: "disk-hit/1", Subject: articleBBolt, ServerUS: value(30)},
		{Scenario: "disk-hit/4096", Subject: load.Ours, ServerUS: value(10), RPS: value(100_000)},
		{Scenario: "disk-hit/4096", Subject: articleBBolt, ServerUS: value(15)},
		{Scenario: "disk-hit/16384", Subject: load.Ours, RPS: value(60_000)},
	}
	var out strings.Builder
	if err := h.Check(&out, rows); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"disk-hit/1: requests per CPU second: 50000, article-bbolt 33333: 1.50x, goal >= 1.3x",
		"disk-hit/4096: requests per CPU second: 100000, article-bbolt 66667: 1.50x, goal >= 1.6x",
		"disk-hit/16384: requests per CPU second: not measured for both",
		"disk-hit/4096: requests a second >= 0.7x of disk-hit/4096, the best: met (1.00",
		"disk-hit/16384: requests a second >= 0.7x of disk-hit/4096, the best: missed (0.60",
		"fill: slipstream: 5 documents/s; 1.50 bytes written to the device for one of a document (file 3 MiB, documents 2 MiB); anonymous memory at the end 7 MiB",
		"nothing was written to a device",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	rows[4].Errors = 3
	if err := h.Check(io.Discard, rows); err == nil || !strings.Contains(err.Error(), "3 requests failed") {
		t.Errorf("error %v", err)
	}
}

func TestWriteCurves(t *testing.T) {
	dir := t.TempDir()
	raw := filepath.Join(dir, "disk.jsonl")
	if err := writeCurves(raw, dir, io.Discard); err == nil {
		t.Error("curves were drawn without results")
	}
	var lines strings.Builder
	for round, rate := range []float64{1000, 3000, 2000} {
		for subject, times := range map[string]float64{load.Ours: 2, article: 1} {
			fmt.Fprintf(&lines, `{"scenario":"curve/bbolt/64","subject":%q,"round":%d,"values":{"rps":%v,"mean_us":%v,"p99_us":5000,"p50_us":null},"errors":0}`+"\n",
				subject, round, rate*times, 250*times)
		}
	}
	lines.WriteString(`{"scenario":"curve/memory/1024","subject":"slipstream-1","values":{"rps":12345,"mean_us":150000,"p99_us":300000},"errors":2}` + "\n")
	lines.WriteString(`{"scenario":"disk-hit/64","subject":"slipstream","values":{"rps":1}}` + "\n" + `{"scenario":"curve/bbolt/64","verdict":"x"}` + "\n")
	if err := os.WriteFile(raw, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := writeCurves(raw, dir, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"![Requests a second](images/curve-rate.svg)", "**bbolt**", "| 64 | 4,000 | 0.5 | 5 | - | - | - | 2,000 | 0.25 | 5 |",
		"| 1,024 | - | - | - | 12,345 | 150 | 300 (2 failed) | - | - | - |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "direct") {
		t.Errorf("a mode that was not measured is in\n%s", &out)
	}
	for _, p := range pictures {
		svg, err := os.ReadFile(filepath.Join(dir, p.file))
		if err != nil || !bytes.Contains(svg, []byte(">bbolt, 2 processors<")) {
			t.Errorf("%s: %v", p.file, err)
		}
	}
}

// A server that sends documents other than those in the database is detected.
func TestDirectIsVerified(t *testing.T) {
	h := newTestHarness(t)
	if _, err := h.program(t.Context(), directArticle); err != nil {
		t.Fatal(err)
	}
	wrong := func(context.Context, int64) ([]byte, error) { return []byte(`{"deptno":1}`), nil }
	if err := pgdepts.Verify(t.Context(), h.cluster.URL(), h.options.documents, wrong, 1); err == nil {
		t.Error("a wrong document was accepted as right")
	}
}
