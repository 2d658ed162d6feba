package thriftfront

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/recent"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// Server serves documents to Thrift clients. Create it with [New], set the columns of keys with SetColumns, then call
// Serve and Shutdown. Methods that return counters may be called concurrently with all other methods.
type Server struct {
	// Immutable after New.
	cache  *cache.Cache
	config Config
	engine *loop.Server
	log    log
	// workers are the goroutines that load: Config.Workers, or own, which Shutdown closes.
	workers *loop.Workers
	own     *loop.Workers

	figures figures
	logs    logs
	work    sync.WaitGroup // jobs of workers; Shutdown waits for them
	turns   sync.Pool      // of *turn
	recent  recent.Lanes[*subject]
	wrong   *limit.Limiter // limits wrong tokens per address

	// Atomics. Written by connections and loads, read by all.
	waiting atomic.Int64 // documents that calls wait for
	crowded atomic.Int64 // calls refused because too many documents are being loaded
	held    atomic.Int64 // bytes of documents that have been loaded but not yet appended

	// live is the view for new calls. Atomic: written by Swap, read by every turn.
	live atomic.Pointer[View]

	// Atomic. Written by Serve, read by all.
	addr atomic.Pointer[net.Addr]
}

// log is the part of *slog.Logger that is used.
type log interface {
	Warn(msg string, args ...any)
}

// Bounds of calls.
const (
	// maxMessage bounds a message in bytes, including its header.
	maxMessage = 64 << 10
	// maxKeys is the maximum number of keys in a call.
	maxKeys = 1000
	// maxKey bounds a key in bytes, like the request target over HTTP.
	maxKey = 8 << 10
	// maxDeferred is the maximum number of deferred answers per connection.
	maxDeferred = 128
)

// New returns a server for resources, which must be in the order of the cache's. It has no listeners yet.
func New(c *cache.Cache, resources []Resource, config Config) (*Server, error) {
	config = config.withDefaults()
	s := &Server{cache: c, config: config, log: config.Log, wrong: limit.New(limit.Config{Rate: wrongRate, Burst: wrongBurst, MaxEntries: 16 << 10})}
	if s.workers = config.Workers; s.workers == nil {
		s.own = loop.NewWorkers(0)
		s.workers = s.own
	}
	s.figures.Answers = frontend.NewAnswers()
	v, err := newView(resources, config)
	if err != nil {
		return nil, err
	}
	s.live.Store(v)
	s.turns.New = func() any { return &turn{server: s} }
	engine := config.Loop()
	engine.New, engine.Clock = s.newSession, c.Now
	engine.MaxInput = maxMessage + 1 // the scanner refuses longer messages
	engine.MaxDeferred = maxDeferred
	if s.engine, err = loop.New(engine); err != nil {
		return nil, fmt.Errorf("thrift: %w", err)
	}
	return s, nil
}

// SetColumns sets the key columns of a resource. Until then, calls for its documents fail because the database has not
// been reached yet.
func (s *Server) SetColumns(id cache.ResourceID, columns []resource.KeyColumn) error {
	return s.live.Load().resources.SetColumns(id, columns)
}

// Serve starts serving connections to the listeners and returns. It takes ownership of the listeners, even if it fails.
// It may be called once; Shutdown must be called even if Serve failed.
func (s *Server) Serve(listeners ...net.Listener) error {
	if len(listeners) > 0 {
		addr := listeners[0].Addr()
		s.addr.Store(&addr)
	}
	if err := s.engine.Serve(listeners...); err != nil {
		return fmt.Errorf("thrift: %w", err)
	}
	return nil
}

// Addr returns the address that the server is bound to, or nil before Serve.
func (s *Server) Addr() net.Addr {
	if addr := s.addr.Load(); addr != nil {
		return *addr
	}
	return nil
}

// Connections returns the number of open connections.
func (s *Server) Connections() int64 { return s.engine.Stats().Connections }

// Shutdown stops accepting, waits for calls in flight, and closes idle connections. If ctx ends first, Shutdown closes
// the remaining connections and returns the error of ctx. It may be called again.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.engine.Shutdown(ctx)
	s.work.Wait() // all connections have ended, so the contexts of all loads are canceled
	if s.own != nil {
		s.own.Close()
	}
	if err != nil {
		return fmt.Errorf("thrift: %w", err)
	}
	return nil
}
