package tarantool

import (
	"context"
	"maps"
	"sync/atomic"
)

// A PoolSpace is a [Space] of the instances of a [Pool]: what reads goes to those of one mode,
// what writes to those of mode ReadWrite. It may be used by many goroutines concurrently.
type PoolSpace[T any] struct {
	// Immutable.
	pool        *Pool
	name, index string
	reads       Mode

	// Atomic: the space of each client that it was used with, written by the first caller
	// that uses one. The map is replaced, never changed.
	spaces atomic.Pointer[map[*Client]*Space[T]]
}

// PoolSpaceOf returns the space of that name, whose Get and Select are of the mode reads. Reads
// from a replica may miss what was written a moment ago.
func PoolSpaceOf[T any](p *Pool, name string, reads Mode) *PoolSpace[T] {
	return &PoolSpace[T]{pool: p, name: name, reads: reads}
}

// Index returns the space seen through another index: see [Space.Index].
func (s *PoolSpace[T]) Index(name string) *PoolSpace[T] {
	return &PoolSpace[T]{pool: s.pool, name: s.name, index: name, reads: s.reads}
}

// of returns the space of a client.
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
	// Instances that were removed must not be kept forever.
	for other := range grown {
		select {
		case <-other.closing:
			delete(grown, other)
		default:
		}
	}
	s.spaces.CompareAndSwap(known, &grown) // who comes too late adds it the next time
	return space
}

// run makes a call with the space of an instance, and again if that may help.
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

// Get is [Space.Get].
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

// Select is [Space.Select].
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

// Insert is [Space.Insert].
func (s *PoolSpace[T]) Insert(ctx context.Context, tuple *T) error {
	return s.run(ctx, ReadWrite, func(ctx context.Context, s *Space[T]) error { return s.Insert(ctx, tuple) })
}

// Replace is [Space.Replace].
func (s *PoolSpace[T]) Replace(ctx context.Context, tuple *T) error {
	return s.run(ctx, ReadWrite, func(ctx context.Context, s *Space[T]) error { return s.Replace(ctx, tuple) })
}

// Update is [Space.Update].
func (s *PoolSpace[T]) Update(ctx context.Context, dst *T, key []Part, ops ...Op) (found bool, err error) {
	err = s.run(ctx, ReadWrite, func(ctx context.Context, s *Space[T]) (err error) {
		found, err = s.Update(ctx, dst, key, ops...)
		return err
	})
	return found, err
}

// Upsert is [Space.Upsert].
func (s *PoolSpace[T]) Upsert(ctx context.Context, tuple *T, ops ...Op) error {
	return s.run(ctx, ReadWrite, func(ctx context.Context, s *Space[T]) error { return s.Upsert(ctx, tuple, ops...) })
}

// Delete is [Space.Delete].
func (s *PoolSpace[T]) Delete(ctx context.Context, dst *T, key ...Part) (found bool, err error) {
	err = s.run(ctx, ReadWrite, func(ctx context.Context, s *Space[T]) (err error) {
		found, err = s.Delete(ctx, dst, key...)
		return err
	})
	return found, err
}
