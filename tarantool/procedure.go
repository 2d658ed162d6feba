package tarantool

import (
	"context"
	"reflect"

	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// A Procedure is a function of the server with arguments A and results R, both of which are encoded
// as arrays. If *A is an [Appender] and *R a [Reader], calls allocate nothing except what these
// allocate. Otherwise they are encoded and decoded by reflection, as structs whose fields are the
// arguments and the results.
//
// It is safe for concurrent use.
type Procedure[A, R any] struct {
	client *Client
	name   string
	info   requestInfo
}

// ProcedureOf returns the function with the given name.
func ProcedureOf[A, R any](c *Client, name string) *Procedure[A, R] {
	return &Procedure[A, R]{client: c, name: name, info: requestInfo{code: box.CodeCall, size: len(name) + 64}}
}

// Idempotent returns the function, marked as one that may be executed twice: see
// [ProcedureRequest.Idempotent].
func (p *Procedure[A, R]) Idempotent() *Procedure[A, R] {
	q := *p
	q.info.repeatable = true
	return &q
}

// Blocking returns the function, marked as one that may take long: see [ProcedureRequest.Blocking].
func (p *Procedure[A, R]) Blocking() *Procedure[A, R] {
	q := *p
	q.info.blocking = true
	return &q
}

// Call calls the function. Args may be nil if the function has no arguments, and results may be nil
// if they are not needed.
func (p *Procedure[A, R]) Call(ctx context.Context, args *A, results *R) error {
	c := p.client
	r := exchange{client: c, about: p.info}
	if p.info.blocking {
		var err error
		if r.lane, err = c.blocking.enter(ctx, p.info.size); err != nil {
			return c.fail.Named(p.info.code.String(), err)
		}
	}
	r.set(nil)
	x := encoding{client: c}
	if err := r.encoded(p.encode(r.call.Frame[:0], x, args)); err != nil {
		return err
	}
	err := r.engine.Do(ctx, r.call)
	if err == nil {
		m, body, failed := replyOf(r.call.Reply())
		if failed == nil && m.Code == uint32(box.CodeOK) {
			if failed = readResults(c.opts.decoding(), body, results); failed != nil {
				err = c.fail.Executed(p.info.code.String(), failed)
			}
			r.end(ctx, err)
			return err
		}
	}
	var dst any
	if results != nil {
		dst = results
	}
	err = r.finish(ctx, err, dst)
	r.end(ctx, err)
	return err
}

func (p *Procedure[A, R]) encode(b []byte, x encoding, args *A) (_ []byte, err error) {
	b = box.AppendCallHead(x.begin(b, box.CodeCall), p.name)
	if args == nil {
		b = iproto.AppendArray(b, 0)
	} else if b, err = appendArray(b, "arguments", args); err != nil {
		return b, err
	}
	return box.EndRequest(b, 0), nil
}

func readResults[R any](l iproto.Limits, body []byte, results *R) error {
	if results == nil {
		return nil
	}
	data, err := dataOf(body)
	if err != nil {
		return err
	}
	d := decoderOf(l, data)
	defer putDecoder(d)
	if r, ok := any(results).(Reader); ok {
		return readOwn(d, r)
	}
	return readReflected(d, reflect.ValueOf(results).Elem(), 0)
}
