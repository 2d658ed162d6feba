// Package admin is the listener of operators: is the process alive, does the
// promise hold, metrics, profiles, the effective configuration, and purge.
//
// Callers of this machine, over loopback or a unix socket, may do everything; it
// defends itself against what reaches it there all the same: web pages in a browser
// on the machine (DNS rebinding, cross-site requests). Others read /metrics, /live
// and /ready, and need a token or a certificate for everything else.
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

// ErrNotNow is what a [Purger] wraps in an error that passes.
var ErrNotNow = errors.New("not possible now")

// ErrUnknownResource is what a [Purger] returns for a name it does not serve.
var ErrUnknownResource = errors.New("unknown resource")

// Purger drops cached documents.
type Purger interface {
	// Purge drops the document with the key, whose segments are
	// percent-decoded, or every document of the resource if key is empty.
	// pending says why what was dropped may come back with another process, ""
	// if it cannot. An error that wraps neither ErrUnknownResource nor ErrNotNow
	// means that the key is wrong.
	Purge(ctx context.Context, resource string, key []string) (pending string, err error)
}

// Config is what a [Server] shows. Every field may be left out; its pages are
// then absent, except /ready, which is then always ready.
type Config struct {
	// Ready returns why the gateway should get no traffic, one sentence a
	// reason; nothing when every promise holds. Called from many goroutines.
	Ready func() []string
	// Metrics are shown on /metrics.
	Metrics prometheus.Gatherer
	// Effective returns the configuration as YAML, without secrets.
	Effective func() []byte
	// Purger serves POST /purge.
	Purger Purger
	// Reloader serves POST /reload, and GET, which only tells.
	Reloader Reloader
	// Figures returns what the dashboard at / shows. It is called once a second
	// while Serve runs, by one goroutine.
	Figures func() Figures
	// Version is that of the program, for the dashboard.
	Version string
	// Hosts are names that requests may use in their Host header besides IP
	// addresses and localhost.
	Hosts []string
	// Token reports whether a bearer token lets other machines do everything, and
	// the name of it, "" if it has none. Called from many goroutines. Nil: no token does.
	Token func(token string) (name string, ok bool)
	// Line is where the configuration says what the listener is, 0 if nowhere. Nil: nowhere.
	Line func() int
	// NoProfiles reports whether /debug/pprof/ is switched off. Nil: it is not.
	NoProfiles func() bool
	// Log receives errors of serving requests. If nil, nothing is logged.
	Log *slog.Logger
	// Audit receives purges, reloads, profiles and refused requests. If nil, there is no audit log.
	Audit func(audit.Event)
}

// Timeouts of the listener. A profile may run for maxProfile and must then
// still be written, the rest answers at once.
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

// Server answers the pages of operators. It is an http.Handler; Serve gives it
// a listener with time limits.
type Server struct {
	// Immutable after New.
	mux       *http.ServeMux
	open      *http.ServeMux // the pages that everybody may read
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
		refuse(w, http.StatusNotFound, "there is no such page; expected /live, /ready or /metrics: the other pages are at the address of admin")
	})
	s.base, s.stop = context.WithCancel(context.Background())
	s.http, s.metrics = s.server(s), s.server(http.HandlerFunc(s.serveMetrics))
	return s
}

// readings registers the pages that everybody may read.
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

// ServeMetrics answers /metrics, /live and /ready on the listeners until Shutdown, to everybody,
// and closes them. It returns nil after Shutdown.
func (s *Server) ServeMetrics(listeners ...net.Listener) error {
	return serveAll(s.metrics, listeners)
}

// serveAll returns when all listeners have ended, with what was wrong.
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
			_ = h.Close() // what was wrong is said already
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

// safe says in the head what browsers must not do, and refuses what comes from foreign web pages.
func (s *Server) safe(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "frame-ancestors 'none'") // pages with more to say replace it
	status, why := s.guard.check(r)
	if why != "" {
		refuse(w, status, why)
	}
	return why == ""
}
