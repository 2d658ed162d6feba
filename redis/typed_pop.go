package redis

import (
	"context"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// The parameter wait of blocking commands is the maximum time to wait for an element; if it is 0,
// they wait until ctx ends. Found is false if the time has passed. If ctx ends first, no element is
// lost; see [Client.Do].

// waitSeconds returns a time to wait in the server's unit.
func waitSeconds(d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return max(d, time.Millisecond).Seconds() // a shorter time would be rounded to 0, which means forever
}

// BLPop removes the first element of the first list that has one, and returns it.
func (c *Client) BLPop(ctx context.Context, wait time.Duration, keys ...string) (key, value string, found bool, err error) {
	return c.popOf(ctx, "BLPOP", wait, keys)
}

// BRPop is like [Client.BLPop], but removes the last element.
func (c *Client) BRPop(ctx context.Context, wait time.Duration, keys ...string) (key, value string, found bool, err error) {
	return c.popOf(ctx, "BRPOP", wait, keys)
}

func (c *Client) popOf(ctx context.Context, name string, wait time.Duration, keys []string) (key, value string, found bool, err error) {
	var pair []string
	if err = c.Do(ctx, &pair, Cmd(name, append(anys(keys), waitSeconds(wait))...)); err != nil || len(pair) != 2 {
		return "", "", false, err
	}
	return pair[0], pair[1], true, nil
}

// anys converts strings to arguments.
func anys(words []string) []any {
	list := make([]any, len(words), len(words)+1)
	for i, w := range words {
		list[i] = w
	}
	return list
}

// BLMove moves an element from one end ("LEFT" or "RIGHT") of a list to one end of another list,
// and returns it.
func (c *Client) BLMove(ctx context.Context, wait time.Duration, key, destination, from, to string) (value string, found bool, err error) {
	return c.moved(ctx, Cmd("BLMOVE", key, destination, from, to, waitSeconds(wait)))
}

// BRPopLPush is the old command for [Client.BLMove] from the end of one list to the front of
// another.
func (c *Client) BRPopLPush(ctx context.Context, wait time.Duration, key, destination string) (value string, found bool, err error) {
	return c.moved(ctx, Cmd("BRPOPLPUSH", key, destination, waitSeconds(wait)))
}

func (c *Client) moved(ctx context.Context, cmd Command) (value string, found bool, err error) {
	var text *string
	if err = c.Do(ctx, &text, cmd); err != nil || text == nil {
		return "", false, err
	}
	return *text, true, nil
}

// LMPop removes up to n elements from one end ("LEFT" or "RIGHT") of the first list that has any,
// and returns them with the key of that list, or "" if all are empty.
func (c *Client) LMPop(ctx context.Context, end string, n int64, keys ...string) (key string, elements []string, err error) {
	return c.poppedTexts(ctx, Cmd("LMPOP", popArguments(nil, end, n, keys)...))
}

// BLMPop is like [Client.LMPop], but waits for an element.
func (c *Client) BLMPop(ctx context.Context, wait time.Duration, end string, n int64, keys ...string) (key string, elements []string, err error) {
	return c.poppedTexts(ctx, Cmd("BLMPOP", popArguments([]any{waitSeconds(wait)}, end, n, keys)...))
}

func popArguments(first []any, end string, n int64, keys []string) []any {
	args := append(append(first, len(keys)), anys(keys)...)
	return append(args, end, "COUNT", n)
}

func (c *Client) poppedTexts(ctx context.Context, cmd Command) (key string, elements []string, err error) {
	err = c.popped(ctx, cmd, func(d *resp.Decoder, tok resp.Token) error { return into(d, tok, &key) },
		func(d *resp.Decoder, tok resp.Token) error { return into(d, tok, &elements) })
	return key, elements, err
}

// popped decodes a pair. It decodes nothing if the reply is null.
func (c *Client) popped(ctx context.Context, cmd Command, parts ...func(*resp.Decoder, resp.Token) error) error {
	var raw rawFrame
	if err := c.Do(ctx, &raw, cmd); err != nil {
		return err
	}
	d := resp.NewDecoder(raw)
	tok, err := d.Next()
	switch {
	case err != nil:
		err = &DecodeError{Err: err}
	case tok.Null:
		return nil
	case tok.Kind != resp.Array || tok.Len != len(parts):
		err = mismatch[[]any](tok, errMismatch)
	}
	for i := 0; err == nil && i < len(parts); i++ {
		if tok, err = d.Next(); err != nil {
			err = &DecodeError{Err: err}
		} else {
			err = parts[i](&d, tok)
		}
	}
	if err != nil {
		return c.fail.Executed(cmd.name, err)
	}
	return nil
}

// ZMPop removes up to n members with the lowest or highest scores ("MIN" or "MAX") from the first
// sorted set that has any, and returns them with the key of that set, or "" if all are empty.
func (c *Client) ZMPop(ctx context.Context, end string, n int64, keys ...string) (key string, members []Member, err error) {
	return c.poppedMembers(ctx, Cmd("ZMPOP", popArguments(nil, end, n, keys)...))
}

// BZMPop is like [Client.ZMPop], but waits for a member.
func (c *Client) BZMPop(ctx context.Context, wait time.Duration, end string, n int64, keys ...string) (key string, members []Member, err error) {
	return c.poppedMembers(ctx, Cmd("BZMPOP", popArguments([]any{waitSeconds(wait)}, end, n, keys)...))
}

func (c *Client) poppedMembers(ctx context.Context, cmd Command) (key string, members []Member, err error) {
	err = c.popped(ctx, cmd, func(d *resp.Decoder, tok resp.Token) error { return into(d, tok, &key) },
		func(d *resp.Decoder, tok resp.Token) (err error) { members, err = membersOf(d, tok); return err })
	return key, members, err
}

// BZPopMin removes the member with the lowest score from the first sorted set that has one, and
// returns it.
func (c *Client) BZPopMin(ctx context.Context, wait time.Duration, keys ...string) (key string, m Member, found bool, err error) {
	return c.poppedMember(ctx, "BZPOPMIN", wait, keys)
}

// BZPopMax is like [Client.BZPopMin], but removes the member with the highest score.
func (c *Client) BZPopMax(ctx context.Context, wait time.Duration, keys ...string) (key string, m Member, found bool, err error) {
	return c.poppedMember(ctx, "BZPOPMAX", wait, keys)
}

func (c *Client) poppedMember(ctx context.Context, name string, wait time.Duration, keys []string) (key string, m Member, found bool, err error) {
	err = c.popped(ctx, Cmd(name, append(anys(keys), waitSeconds(wait))...),
		func(d *resp.Decoder, tok resp.Token) error { found = true; return into(d, tok, &key) },
		func(d *resp.Decoder, tok resp.Token) error { return into(d, tok, &m.Name) },
		func(d *resp.Decoder, tok resp.Token) error { return into(d, tok, &m.Score) })
	return key, m, found && err == nil, err
}
