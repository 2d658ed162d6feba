package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

var (
	errTooManyExclusive = fmt.Errorf("%w: too many dedicated connections are in use; see Options.MaxExclusive", ErrOverloaded)
	// ErrElementLost is in the chain of the error of a blocking command that was canceled, if the
	// server did not say whether it had already returned an element.
	ErrElementLost = errors.New("the server did not say whether it had returned an element, which would be lost")
)

// doAlone makes a call on a dedicated connection and retries it as long as that is safe and
// useful.
func (c *Client) doAlone(ctx context.Context, dst any, cmd *Command) error {
	start, caller := time.Now(), ctx
	if d := c.opts.Timeout; d > 0 && cmd.blockFor >= 0 {
		// The time for which the command asks the server to wait does not count as slowness.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d+cmd.blockFor)
		defer cancel()
	}
	r := request{info: cmd.info, name: cmd.name, repeatable: cmd.repeatable(), loop: attempt.Loop{Start: start}}
	var err error
	if r.node, r.route, err = c.routeOf(cmd); err != nil {
		return err
	}
	replied := 0
	for r.loop.Made = 1; ; r.loop.Made++ {
		var failure *slipstream.Error
		failure, replied, err = c.attemptAlone(ctx, dst, cmd, &r)
		if failure == nil {
			break // err is nil, or a decoding error
		}
		if !c.goesOn(ctx, &r, failure) {
			err = failure
			break
		}
	}
	if c.hooks.Observing() {
		c.hooks.Observe(caller, Observation{
			Op: cmd.name, Addr: r.node.fail.Addr, Start: start, Requests: 1, Attempts: r.loop.Made,
			RequestBytes: len(cmd.frame), ReplyBytes: replied, Err: err,
		})
	}
	return err
}

// attemptAlone makes the call once. A failure may be retried; err is a decoding error, which is
// final.
func (c *Client) attemptAlone(ctx context.Context, dst any, cmd *Command, r *request) (failure *slipstream.Error, replied int, err error) {
	n := r.node
	x, err := c.exclusives.lease(ctx, n)
	if err != nil {
		return n.notLeased(cmd.name, err), 0, nil
	}
	defer c.exclusives.giveBack(x)
	if r.route.asking {
		if _, failure := c.waitAlone(ctx, x, &askingCommand); failure != nil {
			return n.fail.NotSent(cmd.name, failure.Err), 0, nil
		}
	}
	reply, failure := c.waitAlone(ctx, x, cmd)
	if failure != nil {
		return failure, 0, nil
	}
	if e := serverErrorIn(reply); e != nil {
		return n.fail.With(cmd.name, e.outcome(cmd.info, cmd.frame), e), len(reply), nil
	}
	if err := decode(reply, dst); err != nil {
		return nil, len(reply), n.fail.Executed(cmd.name, err)
	}
	return nil, len(reply), nil
}

// waitAlone sends a blocking command and returns the reply, which is valid until the connection is
// used again.
func (c *core) waitAlone(ctx context.Context, x *exclusive, cmd *Command) ([]byte, *slipstream.Error) {
	failed := func(outcome slipstream.Outcome, err error) ([]byte, *slipstream.Error) {
		return nil, x.node.fail.With(cmd.name, outcome, err)
	}
	if ctx.Err() != nil {
		return failed(slipstream.NotSent, context.Cause(ctx))
	}
	if outcome, err := x.send(cmd.frame); err != nil {
		return failed(outcome, err)
	}
	limit := time.Duration(0)
	if stall := c.opts.stallTimeout(); stall > 0 && cmd.blockFor >= 0 {
		limit = cmd.blockFor + cmd.slowFor + stall
	}
	reply, err := x.receive(ctx, limit)
	if err == nil {
		return reply, nil
	}
	if !errors.Is(err, errInterrupted) {
		return failed(slipstream.MaybeExecuted, err)
	}
	cause := context.Cause(ctx)
	if !cmd.waits && cmd.blockFor == 0 {
		// The command is one of a session and does not block, so a null reply would not mean that
		// it did nothing.
		return failed(slipstream.MaybeExecuted, x.breaks(cause))
	}
	reply, err = c.unblock(x)
	if err != nil {
		x.breaks(cause)
		return failed(slipstream.MaybeExecuted, fmt.Errorf("%w: %w: %w", cause, ErrElementLost, err))
	}
	if isNull(reply) {
		return failed(slipstream.Refused, cause) // the command did nothing
	}
	c.exclusives.count(func(s *ExclusiveStats) { s.Late++ })
	return reply, nil
}

// unblock ends the command that blocks on x and returns its reply. It sends CLIENT UNBLOCK on the
// shared connection, and returns only when the server has answered that, too: otherwise it could
// end the next command of x.
func (c *core) unblock(x *exclusive) ([]byte, error) {
	limit := c.opts.stallTimeout()
	if limit <= 0 {
		limit = defaultStall
	}
	if x.id == 0 {
		c.exclusives.count(func(s *ExclusiveStats) { s.Abandoned++ })
		return nil, errors.New("the server does not report connection IDs")
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var reply []byte
	var err error
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		var waited bool
		if waited, err = c.askUnblock(ctx, x); err != nil {
			break
		}
		if waited {
			reply, err = x.receive(context.Background(), limit)
			break
		}
		// Either the command was answered anyway, or the server read CLIENT UNBLOCK first and the
		// command has not blocked yet: then CLIENT UNBLOCK must be sent again.
		short, stop := context.WithTimeout(ctx, pause)
		reply, err = x.receive(short, 0)
		stop()
		if !errors.Is(err, errInterrupted) {
			break
		}
		if ctx.Err() != nil {
			err = x.breaks(ErrStalled)
			break
		}
	}
	c.exclusives.count(func(s *ExclusiveStats) {
		if err != nil {
			s.Abandoned++
		} else {
			s.Unblocked++
		}
	})
	if err != nil {
		return nil, fmt.Errorf("CLIENT UNBLOCK: %w", err)
	}
	return reply, nil
}

// askUnblock sends CLIENT UNBLOCK, and reports whether a command was blocked.
func (c *core) askUnblock(ctx context.Context, x *exclusive) (waited bool, err error) {
	engine := x.node.engine
	call := engine.Acquire()
	defer call.Release()
	call.Frame = resp.AppendBulkInt(append(call.Frame[:0], "*3\r\n$6\r\nCLIENT\r\n$7\r\nUNBLOCK\r\n"...), x.id)
	if err := engine.Do(ctx, call); err != nil {
		return false, err
	}
	if e := serverErrorIn(call.Reply()); e != nil {
		return false, e
	}
	n, err := intReply(call.Reply())
	return n != 0, err
}

// isNull reports whether a reply is null, in either version of the protocol.
func isNull(frame []byte) bool {
	d := resp.NewDecoder(frame)
	tok, err := d.Next()
	return err == nil && tok.Null
}

// needsOwn reports whether a command needs a dedicated connection. If the table does not list the
// command, needsOwn adds the server's description to cmd, so cmd must be a copy of the caller's
// command.
func (c *Client) needsOwn(ctx context.Context, cmd *Command) (bool, error) {
	if cmd.waits || cmd.err != nil || cmd.info != unknownCommand {
		return cmd.waits, nil
	}
	details, err := c.lookUpCommand(ctx, cmd.name)
	if err != nil {
		return false, err
	}
	cmd.applyDetails(details)
	return cmd.waits, nil
}

// knownToShare reports whether a command is known to be one request on a shared connection, without
// querying a server. It completes the command as needsOwn does.
func (c *Client) knownToShare(cmd *Command) bool {
	if cmd.info == unknownCommand && cmd.err == nil {
		details, cached := c.infoCache.get(cmd.name)
		if !cached {
			return false
		}
		cmd.applyDetails(details)
	}
	return !cmd.waits && !c.apart(cmd)
}

// rawFrame is a destination for the reply as received.
type rawFrame []byte

// lentFrame is rawFrame without a copy: the reply is valid until its call is released.
type lentFrame []byte
