// Package tarantoolsim is an in-memory Tarantool server for the tests of this module. It implements
// the protocol of Tarantool 3, or of an older version, independently of the installed server.
//
// It has spaces with ordered indexes and the requests that read and write them, transactions in
// streams, watchers, authentication and the spaces that describe the schema. Functions are Go
// functions: see [Server.Func]. A test makes requests fail, wait, or be answered in its own way
// by [Server.Handle], and the whole server by [Server.Hang], [Server.HangUp], [Server.Refuse]
// and [Server.Reorder]. It has no Lua, no SQL and no replication.
//
// Package tarantooltest exports a part of it to users.
package tarantoolsim

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// Config configures a server. The zero value is a new server on a free port.
type Config struct {
	// Version is the version in the greeting. Default 3.3.0.
	Version string
	// Protocol is the version of the protocol, which determines the features of the server.
	// Default 10, the newest; -1 is a server before 2.10, which has none.
	Protocol int
	// Without are the numbers of features that the server lacks nevertheless.
	Without []int
	// Users are names with passwords. There is always a guest without one.
	Users map[string]string
	// Locked refuses all requests of the guest except for greeting and watching. The guest sees in
	// the schema only the spaces that describe it.
	Locked bool
	// Auth is how users authenticate: chap-sha1 or pap-sha256. Default chap-sha1.
	Auth string
	// TLS, if set, encrypts all connections.
	TLS *tls.Config
	// Listen is where the server listens: a path is a Unix socket, anything else host:port.
	// Default 127.0.0.1 with a free port.
	Listen string
	// ReadOnly refuses writes until [Server.SetReadOnly] allows them.
	ReadOnly bool
}

// A Server is an in-memory Tarantool server. All methods are safe for concurrent use.
type Server struct {
	// Immutable.
	config   Config
	features uint64 // 1 << number
	instance string
	listener net.Listener

	// Guarded by mu. Handlers are called without it.
	mu        sync.Mutex
	data      database
	functions map[string]Handler
	evals     map[string]Handler
	handlers  map[string]Handler
	events    map[string]*event
	conns     map[*conn]struct{}
	opened    int
	log       []string
	readOnly  bool
	refuses   bool
	hangs     bool
	reorders  int
	closed    bool

	serving sync.WaitGroup // the listener, and goroutines of connections
}

// Start starts a server, and closes it at the end of the test.
func Start(t testing.TB, c Config) *Server {
	t.Helper()
	s, err := NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// NewServer starts a server without spaces. It must be closed.
func NewServer(c Config) (*Server, error) {
	if c.Version == "" {
		c.Version = "3.3.0"
	}
	if c.Protocol == 0 {
		c.Protocol = box.ProtocolVersion
	}
	if c.Auth == "" {
		c.Auth = box.AuthSHA1
	}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	network := "tcp"
	if strings.Contains(c.Listen, "/") {
		network = "unix"
	}
	listener, err := net.Listen(network, c.Listen)
	if err != nil {
		return nil, fmt.Errorf("tarantooltest: %w", err)
	}
	if c.TLS != nil {
		listener = tls.NewListener(listener, c.TLS)
	}
	var id iproto.UUID
	rand.Read(id[:])
	s := &Server{
		config: c, features: featuresOf(c), instance: id.String(), listener: listener,
		data: newDatabase(), functions: make(map[string]Handler), evals: make(map[string]Handler),
		handlers: make(map[string]Handler), events: make(map[string]*event), conns: make(map[*conn]struct{}),
		readOnly: c.ReadOnly,
	}
	s.tellStatus()
	// Ended by Close, which waits for it.
	s.serving.Go(s.accept)
	return s, nil
}

// since is the first version of the protocol that has a feature.
var since = [...]int{
	box.FeatureStreams: 1, box.FeatureTransactions: 1, box.FeatureErrorExtension: 2, box.FeatureWatchers: 3,
	box.FeaturePagination: 4, box.FeatureNames: 5, box.FeatureWatchOnce: 6, box.FeatureTupleExtension: 7,
	box.FeatureCallTuples: 7, box.FeatureCallArgTuples: 7, box.FeatureSnapshotCursor: 8, box.FeatureIsSync: 9,
	box.FeatureArrow: 10,
}

func featuresOf(c Config) (set uint64) {
	for f, version := range since {
		if c.Protocol >= version {
			set |= 1 << f
		}
	}
	for _, f := range c.Without {
		set &^= 1 << f
	}
	return set
}

func (s *Server) has(f box.Feature) bool { return s.features>>f&1 == 1 }

// Addr returns the address of the server: host:port, or the path of its socket.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// accept serves connections until the listener is closed.
func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(time.Millisecond) // out of descriptors: wait until other connections end
			continue
		}
		s.serve(c)
	}
}

// serve starts serving a connection, unless the server refuses it.
func (s *Server) serve(socket net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.refuses {
		socket.Close()
		return
	}
	s.opened++
	c := newConn(s, socket, s.opened)
	s.conns[c] = struct{}{}
	// Both end when the connection is closed; Close closes it and waits for them.
	s.serving.Go(c.read)
	s.serving.Go(c.write)
}

// Connections returns the current number of connections, and the total number so far.
func (s *Server) Connections() (open, ever int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns), s.opened
}

// Seen returns the types of the requests so far, such as "select", with the name of the
// function of a call: "call f". Authentication and pings are omitted.
func (s *Server) Seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.log...)
}

// HangUp closes all connections, like a server that restarts without losing data.
func (s *Server) HangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.close()
	}
}

// Refuse makes the server close new connections immediately, and with false accept them again.
func (s *Server) Refuse(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = on
}

// Hang makes the server execute requests without answering them; with false, it sends the answers
// that it has kept.
func (s *Server) Hang(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs = on
	for c := range s.conns {
		c.hang(on)
	}
}

// Reorder makes each connection send n replies at a time, the last first. With 0 and 1 they are
// sent immediately.
func (s *Server) Reorder(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reorders = n
	for c := range s.conns {
		c.reorder(n)
	}
}

// SetReadOnly makes the server refuse or accept writes, and notifies the clients that watch
// box.status.
func (s *Server) SetReadOnly(on bool) {
	s.mu.Lock()
	s.readOnly = on
	s.mu.Unlock()
	s.tellStatus()
}

// tellStatus broadcasts the status that a real server broadcasts.
func (s *Server) tellStatus() {
	s.mu.Lock()
	readOnly, version := s.readOnly, s.data.version
	s.mu.Unlock()
	s.Broadcast("box.id", map[string]any{"id": 1, "instance_uuid": s.instance})
	s.Broadcast("box.status", map[string]any{"is_ro": readOnly, "is_ro_cfg": readOnly, "status": "running"})
	s.Broadcast("box.schema", map[string]any{"version": uint64(version)})
}

// Shutdown accepts no more connections, notifies the clients that watch box.shutdown that the
// server is about to end, waits up to the given time until all of these have disconnected, and
// closes the server.
func (s *Server) Shutdown(wait time.Duration) {
	s.listener.Close()
	s.Broadcast("box.shutdown", true)
	for deadline := time.Now().Add(wait); s.watched("box.shutdown") && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	s.Close()
}

// Close closes all connections, refuses new ones, and waits for handlers.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.listener.Close()
	s.HangUp()
	s.serving.Wait()
}
