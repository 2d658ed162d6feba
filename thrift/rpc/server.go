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
//   - Messages of 64 KiB and more that have a length are read by Conn.Expect into separate memory, and decoded by
//     the worker.
//   - A header may say that its sender takes answers in any order (Kitex's multiplexing clients). Such calls run
//     concurrently, MaxConnCalls at a time. Those of others run one after the other: a stock server does that, and
//     clients that pipeline on it may rely on it. The connection is paused until the answer is written, so its
//     socket is the queue.
//   - A call is one object: the context of the handler, its deadline, and the slot of its answer (DeferInto). It is
//     not used again, because handlers may keep their context. Generated code has an Exchange for each function,
//     with the arguments and the result in it. So a call allocates two objects besides what is in its arguments.
//   - Answers are encoded by the worker, because the handler may change its result after it returned it, and then
//     appended or, from 8 KiB on, linked. Large ones count in the budget of large answers.
//   - The server reports that a call was not executed in a way that no handler can use: an exception of the kind
//     KindRefused, and a key in the header. There are two reasons, too many calls and a deadline that has passed
//     before the handler was called. find refuses unknown functions by the exception that all implementations have.
//   - An exception that the function declares is a field of the result, also if it is wrapped. A StatusError
//     travels in the header, as Kitex's business status. An ApplicationException is sent as it is, and any other
//     error as its text in an internal error; a panic is logged, and its text is not sent to the client.
//   - TMultiplexedProtocol writes the service before the name of the function, Kitex writes it into the header.
//     Without either the function must be that of one service. The answer has the plain name: Apache's clients
//     compare it.
//   - At shutdown, clients of this package get a control frame (sequence ID 0, crrst) immediately; other clients with
//     headers get crrst with their next answer. Framed and Buffered have no place for it, so the struct of an answer
//     gets a field that results do not have (goodbye.go): our client treats it as the same, others skip it. After
//     DrainGrace connections in use are closed with an answer, when nothing else was read, and others when they were
//     quiet for as long. Everything that was read is answered.
//   - A client of this package asks by a key in its headers whether its calls are answered in any order, until it
//     knows. The answer is a control frame (sequence ID 0), which is sent immediately: the first call of a
//     connection may take long. Clients that do not ask do not get it.
//
//   - The first message of a connection tells whether it has calls or streams (docs/design/streaming.md).
//
// TestApacheClientOfOurServer calls it with the Go library of Apache Thrift, in all formats that both have.

// ServerConfig configures a [Server]. The zero value is ready for use.
type ServerConfig struct {
	// MaxMessage is how many bytes a message may have, with its header. If zero, it is 16 MiB. A
	// larger call ends its connection; in place of a larger reply the client gets an exception.
	MaxMessage int
	// MaxMemory limits what the arguments of a call take in memory: see thrift.Reader.MaxMemory.
	MaxMemory int
	// MaxCalls is how many calls may be in progress. Further ones are refused. If zero, it is
	// 16,384.
	MaxCalls int
	// MaxConnCalls is how many calls of one connection may be in progress. The server reads no
	// more of them until one has ended. If zero, it is 1,024.
	MaxConnCalls int
	// Workers is how many goroutines call handlers. If zero, it is MaxCalls.
	Workers int
	// Timeout is the deadline of calls whose clients send none. If zero, it is 10 s; if negative,
	// there is none.
	Timeout time.Duration

	// MaxConnections bounds the open connections. To make room for another one, one is closed
	// that is not in use. If zero, it is 17,000.
	MaxConnections int
	// MaxPerAddress bounds the connections of one address, except those over loopback, Unix
	// sockets and from TrustedProxies. If zero, there is no limit.
	MaxPerAddress int
	// TrustedProxies are addresses that represent many clients.
	TrustedProxies []netip.Prefix
	// IdleTimeout ends a connection without calls. If zero, it is 10 minutes; if negative, there
	// is no limit.
	IdleTimeout time.Duration
	// DrainGrace is how long connections may send calls after Shutdown was called. Then those that
	// are in use are closed with an answer, and others when they have been without a call for as
	// long. If zero, it is 100 ms.
	DrainGrace time.Duration

	// Streams bound the streams of functions that have them.
	Streams StreamLimits

	// TLS, if not nil, is for all connections. Handlers see the certificates of clients: see
	// [PeerOf].
	TLS *tls.Config

	// OnCall, if not nil, is notified of each call when its answer is ready, on the goroutine of
	// the handler. It must not block. [AccessLog] returns one that logs.
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

// A Server calls handlers. It detects how each client delimits and encodes its messages, and
// answers in the same way. Calls of a client whose messages have headers that allow it run
// concurrently, and are answered in any order; those of other clients run one after the other, as
// with servers that know no headers. Make it with [NewServer]. All methods are safe for concurrent
// use.
type Server struct {
	// Immutable after NewServer.
	config   ServerConfig
	registry *registry
	engine   *loop.Server
	workers  *loop.Workers
	large    *loop.Budget // of large answers
	streams  streamHost   // nil if no function has streams

	jobs sync.WaitGroup // calls that workers run

	// Atomics. Written by sessions and workers, read by all.
	calls    atomic.Int64 // in progress
	figures  figures
	warnings ration
	addr     atomic.Pointer[net.Addr]
	draining atomic.Bool
}

// figures are the counters of a server.
type figures struct {
	done, refused, unknown, failed, panics, malformed atomic.Uint64
}

// ServerStats are the counters of a server, since it was made.
type ServerStats struct {
	Connections int64  // open
	Calls       int64  // in progress
	Streams     int64  // whose handlers have not returned
	Done        uint64 // calls and streams whose handlers have returned
	Failed      uint64 // of those: calls that were answered with an exception that is not declared
	Panics      uint64 // calls whose handlers, or the code of their results, panicked
	Refused     uint64 // calls that were not executed: too many, or too late
	Unknown     uint64 // calls of functions that no service has
	Malformed   uint64 // messages that were no valid calls
}

// NewServer returns a server of services, which does not serve yet.
func NewServer(config ServerConfig, services ...*Service) (*Server, error) {
	return newServer(config, loop.DefaultLarge, services...)
}

// newServer returns a server with a limit of the bytes of large answers.
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

// ErrServing reports that Serve was called before.
var ErrServing = errors.New("thrift/rpc: the server is already serving")

// Listen binds an address, such as ":9090" of the network "tcp" or a path of the network "unix", and
// serves it. It returns when connections are accepted. It is called once.
func (s *Server) Listen(network, address string) error {
	all, err := loop.Listen(network, address, runtime.GOMAXPROCS(0))
	if err != nil {
		return fmt.Errorf("thrift/rpc: listen on %s: %w", address, err)
	}
	return s.Serve(all...)
}

// Serve accepts connections from listeners, which the server owns from then on. It returns when
// connections are accepted. It is called once.
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

// Shutdown stops accepting, tells clients to connect elsewhere, answers all calls that it has
// received, and closes the connections. When ctx ends first, the remaining connections are closed,
// and it returns the error of ctx; handlers that are running are waited for even then: their
// contexts have ended.
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

// Stats returns the counters.
func (s *Server) Stats() ServerStats {
	f, streams := &s.figures, int64(0)
	if s.streams != nil {
		streams = s.streams.streams()
	}
	return ServerStats{Streams: streams, Connections: s.engine.Connections(), Calls: s.calls.Load(), Done: f.done.Load(), Failed: f.failed.Load(), Panics: f.panics.Load(),
		Refused: f.refused.Load(), Unknown: f.unknown.Load(), Malformed: f.malformed.Load()}
}

// warn logs events that clients or handlers can cause at will: a few lines per
// second.
func (s *Server) warn(message string, args ...any) {
	if leftOut, ok := s.warnings.take(time.Now()); ok {
		s.config.Log.Warn(message, append(args, "left_out", leftOut)...)
	}
}

// warningsAtOnce is how many lines are logged in a second.
const warningsAtOnce = 10

// ration bounds the lines of a log.
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
