// Package redistest provides an in-memory server for tests of programs that use package redis. It
// needs no port and no process, and the test controls its clock.
//
//	server := redistest.NewServer()
//	defer server.Close()
//	client, err := redis.Connect(ctx, server.Options())
//
// It supports the most common commands for strings, hashes, lists and sets, expiry, and
// transactions, in both versions of the protocol; see [Commands]. A test adds commands, or makes a
// command fail, by [Server.Handle]. It is not a Redis server: programs that use scripts, streams or
// subscriptions need tests with a real one.
//
// [NewCluster] creates a cluster of such servers, which listen on ports of the loopback address.
// The test moves slots, promotes replicas, and stops and starts nodes; nodes redirect clients like
// those of a real cluster. The only subscriptions are those to channels of shards. Their node ends
// them on its own, with an unsolicited sunsubscribe, when their slot moves
// ([Cluster.FinishMigration], [Cluster.MoveSlots]) or their shard has another master
// ([Cluster.Failover]). So a test can check how a program handles a [redis.Gap].
package redistest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
	"github.com/slipstream-go/slipstream/redis"
)

// A Handler answers a command. Args starts with its name as it was sent. The result is
//
//	nil                a null
//	string, []byte     a string
//	int, int64         an integer
//	float64, bool      the same in protocol 3; a string and an integer in protocol 2
//	error              an error; a *redis.ServerError with its code, others with ERR
//	[]any, []string    an array
//	map[string]any     a map, or an array in protocol 2; sorted by name
//	Simple, Raw        a status such as OK; bytes that are sent unchanged
//
// HangUp closes the connection instead, and Silence sends no answer. The handler is called by the
// goroutine of the connection and may block.
type Handler func(c *Conn, args []string) any

// Simple is a status reply.
type Simple string

// Raw is an encoded reply, which is sent unchanged.
type Raw []byte

type control int

// The actions of a [Handler] that sends no answer.
const (
	HangUp  = control(iota) // closes the connection
	Silence                 // leaves the client waiting
)

// A Server is an in-memory Redis server. All methods are safe for concurrent use.
type Server struct {
	// Immutable.
	mu   *sync.Mutex // shared by the nodes of a cluster
	node *Node       // nil if the server is not in a cluster

	// Guarded by mu.
	handlers map[string]Handler
	space    keyspace // shared by the nodes of a shard
	now      time.Time
	changes  *uint64 // number of changes of keys, for WATCH
	log      [][]string
	conns    map[*Conn]struct{}
	opened   int
	closed   bool

	serving sync.WaitGroup // goroutines of connections
}

// NewServer returns a server without keys. It must be closed.
func NewServer() *Server { return newServer(new(sync.Mutex), make(keyspace), new(uint64)) }

func newServer(mu *sync.Mutex, space keyspace, changes *uint64) *Server {
	return &Server{mu: mu, handlers: make(map[string]Handler), space: space, now: time.Now(), changes: changes, conns: make(map[*Conn]struct{})}
}

// Options returns options for a client of the server. They may be changed, except for the
// Dialer.
func (s *Server) Options() redis.Options {
	return redis.Options{Addr: "redistest:6379", Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) }}
}

// Dial opens a connection, for programs that use another client.
func (s *Server) Dial(context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serve(server) {
		client.Close()
		return nil, fmt.Errorf("redistest: the server is closed")
	}
	return client, nil
}

// serve answers the commands on a connection. If the server is closed, it closes the connection and
// returns false. The caller holds mu.
func (s *Server) serve(conn net.Conn) bool {
	if s.closed {
		conn.Close()
		return false
	}
	s.opened++
	c := &Conn{server: s, conn: conn, Number: s.opened, protocol: 2, more: make(chan struct{}, 1)}
	s.conns[c] = struct{}{}
	s.serving.Add(2)
	// Both end when the connection is closed; Close waits for them.
	go c.read()
	go c.write()
	return true
}

// Handle makes f answer a command from now on. If f is nil, the server's own implementation is used
// again. The name of a subcommand follows a space: "CLIENT ID".
func (s *Server) Handle(command string, f Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handle(command, f)
}

// handle does what Handle does. The caller holds mu.
func (s *Server) handle(command string, f Handler) {
	if f == nil {
		delete(s.handlers, strings.ToUpper(command))
		return
	}
	s.handlers[strings.ToUpper(command)] = f
}

// Seen returns the commands that were received so far, without those of greetings.
func (s *Server) Seen() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// Advance advances the server's clock, so that keys expire. The clock stands still otherwise.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(d)
}

// advance does what Advance does. The caller holds mu.
func (s *Server) advance(d time.Duration) {
	s.now = s.now.Add(d)
	s.space.expire(s.now)
}

// HangUp closes all connections, like a server that restarts without losing its data.
func (s *Server) HangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.conn.Close()
	}
}

// Close closes all connections, and refuses new ones.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.HangUp()
	s.serving.Wait()
}

// A Conn is a connection to the server.
type Conn struct {
	// Number is the number of the connection, starting at 1.
	Number int

	// Immutable.
	server *Server
	conn   net.Conn
	more   chan struct{} // capacity 1: there is something to write

	// Written by read under server.mu; other connections that send messages here need protocol and
	// channels.
	protocol int
	channels map[string]struct{} // subscribed channels of the shard

	// Owned by read.
	queued   [][]string // commands queued by MULTI; nil without MULTI
	multi    bool
	aborted  bool // a command was refused while it was queued
	watched  map[string]uint64
	asking   bool // the next command follows ASKING
	readOnly bool // READONLY was sent

	mu   sync.Mutex
	out  []byte // guarded by mu
	done bool   // guarded by mu: nothing more will be sent
}

// read answers commands until the connection ends.
func (c *Conn) read() {
	defer c.server.serving.Done()
	defer c.end()
	scanner := resp.NewCommandScanner(resp.Limits{})
	var in []byte
	chunk := make([]byte, 16<<10)
	for {
		n, err := c.conn.Read(chunk)
		if err != nil {
			return
		}
		in = append(in, chunk[:n]...)
		for len(in) > 0 {
			size, args, verdict, err := scanner.Scan(in)
			if err != nil {
				c.send(resp.AppendError(nil, "ERR Protocol error: "+err.Error()))
				return
			}
			if verdict != resp.Done {
				break
			}
			words := make([]string, len(args))
			for i, a := range args {
				words[i] = string(a)
			}
			in = in[size:]
			if len(words) > 0 && !c.answer(words) {
				return
			}
		}
	}
}

// end lets write send the remaining replies and close the connection.
func (c *Conn) end() {
	c.mu.Lock()
	c.done = true
	c.mu.Unlock()
	c.notify()
	c.server.mu.Lock()
	delete(c.server.conns, c)
	c.server.mu.Unlock()
}

func (c *Conn) notify() {
	select {
	case c.more <- struct{}{}:
	default:
	}
}

func (c *Conn) send(b []byte) {
	c.mu.Lock()
	c.out = append(c.out, b...)
	c.mu.Unlock()
	c.notify()
}

// write sends replies, in a separate goroutine because a client may write before it reads.
func (c *Conn) write() {
	defer c.server.serving.Done()
	defer c.conn.Close()
	for range c.more {
		c.mu.Lock()
		out, done := c.out, c.done
		c.out = nil
		c.mu.Unlock()
		if len(out) > 0 {
			if _, err := c.conn.Write(out); err != nil {
				return
			}
		}
		if done {
			return
		}
	}
}

// answer answers one command. It returns false if the connection is to be closed.
func (c *Conn) answer(args []string) bool {
	s := c.server
	s.mu.Lock()
	handler := s.handlers[strings.ToUpper(args[0])]
	if len(args) > 1 && handler == nil {
		handler = s.handlers[strings.ToUpper(args[0]+" "+args[1])]
	}
	if !greeting(args) && (s.node == nil || !surveys(args)) {
		s.log = append(s.log, args)
	}
	if handler == nil {
		// The reply is sent before another connection can see the change, because that may send
		// messages here.
		c.send(c.append(nil, c.own(args)))
		c.endAsking(args)
		s.mu.Unlock()
		return true
	}
	s.mu.Unlock()
	reply := handler(c, args)
	s.mu.Lock()
	c.endAsking(args)
	s.mu.Unlock()
	switch reply {
	case HangUp:
		return false
	case Silence:
		return true
	}
	c.send(c.append(nil, reply))
	return true
}

// endAsking ends what ASKING has permitted: one command, or a whole transaction.
func (c *Conn) endAsking(args []string) {
	if !c.multi && !strings.EqualFold(args[0], "ASKING") {
		c.asking = false
	}
}

// surveys reports whether a client of a cluster sends the command on its own.
func surveys(args []string) bool {
	return strings.EqualFold(args[0], "CLUSTER") || strings.EqualFold(args[0], "READONLY")
}

// greeting reports whether a client sends the command on its own.
func greeting(args []string) bool {
	name := strings.ToUpper(args[0])
	return name == "HELLO" || name == "CLIENT" && len(args) > 1 && slices.Contains([]string{"SETINFO", "SETNAME", "ID"}, strings.ToUpper(args[1])) ||
		name == "COMMAND"
}
