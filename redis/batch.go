package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/pipe"
)

// A Batch is a list of commands that travel together: contiguously on one
// connection, all or none of them when there is no room. It is not a
// transaction: other clients' commands may be executed in between. The zero
// Batch is empty. It is used by one goroutine at a time and may be sent again.
type Batch struct {
	commands []Command
	dsts     []any
	errs     []error // of the last time; nil: no errors
}

// Add adds a command whose reply is decoded into dst as [Client.Do] does.
func (b *Batch) Add(dst any, cmd Command) {
	b.commands = append(b.commands, cmd)
	b.dsts = append(b.dsts, dst)
}

// Len returns the number of commands.
func (b *Batch) Len() int { return len(b.commands) }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	clear(b.commands)
	clear(b.dsts)
	b.commands, b.dsts, b.errs = b.commands[:0], b.dsts[:0], nil
}

// Err returns the error of the i-th command when the batch was last sent.
func (b *Batch) Err(i int) error {
	if b.errs == nil {
		return nil
	}
	return b.errs[i]
}

// A BatchError says which of several commands failed first.
type BatchError struct {
	// Index is the command's, from 0.
	Index int
	// Failed is how many commands failed.
	Failed int
	// Err is the error of that command.
	Err error
}

// Error names the command by its position.
func (e *BatchError) Error() string {
	return fmt.Sprintf("command %d (%d failed): %v", e.Index, e.Failed, e.Err)
}

// Unwrap returns the error of the command.
func (e *BatchError) Unwrap() error { return e.Err }

// DoBatch sends a batch and waits for all replies. The error is a *[BatchError]
// with that of the first command that failed; the others' are in [Batch.Err]. A
// batch is repeated only if no part of it was sent.
func (c *Client) DoBatch(ctx context.Context, b *Batch) error {
	b.errs = nil
	return c.doAll(ctx, b.commands, b.dsts, func(i int, err error) {
		if b.errs == nil {
			b.errs = make([]error, len(b.commands))
		}
		b.errs[i] = err
	})
}

// manyAtOnce is how many commands DoMany has under way: more gain nothing and
// would fill the queue of everybody else.
const manyAtOnce = 4096

// DoMany sends commands together and waits for all replies. The reply of
// cmds[i] is decoded into dsts[i]; dsts may be nil if nobody wants the replies.
// The error is a *[BatchError] with that of the first command that failed; all
// others are sent nevertheless. For the error of each one use a [Batch].
func (c *Client) DoMany(ctx context.Context, cmds []Command, dsts []any) error {
	if dsts != nil && len(dsts) != len(cmds) {
		return c.notSent("DoMany", fmt.Errorf("%d destinations for %d commands", len(dsts), len(cmds)))
	}
	most := manyAtOnce
	if c.opts.MaxCalls > 0 {
		most = max(1, min(most, c.opts.MaxCalls/max(c.opts.Sockets, 1)/2))
	}
	var first *BatchError
	for from := 0; from < len(cmds); from += most {
		to := min(from+most, len(cmds))
		var part []any
		if dsts != nil {
			part = dsts[from:to]
		}
		var e *BatchError
		if err := c.doAll(ctx, cmds[from:to], part, nil); errors.As(err, &e) {
			if first == nil {
				e.Index += from
				first = e
			} else {
				first.Failed += e.Failed
			}
		}
	}
	if first != nil {
		return first
	}
	return nil
}

// callLists are slices that DoAll needs for a moment.
var callLists = sync.Pool{New: func() any { return new([]*pipe.Call) }}

// doAll sends commands contiguously. Failed, if set, is told of each error.
func (c *Client) doAll(ctx context.Context, cmds []Command, dsts []any, failed func(int, error)) error {
	if len(cmds) == 0 {
		return nil
	}
	list := callLists.Get().(*[]*pipe.Call)
	calls := (*list)[:0]
	defer func() {
		for i, call := range calls {
			call.Release()
			calls[i] = nil
		}
		*list = calls[:0]
		callLists.Put(list)
	}()
	var start time.Time
	if c.timed {
		start = time.Now()
	}
	size := 0
	e := c.only
	for i := range cmds {
		cmd := &cmds[i]
		if cmd.info == unknownCommand && !cmd.whole {
			asked := *cmd // the caller's may be used by others
			if _, err := c.needsOwn(ctx, &asked); err != nil {
				return c.allNotSent(len(cmds), i, err, failed)
			}
			cmd = &asked
		}
		r, err := c.prepare(cmd)
		if err != nil {
			return c.allNotSent(len(cmds), i, err, failed)
		}
		calls = append(calls, r.call)
		size += len(r.call.Frame)
		e = r.engine
	}
	attempts := c.sendAll(ctx, e, calls, start)
	first := c.collect(cmds, dsts, calls, failed)
	if c.opts.Observer != nil || c.opts.OnSlow != nil {
		c.observeBatch(calls, first, start, size, attempts)
	}
	if first != nil {
		return first
	}
	return nil
}

// allNotSent is the end of a batch of which one command is wrong.
func (c *Client) allNotSent(n, bad int, err error, failed func(int, error)) error {
	if failed != nil {
		for i := range n {
			failed(i, c.notSent("batch", fmt.Errorf("command %d of the batch: %w", bad, err)))
		}
		failed(bad, err)
	}
	return &BatchError{Index: bad, Failed: n, Err: err}
}

// sendAll makes the calls, again if nothing of them was sent.
func (c *Client) sendAll(ctx context.Context, e *pipe.Engine, calls []*pipe.Call, start time.Time) (attempts int) {
	for attempts = 1; ; attempts++ {
		one := ctx
		cancel := func() {}
		if attempts > 1 && c.opts.Timeout > 0 {
			one, cancel = context.WithDeadline(ctx, start.Add(c.opts.Timeout))
		}
		err := e.DoAll(one, calls)
		cancel()
		if err == nil || c.opts.FailFast || timeIsUp(err) || attempts > c.retries {
			return attempts
		}
		for _, call := range calls {
			if call.Spent() || call.Err() == nil || slipstream.OutcomeOf(call.Err()) != slipstream.NotSent {
				return attempts
			}
		}
		if !c.pause(ctx, attempts, start) {
			return attempts
		}
		c.repeated.Add(1)
	}
}

// collect decodes the replies and returns the first error.
func (c *Client) collect(cmds []Command, dsts []any, calls []*pipe.Call, failed func(int, error)) (first *BatchError) {
	for i, call := range calls {
		r := request{call: call, info: cmds[i].info, name: cmds[i].name}
		var err error
		if failure := c.failure(&r, call.Err()); failure != nil {
			err = failure
		} else if dsts != nil {
			if err = decode(call.Reply(), dsts[i]); err != nil {
				err = c.executed(r.name, err)
			}
		}
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
	return first
}

func (c *Client) observeBatch(calls []*pipe.Call, first *BatchError, start time.Time, size, attempts int) {
	o := Observation{Op: "BATCH", Start: start, Commands: len(calls), Attempts: attempts, RequestBytes: size}
	for _, call := range calls {
		o.ReplyBytes += len(call.Reply())
	}
	if first != nil {
		o.Err = first
	}
	c.observe(o)
}
