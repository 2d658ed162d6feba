//go:build linux

package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// pageScript fetches the given URLs from another origin and reports to its own server what a page
// can see of the responses.
const pageScript = `<!doctype html><meta charset="utf-8"><script>
(async () => {
  const wanted = %s;
  const got = await Promise.all(wanted.map(async ({ url, fields }) => {
    try {
      const answer = await fetch(url, { headers: fields, cache: "no-store" });
      const body = await answer.arrayBuffer();
      const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
      return { status: answer.status, length: body.byteLength, etag: answer.headers.get("etag"),
        hash: [...sum].map((b) => b.toString(16).padStart(2, "0")).join("") };
    } catch (error) {
      return { error: String(error) };
    }
  }));
  await fetch("/got", { method: "POST", body: JSON.stringify(got) });
})();
</script>`

// TestPlainPage: in Chromium, a page of another origin reads 50 documents without a key and with
// one, for which the browser sends preflight requests. All requests are served by the event loop.
func TestPlainPage(t *testing.T) {
	var script atomic.Value
	told := make(chan string, 1)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/got":
			var got json.RawMessage
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
				t.Error(err)
			}
			told <- string(got)
		case "/":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, script.Load())
		default:
			http.NotFound(w, r)
		}
	}))
	defer page.Close()
	g := startPlain(t, `cors: { origins: ["`+page.URL+`"] }`)

	var open, keyed []step
	for n := 1; n <= 50; n++ {
		s := step{method: "GET", path: fmt.Sprint("/orders/", []string{"emea", "apac"}[n%2], "/", n), status: 200}
		s.same, _ = g.reference(t, s.path)
		open = append(open, s)
		s = step{method: "GET", path: fmt.Sprint("/depts/", n), status: 200, fields: []string{"X-API-Key: " + g.keys["reference"]}}
		s.same, _ = g.reference(t, s.path)
		keyed = append(keyed, s)
	}
	read := func(t *testing.T, steps []step) {
		script.Store(g.pageOf(t, steps))
		browser := testkit.Start(t, testkit.Command{Path: chromiumPath(t), Args: chromiumArgs(t, page.URL+"/")})
		defer browser.Kill()
		select {
		case got := <-told:
			judgePage(t, steps, got)
		case <-time.After(2 * time.Minute):
			t.Fatalf("the page has reported nothing\n%s", browser.Log())
		}
	}
	t.Run("simple", func(t *testing.T) {
		g.onLoop(t, 0, func() int { read(t, open); return len(open) })
	})
	t.Run("preflight", func(t *testing.T) {
		before, answers := g.handedOver(t), g.answers(t)
		read(t, keyed)
		preflights, after := g.answers(t)-answers-len(keyed), g.handedOver(t)
		t.Logf("50 documents and %d preflights", preflights)
		if preflights < 1 {
			t.Error("the browser has sent no preflight request for the key")
		}
		for reason, n := range after {
			if n != before[reason] {
				t.Errorf("%d requests were passed to net/http because of %s", n-before[reason], reason)
			}
		}
	})
}

// handedOver returns how many requests were passed to net/http, by reason.
func (g *plainGateway) handedOver(t *testing.T) map[string]int {
	t.Helper()
	_, _, text, err := blackbox.Get(t.Context(), g.admin+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, m := range regexp.MustCompile(`slipstream_http_handed_over_total\{reason="([^"]+)"\} (\d+)`).FindAllStringSubmatch(text, -1) {
		all[m[1]] = number(t, m[2], `(\d+)`)
	}
	return all
}

// pageOf writes the page for the steps.
func (g *plainGateway) pageOf(t *testing.T, steps []step) string {
	t.Helper()
	type request struct {
		URL    string            `json:"url"`
		Fields map[string]string `json:"fields"`
	}
	var all []request
	for _, s := range steps {
		r := request{URL: g.url + s.path, Fields: map[string]string{}}
		for _, f := range s.fields {
			name, value, _ := strings.Cut(f, ": ")
			r.Fields[name] = value
		}
		all = append(all, r)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(pageScript, text)
}

func judgePage(t *testing.T, steps []step, got string) {
	t.Helper()
	var answers []struct {
		Status, Length    int
		ETag, Hash, Error string
	}
	if err := json.Unmarshal([]byte(got), &answers); err != nil || len(answers) != len(steps) {
		t.Fatalf("%v: %d answers to %d requests: %.500s", err, len(answers), len(steps), got)
	}
	for i, a := range answers {
		if a.Error != "" || a.ETag == "" {
			t.Errorf("%s: ETag %q, error %q", steps[i].path, a.ETag, a.Error)
		}
		steps[i].judge(t, answered{status: a.Status, length: a.Length, hash: a.Hash})
	}
}

func chromiumPath(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	at := slices.IndexFunc(names, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
	if at < 0 {
		t.Fatal("there is no chromium in PATH (run: make prepare)")
	}
	return names[at]
}

func chromiumArgs(t *testing.T, url string) []string {
	args := []string{"--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-extensions", "--no-proxy-server", "--user-data-dir=" + t.TempDir(), "--remote-debugging-port=0"}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox") // the sandbox does not work for root
	}
	return append(args, url)
}
