package main

import (
	"context"
	"errors"
	"time"

	"github.com/slipstream-go/slipstream/internal/pipe"
)

// measureSweep lets calls wait for a silent server and measures the CPU time that the engine uses;
// an op is a millisecond of waiting.
func measureSweep(ctx context.Context, m micro) (result microResult, err error) {
	server, err := listenSilent()
	if err != nil {
		return microResult{}, err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	e, err := m.Setting.open(ctx, server.listener.Addr().String())
	if err != nil {
		return microResult{}, err
	}
	if m.Setting.Deadline {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, farAway)
		defer cancel()
	} else {
		ctx = context.Background()
	}
	calls, err := startCalls(ctx, e, m.Callers)
	if err == nil {
		time.Sleep(m.WarmUp)
		meter := startMeter()
		time.Sleep(m.Window)
		result = meter.result(0)
		result.Ops, result.ByCPU = uint64(max(result.Elapsed.Milliseconds(), 1)), true
	}
	err = errors.Join(err, e.Close())
	for _, c := range calls {
		if c.Wait() == nil {
			err = errors.Join(err, errors.New("a silent server has answered"))
		}
		c.Release()
	}
	return result, err
}

// startCalls returns the calls that it has started, even if it could not start all of them.
func startCalls(ctx context.Context, e *pipe.Engine, n int) ([]*pipe.Call, error) {
	var calls []*pipe.Call
	for i := range n {
		c := e.Acquire()
		c.Frame = appendGet(c.Frame[:0], keyName(smallValue, i))
		if err := e.Start(ctx, c); err != nil {
			c.Release()
			return calls, err
		}
		calls = append(calls, c)
	}
	return calls, nil
}
