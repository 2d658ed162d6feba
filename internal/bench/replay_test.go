package bench

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/httpload"
	"github.com/slipstream-go/slipstream/internal/bench/replay"
)

// traced holds the times of the requests of a test.
type traced []time.Duration

func (t traced) Len() int               { return len(t) }
func (t traced) At(i int) time.Duration { return t[i] }

// The requests of a log are sent once each at their logged times, from which latency is measured.
func TestALogIsReplayed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	var log strings.Builder
	for range 20 {
		log.WriteString(`a [22/Nov/2026:07:08:10 +0100] "GET /a?secret=1 HTTP/1.1" 200 1` + "\n")
	}
	log.WriteString(`a [22/Nov/2026:07:08:10 +0100] "POST /b HTTP/1.1" 200 1` + "\n" + `a [22/Nov/2026:07:08:11 +0100] "GET /c HTTP/1.1" 200 1` + "\n")
	if err := os.WriteFile(path, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := replay.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(hello))
	defer server.Close()
	target, err := httpload.New(httpload.Options{URL: server.URL, Replay: file, Connections: 4})
	if err != nil {
		t.Fatal(err)
	}
	p := Plan{Callers: 4, Duration: time.Hour, Trace: file.Trace(2)}
	began := time.Now()
	r, err := p.Run(t.Context(), HTTP{target})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); r.Completed != 21 || r.Loop != "replay" || r.Seconds < 0.5 || took > time.Minute || r.Pacing == nil || r.Latency.Count() != 21 {
		t.Errorf("%+v after %v", r, took)
	}
	var text, object, html strings.Builder
	_ = r.WriteText(&text) // a Builder returns no errors
	for _, want := range []string{"21 requests of access.log at http://127.0.0.1:", "open loop, at the times of the file, 4 callers, ", "from the intended time\nservice ", "\nreplay   21 requests in access.log (access log); skipped: 1 other methods\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if err := r.WriteJSON(&object); err != nil || strings.Contains(object.String(), "secret") {
		t.Fatalf("%v: %s", err, object.String())
	}
	var got struct {
		Replay struct {
			File, Format string
			Requests     int
			Skipped      map[string]int
		}
	}
	if err := json.Unmarshal([]byte(object.String()), &got); err != nil || got.Replay.File != "access.log" || got.Replay.Format != "access log" || got.Replay.Requests != 21 || got.Replay.Skipped["other methods"] != 1 {
		t.Errorf("%v: %+v", err, got)
	}
	if err := r.WriteHTML(&html); err != nil || !strings.Contains(html.String(), `<th scope="row">in the file</th><td>21</td>`) || !strings.Contains(html.String(), `<th scope="row">skipped, other methods</th><td>1</td>`) {
		t.Errorf("%v: %s", err, html.String())
	}
}

// The window ends with the trace or with the configured duration.
//
// mutant: bench-replay-ignores-the-duration
func TestPlansOfTraces(t *testing.T) {
	for problem, p := range map[string]Plan{
		"both a rate and the times": {Callers: 1, Rate: 1, Duration: time.Second, Trace: traced{0}},
		"a trace of 200h0m0s":       {Callers: 1, Trace: traced{0, 200 * time.Hour}},
	} {
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%+v: %v, want an error that contains %q", p, err, problem)
		}
	}
	p := Plan{Callers: 1, Trace: traced{0, time.Second}}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	if d := p.config().Duration; d <= time.Second || d > 2*time.Second {
		t.Errorf("a window of %v", d)
	}
	if p.Duration = 100 * time.Millisecond; p.config().Duration != p.Duration {
		t.Errorf("a window of %v", p.config().Duration)
	}
}
