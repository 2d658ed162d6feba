package admin

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"time"
)

// maxProfile is the longest profile: one that was started and forgotten must
// not cost CPU for hours.
const maxProfile = 60 * time.Second

// profiles serves /debug/pprof/. Those that run for a time run one at a time:
// two traces at once would make each other wrong, and the runtime refuses two
// CPU profiles anyway.
func (s *Server) profiles() {
	running := make(chan struct{}, 1)
	timed := func(h http.HandlerFunc, always bool) http.HandlerFunc {
		return get(func(w http.ResponseWriter, r *http.Request) {
			seconds := r.FormValue("seconds")
			if seconds == "" && !always {
				h(w, r)
				return
			}
			if n, err := strconv.ParseFloat(seconds, 64); seconds != "" && (err != nil || !(n > 0) || n > maxProfile.Seconds()) {
				refuse(w, http.StatusBadRequest, fmt.Sprintf("parameter seconds; expected a number up to %.0f", maxProfile.Seconds()))
				return
			}
			select {
			case running <- struct{}{}:
				defer func() { <-running }()
				h(w, r)
			default:
				w.Header().Set("Retry-After", "10")
				refuse(w, http.StatusTooManyRequests, "another profile is running; one at a time")
			}
		})
	}
	s.mux.HandleFunc("/debug/pprof/profile", timed(pprof.Profile, true))
	s.mux.HandleFunc("/debug/pprof/trace", timed(pprof.Trace, true))
	s.mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol) // pprof posts addresses
	s.mux.HandleFunc("/debug/pprof/cmdline", get(pprof.Cmdline))
	// The index also serves heap, goroutine, allocs, block, mutex and the rest.
	named := timed(pprof.Index, false)
	s.mux.HandleFunc("/debug/pprof/", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(strings.TrimPrefix(r.URL.Path, "/debug/pprof/"), "/") {
			refuse(w, http.StatusNotFound, "there is no such profile")
			return
		}
		named(w, r)
	})
}
