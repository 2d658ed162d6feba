package httpfront

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// Config configures a [Server]. The zero value of a field means its default.
type Config struct {
	// RequestTimeout bounds one request, waiting for a load included (10 s).
	RequestTimeout time.Duration
	// HeaderTimeout bounds the reading of a request's head, and of a body that
	// it should not have (5 s each).
	HeaderTimeout time.Duration
	// IdleTimeout closes a connection that asks nothing (60 s).
	IdleTimeout time.Duration
	// StallTimeout bounds one write (30 s): a client that does not read is cut
	// off. Like the two above it is kept to a quarter of a second.
	StallTimeout time.Duration
	// MaxHeader bounds the head of a request, in bytes (64 KiB).
	MaxHeader int
	// MaxPending bounds the bytes of large answers (64 KiB and more) that are being
	// written at once (256 MiB); past it such an answer is refused with 503. They
	// are references to documents, some of which the cache has dropped already.
	MaxPending int64
	// TrustedProxies are those whose X-Forwarded-For names the client.
	TrustedProxies []netip.Prefix
	// MaxConnections bounds the open connections (17,000); more wait in the
	// kernel's queue until one closes.
	MaxConnections int
	Log            *slog.Logger
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.RequestTimeout, 10 * time.Second},
		{&c.HeaderTimeout, 5 * time.Second},
		{&c.IdleTimeout, 60 * time.Second},
		{&c.StallTimeout, 30 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if c.MaxHeader <= 0 {
		c.MaxHeader = 64 << 10
	}
	if c.MaxPending <= 0 {
		c.MaxPending = 256 << 20
	}
	if c.MaxConnections <= 0 {
		c.MaxConnections = 17_000
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Handler returns what a [Server] hands its requests to, for programs with a server of
// net/http of their own. Of config it takes RequestTimeout, HeaderTimeout for bodies,
// MaxPending and TrustedProxies; the other limits are those of the connections.
func Handler(service *Service, config Config) http.Handler {
	return newHandler(service, config.withDefaults())
}

func newHandler(service *Service, config Config) *handler {
	return &handler{service: service, timeout: config.RequestTimeout, bodyTimeout: config.HeaderTimeout,
		trusted: config.TrustedProxies, maxPending: config.MaxPending}
}

// Server serves a [Service] over net/http.
type Server struct {
	// Immutable after Listen.
	server   *http.Server
	listener *limitedListener
	done     chan struct{} // closed when Serve has ended
	err      error         // what it returned; set before done is closed
}

// Listen binds address and begins to serve. Shutdown ends it.
func Listen(address string, service *Service, config Config) (*Server, error) {
	config = config.withDefaults()
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	s := &Server{
		server: &http.Server{
			Handler:        newHandler(service, config),
			ConnState:      trackState, // the time limits are those of conns
			MaxHeaderBytes: config.MaxHeader,
			ErrorLog:       slog.NewLogLogger(config.Log.Handler(), slog.LevelDebug),
		},
		listener: listenLimited(l, config),
		done:     make(chan struct{}),
	}
	// Ends with Shutdown, which waits for it.
	go func() {
		defer close(s.done)
		s.err = s.server.Serve(s.listener)
	}()
	return s, nil
}

// Addr returns the address that the server is bound to.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Connections returns how many connections are open.
func (s *Server) Connections() int64 { return s.listener.conns.open.Load() }

// Shutdown stops accepting, lets requests under way end, and closes idle
// connections. When ctx ends first, the rest is cut and its error returned. It
// may be called again.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.server.Shutdown(ctx)
	if err != nil {
		_ = s.server.Close() // the first error is the one to report
	}
	<-s.done
	s.listener.conns.stop()
	if !errors.Is(s.err, http.ErrServerClosed) && err == nil {
		err = s.err
	}
	return err
}
