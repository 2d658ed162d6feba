package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
)

// A server runs on the event loops of internal/loop.
//
//	bytes --> frame.Scanner.Size --> frame.Open --> registry.find --> args.ReadThrift      in the turn of the connection
//	                                                                      |
//	Output <-- call.Write <-- Ticket.Complete <-- call.encode <-- Exchange.Handle            on a worker, or in the turn if the function is inline
//
//   - Messages of 64 KiB or more that have a length are read into separate memory by Conn.Expect, and decoded by the
//     worker.
//   - A header may allow answers in any order (Kitex's multiplexing clients do that). Such calls run concurrently, up
//     to MaxConnCalls at a time. Other clients' calls run one after another: stock servers do that, and clients that
//     pipeline may rely on it. The connection is paused until the answer is written, so its socket is the queue.
//   - A call is one object: the handler's context, its deadline, and the slot of its answer (DeferInto). It is not
//     reused, because handlers may retain their context. Generated code has an Exchange for each function, which
//     contains the arguments and the result. So a call allocates two objects in addition to the contents of its
//     arguments.
//   - Answers are encoded by the worker, because the handler may change its result after returning it. They are then
//     copied to the output or, from 8 KiB on, linked. Large ones are charged to the budget for large answers.
//   - The server reports a call that was not executed in a way that no handler can use: an exception of kind
//     KindRefused, and a key in the header. There are two reasons: too many calls, and a deadline that passed before
//     the handler was called. For unknown functions, find returns the exception that all implementations use.
//   - A declared exception is sent as a field of the result, even if it is wrapped. A StatusError is sent in the
//     header, as Kitex's business status. An ApplicationException is sent unchanged, and any other error as the text of
//     an internal error. A panic is logged, and its text is not sent to the client.
//   - TMultiplexedProtocol puts the service name before the function name; Kitex puts it into the header. Without
//     either, only one service may have the function. The answer has the plain function name, because Apache's clients
//     compare it.
//   - At shutdown, clients of this package get a control frame (sequence ID 0, crrst) immediately; other clients with
//     headers get crrst with their next answer. Framed and Buffered have no field for it, so the struct of an answer
//     gets a field that results do not have (goodbye.go): our client treats it like crrst, others skip it. After
//     DrainGrace, connections in use are closed after an answer if no other call has been read, and others once they
//     have been quiet for DrainGrace. Every call that has been read is answered.
//   - Until a client of this package knows whether its calls are answered in any order, it asks with a key in its
//     headers. The answer is a control frame (sequence ID 0), which is sent immediately, because the first call of a
//     connection may take long. Clients that do not ask do not get it.
//
//   - The first message of a connection determines whether it carries calls or streams (docs/design/streaming.md).
//
// TestApacheClientOfOurServer calls the server with Apache Thrift's Go library, in all formats that both support.

// ServerConfig configures a [Server]. The zero value is ready for use.
type ServerConfig struct {
	// MaxMessage is the maximum size of a message in bytes, including its header. If zero, it defaults to 16 MiB. If a
	// larger call arrives, the connection is closed; a larger reply is replaced by an exception.
	MaxMessage int
	// MaxMemory limits the memory of a call's arguments: see thrift.Reader.MaxMemory.
	MaxMemory int
	// MaxCalls is the maximum number of calls in progress. Further ones are refused. If zero, it defaults to 16,384.
	MaxCalls int
	// MaxConnCalls is the maximum number of calls in progress on one connection. The server stops reading from the
	// connection until one has ended. If zero, it defaults to 1,024.
	MaxConnCalls int
	// Workers is the maximum number of goroutines that call handlers. If zero, it defaults to MaxCalls.
	Workers int
	// Timeout applies to calls whose clients send no deadline. If zero, it defaults to 10 s; if negative, such calls have
	// no deadline.
	Timeout time.Duration

	// MaxConnections is the maximum number of open connections. To make room for another one, the server closes one that
	// is not in use. If zero, it defaults to 17,000.
	MaxConnections int
	// MaxPerAddress is the maximum number of connections from one address. It does not apply to loopback, Unix sockets,
	// and TrustedProxies. If zero, there is no limit.
	MaxPerAddress int
	// TrustedProxies lists addresses that represent many clients.
	TrustedProxies []netip.Prefix
	// IdleTimeout is how long a connection may have no calls before it is closed. If zero, it defaults to 10 minutes; if
	// negative, there is no limit.
	IdleTimeout time.Duration
	// DrainGrace is how long clients may send calls after Shutdown was called. After that, connections in use are closed
	// after an answer, and others once they have had no call for DrainGrace. If zero, it defaults to 100 ms.
	DrainGrace time.Duration

	// Streams bounds the streams of streaming functions.
	Streams StreamLimits

	// TLS, if not nil, is required on all connections. Handlers can get the client's certificate with [PeerOf].
	TLS *tls.Config

	// OnCall, if not nil, is called for each call when its answer is ready, on the handler's goroutine. It must not block.
	// [AccessLog] returns a function that logs.
	OnCall func(CallReport)
	// Log receives warnings and errors. If nil, nothing is logged.
	Log *slog.Logger
}

const (
	defaultMaxCalls     = 16 << 10
	defaultMaxConnCalls = 1 << 10
	defaultTimeout      = 10 * time.Second
	defaultIdleTimeout  = 10 * time.Minute
	defaultDrainGrace   = 100 * time.Millisecond
)

func (c ServerConfig) withDefaults() ServerConfig {
	for _, n := range []struct {
		field *int
		value int
	}{{&c.MaxMessage, frame.DefaultMax}, {&c.MaxCalls, defaultMaxCalls}, {&c.MaxConnCalls, defaultMaxConnCalls}} {
		if *n.field <= 0 {
			*n.field = n.value
		}
	}
	if c.Workers <= 0 {
		c.Workers = c.MaxCalls
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = defaultIdleTimeout
	}
	if c.DrainGrace <= 0 {
		c.DrainGrace = defaultDrainGrace
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// A Server calls handlers. It detects how each client delimits and encodes its messages, and answers in the same way.
// If a client's headers allow it, its calls run concurrently and are answered in any order; the calls of other clients
// run one after another on each connection, as with servers that do not support headers. Create it with [NewServer].
// All methods are safe for concurrent use.
type Server struct {
	// Immutable after NewServer.
	config   ServerConfig
	registry *registry
	engine   *loop.Server
	workers  *loop.Workers
	large    *loop.Budget // budget for large answers
	streams  streamHost   // nil if there is no streaming function

	jobs sync.WaitGroup // calls that workers are running

	// Atomics. Written by sessions and workers, read by all.
	calls    atomic.Int64 // in progress
	figures  figures
	warnings ration
	addr     atomic.Pointer[net.Addr]
	draining atomic.Bool
}

// figures holds the counters of a server.
type figures struct {
	done, refused, unknown, failed, panics, malformed atomic.Uint64
}

// ServerStats holds the counters of a server since it was created, and its current state.
type ServerStats struct {
	Connections int64  // open
	Calls       int64  // in progress
	Streams     int64  // streams whose handlers have not returned
	Done        uint64 // calls and streams whose handlers have returned
	Failed      uint64 // of those, calls answered with an undeclared exception
	Panics      uint64 // calls whose handler, or whose result's encoding, panicked
	Refused     uint64 // calls not executed: there were too many, or the deadline had passed
	Unknown     uint64 // calls of unknown functions
	Malformed   uint64 // messages that were not valid calls
}

// NewServer returns a server for services. It does not serve until Listen or Serve is called.
func NewServer(config ServerConfig, services ...*Service) (*Server, error) {
	return newServer(config, loop.DefaultLarge, services...)
}

// newServer returns a server with a limit on the total size of large answers, in bytes.
func newServer(config ServerConfig, large int64, services ...*Service) (*Server, error) {
	registry, err := newRegistry(services)
	if err != nil {
		return nil, err
	}
	s := &Server{config: config.withDefaults(), registry: registry, large: loop.NewLargeBudget(large)}
	s.engine, err = loop.New(loop.Config{
		New:            s.newSession,
		MaxConnections: s.config.MaxConnections,
		MaxPerAddress:  s.config.MaxPerAddress,
		Proxies:        s.config.TrustedProxies,
		Large:          s.large,
		MaxInput:       mostWhole,
		MaxDeferred:    s.config.MaxConnCalls,
		IdleTimeout:    s.config.IdleTimeout,
		DrainGrace:     s.config.DrainGrace,
		Log:            s.config.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("thrift/rpc: %w", err)
	}
	s.workers = loop.NewWorkers(s.config.Workers)
	if f := registry.streaming(); f != nil {
		s.streams = f.host(s)
	}
	return s, nil
}

// ErrServing means that Listen or Serve has already been called.
var ErrServing = errors.New("thrift/rpc: the server is already serving")

// Listen binds an address, such as ":9090" for the network "tcp" or a path for "unix", and serves it. It returns once
// connections are accepted. It may be called once.
func (s *Server) Listen(network, address string) error {
	all, err := loop.Listen(network, address, runtime.GOMAXPROCS(0))
	if err != nil {
		return fmt.Errorf("thrift/rpc: listen on %s: %w", address, err)
	}
	return s.Serve(all...)
}

// Serve accepts connections from listeners and takes ownership of them. It returns once connections are accepted. It
// may be called once.
func (s *Server) Serve(listeners ...net.Listener) error {
	if len(listeners) == 0 {
		return errors.New("thrift/rpc: Serve was called without a listener")
	}
	addr := listeners[0].Addr()
	if !s.addr.CompareAndSwap(nil, &addr) {
		return ErrServing
	}
	if s.config.TLS != nil {
		for i, l := range listeners {
			listeners[i] = loop.Secure(l, s.config.TLS)
		}
	}
	if err := s.engine.Serve(listeners...); err != nil {
		return fmt.Errorf("thrift/rpc: %w", err)
	}
	return nil
}

// Addr returns the address of the first listener, or nil before Listen or Serve.
func (s *Server) Addr() net.Addr {
	if a := s.addr.Load(); a != nil {
		return *a
	}
	return nil
}

// Shutdown stops accepting connections, tells clients to connect elsewhere, answers all calls that it has received, and
// closes the connections. If ctx ends first, Shutdown closes the remaining connections and returns the error of ctx. In
// either case, it waits for running handlers, whose contexts end with their connections.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	err := s.engine.Shutdown(ctx)
	s.jobs.Wait()
	s.workers.Close()
	if s.streams != nil {
		s.streams.close()
	}
	return err
}

// Stats returns the server's counters and current state.
func (s *Server) Stats() ServerStats {
	f, streams := &s.figures, int64(0)
	if s.streams != nil {
		streams = s.streams.streams()
	}
	return ServerStats{Streams: streams, Connections: s.engine.Connections(), Calls: s.calls.Load(), Done: f.done.Load(), Failed: f.failed.Load(), Panics: f.panics.Load(),
		Refused: f.refused.Load(), Unknown: f.unknown.Load(), Malformed: f.malformed.Load()}
}

// warn logs events that clients or handlers can cause at will. It limits the rate of log lines.
func (s *Server) warn(message string, args ...any) {
	if leftOut, ok := s.warnings.take(time.Now()); ok {
		s.config.Log.Warn(message, append(args, "left_out", leftOut)...)
	}
}

// warningsAtOnce is the maximum number of lines logged per second.
const warningsAtOnce = 10

// ration limits the rate of log lines.
type ration struct {
	mu sync.Mutex
	// Guarded by mu.
	second  int64
	lines   int
	leftOut int
}

// take reports whether a line is logged, and how many were suppressed since the last one.
func (r *ration) take(now time.Time) (leftOut int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if second := now.Unix(); second != r.second {
		r.second, r.lines = second, 0
	}
	if r.lines++; r.lines > warningsAtOnce {
		r.leftOut++
		return 0, false
	}
	leftOut, r.leftOut = r.leftOut, 0
	return leftOut, true
}
