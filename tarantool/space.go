package tarantool

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// A Space is a space whose tuples are values of T. If *T is a [Reader] and an [Appender], its
// methods allocate nothing except what these allocate. Otherwise T is encoded and decoded by
// reflection, as a struct whose fields are those of the tuple.
//
// It is safe for concurrent use.
type Space[T any] struct {
	// Immutable.
	client *Client
	target target

	// Atomic: the numbers in one version of the schema, written by the caller that looked them up.
	known atomic.Pointer[knownTarget]
}

type knownTarget struct {
	names *schema
	x     encoding
	get   []byte // an encoded select of one tuple, up to its key
}

// SpaceOf returns the space with the given name, which is looked up when the space is used.
func SpaceOf[T any](c *Client, name string) *Space[T] {
	return &Space[T]{client: c, target: named(name)}
}

// Index returns the space with another index, to which keys then refer.
func (s *Space[T]) Index(name string) *Space[T] {
	t := s.target
	t.indexName = name
	return &Space[T]{client: s.client, target: t}
}

// Get reads the tuple with the given key into dst. If there is none, found is false and dst is
// unchanged.
func (s *Space[T]) Get(ctx context.Context, dst *T, key ...Part) (found bool, err error) {
	q := spaceCall[T]{code: box.CodeSelect, limit: 1, into: dst}
	err = s.run(ctx, &q, key, nil)
	return q.found, err
}

// Select appends the tuples with the given key, or with a key that starts with it, to dst: at most
// limit tuples, or all of them if limit is 0.
func (s *Space[T]) Select(ctx context.Context, dst []T, limit uint32, it Iterator, key ...Part) ([]T, error) {
	if limit == 0 {
		limit = math.MaxUint32
	}
	q := spaceCall[T]{code: box.CodeSelect, limit: limit, iterator: it, many: true, list: dst}
	err := s.run(ctx, &q, key, nil)
	return q.list, err
}

// Insert adds the tuple. If there is already a tuple with its key, it fails with
// [iproto.CodeTupleFound].
func (s *Space[T]) Insert(ctx context.Context, tuple *T) error {
	return s.run(ctx, &spaceCall[T]{code: box.CodeInsert, tuple: tuple}, nil, nil)
}

// Replace adds the tuple or replaces the one with its key.
func (s *Space[T]) Replace(ctx context.Context, tuple *T) error {
	return s.run(ctx, &spaceCall[T]{code: box.CodeReplace, tuple: tuple}, nil, nil)
}

// Update changes fields of the tuple with the given key, in the order of ops, and reads the new
// tuple into dst, which may be nil. If there is no such tuple, nothing happens and found is false.
func (s *Space[T]) Update(ctx context.Context, dst *T, key []Part, ops ...Op) (found bool, err error) {
	q := spaceCall[T]{code: box.CodeUpdate, into: dst}
	err = s.run(ctx, &q, key, ops)
	return q.found, err
}

// Upsert adds the tuple or, if there is already a tuple with its key, applies ops to that.
func (s *Space[T]) Upsert(ctx context.Context, tuple *T, ops ...Op) error {
	return s.run(ctx, &spaceCall[T]{code: box.CodeUpsert, tuple: tuple}, nil, ops)
}

// Delete removes the tuple with the given key and reads its old value into dst, which may be nil.
func (s *Space[T]) Delete(ctx context.Context, dst *T, key ...Part) (found bool, err error) {
	q := spaceCall[T]{code: box.CodeDelete, into: dst}
	err = s.run(ctx, &q, key, nil)
	return q.found, err
}

// spaceCall is a request to a space with its result. It is kept on its caller's stack. The key and
// the operations are not part of it, because everything in a struct escapes if any part of it does,
// as destinations do.
type spaceCall[T any] struct {
	code     box.Code
	limit    uint32
	iterator Iterator
	tuple    *T

	into  *T // nil if it is not needed
	found bool
	many  bool
	list  []T
}

// run makes the call. State that most requests do not need, some 600 bytes on the stack, is in
// separate functions, because the stack of a caller that has waited is in no cache when it
// continues.
func (s *Space[T]) run(ctx context.Context, q *spaceCall[T], key []Part, ops []Op) error {
	c := s.client
	call, at, err := s.quick(q, key, ops)
	switch {
	case err != nil:
		return err
	case call == nil:
		return s.runNamed(ctx, q, key, ops)
	}
	var start time.Time
	if c.timed {
		start = time.Now()
	}
	if err = c.engine.Do(ctx, call); err == nil && !c.hooks.Observing() {
		if known, err := q.take(c, call); known {
			return err
		}
	}
	return s.pursue(ctx, q, call, at, start, err)
}

// runNamed makes the call for a request whose numbers quick does not know.
func (s *Space[T]) runNamed(ctx context.Context, q *spaceCall[T], key []Part, ops []Op) error {
	var r exchange
	err := s.prepare(ctx, &r, q, key, ops)
	if err == nil {
		err = q.finish(ctx, &r, r.do(ctx))
	}
	r.end(ctx, err)
	return err
}

// pursue continues a call of quick that has no reply, has an error reply, or is observed.
func (s *Space[T]) pursue(ctx context.Context, q *spaceCall[T], call *pipe.Call, at *schemaAt, start time.Time, err error) error {
	r := s.exchange(q.code, call, at)
	r.loop.Start = start
	err = q.finish(ctx, &r, r.pursue(ctx, err, (*pipe.Engine).Do))
	r.end(ctx, err)
	return err
}

// quick makes the call for a request whose numbers are known, or returns nil if they are not. An
// exchange, of 300 bytes, is made from the call only when it fails.
func (s *Space[T]) quick(q *spaceCall[T], key []Part, ops []Op) (*pipe.Call, *schemaAt, error) {
	c := s.client
	at, known := c.here(pipe.Pin{}), s.known.Load()
	if at == nil || known == nil || known.names != at.names {
		return nil, nil, nil
	}
	call := c.engine.Acquire()
	var frame []byte
	var err error
	if q.code == box.CodeSelect && q.limit == 1 && q.iterator == Eq && len(key) > 0 {
		if frame, err = appendParts(append(call.Frame[:0], known.get...), key); err == nil {
			frame = box.EndRequest(frame, 0)
		}
	} else {
		frame, err = q.encode(call.Frame[:0], known.x, key, ops)
	}
	if err != nil {
		call.Release()
		return nil, nil, c.fail.NotSent(q.code.String(), err)
	}
	call.Frame, call.Pin = frame, at.pin
	return call, at, nil
}

// exchange returns the exchange for a call of quick.
func (s *Space[T]) exchange(code box.Code, call *pipe.Call, at *schemaAt) exchange {
	c := s.client
	about := requestInfo{code: code, repeatable: code == box.CodeSelect, target: s.target}
	return exchange{client: c, engine: c.engine, call: call, at: at, about: about}
}

// take reads a reply that is not an error of the server, and releases its call. If the reply is an
// error, known is false.
func (q *spaceCall[T]) take(c *Client, call *pipe.Call) (known bool, err error) {
	if known, err = q.read(c.opts.decoding(), call.Reply()); !known {
		return false, nil
	}
	call.Release()
	if err != nil {
		err = c.fail.Executed(q.code.String(), err)
	}
	return true, err
}

// prepare encodes a request whose numbers quick does not know.
func (s *Space[T]) prepare(ctx context.Context, r *exchange, q *spaceCall[T], key []Part, ops []Op) error {
	c := s.client
	about := requestInfo{code: q.code, repeatable: q.code == box.CodeSelect, target: s.target}
	x, at, err := r.locate(ctx, c, &about, pipe.Pin{})
	if err != nil {
		return err
	}
	get := box.AppendSelectHead(x.begin(nil, box.CodeSelect), x.space, x.index, 1, 0, uint32(Eq))
	s.known.Store(&knownTarget{at.names, x, get})
	r.set(at)
	return r.encoded(q.encode(r.call.Frame[:0], x, key, ops))
}

func (q *spaceCall[T]) encode(b []byte, x encoding, key []Part, ops []Op) (_ []byte, err error) {
	b = x.begin(b, q.code)
	switch q.code {
	case box.CodeSelect:
		it := q.iterator
		if len(key) == 0 && it == Eq {
			it = All
		}
		b, err = appendParts(box.AppendSelectHead(b, x.space, x.index, q.limit, 0, uint32(it)), key)
	case box.CodeDelete:
		b, err = appendParts(box.AppendDeleteHead(b, x.space, x.index), key)
	case box.CodeUpdate:
		if b, err = appendParts(box.AppendUpdateHead(b, x.space, x.index), key); err == nil {
			b, err = appendOps(box.AppendKey(b, box.KeyTuple), ops)
		}
	case box.CodeUpsert:
		if b, err = appendTuple(box.AppendUpsertHead(b, x.space), q.tuple); err == nil {
			b, err = appendOps(box.AppendKey(b, box.KeyOperations), ops)
		}
	default:
		b, err = appendTuple(box.AppendInsertHead(b, x.space), q.tuple)
	}
	if err != nil {
		return b, err
	}
	return box.EndRequest(b, 0), nil
}

// appendTuple appends a tuple, which must be an array.
func appendTuple[T any](b []byte, tuple *T) ([]byte, error) {
	if tuple == nil {
		return b, fmt.Errorf("the tuple is nil, expected a *%s", reflect.TypeFor[T]())
	}
	return appendArray(b, "tuple", tuple)
}

// finish converts the result of the first attempt into that of the call.
func (q *spaceCall[T]) finish(ctx context.Context, r *exchange, err error) error {
	if err == nil {
		if known, failed := q.read(r.client.opts.decoding(), r.call.Reply()); failed != nil {
			return r.client.fail.Executed(r.about.code.String(), failed)
		} else if known {
			return nil
		}
	}
	kept := &spaceCall[T]{into: q.into, many: q.many, list: q.list}
	err = r.finish(ctx, err, kept)
	q.found, q.list = kept.found, kept.list
	return err
}

// read reads a reply that is not an error of the server. If the reply is an error, known is false.
func (q *spaceCall[T]) read(l iproto.Limits, reply []byte) (known bool, err error) {
	if body, ok := box.OKBody(reply); ok {
		return true, q.readBody(l, body)
	}
	m, body, err := replyOf(reply)
	if err != nil || m.Code != uint32(box.CodeOK) {
		return false, nil
	}
	return true, q.readBody(l, body)
}

// readReply implements wholeReply.
func (q *spaceCall[T]) readReply(l iproto.Limits, _ box.Message, body []byte) error {
	return q.readBody(l, body)
}

func (q *spaceCall[T]) readBody(l iproto.Limits, body []byte) error {
	data, err := dataOf(body)
	if err != nil {
		return err
	}
	d := decoderOf(l, data)
	defer putDecoder(d)
	n := d.Array()
	switch {
	case q.many:
		return q.readAll(d, n)
	case n == 0 || q.into == nil:
		q.found = n > 0 && d.Err() == nil
		return d.Err()
	case n > 1:
		return fmt.Errorf("%d tuples, expected one", n)
	}
	if err := readTuple(d, q.into); err != nil {
		return err
	}
	q.found = true
	return nil
}

func (q *spaceCall[T]) readAll(d *iproto.Decoder, n int) error {
	if !d.Claim(n, int(reflect.TypeFor[T]().Size())) {
		return d.Err()
	}
	for range n {
		var tuple T
		q.list = append(q.list, tuple)
		if err := readTuple(d, &q.list[len(q.list)-1]); err != nil {
			return err
		}
	}
	return d.Err()
}

func readTuple[T any](d *iproto.Decoder, into *T) error {
	if r, ok := any(into).(Reader); ok {
		return readOwn(d, r)
	}
	return readReflected(d, reflect.ValueOf(into).Elem(), 0)
}
