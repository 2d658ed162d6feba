package redis

import (
	"context"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// firstOf returns the first of keys, or "" if there is none; then the server reports the missing
// key.
func firstOf(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return keys[0]
}

func firstKey(pairs []KeyValue) string {
	if len(pairs) == 0 {
		return ""
	}
	return pairs[0].Key
}

func appendWords(b []byte, words []string) []byte {
	for _, w := range words {
		b = resp.AppendBulkString(b, w)
	}
	return b
}

func appendFields(b []byte, fields []Field) []byte {
	for i := range fields {
		b = resp.AppendBulkString(resp.AppendBulkString(b, fields[i].Name), fields[i].Value)
	}
	return b
}

func appendPairs(b []byte, pairs []KeyValue) []byte {
	for i := range pairs {
		b = resp.AppendBulkString(resp.AppendBulkString(b, pairs[i].Key), pairs[i].Value)
	}
	return b
}

func appendMembers(b []byte, members []Member) []byte {
	for i := range members {
		b = resp.AppendBulkString(resp.AppendBulkFloat(b, members[i].Score), members[i].Name)
	}
	return b
}

// MaybeFloat is a number that may be missing.
type MaybeFloat struct {
	Value float64
	Found bool
}

// scalarReply makes a call whose reply is one value, and releases the call. It allocates nothing
// except what convert allocates.
func scalarReply[T any](ctx context.Context, c *Client, r *request, convert func(resp.Token) (T, error)) (v T, err error) {
	if err = c.run(ctx, r); err == nil {
		d := resp.NewDecoder(r.reply())
		var tok resp.Token
		if tok, err = d.Next(); err != nil {
			err = &DecodeError{Err: err}
		} else {
			v, err = convert(tok)
		}
		if err != nil {
			err = r.node.fail.Executed(r.name, err)
		}
	}
	r.call.Release()
	return v, err
}

// reply makes a call whose reply is a list, and releases the call.
func reply[T any](ctx context.Context, c *Client, r *request, f func(d *resp.Decoder, tok resp.Token) (T, error)) (v T, err error) {
	if err = c.run(ctx, r); err == nil {
		d := resp.NewDecoder(r.reply())
		var tok resp.Token
		if tok, err = d.Next(); err != nil {
			err = &DecodeError{Err: err}
		} else {
			v, err = f(&d, tok)
		}
		if err != nil {
			err = r.node.fail.Executed(r.name, err)
		}
	}
	r.call.Release()
	return v, err
}

// done makes a call whose reply is OK.
func (c *Client) done(ctx context.Context, r *request) error {
	_, err := scalarReply(ctx, c, r, func(tok resp.Token) (struct{}, error) {
		if tok.Kind == resp.SimpleString && string(tok.Bytes) == "OK" {
			return struct{}{}, nil
		}
		return struct{}{}, mismatch[bool](tok, errMismatch)
	})
	return err
}

// into makes a call whose reply is decoded into the caller's destination.
func (c *Client) into(ctx context.Context, r *request, dst any) error {
	err := c.run(ctx, r)
	if err == nil {
		if err = decode(r.reply(), dst); err != nil {
			err = r.node.fail.Executed(r.name, err)
		}
	}
	r.call.Release()
	return err
}

func (c *Client) flag(ctx context.Context, r *request) (bool, error) {
	return scalarReply(ctx, c, r, func(tok resp.Token) (bool, error) { return scalarOf(tok, boolOf) })
}

func (c *Client) float(ctx context.Context, r *request) (float64, error) {
	return scalarReply(ctx, c, r, func(tok resp.Token) (float64, error) { return scalarOf(tok, floatOf) })
}

func (c *Client) maybeFloat(ctx context.Context, r *request) (float64, bool, error) {
	m, err := scalarReply(ctx, c, r, maybeFloatOf)
	return m.Value, m.Found, err
}

// maybeNumber is like number, for a reply that may be null.
func (c *Client) maybeNumber(ctx context.Context, r *request) (n int64, found bool, err error) {
	n, err = scalarReply(ctx, c, r, func(tok resp.Token) (int64, error) {
		if found = !tok.Null; !found {
			return 0, nil
		}
		return scalarOf(tok, intOf)
	})
	return n, found && err == nil, err
}

func (c *Client) maybeFloats(ctx context.Context, r *request) ([]MaybeFloat, error) {
	return reply(ctx, c, r, func(d *resp.Decoder, tok resp.Token) ([]MaybeFloat, error) {
		return listOf(d, tok, func(_ *resp.Decoder, tok resp.Token) (MaybeFloat, error) { return maybeFloatOf(tok) })
	})
}

// one makes a call whose reply is always 1.
func (c *Client) one(ctx context.Context, r *request) error {
	_, err := c.number(ctx, r)
	return err
}

func (c *Client) ints(ctx context.Context, r *request) ([]int64, error) {
	return reply(ctx, c, r, func(d *resp.Decoder, tok resp.Token) ([]int64, error) {
		return listOf(d, tok, func(_ *resp.Decoder, tok resp.Token) (int64, error) { return scalarOf(tok, intOf) })
	})
}

func (c *Client) text(ctx context.Context, r *request) (string, error) {
	return scalarReply(ctx, c, r, func(tok resp.Token) (string, error) { return scalarOf(tok, stringOf) })
}

func (c *Client) maybeText(ctx context.Context, r *request) (string, bool, error) {
	item, err := scalarReply(ctx, c, r, itemOf)
	return item.Value, item.Found, err
}

func (c *Client) texts(ctx context.Context, r *request) ([]string, error) {
	return reply(ctx, c, r, func(d *resp.Decoder, tok resp.Token) ([]string, error) {
		return listOf(d, tok, func(_ *resp.Decoder, tok resp.Token) (string, error) { return scalarOf(tok, stringOf) })
	})
}

func (c *Client) items(ctx context.Context, r *request) ([]Item, error) {
	return reply(ctx, c, r, func(d *resp.Decoder, tok resp.Token) ([]Item, error) {
		return listOf(d, tok, func(_ *resp.Decoder, tok resp.Token) (Item, error) { return itemOf(tok) })
	})
}

// appendText appends the string in a reply.
func (c *Client) appendText(ctx context.Context, r *request, dst []byte) ([]byte, error) {
	dst, found, err := c.appendMaybeText(ctx, r, dst)
	if err == nil && !found {
		err = r.node.fail.Executed(r.name, mismatch[[]byte](resp.Token{Kind: resp.Null, Null: true}, ErrNull))
	}
	return dst, err
}

// appendMaybeText is like appendText, for a reply that may be null.
func (c *Client) appendMaybeText(ctx context.Context, r *request, dst []byte) (_ []byte, found bool, err error) {
	r.call.ReadInto(dst[len(dst):cap(dst)])
	if err = c.run(ctx, r); err == nil {
		if body := r.call.Placed(); body != nil {
			dst, found = dst[:len(dst)+len(body)], true
		} else if dst, found, err = appendReply(dst, r.reply()); err != nil {
			err = r.node.fail.Executed(r.name, err)
		}
	}
	r.call.Release()
	return dst, found, err
}

// scalarOf converts a token with one of the functions of decode.go.
func scalarOf[T any](tok resp.Token, convert func(resp.Token) (T, error)) (T, error) {
	v, err := convert(tok)
	if err != nil {
		err = mismatch[T](tok, err)
	}
	return v, err
}

func itemOf(tok resp.Token) (Item, error) {
	if tok.Null {
		return Item{}, nil
	}
	s, err := scalarOf(tok, stringOf)
	return Item{Value: s, Found: err == nil}, err
}

func maybeFloatOf(tok resp.Token) (MaybeFloat, error) {
	if tok.Null {
		return MaybeFloat{}, nil
	}
	x, err := scalarOf(tok, floatOf)
	return MaybeFloat{Value: x, Found: err == nil}, err
}

// listOf decodes the elements of an array or a set, or nil for null.
func listOf[T any](d *resp.Decoder, tok resp.Token, one func(*resp.Decoder, resp.Token) (T, error)) ([]T, error) {
	if tok.Null {
		return nil, nil
	}
	if !isAggregate(tok) {
		return nil, mismatch[[]T](tok, errMismatch)
	}
	list := make([]T, 0, max(tok.Len, 0))
	e := elements{d, tok.Len}
	for {
		tok, ok, err := e.next()
		if err != nil || !ok {
			return list, err
		}
		v, err := one(d, tok)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
}

// fields decodes a map, or alternating names and values.
func (c *Client) fields(ctx context.Context, r *request) ([]Field, error) {
	return reply(ctx, c, r, fieldsOf)
}

func fieldsOf(d *resp.Decoder, tok resp.Token) ([]Field, error) {
	if !isAggregate(tok) {
		return nil, mismatch[[]Field](tok, errMismatch)
	}
	list := make([]Field, 0, max(tok.Len/2, 0))
	name, half := "", false
	e := elements{d, tok.Len}
	for {
		tok, ok, err := e.next()
		if err != nil || !ok {
			return list, err
		}
		s, err := scalarOf(tok, stringOf)
		if err != nil {
			return nil, err
		}
		if half = !half; half {
			name = s
		} else {
			list = append(list, Field{name, s})
		}
	}
}

// members decodes members and scores, which alternate in RESP2 and as pairs in RESP3.
func (c *Client) members(ctx context.Context, r *request) ([]Member, error) {
	return reply(ctx, c, r, membersOf)
}

func membersOf(d *resp.Decoder, tok resp.Token) ([]Member, error) {
	if tok.Null {
		return nil, nil
	}
	if !isAggregate(tok) {
		return nil, mismatch[[]Member](tok, errMismatch)
	}
	list := make([]Member, 0, max(tok.Len, 0))
	e := elements{d, tok.Len}
	for {
		tok, ok, err := e.next()
		if err != nil || !ok {
			return list, err
		}
		inner := &e // the score is the next element of the same list,
		if isAggregate(tok) {
			pair := elements{d, tok.Len} // or the second element of a pair
			inner = &pair
			if tok, ok, err = pair.next(); err != nil || !ok {
				return nil, mismatch[Member](tok, errMismatch)
			}
		}
		m, err := memberOf(tok, inner)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
}

// memberOf decodes a member whose name is tok.
func memberOf(tok resp.Token, rest *elements) (m Member, err error) {
	if m.Name, err = scalarOf(tok, stringOf); err != nil {
		return m, err
	}
	score, ok, err := rest.next()
	switch {
	case err != nil:
		return m, err
	case !ok:
		return m, mismatch[Member](tok, errMismatch)
	}
	m.Score, err = scalarOf(score, floatOf)
	return m, err
}
