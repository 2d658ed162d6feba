package redis

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// ScanOptions select what a scan returns.
type ScanOptions struct {
	// Match is a pattern like that of KEYS. If empty, everything is returned.
	Match string
	// Count is the approximate number of elements that the server examines in one step. If zero, it
	// defaults to 10. Other calls of the connection wait during a step: 1,000 elements take about
	// 0.2 ms.
	Count int
	// Type is the type of keys that [Client.Scan] returns, such as "hash". If empty, keys of all
	// types are returned.
	Type string
}

// Scan returns the keys of the database, one by one. A key that exists during the whole scan is
// returned at least once, and perhaps more often; other keys may or may not be returned. An error,
// if any, is returned last. The server keeps no state between steps.
//
//	for key, err := range client.Scan(ctx, redis.ScanOptions{Match: "user:*"}) {
//		...
//	}
//
// In a cluster, Scan iterates over one master after another. A key whose slot is migrated in the
// meantime may be missed or returned twice.
func (c *Client) Scan(ctx context.Context, o ScanOptions) iter.Seq2[string, error] {
	if c.only == nil {
		return c.scanAll(ctx, o)
	}
	return scan(ctx, c, "SCAN", "", o, func(yield func(string, error) bool, page []string) bool {
		for _, key := range page {
			if !yield(key, nil) {
				return false
			}
		}
		return true
	})
}

// SScan returns the members of a set, like [Client.Scan] does keys. In a cluster, all of them come
// from the master that has the key at the start. If the slot moves in the meantime, SScan fails
// with MOVED.
func (c *Client) SScan(ctx context.Context, key string, o ScanOptions) iter.Seq2[string, error] {
	return scan(ctx, c, "SSCAN", key, o, func(yield func(string, error) bool, page []string) bool {
		for _, member := range page {
			if !yield(member, nil) {
				return false
			}
		}
		return true
	})
}

// A Field is a field of a hash.
type Field struct{ Name, Value string }

// HScan returns the fields of a hash, like [Client.Scan] does keys.
func (c *Client) HScan(ctx context.Context, key string, o ScanOptions) iter.Seq2[Field, error] {
	return scan(ctx, c, "HSCAN", key, o, func(yield func(Field, error) bool, page []string) bool {
		if len(page)%2 != 0 {
			return yield(Field{}, c.fail.Executed("HSCAN", &DecodeError{Err: errOddPage}))
		}
		for i := 0; i < len(page); i += 2 {
			if !yield(Field{page[i], page[i+1]}, nil) {
				return false
			}
		}
		return true
	})
}

// A Member is a member of a sorted set.
type Member struct {
	Name  string
	Score float64
}

// ZScan returns the members of a sorted set, like [Client.Scan] does keys.
func (c *Client) ZScan(ctx context.Context, key string, o ScanOptions) iter.Seq2[Member, error] {
	return scan(ctx, c, "ZSCAN", key, o, func(yield func(Member, error) bool, page []string) bool {
		if len(page)%2 != 0 {
			return yield(Member{}, c.fail.Executed("ZSCAN", &DecodeError{Err: errOddPage}))
		}
		for i := 0; i < len(page); i += 2 {
			score, err := strconv.ParseFloat(page[i+1], 64)
			if err != nil {
				yield(Member{}, c.fail.Executed("ZSCAN", &DecodeError{Err: fmt.Errorf("score %q: %w", page[i+1], errNotANumber)}))
				return false
			}
			if !yield(Member{page[i], score}, nil) {
				return false
			}
		}
		return true
	})
}

var errOddPage = errors.New("an odd number of elements where pairs are expected")

// scan iterates over the pages of a command of the SCAN family.
func scan[T any](ctx context.Context, c *Client, name, key string, o ScanOptions, each func(yield func(T, error) bool, page []string) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		var page scanPage
		page.cursor = "0"
		// A cursor is valid on one node only, so all pages must come from the same node.
		of, redirects := c, 0
		if c.only == nil {
			of = c.viewOf(c.router.owner(int32(slot.Of(key))))
		}
		for {
			if err := of.Do(ctx, (*rawFrame)(&page.raw), scanCommand(name, key, page.cursor, o)); err != nil {
				if page.cursor == "0" && c.only == nil && redirects < maxRedirects && c.router.follows(ctx, of.only, []string{key}, err) {
					redirects++
					of = c.viewOf(c.router.owner(int32(slot.Of(key))))
					continue
				}
				yield(none, err)
				return
			}
			if err := page.decode(); err != nil {
				yield(none, c.fail.Executed(name, err))
				return
			}
			if !each(yield, page.elements) || page.cursor == "0" {
				return
			}
		}
	}
}

func scanCommand(name, key, cursor string, o ScanOptions) Command {
	args := make([]any, 0, 8)
	if key != "" || name != "SCAN" {
		args = append(args, key)
	}
	args = append(args, cursor)
	if o.Match != "" {
		args = append(args, "MATCH", o.Match)
	}
	if o.Count > 0 {
		args = append(args, "COUNT", o.Count)
	}
	if o.Type != "" && name == "SCAN" {
		args = append(args, "TYPE", o.Type)
	}
	return Cmd(name, args...)
}

// scanPage is a reply of the SCAN family: a cursor and elements.
type scanPage struct {
	raw      []byte
	cursor   string
	elements []string
}

func (p *scanPage) decode() error {
	d := resp.NewDecoder(p.raw)
	tok, err := d.Next()
	if err != nil {
		return &DecodeError{Err: err}
	}
	if tok.Kind != resp.Array || tok.Len != 2 {
		return &DecodeError{Reply: describe(tok), Err: errors.New("expected a cursor and elements")}
	}
	if tok, err = d.Next(); err != nil {
		return &DecodeError{Err: err}
	}
	if p.cursor, err = stringOf(tok); err != nil {
		return mismatch[string](tok, err)
	}
	if tok, err = d.Next(); err != nil {
		return &DecodeError{Err: err}
	}
	if tok.Null {
		return mismatch[[]string](tok, ErrNull)
	}
	p.elements = nil // the caller may have kept the previous ones
	return into(&d, tok, &p.elements)
}
