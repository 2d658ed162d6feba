package main

import (
	"context"

	rival "github.com/tarantool/go-tarantool/v2"

	"github.com/slipstream-go/slipstream/bench/internal/tarantoolserver"
)

// goTarantool2Client is go-tarantool v2, the version that the article measured. It decodes into a
// type with its own decoder.
type goTarantool2Client struct {
	connections connections[*rival.Connection]
}

func openGoTarantool2(ctx context.Context, s setting) (client, error) {
	all, err := connect(s, func() (*rival.Connection, error) {
		return rival.Connect(ctx, rival.NetDialer{Address: s.Address, User: "guest"}, rival.Opts{Timeout: replyLimit})
	})
	if err != nil {
		return nil, err
	}
	return &goTarantool2Client{all}, nil
}

func (c *goTarantool2Client) session(ctx context.Context, i int) session {
	s := &goTarantool2Session{ctx: ctx, connection: c.connections.of(i), key: new(oneKey), result: new(oneTuple)}
	s.request = s.selectBy(s.key)
	return s
}

func (c *goTarantool2Client) close() error { return c.connections.close() }

type goTarantool2Session struct {
	// Immutable.
	ctx        context.Context
	connection *rival.Connection
	request    *rival.SelectRequest
	requests   []*rival.SelectRequest // of prepare

	// Owned by the sending goroutine.
	key *oneKey

	// Owned by the goroutine that receives replies.
	result *oneTuple
}

// selectBy builds a request with numbers, which avoids looking up names.
func (s *goTarantool2Session) selectBy(key any) *rival.SelectRequest {
	r := rival.NewSelectRequest(tarantoolserver.SpaceNumber).Index(0).Limit(1).Iterator(rival.IterEq).Key(key)
	if s.ctx.Done() == nil {
		return r // even a context that cannot end would be watched
	}
	return r.Context(s.ctx)
}

// naive uses a uint as the key: see the one of v3.
func (s *goTarantool2Session) naive(key uint64) error {
	data, err := s.connection.Do(s.selectBy([]any{uint(key)})).Get()
	if err != nil {
		return err
	}
	return checkGeneral(key, data)
}

func (s *goTarantool2Session) prepare(keys []uint64) {
	for _, key := range keys {
		s.requests = append(s.requests, s.selectBy(&oneKey{key}))
	}
}

func (s *goTarantool2Session) prepared(i int, key uint64) error {
	return s.take(s.connection.Do(s.requests[i]), key)
}

func (s *goTarantool2Session) typed(key uint64) error { return s.take(s.send(key), key) }

func (s *goTarantool2Session) flow(p *pair) { drive(p, s) }

// send may change the key of the request, because the request is encoded before Do returns.
func (s *goTarantool2Session) send(key uint64) *rival.Future {
	s.key.key = key
	return s.connection.Do(s.request)
}

func (s *goTarantool2Session) take(f *rival.Future, key uint64) error {
	if err := f.GetTyped(s.result); err != nil {
		return err
	}
	return s.result.Check(key)
}
