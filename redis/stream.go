package redis

import (
	"context"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// An Entry is an entry of a stream.
type Entry struct {
	ID string
	// Fields is nil for an entry that was deleted while it was pending.
	Fields []Field
}

// StreamEntries contains the entries read from one of several streams.
type StreamEntries struct {
	Stream  string
	Entries []Entry
}

// StreamPosition is the position from which to read a stream: after the entry with this ID. "$"
// selects entries added from now on. For [Client.XReadGroup], ">" selects entries that the group
// has not delivered yet.
type StreamPosition struct{ Stream, ID string }

// XReadOptions are the options of [Client.XRead] and [Client.XReadGroup].
type XReadOptions struct {
	// Count is the maximum number of entries returned per stream. If zero, all are
	// returned.
	Count int
	// Block is how long the server waits for an entry if there is none. If zero, it does
	// not wait; if negative, it waits as long as ctx lasts. Such a call uses a dedicated
	// connection.
	Block time.Duration
	// NoAck means that entries count as acknowledged as soon as they are delivered to the group.
	NoAck bool
}

// XRange returns the entries with IDs from start to end: "-" is the first, "+" is the last, and
// "(1-0" excludes 1-0. If n is positive, it returns at most n entries.
func (c *Client) XRange(ctx context.Context, key, start, end string, n int) ([]Entry, error) {
	return c.entries(ctx, rangeCommand("XRANGE", key, start, end, n))
}

// XRevRange is like [Client.XRange], but returns the entries in reverse order, from end to start.
func (c *Client) XRevRange(ctx context.Context, key, end, start string, n int) ([]Entry, error) {
	return c.entries(ctx, rangeCommand("XREVRANGE", key, end, start, n))
}

func rangeCommand(name, key, from, to string, n int) Command {
	if n > 0 {
		return Cmd(name, key, from, to, "COUNT", n)
	}
	return Cmd(name, key, from, to)
}

// XRead returns the entries after the given positions of streams, or nil if there are none.
func (c *Client) XRead(ctx context.Context, o XReadOptions, from ...StreamPosition) ([]StreamEntries, error) {
	return c.streams(ctx, Cmd("XREAD", o.arguments(nil, from)...))
}

// XReadGroup reads for a consumer of a group. Entries that the consumer was given are pending until
// [Client.XAck]. If the outcome of a call is uncertain, they may be pending, too, and are found by
// the ID "0".
func (c *Client) XReadGroup(ctx context.Context, group, consumer string, o XReadOptions, from ...StreamPosition) ([]StreamEntries, error) {
	return c.streams(ctx, Cmd("XREADGROUP", o.arguments([]any{"GROUP", group, consumer}, from)...))
}

func (o XReadOptions) arguments(args []any, from []StreamPosition) []any {
	if o.Count > 0 {
		args = append(args, "COUNT", o.Count)
	}
	switch {
	case o.Block < 0:
		args = append(args, "BLOCK", 0)
	case o.Block > 0:
		args = append(args, "BLOCK", max(milliseconds(o.Block), 1))
	}
	if o.NoAck {
		args = append(args, "NOACK")
	}
	args = append(args, "STREAMS")
	for _, p := range from {
		args = append(args, p.Stream)
	}
	for _, p := range from {
		args = append(args, p.ID)
	}
	return args
}

func (c *Client) entries(ctx context.Context, cmd Command) ([]Entry, error) {
	return whole(ctx, c, cmd, entriesOf)
}

// streams decodes pairs of a stream and its entries: an array of pairs in RESP2, a map in RESP3.
func (c *Client) streams(ctx context.Context, cmd Command) ([]StreamEntries, error) {
	return whole(ctx, c, cmd, func(d *resp.Decoder, tok resp.Token) ([]StreamEntries, error) {
		if tok.Kind != resp.Map {
			return listOf(d, tok, func(d *resp.Decoder, tok resp.Token) (StreamEntries, error) {
				if tok.Kind != resp.Array || tok.Len != 2 {
					return StreamEntries{}, mismatch[StreamEntries](tok, errMismatch)
				}
				tok, err := d.Next()
				if err != nil {
					return StreamEntries{}, &DecodeError{Err: err}
				}
				return streamOf(d, tok)
			})
		}
		var list []StreamEntries
		e := elements{d, tok.Len}
		for {
			tok, ok, err := e.next()
			if err != nil || !ok {
				return list, err
			}
			s, err := streamOf(d, tok)
			if err != nil {
				return nil, err
			}
			e.left = max(e.left-1, -1)
			list = append(list, s)
		}
	})
}

// streamOf decodes a stream whose name is tok.
func streamOf(d *resp.Decoder, tok resp.Token) (s StreamEntries, err error) {
	if s.Stream, err = scalarOf(tok, stringOf); err != nil {
		return s, err
	}
	if tok, err = d.Next(); err != nil {
		return s, &DecodeError{Err: err}
	}
	s.Entries, err = entriesOf(d, tok)
	return s, err
}

func entriesOf(d *resp.Decoder, tok resp.Token) ([]Entry, error) { return listOf(d, tok, entryOf) }

// entryOf decodes an entry: its ID and its fields.
func entryOf(d *resp.Decoder, tok resp.Token) (e Entry, err error) {
	if tok.Kind != resp.Array || tok.Len != 2 {
		return e, mismatch[Entry](tok, errMismatch)
	}
	if err = next(d, &e.ID); err != nil {
		return e, err
	}
	if tok, err = d.Next(); err != nil {
		return e, &DecodeError{Err: err}
	}
	if tok.Null {
		return e, nil
	}
	e.Fields, err = fieldsOf(d, tok)
	return e, err
}

// next decodes the next value.
func next(d *resp.Decoder, dst any) error {
	tok, err := d.Next()
	if err != nil {
		return &DecodeError{Err: err}
	}
	return into(d, tok, dst)
}

// whole makes a call and decodes its reply with f.
func whole[T any](ctx context.Context, c *Client, cmd Command, f func(*resp.Decoder, resp.Token) (T, error)) (v T, err error) {
	var raw rawFrame
	if err = c.Do(ctx, &raw, cmd); err != nil {
		return v, err
	}
	d := resp.NewDecoder(raw)
	tok, err := d.Next()
	if err != nil {
		return v, c.fail.Executed(cmd.name, &DecodeError{Err: err})
	}
	if v, err = f(&d, tok); err != nil {
		return v, c.fail.Executed(cmd.name, err)
	}
	return v, nil
}
