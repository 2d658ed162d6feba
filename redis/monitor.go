package redis

import (
	"context"
	"errors"
	"iter"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// Monitor returns the commands that the server executes for all its clients, each as a line of
// text, from now on until ctx ends or the loop is left. An error, if any, is returned last. Monitor
// uses a dedicated connection, and halves the throughput of a busy server. In a cluster, the
// commands are those of an arbitrary node; see [Client.Node].
func (c *Client) Monitor(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		n, _ := c.routeKeys(nil)
		x, err := c.exclusives.lease(ctx, n)
		if err != nil {
			yield("", n.notLeased("MONITOR", err))
			return
		}
		defer c.exclusives.giveBack(x)
		x.dirty = true // the stream never ends
		fail := func(outcome slipstream.Outcome, err error) {
			yield("", n.fail.With("MONITOR", outcome, err))
		}
		if outcome, err := x.send([]byte("*1\r\n$7\r\nMONITOR\r\n")); err != nil {
			fail(outcome, err)
			return
		}
		for first := true; ; first = false {
			frame, err := x.receive(ctx, 0)
			switch {
			case errors.Is(err, errInterrupted):
				fail(slipstream.Executed, context.Cause(ctx))
				return
			case err != nil:
				fail(slipstream.Executed, err)
				return
			}
			if e := serverErrorIn(frame); e != nil {
				fail(slipstream.Refused, e)
				return
			}
			if first {
				continue // the reply OK
			}
			d := resp.NewDecoder(frame)
			tok, err := d.Next()
			if err != nil {
				fail(slipstream.Executed, &DecodeError{Err: err})
				return
			}
			if !yield(string(tok.Bytes), nil) {
				return
			}
		}
	}
}
