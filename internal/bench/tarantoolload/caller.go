package tarantoolload

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream/internal/bench/clientload"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/tarantool"
)

// A caller sends one request at a time.
type caller struct {
	// Immutable after newCaller.
	target *Target

	// Owned by the goroutine that calls Do.
	chooser *clientload.Chooser
	tally   *clientload.Tally
	record  *mix.Record
	row     row // written or read
	name    []byte
}

func newCaller(t *Target, i int) *caller {
	return &caller{target: t, chooser: t.options.Keys.Chooser(i, t.options.Callers), tally: t.tallies.New(), record: t.recorder.New()}
}

// Close implements [load.Caller]. The client is closed with the target.
func (c *caller) Close() error { return nil }

// Do sends a request and checks the reply.
func (c *caller) Do(ctx context.Context) error {
	t := c.target
	c.row.key = key{number: c.chooser.Key()}
	if t.options.Keys.Prefix != "" {
		c.name = t.options.Keys.AppendName(c.name[:0], c.row.key.number)
		c.row.key.name = c.name
	}
	n := t.weights.Choose(c.chooser)
	began := c.record.Begin()
	err := c.send(ctx, &t.operations[n])
	c.record.End(ctx, n, began, err)
	return err
}

func (c *caller) send(ctx context.Context, o *operation) error {
	switch o.kind {
	case opSelect:
		return c.get(ctx)
	case opReplace:
		return c.replace(ctx)
	}
	request := o.constant
	if request == nil {
		c.row.value = clientload.AppendValue(c.row.value[:0], c.row.key.number, c.target.ledger.Untracked(), c.target.options.Size)
		request = o.request(&places{&c.row.key, c.row.value})
	}
	if err := c.target.client.Do(ctx, nil, request); err != nil {
		return failed(err)
	}
	c.tally.Others++
	return nil
}

func (c *caller) replace(ctx context.Context) error {
	t := c.target
	w := t.ledger.Begin(c.row.key.number)
	c.row.value = clientload.AppendValue(c.row.value[:0], w.Key, w.Sequence, t.options.Size)
	if err := t.space.Replace(ctx, &c.row); err != nil {
		t.ledger.Failed(w, err)
		return failed(err)
	}
	t.ledger.Acknowledged(w)
	c.tally.Writes++
	return nil
}

func (c *caller) get(ctx context.Context) error {
	t, number := c.target, c.row.key.number
	floor := t.ledger.Floor(number)
	found, err := t.space.Get(ctx, &c.row, c.row.key.part())
	switch {
	case err != nil:
		return failed(err)
	case !found:
		c.tally.Misses++
		return nil
	}
	c.tally.Hits++
	switch t.ledger.Judge(c.row.value, number, floor) {
	case clientload.Foreign:
		c.tally.Foreign++
	case clientload.Wrong:
		c.tally.Wrong++
		return clientload.WrongAnswer(c.valueOf(number), c.row.value)
	case clientload.Stale:
		c.tally.Stale++
		return clientload.StaleAnswer(c.valueOf(number))
	}
	return nil
}

func (c *caller) valueOf(number int64) string {
	return fmt.Sprintf("the value of key %s%d", c.target.options.Keys.Prefix, number)
}

// failed returns an error of the client with its kind, which is the error code of the server, if it
// has sent one.
func failed(err error) error {
	var refused *tarantool.ServerError
	if errors.As(err, &refused) {
		return clientload.Refused(refused.Code.String(), err)
	}
	return clientload.Failed(err, tarantool.ErrStalled)
}
