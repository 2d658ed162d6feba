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

// A batch is cut into parts. Each part is one call of the engine with many replies, and all parts
// are submitted together. One call for each command would cost 0.2 us more per command; one call
// for the whole batch would need frames and replies that are too large for any pool.
const (
	partCommands = 1024
	partBytes    = 128 << 10
)

// parts are the calls of a batch to one node, with the data that they need.
type parts struct {
	node   *node
	items  []int32 // the commands of the batch in these parts, in order; if nil, all
	spare  []int32 // if empty, memory for items
	calls  []*pipe.Call
	until  []int    // index in items after the last command of each call
	frames [][]byte // of each call: from package buf, or nil if the frame belongs to the call or to its command
	size   int      // bytes of all frames

	started bool // scatter has started the calls
}

// keptItems bounds the memory for the indexes of commands that recycled batches keep.
const keptItems = 16 << 10

var partLists = sync.Pool{New: func() any { return new(parts) }}

// index returns the index in the batch of the i-th command of the parts.
func (p *parts) index(i int) int {
	if p.items == nil {
		return i
	}
	return int(p.items[i])
}

// release returns the memory to the pools. The engine no longer needs the frames, because the calls
// have ended.
func (p *parts) release() {
	for i, call := range p.calls {
		call.Release()
		buf.Put(p.frames[i])
	}
	clear(p.calls)
	clear(p.frames)
	p.calls, p.frames, p.until = p.calls[:0], p.frames[:0], p.until[:0]
	if p.items != nil && cap(p.items) <= keptItems {
		p.spare = p.items[:0]
	}
	p.node, p.items, p.size, p.started = nil, nil, 0, false
	partLists.Put(p)
}

// doAll sends commands contiguously; in a cluster, the commands for each node are contiguous.
// Failed, if set, is called with each error.
func (c *Client) doAll(ctx context.Context, cmds []Command, dsts []any, failed func(int, error)) error {
	if c.only == nil {
		return c.doAcross(ctx, cmds, dsts, failed)
	}
	return c.doAllOn(ctx, c.only, cmds, dsts, failed)
}

// doAllOn sends commands contiguously to one node.
func (c *Client) doAllOn(ctx context.Context, n *node, cmds []Command, dsts []any, failed func(int, error)) error {
	if len(cmds) == 0 {
		return nil
	}
	var start time.Time
	if c.timed {
		start = time.Now()
	}
	p := partLists.Get().(*parts)
	defer p.release()
	if bad, err := c.cut(ctx, p, n, cmds, len(cmds)); err != nil {
		return c.allNotSent(len(cmds), bad, err, failed)
	}
	attempts := c.sendAll(ctx, p, start)
	var report batchReport
	c.collect(cmds, dsts, p, &report, failed)
	if c.hooks.Observing() {
		c.observeBatch(ctx, p.node.fail.Addr, p.size, p.received(), len(cmds), report.first, start, attempts)
	}
	return report.err()
}

// cut makes the calls for the count commands of p to a node. If there is an error, it returns the
// index in the batch of the wrong command.
func (c *Client) cut(ctx context.Context, p *parts, n *node, cmds []Command, count int) (bad int, err error) {
	p.node = n
	for from := 0; from < count; {
		if from, err = c.addPart(ctx, p, cmds, from, count); err != nil {
			return p.index(from), err
		}
	}
	return 0, nil
}

// addPart makes a call of the commands starting at position from, and returns the position of the
// first command that is not part of it. If there is an error, it returns the index of the wrong
// command.
func (c *Client) addPart(ctx context.Context, p *parts, cmds []Command, from, count int) (to int, err error) {
	size, most := 0, min(count, from+partCommands)
	for to = from; to < most; to++ {
		cmd := &cmds[p.index(to)]
		if cmd.info == unknownCommand && !cmd.whole {
			resolved := *cmd // a copy, because the caller may share its command
			if _, err := c.needsOwn(ctx, &resolved); err != nil {
				return to, err
			}
			cmd = &resolved
		}
		if err := c.sendable(cmd); err != nil {
			return to, err
		}
		if size > 0 && size+len(cmd.frame) > partBytes {
			break
		}
		size += len(cmd.frame)
	}
	call := p.node.engine.Acquire()
	var frame []byte
	switch {
	case to == from+1:
		lend(call, cmds[p.index(from)].frame)
	case size < sharedFrame: // the call keeps small frames, so it must own this one
		for i := from; i < to; i++ {
			call.Frame = append(call.Frame, cmds[p.index(i)].frame...)
		}
	default:
		frame = buf.Get(size)
		for i := from; i < to; i++ {
			frame = append(frame, cmds[p.index(i)].frame...)
		}
		call.Frame = frame
	}
	call.Replies = int32(to - from)
	for i := from; i < to; i++ {
		cmd := &cmds[p.index(i)]
		call.SlowFor += cmd.slowFor
		call.Whole = call.Whole || cmd.whole
	}
	p.calls, p.until, p.frames = append(p.calls, call), append(p.until, to), append(p.frames, frame)
	p.size += size
	return to, nil
}

// allNotSent ends a batch that contains a wrong command.
func (c *Client) allNotSent(n, bad int, err error, failed func(int, error)) error {
	if failed != nil {
		for i := range n {
			failed(i, c.fail.NotSent("batch", fmt.Errorf("command %d of the batch: %w", bad, err)))
		}
		failed(bad, err)
	}
	return &BatchError{Index: bad, Failed: n, Err: err}
}

// sendAll makes the calls, and repeats them if nothing was sent.
func (c *Client) sendAll(ctx context.Context, p *parts, start time.Time) (attempts int) {
	for attempts = 1; ; attempts++ {
		one, cancel := ctx, context.CancelFunc(func() {})
		if attempts > 1 {
			one, cancel = c.retry.Within(ctx, start)
		}
		err := p.node.engine.DoAll(one, p.calls)
		cancel()
		if err == nil || c.only == nil || c.retry.FailFast || attempt.TimeIsUp(err) {
			return attempts
		}
		for _, call := range p.calls {
			if call.Spent() || call.Err() == nil || slipstream.OutcomeOf(call.Err()) != slipstream.NotSent {
				return attempts
			}
		}
		if !c.retry.Next(ctx, attempts, start) {
			return attempts
		}
	}
}

// A batchReport gathers the errors of a batch.
type batchReport struct {
	// again, if set, decides whether a failed command is sent once more.
	again func(i int, err error) bool
	first *BatchError
}

// note records the result of the i-th command. Failed, if set, is called with an error. It is not a
// field, because it would then escape, which costs an allocation per batch.
func (r *batchReport) note(i int, err error, failed func(int, error)) {
	if err == nil || r.again != nil && r.again(i, err) {
		return
	}
	switch {
	case r.first == nil:
		r.first = &BatchError{Index: i, Err: err}
	case i < r.first.Index:
		r.first.Index, r.first.Err = i, err
	}
	r.first.Failed++
	if failed != nil {
		failed(i, err)
	}
}

// err returns the error of the batch.
func (r *batchReport) err() error {
	if r.first == nil {
		return nil
	}
	return r.first
}

// collect decodes the replies.
func (c *Client) collect(cmds []Command, dsts []any, p *parts, report *batchReport, failed func(int, error)) {
	from := 0
	for part, call := range p.calls {
		sent := 0 // offset of the command in the frame of the call
		received := call.Received()
		for at := from; at < p.until[part]; at++ {
			i := p.index(at)
			cmd := &cmds[i]
			if at-from < received {
				var dst any
				if dsts != nil {
					dst = dsts[i]
				}
				report.note(i, p.node.answered(cmd, call.ReplyAt(at-from), dst), failed)
			} else {
				report.note(i, p.node.unanswered(cmd.name, call, sent), failed)
			}
			sent += len(cmd.frame)
		}
		from = p.until[part]
	}
}

// received returns the total number of bytes of all replies.
func (p *parts) received() (n int) {
	for _, call := range p.calls {
		n += len(call.Reply())
	}
	return n
}

// answered decodes the reply to a command of a batch.
func (n *node) answered(cmd *Command, reply []byte, dst any) error {
	if e := serverErrorIn(reply); e != nil {
		return n.fail.With(cmd.name, e.outcome(cmd.info, cmd.frame), e)
	}
	if err := decode(reply, dst); err != nil {
		return n.fail.Executed(cmd.name, err)
	}
	return nil
}

// unanswered returns the error of a command of a batch that has no reply. Its frame starts at
// offset sent in the frame of the call.
func (n *node) unanswered(name string, call *pipe.Call, sent int) error {
	failure := n.fail.Named(name, call.Err())
	if failure.Outcome == slipstream.MaybeExecuted && sent >= call.Written() {
		failure.Outcome = slipstream.NotSent
		if errors.Is(failure.Err, pipe.ErrClosed) {
			failure.Outcome = slipstream.Closed
		}
	}
	return failure
}

func (c *Client) observeBatch(ctx context.Context, addr string, sent, received, commands int, first *BatchError, start time.Time, attempts int) {
	o := Observation{
		Op: "BATCH", Addr: addr, Start: start, Requests: commands, Attempts: attempts,
		RequestBytes: sent, ReplyBytes: received,
	}
	if first != nil {
		o.Err = first
	}
	c.hooks.Observe(ctx, o)
}
