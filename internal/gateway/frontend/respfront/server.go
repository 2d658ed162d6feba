package respfront

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/recent"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// Server serves documents to Redis clients. Create it with [New], set the columns of keys with
// SetColumns, then call Serve and Shutdown. Methods that return counters are safe for concurrent
// use with all others.
type Server struct {
	// Immutable after New.
	cache    *cache.Cache
	config   Config
	commands *table
	engine   *loop.Server
	started  time.Time
	log      log
	// workers are the goroutines that load: those of Config.Workers, or own, which Shutdown ends.
	workers *loop.Workers
	own     *loop.Workers

	clients  clients
	figures  figures
	logs     logs
	work     sync.WaitGroup // jobs of workers; Shutdown waits for them
	turns    sync.Pool      // of *turn
	recent   recent.Lanes[*served]
	scanners [2]sync.Pool   // of *resp.CommandScanner: for unknown clients, for known ones
	logins   *limit.Limiter // failed logins of an address

	// Atomics. Written by connections and loads, read by all.
	waiting atomic.Int64 // documents that commands wait for
	crowded atomic.Int64 // commands that were refused because too many wait
	held    atomic.Int64 // bytes of documents that were loaded and not yet appended
	large   atomic.Int64 // connections with a large command in flight

	// live is the view of new commands. Atomic: written by Swap, read with every read of a
	// connection.
	live atomic.Pointer[View]

	// Atomic. Written by Serve, read by all.
	addr atomic.Pointer[net.Addr]
}

// log is the part of *slog.Logger that is used.
type log interface {
	Warn(msg string, args ...any)
}

// New returns a server for resources in the order of the cache's. It has no
// listeners yet.
func New(c *cache.Cache, resources []frontend.Resource, config Config) (*Server, error) {
	config = config.withDefaults()
	s := &Server{cache: c, config: config, log: config.Log, commands: newTable(), started: time.Now()}
	if s.workers = config.Workers; s.workers == nil {
		s.own = loop.NewWorkers(0)
		s.workers = s.own
	}
	s.figures.Answers = frontend.NewAnswers()
	s.logins = limit.New(limit.Config{Rate: loginRate, Burst: loginBurst, MaxEntries: 16 << 10})
	v, err := newView(frontend.Numbered(resources), config)
	if err != nil {
		return nil, err
	}
	s.live.Store(v)
	s.turns.New = func() any { return &turn{server: s} }
	for i := range s.scanners {
		limits := limitsOf(i == 1)
		s.scanners[i].New = func() any { return resp.NewCommandScanner(limits) }
	}
	engine := config.Loop()
	engine.New, engine.Clock = s.newSession, c.Now
	engine.ProveTimeout = s.loginTimeout
	engine.MaxInput = maxRequest + 1 // the scanner has refused longer commands
	engine.MaxDeferred = maxDeferred
	if s.engine, err = loop.New(engine); err != nil {
		return nil, fmt.Errorf("resp: %w", err)
	}
	return s, nil
}

// loginTimeout is how long after it was accepted a connection must have logged in; 0 means no
// limit.
func (s *Server) loginTimeout() time.Duration {
	if s.live.Load().requireAuth {
		return s.config.LoginTimeout
	}
	return 0
}

// maxDeferred is how many answers of one connection may wait for loads.
const maxDeferred = 128

// SetColumns sets the key columns of a resource. Until then its documents are answered
// with -LOADING.
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
		return fmt.Errorf("resp: %w", err)
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

// EachThrottled calls visit with every rule that refuses commands of a client that sends too
// many, and how many it has refused.
func (s *Server) EachThrottled(visit func(rule string, n int64)) {
	v := s.live.Load()
	visit("client", v.clientLimit.Refused())
	visit("caller", v.callerLimit.Refused())
	visit("login", s.logins.Refused())
	large := s.config.Large.Stats()
	visit("large", int64(large.Refused+large.Throttled))
	visit("waiting", s.crowded.Load())
}

// EachBudget calls visit with each bound that clients share, apart from connections and memory,
// and its usage.
func (s *Server) EachBudget(visit func(name string, used, limit int64)) {
	visit("waiting", s.waiting.Load(), int64(s.config.MaxWaiting))
	visit("large_commands", s.large.Load(), maxLarge)
}

// Connections returns how many connections are open.
func (s *Server) Connections() int64 { return s.engine.Stats().Connections }

// Shutdown stops accepting, waits for commands in flight, and closes idle connections. If
// ctx ends first, the rest is cut off and its error is returned. It may be called again.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.engine.Shutdown(ctx)
	s.work.Wait() // no connection is left, so each load has lost its context
	if s.own != nil {
		s.own.Close()
	}
	if err != nil {
		return fmt.Errorf("resp: %w", err)
	}
	return nil
}
