package tarantool

import (
	"context"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// ended is a canceled context, for operations that must not wait.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// here returns a connection whose schema is known: the given one if at is set. It returns nil if
// finding one takes time.
func (c *Client) here(at pipe.Pin) *schemaAt {
	if at == (pipe.Pin{}) {
		var err error
		if at, err = c.engine.Place(ended); err != nil {
			return nil
		}
	}
	return c.schemas.of(at)
}

// encoding returns the numbers of a target, and the connection on which its names have these
// numbers, or nil for a target without names. It never waits; if it returns false, use locate.
func (c *Client) encoding(t *target, pin pipe.Pin) (x encoding, at *schemaAt, known bool) {
	x.client = c
	if t.kind != namedTarget {
		x.space, x.index = t.space, t.index
		return x, nil, true
	}
	if at = c.here(pin); at == nil {
		return x, nil, false
	}
	var err error
	x.space, x.index, err = at.names.find(t)
	x.header.Schema = at.names.version
	return x, at, err == nil
}

// locate finds a connection, or uses the given one, and finds the numbers of a request's target
// there. It may have to wait for the connection and for its schema, within Options.Timeout.
func (r *exchange) locate(ctx context.Context, c *Client, about *requestInfo, pin pipe.Pin) (x encoding, at *schemaAt, err error) {
	r.client, r.about = c, *about
	r.begins()
	ctx = r.within(ctx)
	x, at, err = c.locate(ctx, about, pin)
	if err != nil && r.call == nil {
		r.release()
	}
	return x, at, err
}

func (c *Client) locate(ctx context.Context, about *requestInfo, given pipe.Pin) (x encoding, at *schemaAt, err error) {
	x.client = c
	for made := 1; ; {
		pin := given
		if pin == (pipe.Pin{}) {
			if pin, err = c.engine.Place(ctx); err != nil {
				return x, nil, c.fail.Named(about.code.String(), err)
			}
		}
		if x.space, x.index, at, err = c.schemas.resolve(ctx, &about.target, pin); err == nil {
			x.header.Schema = at.names.version
			return x, at, nil
		}
		switch {
		case given != (pipe.Pin{}) || attempt.TimeIsUp(err):
			return x, nil, c.fail.NotSent(about.code.String(), err)
		case isPinLost(err):
			leave(pin)
			continue
		}
		// Either the connection was lost while its schema was read, or it is up and the server has
		// refused the request.
		refused := pin.Alive() || c.opts.FailFast && slipstream.OutcomeOf(err) == slipstream.NotSent
		if refused || !c.retry.Next(ctx, made, time.Time{}) {
			return x, nil, c.fail.NotSent(about.code.String(), err)
		}
		made++
	}
}

// leave removes a connection that has ended, so that callers do not get it again, but wait for
// another one.
func leave(pin pipe.Pin) { pin.Retire() }

// do submits the call and waits for its reply.
func (r *exchange) do(ctx context.Context) error {
	if r.limited != nil {
		ctx = r.limited
	}
	return r.pursue(ctx, r.engine.Do(ctx, r.call), (*pipe.Engine).Do)
}

// begin submits the call.
func (r *exchange) begin(ctx context.Context) error {
	if r.limited != nil {
		ctx = r.limited
	}
	return r.pursue(ctx, r.engine.Start(ctx, r.call), (*pipe.Engine).Start)
}

// pursue submits the call again as long as it is astray.
func (r *exchange) pursue(ctx context.Context, err error, submit func(*pipe.Engine, context.Context, *pipe.Call) error) error {
	for r.isAstray(err) {
		ctx = r.within(ctx)
		if err = r.relocate(ctx); err != nil {
			return err
		}
		err = submit(r.engine, ctx, r.call)
	}
	return err
}

// isAstray reports whether the call was not sent because the connection to which its numbers belong
// has ended. The next one may be to another server.
func (r *exchange) isAstray(err error) bool {
	return err != nil && r.at != nil && !r.pinned && isPinLost(err)
}

// relocate prepares a call that is astray for another connection.
func (r *exchange) relocate(ctx context.Context) error {
	leave(r.at.pin)
	return r.redirect(ctx, pipe.Pin{})
}

// correct prepares a call for another submission after the server has refused its numbers, because
// its schema has another version.
func (r *exchange) correct(ctx context.Context) error {
	c, pin := r.client, r.at.pin
	_, err := c.schemas.reload(ctx, pin, r.at)
	if err != nil {
		err = c.fail.NotSent(r.about.code.String(), err)
	} else {
		// The request is sent on the same connection again, because other connections may have
		// other old schemas.
		err = r.redirect(ctx, pin)
	}
	if err != nil && !r.pinned && !pin.Alive() {
		err = r.redirect(ctx, pipe.Pin{})
	}
	return err
}

// redirect puts the numbers of a connection into the call, which is then sent there. The connection
// is the given one, or any.
func (r *exchange) redirect(ctx context.Context, pin pipe.Pin) error {
	x, at, err := r.locate(ctx, r.client, &r.about, pin)
	if err != nil {
		return err
	}
	if at.names != r.at.names {
		if err := r.retarget(x); err != nil {
			return r.client.fail.NotSent(r.about.code.String(), err)
		}
	}
	r.at, r.call.Pin = at, at.pin
	return nil
}

// retarget puts the numbers of another schema into an encoded request. All bodies with a target
// start with the number of the space, and some continue with that of the index.
func (r *exchange) retarget(x encoding) error {
	old, err := box.ScanRequest(r.call.Frame, len(r.call.Frame))
	if err != nil {
		return err
	}
	d := iproto.NewDecoder(r.call.Frame[old.BodyAt:old.Len])
	pairs := d.Map()
	d.Uint()
	d.Uint()
	rest := d.Rest()
	hasIndex := d.Uint() == uint64(box.KeyIndexID)
	if hasIndex {
		d.Uint()
		rest = d.Rest()
	}
	if d.Err() != nil {
		return d.Err()
	}
	x.header.Stream = old.Stream
	b := iproto.AppendMap(x.begin(make([]byte, 0, len(r.call.Frame)+16), old.Code), pairs)
	b = iproto.AppendUint(box.AppendKey(b, box.KeySpaceID), uint64(x.space))
	if hasIndex {
		b = iproto.AppendUint(box.AppendKey(b, box.KeyIndexID), uint64(x.index))
	}
	r.call.Frame = box.EndRequest(append(b, rest...), 0)
	return nil
}
