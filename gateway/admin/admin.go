// Package admin is the listener of operators: is the process alive, does the
// promise hold, metrics, profiles, the effective configuration, and purge.
//
// It has no authentication, so it belongs on a loopback address, and it defends
// that address against what can reach it all the same: web pages in a browser
// on the machine (DNS rebinding, cross-site requests).
package admin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
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

// Server answers the pages of operators. It is an http.Handler; Serve gives it
// a listener with time limits.
type Server struct {
	// Immutable after New.
	mux       *http.ServeMux
	guard     guard
	http      *http.Server
	dashboard *dashboard // nil without Figures
	base      context.Context
	stop      context.CancelFunc // ends base: running profiles, and the samples of the dashboard
}

// New makes a Server. It opens nothing.
func New(config Config) *Server {
	s := &Server{mux: http.NewServeMux(), guard: newGuard(config.Hosts)}
	s.mux.HandleFunc("/live", get(live))
	s.mux.HandleFunc("/ready", get(ready(config.Ready)))
	if config.Metrics != nil {
		s.mux.HandleFunc("/metrics", get(promhttp.HandlerFor(config.Metrics, promhttp.HandlerOpts{
			MaxRequestsInFlight: 4,
			Timeout:             10 * time.Second,
		}).ServeHTTP))
	}
	if config.Effective != nil {
		s.mux.HandleFunc("/config", get(effective(config.Effective)))
	}
	if config.Purger != nil {
		s.mux.HandleFunc("/purge", purge(config.Purger))
	}
	if config.Reloader != nil {
		s.mux.HandleFunc("/reload", reload(config.Reloader))
	}
	s.profiles()
	if config.Figures != nil {
		s.dashboard = newDashboard(config, time.Now)
		s.dashboard.register(s.mux)
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "there is no such page; expected / (the dashboard), /live, /ready, /metrics, /config, /purge, /reload or /debug/pprof/")
	})

	s.base, s.stop = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return s.base },
	}
	return s
}

// Serve answers on the listener until Shutdown, and closes it. It returns nil
// after Shutdown.
func (s *Server) Serve(listener net.Listener) error {
	if s.dashboard != nil {
		sampled := make(chan struct{})
		// Ends with Shutdown, or below if the listener fails; waited for here.
		go func() {
			defer close(sampled)
			s.dashboard.history.run(s.base)
		}()
		defer func() { s.stop(); <-sampled }()
	}
	if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown ends running profiles, waits for the other requests until ctx ends,
// and then closes what is left. It may be called more than once.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	err := s.http.Shutdown(ctx)
	if err != nil {
		s.http.Close()
	}
	return err
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "frame-ancestors 'none'") // pages with more to say replace it
	if status, why := s.guard.check(r); why != "" {
		refuse(w, status, why)
		return
	}
	s.mux.ServeHTTP(w, r)
}
