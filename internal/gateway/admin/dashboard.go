package admin

import (
	"embed"
	"net/http"
	"path"
	"strconv"
	"time"
)

// pageFiles are the files of the dashboard. They need nothing from other servers:
// an operator who is woken at night may have no internet access from there.
//
//go:embed page
var pageFiles embed.FS

// pageTypes are the files that are served, and their types.
var pageTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// pagePolicy lets the page load its own files and query its own server, and nothing
// else: even if a key or a name were ever treated as HTML, it could not run
// (Content Security Policy Level 3).
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// dashboard serves the page with the figures.
type dashboard struct {
	// Immutable after newDashboard.
	history  *history
	version  string
	begun    time.Time
	instance string // distinguishes this process from an earlier one
}

func newDashboard(config Config, now func() time.Time) *dashboard {
	begun := now()
	return &dashboard{
		history:  newHistory(config.Figures, config.Ready, now),
		version:  config.Version,
		begun:    begun,
		instance: strconv.FormatInt(begun.UnixNano(), 36),
	}
}

// register adds the paths of the dashboard.
func (d *dashboard) register(mux *http.ServeMux) {
	// Reading fails only for a file that was not embedded.
	files, _ := pageFiles.ReadDir("page")
	for _, f := range files {
		body, _ := pageFiles.ReadFile("page/" + f.Name())
		pattern := "/dashboard/" + f.Name()
		if f.Name() == "index.html" {
			pattern = "/{$}"
		}
		mux.HandleFunc(pattern, get(file(pageTypes[path.Ext(f.Name())], body)))
	}
	mux.HandleFunc("/dashboard.json", get(d.figures))
}

// file answers with a file of the page.
func file(contentType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		head := w.Header()
		head.Set("Content-Type", contentType)
		head.Set("Content-Length", strconv.Itoa(len(body)))
		head.Set("Content-Security-Policy", pagePolicy)
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		w.Write(body)
	}
}

// figures answers GET /dashboard.json?instance=k3x9&since=600: the samples after
// the one that the page has, or all if it has those of another process.
func (d *dashboard) figures(w http.ResponseWriter, r *http.Request) {
	query, number := r.URL.Query(), int64(0)
	if since := query.Get("since"); since != "" && query.Get("instance") == d.instance {
		n, err := strconv.ParseInt(since, 10, 64)
		if err != nil {
			refuse(w, http.StatusBadRequest, "parameter since; expected the number of a sample")
			return
		}
		number = n
	}
	v, ok := d.history.since(number)
	if !ok {
		// Serve collects the first figures when it starts.
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "no figures have been collected yet")
		return
	}
	answer(w, http.StatusOK, d.page(&v))
}
