// Package redisload puts load on Redis servers with the clients that the benchmarks compare. It
// contains the subjects, which all implement one interface, and the work of their callers.
package redisload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// A Client is one Redis client as the load sees it. Its methods are safe for concurrent use, except
// for Close, which is called once at the end.
type Client interface {
	// Get returns the value of key. It may write it into dst, from its start,
	// or return its own memory, which stays valid until the next Get of the same
	// caller. A missing key is an error.
	Get(ctx context.Context, dst []byte, key string) ([]byte, error)
	Set(ctx context.Context, key, value string) error
	Close() error
}

// A Pusher is a [Client] that appends to lists, which must not be executed twice. All clients for
// clusters are Pushers.
type Pusher interface {
	// Push appends a value to the list at key.
	Push(ctx context.Context, key, value string) error
}

// A Setting describes the work of a client. Either Address or Cluster must be set.
type Setting struct {
	Address string
	// Cluster lists addresses of nodes of a cluster. If empty, Address is that of a single server.
	Cluster []string
	// Callers is how many goroutines will use the client concurrently: a user would choose the size
	// of a pool accordingly.
	Callers int
	// Plain restricts a client to RESP2 without a handshake, if the client supports that, because
	// proxies know few commands.
	Plain bool
	// Single allows only one connection.
	Single bool
	// Cached enables client-side caching.
	Cached bool
	// Blocked is the number of additional calls that wait at the server for a list that stays
	// empty.
	Blocked int
	// Timeout is the timeout of a call, for clients whose calls have no contexts. If zero, there is
	// none.
	Timeout time.Duration
}

// maxPool bounds pools. More connections cost the server and gain nothing on
// two cores: each request still takes its own two system calls on each side.
const maxPool = 512

// pool returns the number of connections to a server for a client with a pool.
func (s Setting) pool() int {
	if s.Single {
		return 1
	}
	return min(max(s.Callers, 1), maxPool)
}

// A Kind is one way to use one client library.
type Kind struct {
	Name string
	// NoWait marks clients that never delay a request to gather others.
	NoWait bool
	// Pipelined clients share connections among callers.
	Pipelined bool
	// Variant marks another setting of a client that is already in the list, so its way of reading
	// replies is the same.
	Variant bool

	open        func(ctx context.Context, s Setting) (Client, error)
	openCluster func(ctx context.Context, s Setting) (Client, error) // nil if it does not support clusters
}

// Clustered reports whether the client supports clusters.
func (k Kind) Clustered() bool { return k.openCluster != nil }

// Open opens a client.
func (k Kind) Open(ctx context.Context, s Setting) (Client, error) {
	s.Callers = cmp.Or(s.Callers, 1)
	switch {
	case len(s.Cluster) == 0:
		return k.open(ctx, s)
	case k.openCluster == nil:
		return nil, fmt.Errorf("%s does not support clusters", k.Name)
	}
	return k.openCluster(ctx, s)
}

// Rivals lists all subjects that are not ours, in the order of the tables.
var Rivals = slices.Concat(redigoKinds, goRedisKinds, rueidisKinds, redispipeKinds, radixKinds, pascaldekloeKinds)

// Kinds returns the rivals and ours.
func Kinds() []Kind { return append(slices.Clone(Rivals), ourKinds...) }

// KindOf returns the kind of a subject; the control is the same program as ours.
func KindOf(subject string) (Kind, bool) {
	if subject == load.Control {
		subject = load.Ours
	}
	all := Kinds()
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Name == subject })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// SubjectNames returns the subjects of a comparison: the rivals that match, ours
// and the control.
func SubjectNames(match func(Kind) bool) []string {
	var names []string
	for _, k := range Kinds() {
		if match != nil && !match(k) {
			continue
		}
		names = append(names, k.Name)
		if k.Name == load.Ours {
			names = append(names, load.Control)
		}
	}
	return names
}

// Open opens a client of a subject.
func Open(ctx context.Context, subject string, s Setting) (Client, error) {
	k, ok := KindOf(subject)
	if !ok {
		return nil, errNoSubject(subject)
	}
	return k.Open(ctx, s)
}

type errNoSubject string

func (e errNoSubject) Error() string { return "no subject " + string(e) }
