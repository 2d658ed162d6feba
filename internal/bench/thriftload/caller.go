package thriftload

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/bench/clientload"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// A caller calls one function at a time.
type caller struct {
	// Immutable after newCaller.
	target *Target

	// Owned by the goroutine that calls Do.
	chooser *clientload.Chooser
	tally   *clientload.Tally
	record  *mix.Record
	args    genericrpc.Raw
	memory  []byte // the buffer for args
	text    []byte
	want    []byte
	result  result
}

func newCaller(t *Target, i int) *caller {
	return &caller{target: t, chooser: t.options.Keys.Chooser(i, t.options.Callers), tally: t.tallies.New(), record: t.recorder.New(), args: genericrpc.Raw{Compact: t.codec.Compact}}
}

// Close implements [load.Caller]. The client is closed with the target.
func (c *caller) Close() error { return nil }

// Do calls a function and checks the reply.
func (c *caller) Do(ctx context.Context) error {
	key := c.chooser.Key()
	n := c.target.weights.Choose(c.chooser)
	f := c.target.functions[n]
	if err := c.prepare(f, key); err != nil {
		return err
	}
	in := rpc.Invocation{Service: f.service, Function: &f.rpc, Args: &c.args}
	if !f.rpc.Oneway {
		in.Result = &c.result
	}
	began := c.record.Begin()
	err := c.call(ctx, in)
	if err != nil {
		err = failed(err)
	} else {
		err = c.check(f)
	}
	c.record.End(ctx, n, began, err)
	return err
}

// mostAttempts bounds the attempts of a call that was not sent.
const mostAttempts = 4

// call calls a function. If the client has closed a connection that it no longer needs just when
// the call got it, the call is repeated, because the server has not seen it.
func (c *caller) call(ctx context.Context, in rpc.Invocation) error {
	for attempt := 1; ; attempt++ {
		err := c.target.client.Call(ctx, in)
		if err == nil || attempt == mostAttempts || slipstream.OutcomeOf(err) != slipstream.NotSent || load.ErrorKind(err) != "other" {
			return err
		}
	}
}

// prepare builds the arguments and sets the expected result.
func (c *caller) prepare(f *function, key int64) (err error) {
	t := c.target
	c.result = result{first: noField}
	switch {
	case f.constant != nil:
		c.args.Bytes = f.constant
	case f.declared != nil:
		c.args.Bytes, err = f.encode(t.codec, t.options.places(key, t.sequence.Add(1)))
	default:
		c.text = clientload.AppendValue(c.text[:0], key, t.sequence.Add(1), t.options.Size)
		c.memory = appendText(c.memory[:0], t.codec.Compact, 1, c.text)
		c.args.Bytes = c.memory
		if t.options.Echo {
			c.want = appendText(c.want[:0], t.codec.Compact, 0, c.text)
			c.result.want = c.want[:len(c.want)-1] // the struct may have further fields
		}
	}
	return err
}

// check checks the reply.
func (c *caller) check(f *function) error {
	r := &c.result
	switch {
	case f.rpc.Oneway:
	case r.first > 0:
		return load.WithKind("exception "+f.exception(r.first), errors.New(f.rpc.Name+" has thrown it"))
	case r.first == noField && !f.isVoid() && (f.declared != nil || c.target.options.Echo):
		return load.WithKind("no result", fmt.Errorf("the reply of %s has none", f.rpc.Name))
	case !r.right && r.want != nil:
		c.tally.Wrong++
		return load.WithKind("wrong answer", fmt.Errorf("%s has not returned the text that was sent", f.rpc.Name))
	}
	c.tally.Others++
	return nil
}

// failed returns an error of the client with its kind: that of an exception or the number of a
// status, if the server has sent one.
func failed(err error) error {
	var exception *thrift.ApplicationException
	var status *rpc.StatusError
	switch {
	case errors.As(err, &exception):
		kind := thrift.ApplicationException{Kind: exception.Kind}
		return load.WithKind(strings.TrimPrefix(kind.Error(), "thrift: "), err)
	case errors.As(err, &status):
		return load.WithKind("status "+strconv.Itoa(int(status.Code)), err)
	}
	return clientload.Failed(err, nil)
}
