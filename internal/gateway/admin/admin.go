// Package admin is the listener for operators: liveness, readiness, metrics,
// profiles, the effective configuration, purge and reload.
//
// Callers of this machine, over loopback or a unix socket, may do everything; it
// defends itself against one threat there: web pages in a browser on the machine (DNS
// rebinding, cross-site requests). Others may read /metrics, /live and /ready, and
// need a token or a certificate for everything else.
//
// door.go says who may do what, guard.go keeps web pages out; pages.go, profile.go and reload.go
// are pages, the files of the dashboard the console.
package admin

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipstream-go/slipstream/internal/gateway/audit"
)

// ErrNotNow is wrapped by temporary errors of a [Purger].
var ErrNotNow = errors.New("not possible now")

// ErrUnknownResource is what a [Purger] returns for a name it does not serve.
var ErrUnknownResource = errors.New("unknown resource")

// Purger drops cached documents.
type Purger interface {
	// Purge drops the document with the key, whose segments are
	// percent-decoded, or every document of the resource if key is empty.
	// pending says why the dropped documents may come back in another process, or
	// is "" if they cannot. An error that wraps neither ErrUnknownResource nor
	// ErrNotNow means that the key is wrong.
	Purge(ctx context.Context, resource string, key []string) (pending string, err error)
}

// Config configures a [Server]. Every field is optional; without it its pages are
// absent, except /ready, which is then always ready.
type Config struct {
	// Ready returns why the gateway should get no traffic, one sentence per
	// reason, or none if every promise holds. It must be safe for concurrent use.
	Ready func() []string
	// Metrics are shown on /metrics.
	Metrics prometheus.Gatherer
	// Effective returns the configuration as YAML, without secrets.
	Effective func() []byte
	// Purger serves POST /purge.
	Purger Purger
	// Reloader serves POST /reload, and GET, which only reports.
	Reloader Reloader
	// Figures returns what the dashboard at / shows. It is called once a second
	// while Serve runs, by one goroutine.
	Figures func() Figures
	// Version is the version of the program, shown on the dashboard.
	Version string
	// Hosts are names that requests may use in their Host header besides IP
	// addresses and localhost.
	Hosts []string
	// Token reports whether a bearer token lets other machines do everything, and
	// its name, or "" if it has none. It must be safe for concurrent use. If nil, no token
	// is accepted.
	Token func(token string) (name string, ok bool)
	// Line returns the line of the configuration with the listener, or 0 if it has none. If
	// nil, it has none.
	Line func() int
	// NoProfiles reports whether /debug/pprof/ is switched off. If nil, it is not.
	NoProfiles func() bool
	// Log receives errors of serving requests. If nil, nothing is logged.
	Log *slog.Logger
	// Audit receives purges, reloads, profiles and refused requests. If nil, there is no audit log.
	Audit func(audit.Event)
}

// Timeouts of the listener. A profile may run for maxProfile and must then
// still be written; other pages answer immediately.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = maxProfile + 30*time.Second
	idleTimeout   = 60 * time.Second
	maxHeader     = 16 << 10
)

// maxRemote bounds the connections from other machines. Those of this machine are not counted,
// so that its operators are not locked out.
const maxRemote = 256

// Server answers the pages of operators. It is an http.Handler; Serve uses it with
// listeners and time limits.
type Server struct {
	// Immutable after New.
	mux       *http.ServeMux
	open      *http.ServeMux // the pages that anyone may read
	guard     guard
	door      *door
	audit     func(audit.Event) // never nil
	off       func() bool       // no profiles; never nil
	http      *http.Server
	metrics   *http.Server // of ServeMetrics
	dashboard *dashboard   // nil without Figures
	log       *slog.Logger
	base      context.Context
	stop      context.CancelFunc // ends base: running profiles, and the samples of the dashboard
}

// New makes a Server. It opens nothing.
func New(config Config) *Server {
	s := &Server{mux: http.NewServeMux(), open: http.NewServeMux(), guard: newGuard(config.Hosts), door: newDoor(config), audit: config.Audit, off: config.NoProfiles, log: config.Log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.audit == nil {
		s.audit = func(audit.Event) {}
	}
	if s.off == nil {
		s.off = func() bool { return false }
	}
	s.readings(config)
	if config.Effective != nil {
		s.mux.HandleFunc("/config", get(effective(config.Effective)))
	}
	if config.Purger != nil {
		s.mux.HandleFunc("/purge", s.purge(config.Purger))
	}
	if config.Reloader != nil {
		s.mux.HandleFunc("/reload", s.reload(config.Reloader))
	}
	s.profiles()
	if config.Figures != nil {
		s.dashboard = newDashboard(config, time.Now)
		s.dashboard.register(s.mux)
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "there is no such page; expected / (the dashboard), /live, /ready, /metrics, /config, /purge, /reload or /debug/pprof/")
	})
	s.open.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "there is no such page; expected /live, /ready or /metrics: the other pages are at the address of the admin listener")
	})
	s.base, s.stop = context.WithCancel(context.Background())
	s.http, s.metrics = s.server(s), s.server(http.HandlerFunc(s.serveMetrics))
	return s
}

// readings registers the pages that anyone may read.
func (s *Server) readings(config Config) {
	pages := map[string]http.HandlerFunc{"/live": live, "/ready": ready(config.Ready)}
	if config.Metrics != nil {
		pages["/metrics"] = metricsPage(config.Metrics)
	}
	for path, page := range pages {
		s.mux.HandleFunc(path, get(page))
		s.open.HandleFunc(path, get(page))
	}
}

func (s *Server) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return s.base },
		ConnState:         new(crowd).changed,
		ErrorLog:          log.New(complaints{s}, "", 0),
	}
}

// Serve answers on the listeners until Shutdown, and closes them. It returns nil
// after Shutdown.
func (s *Server) Serve(listeners ...net.Listener) error {
	if s.dashboard != nil {
		sampled := make(chan struct{})
		// Ends with Shutdown, or below if a listener fails; waited for here.
		go func() {
			defer close(sampled)
			s.dashboard.history.run(s.base)
		}()
		defer func() { s.stop(); <-sampled }()
	}
	return serveAll(s.http, listeners)
}

// ServeMetrics answers /metrics, /live and /ready on the listeners until Shutdown, for anyone, and
// closes them. It returns nil after Shutdown.
func (s *Server) ServeMetrics(listeners ...net.Listener) error {
	return serveAll(s.metrics, listeners)
}

// serveAll returns when all listeners have ended, with their errors.
func serveAll(h *http.Server, listeners []net.Listener) error {
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		// Ends with Shutdown of the server, or when the listener fails; waited for below.
		go func() {
			err := h.Serve(l)
			if errors.Is(err, http.ErrServerClosed) {
				err = nil
			}
			ended <- err
		}()
	}
	var errs []error
	for range listeners {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// Shutdown ends running profiles, waits for the other requests until ctx ends,
// and then closes what is left. It may be called more than once.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	var errs []error
	for _, h := range []*http.Server{s.http, s.metrics} {
		err := h.Shutdown(ctx)
		if err != nil {
			_ = h.Close() // the error is already in the result
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.safe(w, r) {
		return
	}
	rule, refusal := s.door.enter(r)
	if refusal != nil {
		s.turnAway(w, r, refusal)
		return
	}
	s.mux.ServeHTTP(w, withRule(r, rule))
}

// serveMetrics answers one request at the listener of metrics.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if s.safe(w, r) {
		s.open.ServeHTTP(w, r)
	}
}

// safe sets the headers that restrict browsers, and refuses requests from foreign web pages.
func (s *Server) safe(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "frame-ancestors 'none'") // pages with a longer policy replace it
	status, why := s.guard.check(r)
	if why != "" {
		refuse(w, status, why)
	}
	return why == ""
}
