package browser

import (
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// TestBenchReportInABrowser: the page of slipstream bench --html is readable at the widths of a
// phone and of a desktop, in light and dark mode, even with a hostile server. It runs no scripts
// and sends no requests. SLIPSTREAM_SCREENSHOTS is a directory for screenshots.
func TestBenchReportInABrowser(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	target := httptest.NewServer(mux)
	defer target.Close()
	dir := t.TempDir()
	var names []string
	for name, args := range map[string][]string{
		"run":        {"-z", "5s", "-q", "200", "-c", "4", "--profile", target.URL, "--profile-dir", filepath.Join(dir, "profiles")},
		"comparison": {"-n", "50", "-c", "2", "--rounds", "2", "--vs", target.URL + "/other"},
		"knee":       {"-z", "300ms", "--warm-up", "0", "-c", "4", "--find-knee", "-q", "400", "--p99", "1s"},
	} {
		// On a busy machine the generator may be the limit of any run; this also produces a report.
		r := blackbox.Run(t, append([]string{"bench", "http", "--html", filepath.Join(dir, name+".html"), target.URL + "/x"}, args...)...)
		if _, err := os.Stat(filepath.Join(dir, name+".html")); err != nil {
			t.Fatalf("%s: %v\n%s%s", name, err, r.Stdout, r.Stderr)
		}
		names = append(names, name)
	}
	pages := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer pages.Close()
	b := openBrowser(t, pages.URL)
	for _, name := range names {
		b.do(chromedp.Navigate(pages.URL + "/" + name + ".html"))
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{360, 768, 1440} {
				b.show(width, 900, scheme)
				if over := eval[[]int](b, `[document.documentElement.scrollWidth, document.documentElement.clientWidth]`); over[0] > over[1] {
					t.Errorf("%s, %s, %d pixels: the page is %d wide: %s", name, scheme, width, over[0], eval[[]string](b, `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth).map((e) => e.tagName + "." + e.className)`))
				}
				// Letters in drawings are at least 9 pixels high on the screen.
				if small := eval[int](b, `[...document.querySelectorAll("svg.plot text")].filter((e) => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a < 9).length`); small > 0 {
					t.Errorf("%s, %d pixels: %d texts are too small", name, width, small)
				}
				if shots := os.Getenv("SLIPSTREAM_SCREENSHOTS"); shots != "" {
					b.picture(filepath.Join(shots, strings.Join([]string{"bench", name, scheme, map[int64]string{360: "phone", 768: "tablet", 1440: "desk"}[width]}, "-")+".png"))
				}
			}
		}
		if n := eval[int](b, `document.querySelectorAll("svg").length`); n < 1 {
			t.Errorf("%s: no drawing", name)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.problems) > 0 || b.requests != len(names) {
		t.Errorf("%d requests for %d pages, problems: %q", b.requests, len(names), b.problems)
	}
}
