// Package tarantooltest provides a server for tests of programs that use package tarantool. It runs
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
// It supports spaces with ordered indexes and the requests that read and write them, transactions
// and watchers. It answers queries of a tarantool.Pool for its role: see [Server.SetReadOnly].
// Functions and expressions are Go functions: see [Server.Func] and [Server.Eval]. [Server.Handle]
// makes requests fail or wait, and [Server.HangUp], [Server.Hang] and [Server.Refuse] do the same
// for the whole server. It supports neither Lua nor SQL nor replication: tests of these need a real
// Tarantool server.
//
// Values are int64, uint64 if they are greater than the greatest int64, float64, string, []byte,
// []any, map[any]any, and the types of package iproto.
package tarantooltest

import (
	"crypto/tls"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
)

// Config configures a server. The zero value is a server on a free port.
type Config struct {
	// Users contains the passwords by user name. The user guest always exists and has no password.
	Users map[string]string
	// Locked refuses all requests of the user guest except for those of the greeting and for
	// watches.
	Locked bool
	// Auth is the method of authentication: chap-sha1 or pap-sha256. If empty, it defaults to
	// chap-sha1.
	Auth string
	// TLS, if set, encrypts all connections.
	TLS *tls.Config
	// Listen is the address on which the server listens: a path is a Unix socket, anything else is
	// host:port. If empty, it defaults to a free port on 127.0.0.1.
	Listen string
	// ReadOnly refuses writes until [Server.SetReadOnly] permits them.
	ReadOnly bool
}

// A Server is an in-memory Tarantool server. All methods are safe for concurrent use.
type Server struct {
	sim *tarantoolsim.Server // immutable
}

// Start starts a server, which is closed at the end of the test.
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

// Connections returns the number of open connections, and the number of connections that were ever
// opened.
func (s *Server) Connections() (open, ever int) { return s.sim.Connections() }

// Seen returns the types of the requests received so far, with the name of the space or of the
// function, such as "select users" or "call f". Authentication, pings and requests for the schema
// are omitted, but not the watches that each client requests on its own.
func (s *Server) Seen() []string { return s.sim.Seen() }

// HangUp closes all connections, like a server that restarts without losing its data.
func (s *Server) HangUp() { s.sim.HangUp() }

// Hang makes the server execute requests without answering them. If on is false, it sends the
// answers that it has held back.
func (s *Server) Hang(on bool) { s.sim.Hang(on) }

// Refuse makes the server close new connections immediately. If on is false, it accepts them again.
func (s *Server) Refuse(on bool) { s.sim.Refuse(on) }

// SetReadOnly makes the server refuse writes, or accept them, and notifies the clients that watch
// box.status.
func (s *Server) SetReadOnly(on bool) { s.sim.SetReadOnly(on) }

// Broadcast sets the value of a key and sends it to the clients that watch the key. If value is
// nil, the value of the key is removed. It returns an error if the value cannot be encoded.
func (s *Server) Broadcast(key string, value any) error { return s.sim.Broadcast(key, value) }
