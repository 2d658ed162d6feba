package governance

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// A Fallback answers calls that failed, for example with a value from a cache. All methods are safe for concurrent use.
type Fallback struct {
	// Immutable.
	next   rpc.Caller
	answer func(ctx context.Context, in rpc.Invocation, err error) error
}

// NewFallback returns a Fallback around another Caller. answer is called with each call that failed and its error. It
// must either set in.Result, which has the type of the function's generated result, and return nil, or return the error
// for the call, which is usually err. The context of the call may have ended. If answer panics, the call fails with err
// and the panic.
func NewFallback(next rpc.Caller, answer func(ctx context.Context, in rpc.Invocation, err error) error) (*Fallback, error) {
	if answer == nil {
		return nil, fmt.Errorf("%s: the fallback has no function", check)
	}
	return &Fallback{next: next, answer: answer}, nil
}

// Call implements [rpc.Caller].
func (f *Fallback) Call(ctx context.Context, in rpc.Invocation) error {
	err := f.next.Call(ctx, in)
	if err == nil {
		return nil
	}
	return f.instead(ctx, in, err)
}

// instead calls the fallback function and recovers its panics.
func (f *Fallback) instead(ctx context.Context, in rpc.Invocation, err error) (result error) {
	defer func() {
		if v := recover(); v != nil {
			result = errors.Join(err, fmt.Errorf("the fallback panicked: %v", v))
		}
	}()
	return f.answer(ctx, in, err)
}
