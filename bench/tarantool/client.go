package main

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/slipstream-go/slipstream/internal/load"
)

// A setting describes the work of a client.
type setting struct {
	Address string
	// Sockets is the number of connections. If zero, it is one.
	Sockets int
	// Apart means that each connection has its own client, although one client could have them all.
	Apart bool
	// Ahead means that callers send without waiting for replies.
	Ahead bool
}

// A client is one Tarantool client as the load sees it, with all its connections. Its methods are
// safe for concurrent use; close is called once at the end.
type client interface {
	// session returns the private state of caller i, with its share of the
	// connections. Its requests have ctx.
	session(ctx context.Context, i int) session
	close() error
}

// A session is one caller, or one pair of a sender and a receiver. All methods check the results.
// Only one is called at a time, and flow only once.
type session interface {
	// naive selects in the most obvious way, with a new request and a result of general type.
	naive(key uint64) error
	// prepare builds a request for each of the keys.
	prepare(keys []uint64)
	// prepared selects with the request for keys[i].
	prepared(i int, key uint64) error
	// typed selects into a struct that is reused.
	typed(key uint64) error
	// flow lets the pair send and receive until its time is up.
	flow(p *pair)
}

// A kind is one way to use one client library.
type kind struct {
	name string
	open func(ctx context.Context, s setting) (client, error)
}

// Names of the rivals.
const (
	goTarantool3        = "go-tarantool-v3"
	goTarantool3Release = "go-tarantool-v3-release"
	goTarantool2        = "go-tarantool-v2"
)

// kinds lists the rivals and ours, in the order of the tables.
func kinds() []kind {
	return []kind{
		{goTarantool2, openGoTarantool2},
		{goTarantool3, openGoTarantool3(false)},
		{goTarantool3Release, openGoTarantool3(true)},
		{load.Ours, openOurs},
	}
}

// withFloor lists the kinds and the floor.
func withFloor() []kind { return append(kinds(), kind{floor, openFloor}) }

// kindOf returns the kind of a subject. The control and the variants are of the same kind as ours.
func kindOf(subject string) (kind, bool) {
	switch subject {
	case load.Control, background, apart:
		subject = load.Ours
	}
	all := withFloor()
	i := slices.IndexFunc(all, func(k kind) bool { return k.name == subject })
	if i < 0 {
		return kind{}, false
	}
	return all[i], true
}

// connections are the connections of a client type that has one connection per client.
type connections[C interface{ Close() error }] []C

// connect opens the configured number of connections.
func connect[C interface{ Close() error }](s setting, open func() (C, error)) (connections[C], error) {
	var all connections[C]
	for range cmp.Or(s.Sockets, 1) {
		c, err := open()
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		all = append(all, c)
	}
	return all, nil
}

// of returns the connection of caller i.
func (c connections[C]) of(i int) C { return c[i%len(c)] }

func (c connections[C]) close() error {
	var errs []error
	for _, one := range c {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}
