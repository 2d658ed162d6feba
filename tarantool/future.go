package tarantool

import (
	"context"
	"sync"
	"sync/atomic"
)

// A result is taken once. Do waits for it; a Future is a pooled pending and a generation, as in
// package redis. A TupleFuture is a value with its call, whose generation it claims
// (tuplefuture.go): with 16,384 in flight, each cache line counts. The caller that takes the result
// retries the request if necessary. Done costs a goroutine, because the engine wakes only one
// waiter.

// A Future is a request in flight. It is small and may be copied. Its result must be taken once, by
// Wait or Get, which releases what the Future holds. A second attempt returns ErrReleased, and
// never the result of another request. A Future whose result is never taken uses memory until the
// garbage collector finds it.
type Future struct {
	p          *pending
	generation uint64
}

// pending is the state that a Future refers to. It is recycled; the generation identifies a stale
// handle.
type pending struct {
	generation atomic.Uint64 // incremented under mu when the result is taken

	// Owned by the caller that sent the request, then by the caller that takes the result.
	r      exchange
	ctx    context.Context
	err    error // error of a request that could not be made
	unsent error // error of an attempt that the engine did not accept

	mu sync.Mutex
	// Guarded by mu until the result is taken, then owned by the caller that takes it.
	done    chan struct{} // of Done; nil if it was not called
	failure error         // error of the call, once done is closed
}

var pendings = sync.Pool{New: func() any { return new(pending) }}

// Start sends a request and returns without waiting for its reply. The request ends when ctx ends.
// Start may wait for a connection or for room, like other calls. Errors are returned to the caller
// that takes the result.
func (c *Client) Start(ctx context.Context, req Request) Future { return c.do(ctx, req, route{}) }

func (c *Client) do(ctx context.Context, req Request, way route) Future {
	p := pendings.Get().(*pending)
	p.ctx = ctx
	if p.err = p.r.prepare(ctx, c, req, way); p.err == nil {
		p.start()
	}
	return Future{p, p.generation.Load()}
}

// start submits the call. If that fails, the caller that takes the result may retry the request,
// because only that caller knows the destination of the data.
func (p *pending) start() {
	p.unsent = p.r.begin(p.ctx)
	lane := p.r.lane
	if lane == nil {
		return
	}
	// Its slot in the lane is released when the call ends, not when the result is taken. Otherwise
	// a caller that sends more requests than there are slots, before it takes any result, would
	// wait for itself.
	p.r.lane = nil
	if p.unsent != nil {
		lane.leave()
		return
	}
	p.await(lane)
}

// await starts a goroutine that waits for the call and then leaves the lane, if the call has a slot
// there. The caller holds mu, or p is not shared yet.
func (p *pending) await(lane *laneConnection) {
	done, call := make(chan struct{}), p.r.call
	p.done = done
	// Ends with the call, at the latest in Close; the caller that takes the result waits for it.
	go func() {
		p.failure = call.Wait()
		if lane != nil {
			lane.leave()
		}
		close(done)
	}()
}

// Get waits for the reply and returns its data: tuples, or the results of a function.
func (f Future) Get() ([]any, error) {
	var data []any
	err := f.Wait(&data)
	return data, err
}

// Wait waits for the reply and decodes its data into dst, as [Client.Do] does. If dst is nil, it
// only returns the error.
func (f Future) Wait(dst any) error {
	p, err := f.take()
	if err != nil {
		return err
	}
	if err = p.err; p.r.call != nil {
		err = p.r.finish(p.ctx, p.wait(), dst)
	}
	p.release(err)
	return err
}

// take makes the caller the owner of the result; the caller must release p. The lock is needed
// because Done may be reading the request.
func (f Future) take() (*pending, error) {
	p := f.p
	if p == nil {
		return nil, ErrReleased
	}
	p.mu.Lock()
	taken := p.generation.CompareAndSwap(f.generation, f.generation+1)
	p.mu.Unlock()
	if !taken {
		return nil, ErrReleased
	}
	return p, nil
}

// release ends the request, whose result has been taken, and recycles p.
func (p *pending) release(err error) {
	p.r.end(p.ctx, err)
	p.r, p.ctx, p.err, p.unsent = exchange{}, nil, nil, nil
	pendings.Put(p)
}

// wait waits for the engine, or for the goroutine of Done. The result has been taken, so no other
// caller waits.
func (p *pending) wait() error {
	if p.unsent != nil {
		return p.unsent
	}
	if p.done == nil {
		return p.r.call.Wait()
	}
	<-p.done
	err := p.failure
	p.done, p.failure = nil, nil
	return err
}

// Done returns a channel that is closed when the result can be taken without waiting, for programs
// that wait for several events. It costs a goroutine, so it is not for callers that only wait for
// the result. If the result has been taken, the channel is closed.
func (f Future) Done() <-chan struct{} {
	p := f.p
	if p == nil || p.generation.Load() != f.generation {
		return closedChannel
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.generation.Load() != f.generation || p.r.call == nil || p.unsent != nil {
		return closedChannel
	}
	if p.done == nil {
		p.await(nil)
	}
	return p.done
}

var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// failed returns a future of a request that was not sent.
func failed(err error) Future {
	p := pendings.Get().(*pending)
	p.err = err
	return Future{p, p.generation.Load()}
}
