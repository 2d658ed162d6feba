package tarantool

import (
	"context"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/box"
)

// A TupleFuture is a Get in flight: see [Future]. It has five words, most of which are the request
// itself, because programs with ten thousand requests in flight pay for memory that is in no cache.
type TupleFuture[T any] struct {
	space      *Space[T]
	call       *pipe.Call // if nil, see p
	at         *schemaAt
	generation uint64   // of call or p
	p          *pending // state that the call does not have, because it was not sent or has a timeout
}

// StartGet is like Get, but does not wait for the reply; [TupleFuture.Get] does.
func (s *Space[T]) StartGet(ctx context.Context, key ...Part) TupleFuture[T] {
	q := spaceCall[T]{code: box.CodeSelect, limit: 1}
	c := s.client
	call, at, err := s.quick(&q, key, nil)
	if err == nil && call != nil && !c.timed {
		if err = c.engine.Start(ctx, call); err == nil {
			return TupleFuture[T]{space: s, call: call, at: at, generation: uint64(call.Generation())}
		}
		return s.unstarted(ctx, call, at, err)
	}
	return s.doNamed(ctx, &q, key, call, at, err)
}

// unstarted continues a get that could not be started.
func (s *Space[T]) unstarted(ctx context.Context, call *pipe.Call, at *schemaAt, err error) TupleFuture[T] {
	r := s.exchange(box.CodeSelect, call, at)
	err = r.pursue(ctx, err, (*pipe.Engine).Start)
	return s.pending(ctx, r, nil, err)
}

// doNamed makes a get that needs more state than a call has.
func (s *Space[T]) doNamed(ctx context.Context, q *spaceCall[T], key []Part, call *pipe.Call, at *schemaAt, err error) TupleFuture[T] {
	var r exchange
	switch {
	case err != nil:
	case call == nil:
		err = s.prepare(ctx, &r, q, key, nil)
	default:
		r = s.exchange(q.code, call, at)
		r.loop.Start = time.Now()
	}
	p := s.pending(ctx, r, err, nil)
	if err == nil {
		p.p.start()
	}
	return p
}

// pending returns the future of a request that needs a pending.
func (s *Space[T]) pending(ctx context.Context, r exchange, err, unsent error) TupleFuture[T] {
	p := pendings.Get().(*pending)
	p.ctx, p.r, p.err, p.unsent = ctx, r, err, unsent
	return TupleFuture[T]{space: s, p: p, generation: p.generation.Load()}
}

// Get waits for the reply and reads the tuple into dst. If there is none, found is false and dst is
// unchanged.
func (f TupleFuture[T]) Get(dst *T) (found bool, err error) {
	q := spaceCall[T]{code: box.CodeSelect, into: dst}
	p := f.p
	switch {
	case p != nil:
		if p, err = (Future{p, f.generation}).take(); err != nil {
			return false, err
		}
	case f.call == nil:
		return false, ErrReleased
	case f.call.Claim(uint32(f.generation)):
		if err = f.call.Wait(); err == nil {
			if known, err := q.take(f.space.client, f.call); known {
				return q.found, err
			}
		}
		return f.finish(&q, err)
	default:
		if p = f.watched(true); p == nil {
			return false, ErrReleased
		}
	}
	if err = p.err; p.r.call != nil {
		err = q.finish(p.ctx, &p.r, p.wait())
	}
	p.release(err)
	return q.found, err
}

// finish returns the result if there is no successful reply.
func (f TupleFuture[T]) finish(q *spaceCall[T], err error) (bool, error) {
	r, ctx := f.space.exchange(q.code, f.call, f.at), f.call.Context()
	err = q.finish(ctx, &r, err)
	r.end(ctx, err)
	return q.found, err
}

// watching guards the values that Done attaches to calls.
var watching sync.Mutex

// Done is like [Future.Done].
func (f TupleFuture[T]) Done() <-chan struct{} {
	switch {
	case f.p != nil:
		return Future{f.p, f.generation}.Done()
	case f.call == nil:
		return closedChannel
	case f.call.Claim(uint32(f.generation)):
		p := pendings.Get().(*pending)
		p.r, p.ctx = f.space.exchange(box.CodeSelect, f.call, f.at), f.call.Context()
		watching.Lock()
		defer watching.Unlock()
		p.await(nil)
		f.call.Attach(p)
		return p.done
	}
	if p := f.watched(false); p != nil {
		return p.done
	}
	return closedChannel
}

// watched returns the value that Done has attached to the call, or nil if Done was not called or
// the result was taken. If take is true, it removes the value.
func (f TupleFuture[T]) watched(take bool) *pending {
	watching.Lock()
	defer watching.Unlock()
	if f.call.Generation() != uint32(f.generation)+1 {
		return nil // released
	}
	p, _ := f.call.Attached().(*pending)
	if take {
		f.call.Attach(nil)
	}
	return p
}
