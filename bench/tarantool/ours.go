package main

import (
	"context"
	"errors"

	"github.com/slipstream-go/slipstream/bench/internal/tarantoolserver"
	"github.com/slipstream-go/slipstream/tarantool"
)

// ourClient is our client, with the options that a user gets by setting only the address. Pairs
// send without waiting for replies; their client makes them wait at its bound instead of refusing.
type ourClient struct {
	client *tarantool.Client
	space  *tarantool.Space[tarantoolserver.Tuple]
}

func openOurs(ctx context.Context, s setting) (client, error) {
	options := tarantool.Options{Addr: s.Address, Sockets: s.Sockets, WaitWhenFull: s.Ahead}
	clients := 1
	if s.Apart {
		clients, options.Sockets = max(s.Sockets, 1), 1
	}
	var all ourClients
	for range clients {
		c, err := tarantool.Connect(ctx, options)
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		all = append(all, ourClient{c, tarantool.SpaceOf[tarantoolserver.Tuple](c, tarantoolserver.SpaceName)})
	}
	return all, nil
}

// ourClients are several clients, of which each caller uses one.
type ourClients []ourClient

func (c ourClients) session(ctx context.Context, i int) session {
	one := c[i%len(c)]
	return &ourSession{ctx: ctx, client: one.client, space: one.space, result: new(tarantoolserver.Tuple), whole: new(oneTuple)}
}

func (c ourClients) close() error {
	var errs []error
	for _, one := range c {
		errs = append(errs, one.client.Close())
	}
	return errors.Join(errs...)
}

type ourSession struct {
	// Immutable.
	ctx      context.Context
	client   *tarantool.Client
	space    *tarantool.Space[tarantoolserver.Tuple]
	requests []tarantool.Request // of prepare

	// Owned by the goroutine that receives replies.
	result *tarantoolserver.Tuple
	whole  *oneTuple
}

func (s *ourSession) naive(key uint64) error {
	data, err := s.client.Start(s.ctx, tarantool.Select(tarantoolserver.SpaceName).Key(tarantool.Int(key)).Limit(1)).Get()
	if err != nil {
		return err
	}
	return checkGeneral(key, data)
}

func (s *ourSession) prepare(keys []uint64) {
	for _, key := range keys {
		s.requests = append(s.requests, tarantool.Select(tarantoolserver.SpaceName).Key(tarantool.Int(key)).Limit(1))
	}
}

func (s *ourSession) prepared(i int, key uint64) error {
	if err := s.client.Do(s.ctx, s.whole, s.requests[i]); err != nil {
		return err
	}
	return s.whole.Check(key)
}

func (s *ourSession) typed(key uint64) error {
	found, err := s.space.Get(s.ctx, s.result, tarantool.Int(key))
	return s.settled(key, found, err)
}

// settled checks the result of a typed select.
func (s *ourSession) settled(key uint64, found bool, err error) error {
	switch {
	case err != nil:
		return err
	case !found:
		return tarantoolserver.ErrNoTuple
	}
	return s.result.Check(key)
}

func (s *ourSession) flow(p *pair) { drive(p, s) }

func (s *ourSession) send(key uint64) tarantool.TupleFuture[tarantoolserver.Tuple] {
	return s.space.StartGet(s.ctx, tarantool.Int(key))
}

func (s *ourSession) take(f tarantool.TupleFuture[tarantoolserver.Tuple], key uint64) error {
	found, err := f.Get(s.result)
	return s.settled(key, found, err)
}
