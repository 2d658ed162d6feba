package redis

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// typed builds the request of a method that has its own command. The caller fills
// in the frame.
func (c *Client) typed(in *commandInfo, key string) request {
	n, to := c.only, route{}
	if n == nil {
		n, to = c.router.routeKey(in, key)
	}
	return request{
		node: n, call: n.engine.Acquire(), info: in, name: in.name,
		repeatable: in.flags&flagReadOnly != 0, route: to,
	}
}

// Get returns the value of a key; found is false if there is none.
func (c *Client) Get(ctx context.Context, key string) (value string, found bool, err error) {
	r := c.typed(infoGet, key)
	r.call.Frame = appendKeyed(r.call.Frame[:0], "*2\r\n$3\r\nGET\r\n", key)
	if err = c.run(ctx, &r); err == nil {
		if value, found, err = stringReply(r.reply()); err != nil {
			err = r.node.fail.Executed(r.name, err)
		}
	}
	r.call.Release()
	return value, found, err
}

// GetAppend appends the value of a key to dst and returns the extended slice; found is false if
// there is none. It allocates nothing if dst has room. A large value for which dst has room is
// received there without a copy; if GetAppend fails, the memory beyond the end of dst is undefined.
// Nothing is written to it after GetAppend has returned.
func (c *Client) GetAppend(ctx context.Context, dst []byte, key string) (_ []byte, found bool, err error) {
	r := c.typed(infoGet, key)
	r.call.Frame = appendKeyed(r.call.Frame[:0], "*2\r\n$3\r\nGET\r\n", key)
	return c.appendMaybeText(ctx, &r, dst)
}

// Set sets the value of a key, which then does not expire.
func (c *Client) Set(ctx context.Context, key, value string) error {
	_, err := set(ctx, c, key, value, SetOptions{})
	return err
}

// SetBytes is like Set, for bytes, which are copied before it returns.
func (c *Client) SetBytes(ctx context.Context, key string, value []byte) error {
	_, err := set(ctx, c, key, value, SetOptions{})
	return err
}

// SetEX sets the value of a key, which expires after ttl, rounded up to milliseconds.
func (c *Client) SetEX(ctx context.Context, key, value string, ttl time.Duration) error {
	if ttl <= 0 {
		return c.fail.NotSent("SET", fmt.Errorf("time to live is %v, expected a positive duration", ttl))
	}
	_, err := set(ctx, c, key, value, SetOptions{TTL: ttl})
	return err
}

// SetOptions are the options of [Client.SetWith].
type SetOptions struct {
	// TTL is the time to live of the key, rounded up to milliseconds. If zero, the
	// key does not expire.
	TTL time.Duration
	// NX sets the key only if it does not exist, and XX only if it does.
	NX, XX bool
	// KeepTTL keeps the current expiry of the key.
	KeepTTL bool
}

func (o SetOptions) check() error {
	switch {
	case o.TTL < 0:
		return fmt.Errorf("time to live is %v, expected no negative duration", o.TTL)
	case o.NX && o.XX:
		return errors.New("options NX and XX exclude each other")
	case o.TTL > 0 && o.KeepTTL:
		return errors.New("options TTL and KeepTTL exclude each other")
	}
	return nil
}

// SetWith sets the value of a key with options; done is false if their conditions did not hold.
func (c *Client) SetWith(ctx context.Context, key, value string, o SetOptions) (done bool, err error) {
	if err := o.check(); err != nil {
		return false, c.fail.NotSent("SET", err)
	}
	return set(ctx, c, key, value, o)
}

// SetBytesWith is like SetWith, for bytes, which are copied before it returns.
func (c *Client) SetBytesWith(ctx context.Context, key string, value []byte, o SetOptions) (done bool, err error) {
	if err := o.check(); err != nil {
		return false, c.fail.NotSent("SET", err)
	}
	return set(ctx, c, key, value, o)
}

func set[T string | []byte](ctx context.Context, c *Client, key string, value T, o SetOptions) (done bool, err error) {
	r := c.typed(infoSet, key)
	r.call.Frame = appendSet(r.call.Frame[:0], key, value, o)
	if err = c.run(ctx, &r); err == nil {
		if done, err = doneReply(r.reply()); err != nil {
			err = r.node.fail.Executed(r.name, err)
		}
	}
	r.call.Release()
	return done, err
}

// An Item is one value of [Client.MGet].
type Item struct {
	Value string
	Found bool
}

// A KeyValue is a key and the value that [Client.MSet] gives it.
type KeyValue struct{ Key, Value string }

// MGet returns the values of keys, in the order of keys.
func (c *Client) MGet(ctx context.Context, keys ...string) ([]Item, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	r := c.typed(infoMGet, keys[0])
	r.call.Frame = appendKeys(r.call.Frame[:0], "$4\r\nMGET\r\n", keys)
	var items []Item
	err := c.run(ctx, &r)
	if err == nil {
		if items, err = itemsOf(r.reply(), len(keys)); err != nil {
			err = r.node.fail.Executed(r.name, err)
		}
	}
	r.call.Release()
	return items, err
}

// A Span is the position of a value in a slice of bytes.
type Span struct{ Start, End int }

// Found reports whether there is a value.
func (s Span) Found() bool { return s.Start >= 0 }

// In returns the value within the slice that [Client.MGetAppend] returned, or nil
// if there is none.
func (s Span) In(b []byte) []byte {
	if s.Start < 0 {
		return nil
	}
	return b[s.Start:s.End:s.End]
}

// MGetAppend appends the values of keys to dst. It also appends to spans, for each key, a Span with
// the position of its value in the returned slice. It allocates nothing if both have room.
func (c *Client) MGetAppend(ctx context.Context, dst []byte, spans []Span, keys ...string) ([]byte, []Span, error) {
	if len(keys) == 0 {
		return dst, spans, nil
	}
	r := c.typed(infoMGet, keys[0])
	r.call.Frame = appendKeys(r.call.Frame[:0], "$4\r\nMGET\r\n", keys)
	err := c.run(ctx, &r)
	if err == nil {
		if dst, spans, err = spansOf(dst, spans, r.reply(), len(keys)); err != nil {
			err = r.node.fail.Executed(r.name, err)
		}
	}
	r.call.Release()
	return dst, spans, err
}

// Del removes keys and returns the number of keys that existed.
func (c *Client) Del(ctx context.Context, keys ...string) (int64, error) {
	return c.countKeys(ctx, infoDel, "$3\r\nDEL\r\n", keys)
}

// Exists returns the number of keys that exist. A key that is given twice counts twice.
func (c *Client) Exists(ctx context.Context, keys ...string) (int64, error) {
	return c.countKeys(ctx, infoExists, "$6\r\nEXISTS\r\n", keys)
}

func (c *Client) countKeys(ctx context.Context, in *commandInfo, name string, keys []string) (int64, error) {
	if len(keys) == 0 {
		return 0, nil
	}
	r := c.typed(in, keys[0])
	r.call.Frame = appendKeys(r.call.Frame[:0], name, keys)
	return c.number(ctx, &r)
}

// number makes a call whose reply is a number, and releases the call.
func (c *Client) number(ctx context.Context, r *request) (n int64, err error) {
	if err = c.run(ctx, r); err == nil {
		if n, err = intReply(r.reply()); err != nil {
			err = r.node.fail.Executed(r.name, err)
		}
	}
	r.call.Release()
	return n, err
}

// Incr increments the integer stored at key and returns the new value. It is never sent again if
// the server may have executed it.
func (c *Client) Incr(ctx context.Context, key string) (int64, error) {
	r := c.typed(infoIncr, key)
	r.call.Frame = appendKeyed(r.call.Frame[:0], "*2\r\n$4\r\nINCR\r\n", key)
	return c.number(ctx, &r)
}

// IncrBy adds n, which may be negative, to the integer stored at key and returns the new value. It
// is never sent again if the server may have executed it.
func (c *Client) IncrBy(ctx context.Context, key string, n int64) (int64, error) {
	r := c.typed(infoIncrBy, key)
	r.call.Frame = appendKeyInt(r.call.Frame[:0], "*3\r\n$6\r\nINCRBY\r\n", key, n)
	return c.number(ctx, &r)
}

// Expire makes a key expire after ttl, which is rounded up to milliseconds. If ttl is not positive,
// the key is removed. Found is false if there is no such key.
func (c *Client) Expire(ctx context.Context, key string, ttl time.Duration) (found bool, err error) {
	r := c.typed(infoPExpire, key)
	r.call.Frame = appendKeyInt(r.call.Frame[:0], "*3\r\n$7\r\nPEXPIRE\r\n", key, milliseconds(ttl))
	n, err := c.number(ctx, &r)
	return n == 1, err
}

// TTL returns the remaining time to live of a key, with millisecond precision, or NoExpiry if the
// key does not expire. Found is false if there is no such key.
func (c *Client) TTL(ctx context.Context, key string) (ttl time.Duration, found bool, err error) {
	r := c.typed(infoPTTL, key)
	r.call.Frame = appendKeyed(r.call.Frame[:0], "*2\r\n$4\r\nPTTL\r\n", key)
	n, err := c.number(ctx, &r)
	if err != nil {
		return 0, false, err
	}
	d := durationOf(n)
	return d.Value, d.Found, nil
}

// Ping sends PING and waits for the reply.
func (c *Client) Ping(ctx context.Context) error {
	r := c.typed(infoPing, "")
	r.call.Frame = append(r.call.Frame[:0], "*1\r\n$4\r\nPING\r\n"...)
	err := c.run(ctx, &r)
	r.call.Release()
	return err
}
