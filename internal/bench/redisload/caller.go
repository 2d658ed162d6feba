package redisload

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream/internal/bench/clientload"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/redis"
)

// A caller sends one command, or one batch, at a time.
type caller struct {
	// Immutable after newCaller.
	target *Target

	// Owned by the goroutine that calls Do.
	chooser *clientload.Chooser
	tally   *clientload.Tally
	record  *mix.Record
	text    []byte // of the key
	value   []byte // written or read
	args    []string
	anys    []any // the same as arguments
	batch   redis.Batch
	sent    []request
	numbers []int    // of the operations in sent
	values  [][]byte // returned by the GETs of the batch
}

// A request is one command of a caller.
type request struct {
	operation int // its number
	kind      opKind
	key       int64
	floor     uint64           // for a GET
	write     clientload.Write // for a SET
}

func newCaller(t *Target, i int) *caller {
	return &caller{target: t, chooser: t.options.Keys.Chooser(i, t.options.Callers), tally: t.tallies.New(), record: t.recorder.New()}
}

// Close implements [load.Caller]. The client is closed with the target.
func (c *caller) Close() error { return nil }

// next returns the next request. It stores the key in c.text and, if one is sent, a new value in
// c.value.
func (c *caller) next() request {
	t := c.target
	r := request{key: c.chooser.Key()}
	r.operation = t.weights.Choose(c.chooser)
	r.kind = t.operations[r.operation].kind
	c.text = t.options.Keys.AppendName(c.text[:0], r.key)
	switch r.kind {
	case opGet:
		r.floor = t.ledger.Floor(r.key)
	case opSet:
		r.write = t.ledger.Begin(r.key)
		c.value = clientload.AppendValue(c.value[:0], r.key, r.write.Sequence, t.options.Size)
	case opOther:
		c.value = clientload.AppendValue(c.value[:0], r.key, t.ledger.Untracked(), t.options.Size)
	}
	return r
}

// Do sends a command and checks the reply.
func (c *caller) Do(ctx context.Context) error {
	r := c.next()
	began := c.record.Begin()
	err := c.send(ctx, &r)
	c.record.End(ctx, r.operation, began, err)
	return err
}

func (c *caller) send(ctx context.Context, r *request) error {
	client, key := c.target.client, string(c.text)
	switch r.kind {
	case opGet:
		var found bool
		var err error
		if c.value, found, err = client.GetAppend(ctx, c.value[:0], key); err != nil {
			return failed(err)
		}
		return c.got(r, c.value, found)
	case opSet:
		return c.set(r, client.SetBytes(ctx, key, c.value))
	}
	command := c.target.operations[r.operation].command
	c.args = command.arguments(c.args[:0], key, c.value)
	c.anys = c.anys[:0]
	for _, arg := range c.args {
		c.anys = append(c.anys, arg)
	}
	if err := client.Do(ctx, nil, redis.Cmd(command.name, c.anys...)); err != nil {
		return failed(err)
	}
	c.tally.Others++
	return nil
}

// DoBatch sends commands together and checks the replies.
func (c *caller) DoBatch(ctx context.Context, outcomes []error) {
	c.batch.Reset()
	c.sent, c.numbers = c.sent[:0], c.numbers[:0]
	for len(c.values) < len(outcomes) {
		c.values = append(c.values, nil)
	}
	for i := range outcomes {
		r := c.next()
		c.sent, c.numbers = append(c.sent, r), append(c.numbers, r.operation)
		switch r.kind {
		case opGet:
			c.batch.AddStrings(&c.values[i], "GET", string(c.text))
		case opSet:
			c.batch.AddStrings(nil, "SET", string(c.text), string(c.value))
		case opOther:
			command := c.target.operations[r.operation].command
			c.args = command.arguments(c.args[:0], string(c.text), c.value)
			c.batch.AddStrings(nil, command.name, c.args...)
		}
	}
	began := c.record.Begin()
	c.sendBatch(ctx, outcomes)
	c.record.EndBatch(ctx, c.numbers, began, outcomes)
}

func (c *caller) sendBatch(ctx context.Context, outcomes []error) {
	all := c.target.client.DoBatch(ctx, &c.batch)
	var some *redis.BatchError
	if errors.As(all, &some) {
		all = nil
	}
	for i := range c.sent {
		r, err := &c.sent[i], all
		if err == nil {
			err = c.batch.Err(i)
		}
		switch {
		case r.kind == opSet:
			outcomes[i] = c.set(r, err)
		case err != nil:
			outcomes[i] = failed(err)
		case r.kind == opGet:
			outcomes[i] = c.got(r, c.values[i], c.values[i] != nil)
		default:
			c.tally.Others++
		}
	}
}

// set counts the reply to a SET.
func (c *caller) set(r *request, err error) error {
	if err != nil {
		c.target.ledger.Failed(r.write, err)
		return failed(err)
	}
	c.target.ledger.Acknowledged(r.write)
	c.tally.Writes++
	return nil
}

// got counts the reply to a GET.
func (c *caller) got(r *request, value []byte, found bool) error {
	if !found {
		c.tally.Misses++
		return nil
	}
	c.tally.Hits++
	switch c.target.ledger.Judge(value, r.key, r.floor) {
	case clientload.Foreign:
		c.tally.Foreign++
	case clientload.Wrong:
		c.tally.Wrong++
		return clientload.WrongAnswer(c.valueOf(r.key), value)
	case clientload.Stale:
		c.tally.Stale++
		return clientload.StaleAnswer(c.valueOf(r.key))
	}
	return nil
}

func (c *caller) valueOf(key int64) string {
	return fmt.Sprintf("the value of key %s%d", c.target.options.Keys.Prefix, key)
}

// failed returns an error of the client with its kind, which is the error code of the server, if it
// has sent one.
func failed(err error) error {
	var refused *redis.ServerError
	if errors.As(err, &refused) {
		return clientload.Refused(refused.StatusCode(), err)
	}
	return clientload.Failed(err, redis.ErrStalled)
}
