package admin

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/audit"
)

// maxProfile is the maximum duration of a profile: one that was started and
// forgotten must not use CPU for hours.
const maxProfile = 60 * time.Second

// profiles serves /debug/pprof/. Profiles that take time run one at a time: two
// concurrent traces would distort each other, and the runtime refuses two CPU
// profiles anyway.
func (s *Server) profiles() {
	running := make(chan struct{}, 1)
	timed := func(h http.HandlerFunc, always bool) http.HandlerFunc {
		return get(func(w http.ResponseWriter, r *http.Request) {
			seconds := r.FormValue("seconds")
			if seconds == "" && !always {
				s.profile(h)(w, r)
				return
			}
			if n, err := strconv.ParseFloat(seconds, 64); seconds != "" && (err != nil || !(n > 0) || n > maxProfile.Seconds()) {
				refuse(w, http.StatusBadRequest, fmt.Sprintf("parameter seconds; expected a number up to %.0f", maxProfile.Seconds()))
				return
			}
			select {
			case running <- struct{}{}:
				defer func() { <-running }()
				s.profile(h)(w, r)
			default:
				w.Header().Set("Retry-After", "10")
				refuse(w, http.StatusTooManyRequests, "another profile is running; only one may run at a time")
			}
		})
	}
	s.mux.HandleFunc("/debug/pprof/profile", s.ifOn(timed(pprof.Profile, true)))
	s.mux.HandleFunc("/debug/pprof/trace", s.ifOn(timed(pprof.Trace, true)))
	s.mux.HandleFunc("/debug/pprof/symbol", s.ifOn(pprof.Symbol)) // pprof posts addresses
	s.mux.HandleFunc("/debug/pprof/cmdline", s.ifOn(get(s.profile(pprof.Cmdline))))
	// The index also serves heap, goroutine, allocs, block, mutex and the rest.
	named := timed(pprof.Index, false)
	s.mux.HandleFunc("/debug/pprof/", s.ifOn(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(strings.TrimPrefix(r.URL.Path, "/debug/pprof/"), "/") {
			refuse(w, http.StatusNotFound, "there is no such profile")
			return
		}
		named(w, r)
	}))
}

// profile records the start of a profile in the audit log. Requests for the list of profiles
// are not recorded.
func (s *Server) profile(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/debug/pprof/" {
			detail := short(r.URL.Path)
			if seconds := r.FormValue("seconds"); seconds != "" {
				detail += "?seconds=" + short(seconds)
			}
			s.record(r, audit.Event{Event: audit.Profile, Outcome: audit.Done, Detail: detail})
		}
		h(w, r)
	}
}

// ifOn refuses requests while profiles are switched off.
func (s *Server) ifOn(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.off() {
			refuse(w, http.StatusNotFound, "profiles are switched off; expected admin: { profiles: true } in the configuration")
			return
		}
		h(w, r)
	}
}
