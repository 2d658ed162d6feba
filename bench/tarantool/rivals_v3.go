package main

import (
	"context"

	rival "github.com/tarantool/go-tarantool/v3"

	"github.com/slipstream-go/slipstream/bench/internal/tarantoolserver"
)

// goTarantool3Client is go-tarantool v3, either as in its README, or with everything that it offers
// against allocations: released futures and pooled buffers. Both decode into a type with its own
// decoder.
type goTarantool3Client struct {
	connections connections[*rival.Connection]
	release     bool
}

// replySizes are the sizes of pooled buffers as powers of two. The first one is just large enough
// for the replies here, because a buffer is cleared whenever it is returned.
var replySizes = []int{6, 8, 12, 16}

func openGoTarantool3(release bool) func(context.Context, setting) (client, error) {
	return func(ctx context.Context, s setting) (client, error) {
		options := rival.Opts{Timeout: replyLimit}
		if release {
			allocator, err := rival.NewPoolAllocator(replySizes)
			if err != nil {
				return nil, err
			}
			options.Allocator = allocator
		}
		all, err := connect(s, func() (*rival.Connection, error) {
			return rival.Connect(ctx, rival.NetDialer{Address: s.Address, User: "guest"}, options)
		})
		if err != nil {
			return nil, err
		}
		return &goTarantool3Client{all, release}, nil
	}
}

func (c *goTarantool3Client) session(ctx context.Context, i int) session {
	s := &goTarantool3Session{ctx: ctx, connection: c.connections.of(i), release: c.release, key: new(oneKey), result: new(oneTuple)}
	s.request = s.selectBy(s.key)
	return s
}

func (c *goTarantool3Client) close() error { return c.connections.close() }

type goTarantool3Session struct {
	// Immutable.
	ctx        context.Context
	connection *rival.Connection
	release    bool
	// request is kept as an interface, because converting the request would allocate.
	request  rival.Request
	requests []rival.Request // of prepare

	// Owned by the sending goroutine.
	key *oneKey

	// Owned by the goroutine that receives replies.
	result *oneTuple
}

// selectBy builds a request with numbers, which avoids looking up names.
func (s *goTarantool3Session) selectBy(key any) rival.Request {
	r := rival.NewSelectRequest(tarantoolserver.SpaceNumber).Index(0).Limit(1).Iterator(rival.IterEq).Key(key)
	if s.ctx.Done() == nil {
		return r // even a context that cannot end would be watched
	}
	return r.Context(s.ctx)
}

// naive uses a uint as the key, because a uint64 is sent in nine bytes, and old servers find no
// tuple for a number that is not in its shortest form.
func (s *goTarantool3Session) naive(key uint64) error {
	f := s.connection.Do(s.selectBy([]any{uint(key)}))
	data, err := f.Get()
	if err == nil {
		err = checkGeneral(key, data)
	}
	s.done(f)
	return err
}

func (s *goTarantool3Session) prepare(keys []uint64) {
	for _, key := range keys {
		s.requests = append(s.requests, s.selectBy(&oneKey{key}))
	}
}

func (s *goTarantool3Session) prepared(i int, key uint64) error {
	return s.take(s.connection.Do(s.requests[i]), key)
}

func (s *goTarantool3Session) typed(key uint64) error { return s.take(s.send(key), key) }

func (s *goTarantool3Session) flow(p *pair) { drive(p, s) }

// send may change the key of the request, because the request is encoded before Do returns.
func (s *goTarantool3Session) send(key uint64) rival.Future {
	s.key.key = key
	return s.connection.Do(s.request)
}

func (s *goTarantool3Session) take(f rival.Future, key uint64) error {
	err := f.GetTyped(s.result)
	if err == nil {
		err = s.result.Check(key)
	}
	s.done(f)
	return err
}

func (s *goTarantool3Session) done(f rival.Future) {
	if s.release {
		f.Release()
	}
}
