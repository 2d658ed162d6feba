package httpfront

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/wire/http1"
)

// Config configures a [Server]. Its zero value works.
type Config struct {
	// ConnConfig has the settings of all connections. With EngineNetHTTP its Backend is not used.
	frontend.ConnConfig

	// HeaderTimeout bounds the reading of a request's head, and of a body that it should not
	// have. If zero, it defaults to [loop.DefaultTimeout]. Like the other timeouts of
	// connections it is accurate to a quarter of a second.
	HeaderTimeout time.Duration
	// MaxHeader bounds the head of a request, in bytes. If zero, it defaults to 64 KiB.
	MaxHeader int
	// TrustUnix makes the peers of unix sockets trusted proxies.
	TrustUnix bool
	// Engine serves the connections.
	Engine Engine
	// DrainGrace is how long idle connections may send one more request at Shutdown. If zero, it
	// defaults to 2 s; if negative, they may not.
	DrainGrace time.Duration
}

// Engine is what serves connections.
type Engine uint8

// Engines.
const (
	// EngineLoop answers plain GETs, HEADs and OPTIONS on an event loop and hands everything
	// else over to net/http.
	EngineLoop Engine = iota
	// EngineNetHTTP is only net/http.
	EngineNetHTTP
)

func (c Config) withDefaults() Config {
	c.IdleTimeout = max(c.IdleTimeout, 0) // every connection has a limit
	c.ConnConfig = c.ConnConfig.WithDefaults()
	c.HeaderTimeout = cmp.Or(max(c.HeaderTimeout, 0), loop.DefaultTimeout)
	c.MaxHeader = cmp.Or(max(c.MaxHeader, 0), 64<<10)
	c.DrainGrace = cmp.Or(c.DrainGrace, 2*time.Second)
	return c
}

func (c Config) trusted() proxies { return proxies{c.TrustedProxies, c.TrustUnix} }

// Handler returns the handler of a [Server], for programs with their own net/http server. It
// uses these fields of config: RequestTimeout, HeaderTimeout for bodies, Large, TrustedProxies
// and TrustUnix; the other limits are those of the connections.
func Handler(service *Service, config Config) http.Handler {
	return newHandler(service, config.withDefaults())
}

func newHandler(service *Service, config Config) *handler {
	h := &handler{timeout: config.RequestTimeout, bodyTimeout: config.HeaderTimeout, stall: config.StallTimeout,
		trusted: config.trusted(), large: config.Large}
	h.live.Store(service)
	return h
}

// Server serves a [Service]: on an event loop, which hands connections over to net/http
// when they send anything but plain requests for documents, or only with net/http.
type Server struct {
	// Immutable after New.
	config  Config
	http    *http.Server // HTTP/1 and, with its own TLS, HTTP/2
	http2   *http.Server // HTTP/2 of connections that the loop hands over
	handler *handler
	grace   time.Duration
	conns   *conns       // those that net/http serves
	front   *front       // nil with only net/http
	loop    *loop.Server // nil with only net/http
	handed  handOvers    // of the loop

	// Immutable after Serve.
	addr      net.Addr
	accepting []*limitedListener // with only net/http; nil if the loop accepts

	mounted mounted               // requests of other servers
	serving sync.WaitGroup        // goroutines of net/http that accept
	failed  atomic.Pointer[error] // why one of them ended before Shutdown
}

// New returns a server without listeners. Shutdown ends it, and must be called even if it never
// serves.
func New(service *Service, config Config) (*Server, error) {
	config = config.withDefaults()
	h := newHandler(service, config)
	s := &Server{
		config:  config,
		handler: h,
		grace:   config.DrainGrace,
		http:    newHTTPServer(h, config),
		http2:   newHTTPServer(h, config),
		conns:   newConns(config),
	}
	s.http2.Protocols = new(http.Protocols) // the loop has done TLS
	s.http2.Protocols.SetUnencryptedHTTP2(true)
	if config.Engine == EngineNetHTTP {
		return s, nil
	}
	s.handed = handOvers{newHandedListener(s.conns, false), newHandedListener(s.conns, true)}
	s.front = newFront(service, config)
	var err error
	if s.loop, err = loop.New(s.loopConfig(service, config)); err != nil {
		s.conns.stop()
		return nil, fmt.Errorf("http: %w", err)
	}
	s.front.engine = s.loop
	return s, nil
}

// Serve begins to serve connections to listeners, and returns. It owns them from now on, even if
// it fails. It may be called once. Without it, or without listeners, the server serves only as an
// [http.Handler].
func (s *Server) Serve(listeners ...net.Listener) error {
	if len(listeners) == 0 {
		return nil
	}
	s.addr = listeners[0].Addr()
	if s.loop == nil {
		for _, l := range listeners {
			s.serveAlone(l)
		}
		return nil
	}
	s.handed.http1.addr, s.handed.http2.addr = s.addr, s.addr
	s.serveHTTP(s.http, s.handed.http1)
	s.serveHTTP(s.http2, s.handed.http2)
	if err := s.loop.Serve(listeners...); err != nil {
		return fmt.Errorf("http: %w", err)
	}
	return nil
}

func newHTTPServer(h http.Handler, config Config) *http.Server {
	return &http.Server{
		Handler:        h,
		ConnState:      trackState, // the time limits are those of conns
		ConnContext:    withConn,
		MaxHeaderBytes: config.MaxHeader,
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: streamsAtOnce, MaxReadFrameSize: frameOfStream, MaxReceiveBufferPerConnection: bodiesOfStream, MaxReceiveBufferPerStream: bodyOfStream},
		ErrorLog:       slog.NewLogLogger(config.Log.Handler(), slog.LevelDebug),
	}
}

// serveAlone serves a listener without the loop.
func (s *Server) serveAlone(l net.Listener) {
	var secure *tls.Config
	if t, ok := l.(interface {
		Insecure() (net.Listener, *tls.Config)
	}); ok {
		l, secure = t.Insecure()
	}
	limited := &limitedListener{Listener: l, conns: s.conns, closed: make(chan struct{}), room: loop.Room{Places: cap(s.conns.places)}}
	s.accepting = append(s.accepting, limited)
	if secure != nil {
		s.serveHTTP(s.http, tls.NewListener(limited, secure))
	} else {
		s.serveHTTP(s.http, limited)
	}
}

func (s *Server) loopConfig(service *Service, config Config) loop.Config {
	engine := config.Loop()
	engine.New = func(*loop.Conn) loop.Session { return &session{front: s.front} }
	engine.Clock = service.cache.Now
	engine.Detached, engine.Handed = s.handed.take, s.conns
	engine.ProveTimeout = func() time.Duration { return config.IdleTimeout }
	engine.MaxInput = config.MaxHeader + 1 // the session hands over at MaxHeader
	engine.PartialTimeout = config.HeaderTimeout
	engine.DrainGrace = max(0, config.DrainGrace)
	engine.OnClose = s.front.logClose
	return engine
}

func (s *Server) serveHTTP(server *http.Server, l net.Listener) {
	s.serving.Add(1)
	// Ends with Shutdown, which waits for it.
	go func() {
		defer s.serving.Done()
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.failed.CompareAndSwap(nil, &err)
		}
	}()
}

// SetColumns sets the key columns of a resource. Until then its documents are answered with 503.
func (s *Server) SetColumns(id cache.ResourceID, columns []resource.KeyColumn) error {
	return s.handler.live.Load().SetColumns(id, columns)
}

// Next returns a service for [Server.Swap]: see [Service.Next].
func (s *Server) Next(resources []frontend.Resource, config ServiceConfig) (*Service, error) {
	return s.handler.live.Load().Next(resources, config)
}

// Swap makes another service, with the same cache, answer new requests: see [Service.Next].
// Requests in flight are answered by the previous one.
func (s *Server) Swap(service *Service) {
	s.handler.live.Store(service)
	if s.front != nil {
		s.front.swap(service)
	}
}

// Connections returns how many connections are open.
func (s *Server) Connections() int64 {
	if s.loop != nil {
		return s.loop.Connections()
	}
	return s.conns.open.Load()
}

// LargePending returns how many bytes of large answers wait for clients, or for their turn to
// be sent.
func (s *Server) LargePending() int64 { return s.handler.large.Stats().Used }

// EngineStats returns the stats of the engine. With only net/http, looped is false, and there
// are only the connections and those that were closed by rule.
func (s *Server) EngineStats() (stats loop.Stats, looped bool) {
	e := loop.Stats{Backend: "net/http", Connections: s.Connections(), Closes: make(map[string]uint64)}
	if s.loop != nil {
		e = s.loop.Stats()
	}
	s.conns.addCuts(e.Closes)
	return e, s.loop != nil
}

// Figures returns the current figures.
func (s *Server) Figures() frontend.Figures {
	service := s.handler.live.Load()
	f := frontend.Figures{
		Answers: service.Answers(), Requests: service.Answers().Requests(), Statuses: frontend.Counts(service.EachStatus),
		Large: s.LargePending(), Budgets: frontend.Budgets(s.EachBudget), Throttled: frontend.Counts(s.EachThrottled),
	}
	if f.Engine, f.Looped = s.EngineStats(); f.Looped {
		f.HandedOver = frontend.Counts(s.EachHandover)
	}
	return f
}

// EachBudget calls visit with each bound that clients share, apart from connections and memory,
// and its usage in requests, or in bytes for "loading".
func (s *Server) EachBudget(visit func(name string, used, limit int64)) {
	service := s.handler.live.Load()
	if s.front != nil {
		visit("waiting", s.front.waiting.Load(), maxWaiting)
	}
	visit("loading", service.loading.taken.Load(), maxLoading)
	visit("streams", s.handler.streams.Load(), maxStreams)
	if gate := service.config.Gate; gate != nil {
		st := gate.Stats()
		visit("checks", int64(st.Waiting), int64(st.WaitingLimit))
	}
}

// EachThrottled calls visit with every rule that refuses requests because clients do too
// much, or delays them, and how often it was applied.
func (s *Server) EachThrottled(visit func(rule string, n int64)) {
	s.handler.live.Load().EachThrottled(visit)
	large := s.handler.large.Stats()
	visit("large", int64(large.Refused+large.Throttled))
	if s.front != nil {
		visit("waiting", s.front.crowded.Load())
	}
	visit("streams", s.handler.crowded.Load())
}

// EachHandover calls visit with every reason for which requests are handed over to
// net/http, and how many were.
func (s *Server) EachHandover(visit func(reason string, n int64)) {
	if s.front == nil {
		return
	}
	for i := range s.front.handed {
		if why := http1.Reason(i); why != http1.NotHandedOver {
			visit(why.String(), s.front.handed[i].Load())
		}
	}
}

// Shutdown stops accepting, answers requests in flight with "Connection: close", lets idle
// connections send one more request during Config.DrainGrace, and closes them in order. If
// ctx ends first, the rest is cut off and its error is returned. It may be called again.
func (s *Server) Shutdown(ctx context.Context) error {
	var err error
	graceEnds := time.Now().Add(s.grace)
	s.handler.draining.Store(true)
	if s.loop != nil {
		err = s.loop.Shutdown(ctx) // may still hand connections over
		s.front.finish()
		s.conns.awaitFirst(ctx) // a connection is handed over because of a request
	} else {
		for _, l := range s.accepting {
			_ = l.Close() // before http.Shutdown, which drops requests that it has read
		}
		s.serving.Wait()
	}
	s.conns.awaitNone(ctx, graceEnds)
	for _, server := range []*http.Server{s.http, s.http2} {
		if e := server.Shutdown(ctx); e != nil {
			_ = server.Close() // the first error is the one to report
			err = errors.Join(err, e)
		}
	}
	err = errors.Join(err, s.mounted.shutdown(ctx))
	s.serving.Wait()
	s.conns.stop()
	if failed := s.failed.Load(); failed != nil && err == nil {
		err = *failed
	}
	return err
}
