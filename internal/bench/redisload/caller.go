package redisload

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/redis"
)

// A caller sends one command, or one batch, at a time.
type caller struct {
	// Immutable after newCaller.
	target *Target

	// Owned by the goroutine that calls Do.
	chooser *chooser
	tally   Tally
	text    []byte // of the key
	value   []byte // written or read
	args    []string
	anys    []any // the same
	batch   redis.Batch
	sent    []operation
	values  [][]byte // of GETs of the batch
}

// An operation is one command of a batch.
type operation struct {
	kind opKind
	key  int64
}

type opKind uint8

const (
	opGet opKind = iota
	opSet
	opOther
)

func newCaller(t *Target, i int) *caller {
	return &caller{target: t, chooser: newChooser(&t.options, i)}
}

// Close implements [load.Caller]. The client is closed with the target.
func (c *caller) Close() error { return nil }

// choose returns what to do next.
func (c *caller) choose() operation {
	o := &c.target.options
	op := operation{kind: opOther, key: c.chooser.key()}
	if c.target.command == nil {
		op.kind = opGet
		if o.Gets == 0 || o.Sets > 0 && c.chooser.rng.IntN(o.Sets+o.Gets) < o.Sets {
			op.kind = opSet
		}
	}
	return op
}

// prepare leaves the key in c.text and, if one is sent, a new value in c.value.
func (c *caller) prepare(op operation) {
	t := c.target
	c.text = t.options.appendKey(c.text[:0], op.key)
	if op.kind != opGet {
		c.value = appendValue(c.value[:0], op.key, t.sequence.Add(1), t.options.Size)
	}
}

// Do sends a command and checks the reply.
func (c *caller) Do(ctx context.Context) error {
	op := c.choose()
	c.prepare(op)
	client, key := c.target.client, string(c.text)
	switch op.kind {
	case opGet:
		var found bool
		var err error
		if c.value, found, err = client.GetAppend(ctx, c.value[:0], key); err != nil {
			return c.failed(err)
		}
		return c.got(op.key, c.value, found)
	case opSet:
		if err := client.SetBytes(ctx, key, c.value); err != nil {
			return c.failed(err)
		}
		c.tally.Sets++
		return nil
	}
	c.args = c.target.command.arguments(c.args[:0], key, c.value)
	c.anys = c.anys[:0]
	for _, arg := range c.args {
		c.anys = append(c.anys, arg)
	}
	if err := client.Do(ctx, nil, redis.Cmd(c.target.command.name, c.anys...)); err != nil {
		return c.failed(err)
	}
	c.tally.Others++
	return nil
}

// DoBatch sends commands together and checks the replies.
func (c *caller) DoBatch(ctx context.Context, outcomes []error) {
	c.batch.Reset()
	c.sent = c.sent[:0]
	for len(c.values) < len(outcomes) {
		c.values = append(c.values, nil)
	}
	for i := range outcomes {
		op := c.choose()
		c.prepare(op)
		c.sent = append(c.sent, op)
		switch op.kind {
		case opGet:
			c.batch.AddStrings(&c.values[i], "GET", string(c.text))
		case opSet:
			c.batch.AddStrings(nil, "SET", string(c.text), string(c.value))
		case opOther:
			c.args = c.target.command.arguments(c.args[:0], string(c.text), c.value)
			c.batch.AddStrings(nil, c.target.command.name, c.args...)
		}
	}
	err := c.target.client.DoBatch(ctx, &c.batch)
	var some *redis.BatchError
	if err != nil && !errors.As(err, &some) {
		err = c.failed(err)
		for i := range outcomes {
			outcomes[i] = err
		}
		return
	}
	for i, op := range c.sent {
		switch err := c.batch.Err(i); {
		case err != nil:
			outcomes[i] = c.failed(err)
		case op.kind == opGet:
			outcomes[i] = c.got(op.key, c.values[i], c.values[i] != nil)
		case op.kind == opSet:
			c.tally.Sets++
		default:
			c.tally.Others++
		}
	}
}

// got counts the reply to a GET.
func (c *caller) got(key int64, value []byte, found bool) error {
	if !found {
		c.tally.Misses++
		return nil
	}
	c.tally.Hits++
	switch judge(value, key) {
	case foreign:
		c.tally.Foreign++
	case wrong:
		c.tally.Wrong++
		return &kindError{"wrong answer", fmt.Errorf("the value of key %s%d begins with %s", c.target.options.Prefix, key, strconv.Quote(string(value[:headerSize])))}
	}
	return nil
}

// A kindError is an error of a kind that the error itself does not tell.
type kindError struct {
	kind string
	err  error
}

func (e *kindError) Error() string     { return e.kind + ": " + e.err.Error() }
func (e *kindError) Unwrap() error     { return e.err }
func (e *kindError) ErrorKind() string { return e.kind }

// failed gives an error of the client its kind: the code of the server, a cause
// that any connection has, or else whether the server may have executed the
// command.
func (c *caller) failed(err error) error {
	var refused *redis.ServerError
	var client *slipstream.Error
	kind := load.ErrorKind(err)
	switch {
	case errors.As(err, &refused):
		kind = "error " + refused.StatusCode()
	case errors.Is(err, redis.ErrStalled):
		kind = "timeout"
	case kind == "other" && errors.As(err, &client):
		kind = client.Outcome.String()
	}
	return &kindError{kind, err}
}
