package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/buf"
	"github.com/slipstream-go/slipstream/internal/pipe"
)

// A batch is cut into parts, each of them one call of the engine with many replies; all parts
// are submitted together. One call for each command cost 0.2 us more a command; one for all
// would need frames and replies that no pool keeps.
const (
	partCommands = 1024
	partBytes    = 128 << 10
)

// parts are the calls of a batch, and what is needed for them.
type parts struct {
	calls  []*pipe.Call
	until  []int    // behind the last command of each call
	frames [][]byte // of each call: from package buf, or nil if it is the call's or its command's own
	size   int      // bytes of all frames
	engine *pipe.Engine
}

var partLists = sync.Pool{New: func() any { return new(parts) }}

// release gives everything back. The engine needs the frame of no call that has ended.
func (p *parts) release() {
	for i, call := range p.calls {
		call.Release()
		buf.Put(p.frames[i])
	}
	clear(p.calls)
	clear(p.frames)
	p.calls, p.frames, p.until = p.calls[:0], p.frames[:0], p.until[:0]
	p.size, p.engine = 0, nil
	partLists.Put(p)
}

// doAll sends commands contiguously. Failed, if set, is told of each error.
func (c *Client) doAll(ctx context.Context, cmds []Command, dsts []any, failed func(int, error)) error {
	if len(cmds) == 0 {
		return nil
	}
	var start time.Time
	if c.timed {
		start = time.Now()
	}
	p := partLists.Get().(*parts)
	defer p.release()
	for from := 0; from < len(cmds); {
		to, err := c.addPart(ctx, p, cmds, from)
		if err != nil {
			return c.allNotSent(len(cmds), to, err, failed)
		}
		from = to
	}
	attempts := c.sendAll(ctx, p.engine, p.calls, start)
	first := c.collect(cmds, dsts, p, failed)
	if c.hooks.Observing() {
		c.observeBatch(ctx, p, len(cmds), first, start, attempts)
	}
	if first != nil {
		return first
	}
	return nil
}

// addPart makes a call of the commands from position from on, and returns the first that is
// not part of it. With an error it returns which command is wrong.
func (c *Client) addPart(ctx context.Context, p *parts, cmds []Command, from int) (to int, err error) {
	size, most := 0, min(len(cmds), from+partCommands)
	for to = from; to < most; to++ {
		cmd := &cmds[to]
		if cmd.info == unknownCommand && !cmd.whole {
			asked := *cmd // the caller's may be used by others
			if _, err := c.needsOwn(ctx, &asked); err != nil {
				return to, err
			}
			cmd = &asked
		}
		if err := c.sendable(cmd); err != nil {
			return to, err
		}
		if size > 0 && size+len(cmd.frame) > partBytes {
			break
		}
		size += len(cmd.frame)
	}
	if p.engine = c.only; p.engine == nil {
		p.engine = c.router.engine(string(cmds[from].key()))
	}
	call := p.engine.Acquire()
	var frame []byte
	switch {
	case to == from+1:
		lend(call, cmds[from].frame)
	case size < sharedFrame: // the call keeps what is small, so it must be its own
		for i := from; i < to; i++ {
			call.Frame = append(call.Frame, cmds[i].frame...)
		}
	default:
		frame = buf.Get(size)
		for i := from; i < to; i++ {
			frame = append(frame, cmds[i].frame...)
		}
		call.Frame = frame
	}
	call.Replies = int32(to - from)
	for i := from; i < to; i++ {
		call.SlowFor += cmds[i].slowFor
		call.Whole = call.Whole || cmds[i].whole
	}
	p.calls, p.until, p.frames = append(p.calls, call), append(p.until, to), append(p.frames, frame)
	p.size += size
	return to, nil
}

// allNotSent is the end of a batch of which one command is wrong.
func (c *Client) allNotSent(n, bad int, err error, failed func(int, error)) error {
	if failed != nil {
		for i := range n {
			failed(i, c.fail.NotSent("batch", fmt.Errorf("command %d of the batch: %w", bad, err)))
		}
		failed(bad, err)
	}
	return &BatchError{Index: bad, Failed: n, Err: err}
}

// sendAll makes the calls, again if nothing of them was sent.
func (c *Client) sendAll(ctx context.Context, e *pipe.Engine, calls []*pipe.Call, start time.Time) (attempts int) {
	for attempts = 1; ; attempts++ {
		one, cancel := ctx, context.CancelFunc(func() {})
		if attempts > 1 {
			one, cancel = c.retry.Within(ctx, start)
		}
		err := e.DoAll(one, calls)
		cancel()
		if err == nil || c.retry.FailFast || attempt.TimeIsUp(err) {
			return attempts
		}
		for _, call := range calls {
			if call.Spent() || call.Err() == nil || slipstream.OutcomeOf(call.Err()) != slipstream.NotSent {
				return attempts
			}
		}
		if !c.retry.Next(ctx, attempts, start) {
			return attempts
		}
	}
}

// collect decodes the replies and returns the first error.
func (c *Client) collect(cmds []Command, dsts []any, p *parts, failed func(int, error)) (first *BatchError) {
	from := 0
	for part, call := range p.calls {
		sent := 0 // where in the frame of the call the command begins
		received := call.Received()
		for i := from; i < p.until[part]; i++ {
			cmd := &cmds[i]
			var err error
			if i-from < received {
				var dst any
				if dsts != nil {
					dst = dsts[i]
				}
				err = c.answered(cmd, call.ReplyAt(i-from), dst)
			} else {
				err = c.unanswered(cmd.name, call, sent)
			}
			sent += len(cmd.frame)
			if err == nil {
				continue
			}
			if first == nil {
				first = &BatchError{Index: i, Err: err}
			}
			first.Failed++
			if failed != nil {
				failed(i, err)
			}
		}
		from = p.until[part]
	}
	return first
}

// answered decodes the reply of a command of a batch.
func (c *Client) answered(cmd *Command, reply []byte, dst any) error {
	if e := serverErrorIn(reply); e != nil {
		return c.fail.With(cmd.name, e.outcome(cmd.info), e)
	}
	if err := decode(reply, dst); err != nil {
		return c.fail.Executed(cmd.name, err)
	}
	return nil
}

// unanswered is the error of a command of a batch that has no reply. Its frame begins at the
// byte sent of that of the call.
func (c *Client) unanswered(name string, call *pipe.Call, sent int) error {
	failure := c.fail.Named(name, call.Err())
	if failure.Outcome == slipstream.MaybeExecuted && sent >= call.Written() {
		failure.Outcome = slipstream.NotSent
		if errors.Is(failure.Err, pipe.ErrClosed) {
			failure.Outcome = slipstream.Closed
		}
	}
	return failure
}

func (c *Client) observeBatch(ctx context.Context, p *parts, commands int, first *BatchError, start time.Time, attempts int) {
	o := Observation{Op: "BATCH", Start: start, Requests: commands, Attempts: attempts, RequestBytes: p.size}
	for _, call := range p.calls {
		o.ReplyBytes += len(call.Reply())
	}
	if first != nil {
		o.Err = first
	}
	c.hooks.Observe(ctx, o)
}
