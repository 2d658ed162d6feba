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
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// Server serves documents to Thrift clients. Create it with [New], set the columns of keys with
// SetColumns, then call Serve and Shutdown. Methods that return counters are safe for concurrent
// use with all others.
type Server struct {
	// Immutable after New.
	cache  *cache.Cache
	config Config
	engine *loop.Server
	log    log
	// workers are the goroutines that load: those of Config.Workers, or own, which Shutdown ends.
	workers *loop.Workers
	own     *loop.Workers

	figures figures
	logs    logs
	work    sync.WaitGroup // jobs of workers; Shutdown waits for them
	turns   sync.Pool      // of *turn
	wrong   *limit.Limiter // wrong tokens of an address

	// Atomics. Written by connections and loads, read by all.
	waiting atomic.Int64 // documents that calls wait for
	crowded atomic.Int64 // calls that were refused because too many wait
	held    atomic.Int64 // bytes of documents that were loaded and not yet appended

	// live is the view of new calls. Atomic: written by Swap, read with every read of a
	// connection.
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
	// maxMessage bounds a message in bytes, with its header.
	maxMessage = 64 << 10
	// maxKeys is how many keys a call may have.
	maxKeys = 1000
	// maxKey bounds a key in bytes, as the target of a request over HTTP.
	maxKey = 8 << 10
	// maxDeferred is how many answers of one connection may wait.
	maxDeferred = 128
)

// New returns a server for resources in the order of the cache's. It has no listeners yet.
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
	engine.MaxInput = maxMessage + 1 // the scanner has refused longer messages
	engine.MaxDeferred = maxDeferred
	if s.engine, err = loop.New(engine); err != nil {
		return nil, fmt.Errorf("thrift: %w", err)
	}
	return s, nil
}

// SetColumns sets the key columns of a resource. Until then calls for its documents are refused as if the
// database had not been reached.
func (s *Server) SetColumns(id cache.ResourceID, columns []resource.KeyColumn) error {
	return s.live.Load().resources.SetColumns(id, columns)
}

// Serve begins to serve connections to listeners, and returns. It owns them from now on, even if
// it fails. It may be called once; Shutdown must be called even if Serve failed.
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

// Connections returns how many connections are open.
func (s *Server) Connections() int64 { return s.engine.Stats().Connections }

// Shutdown stops accepting, waits for calls in flight, and closes idle connections. If
// ctx ends first, the rest is cut off and its error is returned. It may be called again.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.engine.Shutdown(ctx)
	s.work.Wait() // no connection is left, so each load has lost its context
	if s.own != nil {
		s.own.Close()
	}
	if err != nil {
		return fmt.Errorf("thrift: %w", err)
	}
	return nil
}
