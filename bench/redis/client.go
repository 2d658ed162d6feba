package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// A client is one Redis client as the load sees it. Its methods may be called
// from any number of goroutines at once, close once at the end.
type client interface {
	// get returns the value of key. It may write it into dst, from its start,
	// or return memory of its own, which stays valid until the next get of the
	// same caller. A missing key is an error.
	get(ctx context.Context, dst []byte, key string) ([]byte, error)
	set(ctx context.Context, key, value string) error
	close() error
}

// A setting is what a client is told about its work.
type setting struct {
	Address string
	// Callers is how many goroutines will use the client at once: what the
	// user of a pool would size it by.
	Callers int
	// Plain keeps to RESP2 and asks for no handshake where a client can do
	// without: proxies know few commands.
	Plain bool
	// Single allows one connection only.
	Single bool
	// Cached switches client-side caching on.
	Cached bool
	// Blocked is how many calls wait at the server meanwhile, for a list that stays empty.
	Blocked int
	// Timeout is that of a call, for clients whose calls know no contexts; 0:
	// none.
	Timeout time.Duration
}

// maxPool bounds pools. More connections cost the server and gain nothing on
// two cores: each request still takes its own two system calls on each side.
const maxPool = 512

// pool is how many connections a client with a pool gets.
func (s setting) pool() int {
	if s.Single {
		return 1
	}
	return min(max(s.Callers, 1), maxPool)
}

// A kind is one way to use one client library.
type kind struct {
	name string
	open func(ctx context.Context, s setting) (client, error)
	// noWait marks clients that never hold a request back to gather others.
	noWait bool
	// pipelined clients share connections among callers.
	pipelined bool
	// variant is another setting of a client that the list has already: its
	// way of reading replies is the same.
	variant bool
}

// rivals are all subjects that are not ours, in the order of the tables.
var rivals = slices.Concat(redigoKinds, goRedisKinds, rueidisKinds, redispipeKinds, radixKinds, pascaldekloeKinds)

// kinds are the rivals and ours.
func kinds() []kind { return append(slices.Clone(rivals), ourKinds...) }

// kindOf returns the kind of a subject; the control is ours once more.
func kindOf(subject string) (kind, bool) {
	if subject == load.Control {
		subject = load.Ours
	}
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.name == subject })
	if i < 0 {
		return kind{}, false
	}
	return all[i], true
}

// subjectNames are the subjects of a comparison: the rivals that match, ours
// and the control.
func subjectNames(match func(kind) bool) []string {
	var names []string
	for _, k := range kinds() {
		if match != nil && !match(k) {
			continue
		}
		names = append(names, k.name)
		if k.name == load.Ours {
			names = append(names, load.Control)
		}
	}
	return names
}

// openKind opens a client of a subject.
func openKind(ctx context.Context, subject string, s setting) (client, error) {
	k, ok := kindOf(subject)
	if !ok {
		return nil, errNoSubject(subject)
	}
	s.Callers = cmp.Or(s.Callers, 1)
	return k.open(ctx, s)
}

type errNoSubject string

func (e errNoSubject) Error() string { return "no subject " + string(e) }
