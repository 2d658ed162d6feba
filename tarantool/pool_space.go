package tarantool

import (
	"context"
	"maps"
	"sync/atomic"
)

// A PoolSpace is a [Space] on the instances of a [Pool]: reads go to instances of a given mode, and
// writes to instances of mode ReadWrite. It is safe for concurrent use.
type PoolSpace[T any] struct {
	// Immutable.
	pool        *Pool
	name, index string
	reads       Mode

	// Atomic: the space for each client with which it was used, written by the first caller that
	// uses a client. The map is replaced, never changed.
	spaces atomic.Pointer[map[*Client]*Space[T]]
}

// PoolSpaceOf returns the space with the given name. Its Get and Select use instances of the mode
// reads. Reads from a replica may miss recent writes.
func PoolSpaceOf[T any](p *Pool, name string, reads Mode) *PoolSpace[T] {
	return &PoolSpace[T]{pool: p, name: name, reads: reads}
}

// Index returns the space with another index: see [Space.Index].
func (s *PoolSpace[T]) Index(name string) *PoolSpace[T] {
	return &PoolSpace[T]{pool: s.pool, name: s.name, index: name, reads: s.reads}
}

// of returns the space for a client.
func (s *PoolSpace[T]) of(c *Client) *Space[T] {
	known := s.spaces.Load()
	if known != nil {
		if space := (*known)[c]; space != nil {
			return space
		}
	}
	space := SpaceOf[T](c, s.name)
	if s.index != "" {
		space = space.Index(s.index)
	}
	grown := map[*Client]*Space[T]{c: space}
	if known != nil {
		maps.Copy(grown, *known)
	}
	// Removed instances must not be kept forever.
	for other := range grown {
		select {
		case <-other.closing:
			delete(grown, other)
		default:
		}
	}
	s.spaces.CompareAndSwap(known, &grown) // if another caller was faster, the next call adds the space
	return space
}

// run makes a call with the space of an instance, and retries it if that may help.
func (s *PoolSpace[T]) run(ctx context.Context, mode Mode, call func(context.Context, *Space[T]) error) error {
	r := s.pool.begin(mode)
	if err := r.choose(ctx); err != nil {
		return err
	}
	err := call(ctx, s.of(r.client))
	if err == nil {
		return nil
	}
	return r.resume(ctx, err, false, func(ctx context.Context, c *Client) error { return call(ctx, s.of(c)) })
}

// Get is like [Space.Get].
func (s *PoolSpace[T]) Get(ctx context.Context, dst *T, key ...Part) (found bool, err error) {
	r := s.pool.begin(s.reads)
	if err := r.choose(ctx); err != nil {
		return false, err
	}
	if found, err = s.of(r.client).Get(ctx, dst, key...); err == nil {
		return found, nil
	}
	err = r.resume(ctx, err, true, func(ctx context.Context, c *Client) (err error) {
		found, err = s.of(c).Get(ctx, dst, key...)
		return err
	})
	return found, err
}

// Select is like [Space.Select].
func (s *PoolSpace[T]) Select(ctx context.Context, dst []T, limit uint32, it Iterator, key ...Part) ([]T, error) {
	r := s.pool.begin(s.reads)
	if err := r.choose(ctx); err != nil {
		return dst, err
	}
	list, err := s.of(r.client).Select(ctx, dst, limit, it, key...)
	if err != nil {
		err = r.resume(ctx, err, true, func(ctx context.Context, c *Client) (err error) {
			list, err = s.of(c).Select(ctx, dst, limit, it, key...)
			return err
		})
	}
	return list, err
}

// Insert is like [Space.Insert].
func (s *PoolSpace[T]) Insert(ctx context.Context, tuple *T) error {
	return s.run(ctx, ReadWrite, func(ctx context.Context, s *Space[T]) error { return s.Insert(ctx, tuple) })
}

// Replace is like [Space.Replace].
func (s *PoolSpace[T]) Replace(ctx context.Context, tuple *T) error {
	return s.run(ctx, ReadWrite, func(ctx context.Context, s *Space[T]) error { return s.Replace(ctx, tuple) })
}

// Update is like [Space.Update].
func (s *PoolSpace[T]) Update(ctx context.Context, dst *T, key []Part, ops ...Op) (found bool, err error) {
	err = s.run(ctx, ReadWrite, func(ctx context.Context, s *Space[T]) (err error) {
		found, err = s.Update(ctx, dst, key, ops...)
		return err
	})
	return found, err
}

// Upsert is like [Space.Upsert].
func (s *PoolSpace[T]) Upsert(ctx context.Context, tuple *T, ops ...Op) error {
	return s.run(ctx, ReadWrite, func(ctx context.Context, s *Space[T]) error { return s.Upsert(ctx, tuple, ops...) })
}

// Delete is like [Space.Delete].
func (s *PoolSpace[T]) Delete(ctx context.Context, dst *T, key ...Part) (found bool, err error) {
	err = s.run(ctx, ReadWrite, func(ctx context.Context, s *Space[T]) (err error) {
		found, err = s.Delete(ctx, dst, key...)
		return err
	})
	return found, err
}
