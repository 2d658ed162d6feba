package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// DoTransaction sends MULTI, the commands and EXEC as one batch on the shared connection. Its calls are
// Whole, because a batch of which only a part is sent would leave the connection inside a transaction.

// ErrConflict is in the chain of the error of a transaction that was tried many times, while other
// clients changed the watched keys each time. It was not executed.
var ErrConflict = errors.New("watched keys were changed by other clients")

// watchAttempts is the maximum number of attempts of [Client.Watch]. If a hundred clients compete
// for the same key, one of them succeeds in each round.
const watchAttempts = 1000

// A Tx is one attempt of an optimistic transaction; see [Client.Watch].
type Tx struct {
	session *Session
	batch   Batch
}

// Do sends a command immediately, on the connection that watches the keys.
func (t *Tx) Do(ctx context.Context, dst any, cmd Command) error {
	switch {
	case cmd.info != nil && cmd.info.refusal == whyTransaction:
		return t.session.client.fail.NotSent(cmd.name, errors.New("Watch sends it"))
	case cmd.waits:
		return t.session.client.fail.NotSent(cmd.name, errors.New("it would block while keys are watched"))
	}
	return t.session.Do(ctx, dst, cmd)
}

// Add adds a command that is executed with the others of the transaction after the function passed
// to [Client.Watch] has returned. Its reply is then decoded into dst.
func (t *Tx) Add(dst any, cmd Command) { t.batch.Add(dst, cmd) }

// Watch reads keys and changes them without interference from other clients. The function f reads
// what it needs by [Tx.Do] and adds commands by [Tx.Add]. These are executed as a whole, unless
// another client has changed one of the keys in the meantime; then f is called again, with a new
// Tx. So f must have no other side effects.
//
// If f returns an error, Watch returns it and executes nothing. A transaction without commands only
// reads. If a command within the transaction fails, the error is a *[BatchError]; the other
// commands were executed anyway. If the connection is lost or ctx ends during the execution, the
// outcome is MaybeExecuted. Watch retries only after a conflict and, in a cluster, at the new owner
// of a slot that has moved. In a cluster, all keys must be in one slot.
func (c *Client) Watch(ctx context.Context, f func(tx *Tx) error, keys ...string) error {
	for redirects := 0; ; redirects++ {
		s, err := c.Session(ctx, keys...)
		if err != nil {
			return err
		}
		err = s.watch(ctx, f, keys)
		s.Close()
		if c.only != nil || redirects == maxRedirects || !c.router.follows(ctx, s.node, keys, err) {
			return err
		}
	}
}

// watch is Watch with a session.
func (s *Session) watch(ctx context.Context, f func(tx *Tx) error, keys []string) error {
	c := s.client
	watch := make([]any, len(keys))
	for i, key := range keys {
		watch[i] = key
	}
	tx := &Tx{session: s}
	for attempt := range watchAttempts {
		if err := conflictPause(ctx, attempt); err != nil {
			return c.fail.NotSent("WATCH", err)
		}
		if len(keys) > 0 {
			if err := s.Do(ctx, nil, Cmd("WATCH", watch...)); err != nil {
				return c.beforeExecution(err)
			}
		}
		tx.batch.Reset()
		if err := f(tx); err != nil || tx.batch.Len() == 0 {
			return errors.Join(err, s.unwatch(ctx))
		}
		if done, err := s.execute(ctx, &tx.batch); done || err != nil {
			return err
		}
	}
	return &slipstream.Error{Op: "EXEC", Addr: c.fail.Addr, Outcome: slipstream.Refused,
		Err: fmt.Errorf("%w, %d times", ErrConflict, watchAttempts)}
}

// beforeExecution converts an error of WATCH to one of the transaction, of which nothing was sent:
// whether the server has executed WATCH does not matter.
func (c *Client) beforeExecution(err error) error {
	if e, ok := errors.AsType[*slipstream.Error](err); ok && e.Outcome == slipstream.MaybeExecuted {
		return c.fail.NotSent(e.Op, e.Err)
	}
	return err
}

// conflictPause lets competing transactions finish. Most conflicts are resolved by the next
// attempt, so the first one comes immediately.
func conflictPause(ctx context.Context, attempt int) error {
	if attempt > 1 {
		t := time.NewTimer(rand.N(time.Duration(min(attempt, 20)) * 100 * time.Microsecond))
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}

// unwatch resets a session for reuse. Its errors do not matter.
func (s *Session) unwatch(ctx context.Context) error {
	if s.state.watching && s.x.broken == nil {
		if err := s.Do(ctx, nil, Cmd("UNWATCH")); err != nil {
			s.state.other = true // so the connection will be closed
		}
	}
	return nil
}

// execute sends a transaction and reads its replies; done is false after a conflict.
func (s *Session) execute(ctx context.Context, b *Batch) (done bool, err error) {
	b.errs = nil
	frame := s.x.out[:0]
	frame = append(frame, multiFrame...)
	for i := range b.commands {
		cmd := &b.commands[i]
		if err := queueable(cmd); err != nil {
			return false, errors.Join(s.client.fail.NotSent("EXEC", fmt.Errorf("command %d: %w", i, err)), s.unwatch(ctx))
		}
		frame = append(frame, cmd.frame...)
	}
	frame = append(frame, execFrame...)
	s.x.out = frame
	if cap(frame) > exclusiveKept {
		s.x.out = nil
	}
	s.state.watching, s.state.multi = false, false
	fail := func(outcome slipstream.Outcome, err error) (bool, error) {
		return false, s.client.fail.With("EXEC", outcome, err)
	}
	if ctx.Err() != nil {
		s.state.other = true
		return fail(slipstream.NotSent, context.Cause(ctx))
	}
	if err := s.x.look(); err != nil {
		return fail(s.x.outcomeOfLost(err), err)
	}
	if outcome, err := s.x.send(frame); err != nil {
		return fail(outcome, err)
	}
	refused := &queueErrors{}
	for i := range len(b.commands) + 2 {
		reply, err := s.x.receive(ctx, max(s.client.opts.stallTimeout(), 0))
		if errors.Is(err, errInterrupted) {
			err = s.x.breaks(context.Cause(ctx))
		}
		if err != nil {
			return fail(slipstream.MaybeExecuted, err)
		}
		if i <= len(b.commands) {
			refused.note(i, reply)
			continue
		}
		return s.x.node.executedAs(b, reply, refused)
	}
	return false, nil // not reached, because the last reply returns
}

// DoTransaction executes the commands of a batch as a whole: no command of another client is
// executed in between. It uses the shared connection, where no other caller's command comes in
// between either. If single commands failed, the error is a *[BatchError], and the other commands
// were executed anyway. DoTransaction retries only if no part of the transaction was sent.
func (c *Client) DoTransaction(ctx context.Context, b *Batch) error {
	b.errs = nil
	if len(b.commands) == 0 {
		return nil
	}
	framed, err := b.framed()
	if err != nil {
		return c.fail.NotSent("EXEC", err)
	}
	r := request{info: commands["EXEC"], name: "EXEC"}
	if r.node, r.route, err = c.routeAll(ctx, b.commands); err != nil {
		return c.fail.NotSent("EXEC", err)
	}
	for r.loop.Made = 1; ; r.loop.Made++ {
		err := c.transact(ctx, &r, b, framed)
		failure, ok := err.(*slipstream.Error)
		if !ok || c.only != nil || !c.goesOn(ctx, &r, failure) {
			return err
		}
	}
}

// transact sends a transaction to the node of its request, once.
func (c *Client) transact(ctx context.Context, r *request, b *Batch, framed []Command) error {
	multi := 0 // index of MULTI
	if r.route.asking {
		framed, multi = slices.Insert(slices.Clone(framed), 0, askingCommand), 1
	}
	replies := make([]rawFrame, len(framed))
	dsts := make([]any, len(framed))
	for i := range replies {
		dsts[i] = &replies[i]
	}
	refused := &queueErrors{}
	err := c.doAllOn(ctx, r.node, framed, dsts, func(i int, err error) {
		var e *ServerError
		if i -= multi; i <= len(b.commands) && errors.As(err, &e) && refused.first == nil {
			refused.index, refused.first = i-1, e
		}
	})
	last := replies[len(replies)-1]
	if last == nil {
		return r.node.transactionFailed(err, refused)
	}
	_, err = r.node.executedAs(b, last, refused)
	return err
}

// framed returns the commands between MULTI and EXEC.
func (b *Batch) framed() ([]Command, error) {
	framed := make([]Command, 0, len(b.commands)+2)
	framed = append(framed, multiCommand)
	for i := range b.commands {
		cmd := b.commands[i]
		if err := queueable(&cmd); err != nil {
			return nil, fmt.Errorf("command %d: %w", i, err)
		}
		cmd.unshared, cmd.whole = nil, true // within a transaction it does not block
		framed = append(framed, cmd)
	}
	return append(framed, execCommand), nil
}

// transactionFailed returns the error of a transaction for which EXEC returned no result.
func (n *node) transactionFailed(err error, refused *queueErrors) error {
	var batch *BatchError
	if !errors.As(err, &batch) {
		return err
	}
	var e *ServerError
	if errors.As(batch.Err, &e) && refused.first != nil {
		return refused.failure(n.fail.Addr)
	}
	return n.fail.Named("EXEC", batch.Err)
}

// failure returns the error of a transaction that the server did not queue as a whole.
func (q *queueErrors) failure(addr string) *slipstream.Error {
	if q.index < 0 {
		// Without MULTI, each command was executed separately.
		return &slipstream.Error{Op: "MULTI", Addr: addr, Outcome: slipstream.MaybeExecuted, Err: q.first}
	}
	return &slipstream.Error{Op: "EXEC", Addr: addr, Outcome: slipstream.Refused, Err: fmt.Errorf("command %d: %w", q.index, q.first)}
}

var (
	multiCommand = inTransaction("MULTI")
	execCommand  = inTransaction("EXEC")
	// askingCommand makes a node that is importing a slot execute the next command or transaction.
	askingCommand = inTransaction("ASKING")
)

// inTransaction returns a command that only DoTransaction may send on a shared connection.
func inTransaction(name string) Command {
	cmd := Cmd(name)
	cmd.unshared, cmd.whole = nil, true
	return cmd
}

// The encoded commands around a transaction.
const (
	multiFrame = "*1\r\n$5\r\nMULTI\r\n"
	execFrame  = "*1\r\n$4\r\nEXEC\r\n"
)

// queueable returns why a command cannot be part of a transaction, or nil if it can.
func queueable(cmd *Command) error {
	switch {
	case cmd.info == nil:
		return errEmptyCommand
	case cmd.err != nil:
		return cmd.err
	case cmd.info.refusal != "":
		return refusal(cmd.info.refusal)
	}
	return nil // a blocking command does not block within a transaction
}

// queueErrors are the errors with which the server refused to queue commands.
type queueErrors struct {
	index int
	first *ServerError
}

// note examines the reply to MULTI (0) or to a command (from 1).
func (q *queueErrors) note(i int, reply []byte) {
	if e := serverErrorIn(reply); e != nil && q.first == nil {
		q.index, q.first = i-1, e
	}
}

// executedAs decodes the reply to EXEC; done is false after a conflict.
func (n *node) executedAs(b *Batch, reply []byte, refused *queueErrors) (done bool, err error) {
	if e := serverErrorIn(reply); e != nil {
		// An earlier reply says why.
		if refused.first != nil {
			return false, refused.failure(n.fail.Addr)
		}
		outcome := e.outcome(commands["EXEC"], nil)
		if e.Code == "EXECABORT" {
			outcome = slipstream.Refused
		}
		return false, n.fail.With("EXEC", outcome, e)
	}
	d := resp.NewDecoder(reply)
	tok, err := d.Next()
	switch {
	case err != nil:
		return false, n.fail.Executed("EXEC", &DecodeError{Err: err})
	case tok.Null:
		return false, nil
	case tok.Kind != resp.Array || tok.Len != len(b.commands):
		return false, n.fail.Executed("EXEC", &DecodeError{Reply: describe(tok), Err: errors.New("expected an array of " + strconv.Itoa(len(b.commands)) + " replies")})
	}
	return true, n.decodeAll(b, reply, &d)
}

// decodeAll decodes the replies of a transaction, and returns the first error.
func (n *node) decodeAll(b *Batch, reply []byte, d *resp.Decoder) error {
	var first *BatchError
	for i := range b.commands {
		from := d.Offset()
		if err := d.Skip(); err != nil {
			return n.fail.Executed("EXEC", &DecodeError{Err: err})
		}
		part := reply[from:d.Offset()]
		var err error
		if e := serverErrorIn(part); e != nil {
			err = n.fail.With(b.commands[i].name, slipstream.Executed, e)
		} else if bad := decode(part, b.dsts[i]); bad != nil {
			err = n.fail.Executed(b.commands[i].name, bad)
		}
		if err == nil {
			continue
		}
		if b.errs == nil {
			b.errs = make([]error, len(b.commands))
		}
		b.errs[i] = err
		if first == nil {
			first = &BatchError{Index: i, Err: err}
		}
		first.Failed++
	}
	if first != nil {
		return first
	}
	return nil
}
