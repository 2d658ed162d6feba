// Package tarantooltest is a server for tests of programs that use package tarantool. It runs
// in the process of the test and implements the protocol of Tarantool 3.
//
//	server := tarantooltest.Start(t, tarantooltest.Config{})
//	server.CreateSpace(tarantooltest.Space{
//		Name:    "users",
//		Fields:  []tarantooltest.Field{{Name: "id", Type: "unsigned"}, {Name: "name", Type: "string"}},
//		Indexes: []tarantooltest.Index{{Name: "primary", Parts: []string{"id"}}},
//	})
//	client, err := tarantool.Connect(ctx, tarantool.Options{Addr: server.Addr()})
//
// It has spaces with ordered indexes and the requests that read and write them, transactions
// and watchers. It answers the requests of a tarantool.Pool for its role: see [Server.SetReadOnly]. Functions and
// expressions are Go functions: see [Server.Func] and [Server.Eval]. [Server.Handle] makes requests fail or wait, and [Server.HangUp],
// [Server.Hang] and [Server.Refuse] do so to the whole server. It has no Lua, no SQL and no
// replication: tests of these need a real Tarantool.
//
// Values are int64, uint64 above the greatest int64, float64, string, []byte, []any,
// map[any]any, and the types of package iproto.
package tarantooltest

import (
	"crypto/tls"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
)

// Config configures a server. The zero value is a server on a free port.
type Config struct {
	// Users are names with passwords. There is always a guest without one.
	Users map[string]string
	// Locked refuses all requests of the guest but those that greet and watch.
	Locked bool
	// Auth is how users authenticate: chap-sha1 or pap-sha256. Default chap-sha1.
	Auth string
	// TLS makes all connections encrypted.
	TLS *tls.Config
	// Listen is where the server listens: a path is a Unix socket, anything else host:port.
	// Default 127.0.0.1 with a free port.
	Listen string
	// ReadOnly refuses writes until [Server.SetReadOnly] allows them.
	ReadOnly bool
}

// A Server is a Tarantool in memory. All methods are safe for concurrent use.
type Server struct {
	sim *tarantoolsim.Server // immutable
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
	sim, err := tarantoolsim.NewServer(tarantoolsim.Config{
		Users: c.Users, Locked: c.Locked, Auth: c.Auth, TLS: c.TLS, Listen: c.Listen, ReadOnly: c.ReadOnly,
	})
	if err != nil {
		return nil, err
	}
	return &Server{sim}, nil
}

// Close closes all connections, refuses new ones, and waits for handlers.
func (s *Server) Close() { s.sim.Close() }

// Addr returns the address of the server: host:port, or the path of its socket.
func (s *Server) Addr() string { return s.sim.Addr() }

// Connections returns how many connections there are, and how many there have been.
func (s *Server) Connections() (open, ever int) { return s.sim.Connections() }

// Seen returns the types of the requests so far, such as "select users", with the name of the
// space or of the function: "call f". Authentication, pings and requests for the schema are
// omitted, but not the watches of each client itself.
func (s *Server) Seen() []string { return s.sim.Seen() }

// HangUp closes all connections, like a server that restarts without losing its data.
func (s *Server) HangUp() { s.sim.HangUp() }

// Hang makes the server execute requests without answering them, and with false send the
// answers that it kept.
func (s *Server) Hang(on bool) { s.sim.Hang(on) }

// Refuse makes the server close new connections immediately, and with false accept them again.
func (s *Server) Refuse(on bool) { s.sim.Refuse(on) }

// SetReadOnly makes the server refuse writes, or accept them, and tells the clients that watch
// box.status.
func (s *Server) SetReadOnly(on bool) { s.sim.SetReadOnly(on) }

// Broadcast sets the value of a key and sends it to the clients that watch the key. If value
// is nil, the key has no value afterwards. The error says that the value cannot be sent.
func (s *Server) Broadcast(key string, value any) error { return s.sim.Broadcast(key, value) }
