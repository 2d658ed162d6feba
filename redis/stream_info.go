package redis

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// A PendingSummary is what [Client.XPending] returns.
type PendingSummary struct {
	// Count is the number of pending entries. First and Last are the lowest and the highest of
	// their IDs, or "" if there are none.
	Count       int64
	First, Last string
	// Consumers are the consumers with pending entries.
	Consumers []ConsumerPending
}

// ConsumerPending is the number of pending entries of a consumer.
type ConsumerPending struct {
	Name  string
	Count int64
}

// Pending is an entry that was delivered to a consumer and not acknowledged.
type Pending struct {
	ID, Consumer string
	// Idle is the time since the entry was last delivered, and Deliveries is how often it was
	// delivered.
	Idle       time.Duration
	Deliveries int64
}

// Claimed is the result of [Client.XAutoClaim].
type Claimed struct {
	// Next is the position from which to continue, or "0-0" if all entries were examined.
	Next    string
	Entries []Entry
	// Deleted are the IDs of entries that are no longer in the stream, and no longer pending either
	// (Redis 7).
	Deleted []string
}

// StreamInfo is what [Client.XInfoStream] returns.
type StreamInfo struct {
	// Length is the number of entries, and Groups is the number of consumer groups.
	Length, Groups int64
	// LastID is the ID that was assigned last. Its entry may have been removed since.
	LastID string
	// First and Last are the first and the last entry, or nil if there are none.
	First, Last *Entry
	// MaxDeletedID is the highest ID of a removed entry, EntriesAdded is the number of entries ever
	// added, and RecordedFirstID is the ID of the first entry. They are "" and -1 before Redis 7.
	MaxDeletedID, RecordedFirstID string
	EntriesAdded                  int64
	// RadixTreeKeys and RadixTreeNodes describe how the server stores the stream.
	RadixTreeKeys, RadixTreeNodes int64
}

// GroupInfo describes a consumer group.
type GroupInfo struct {
	Name string
	// Consumers and Pending are the numbers of its consumers and of its pending entries.
	Consumers, Pending int64
	// LastDelivered is the ID of the last entry that was delivered to a consumer.
	LastDelivered string
	// EntriesRead is the number of entries that the group has read, and Lag is the number of
	// entries it has yet to read; -1 if the server does not know, as before Redis 7.
	EntriesRead, Lag int64
}

// ConsumerInfo describes a consumer.
type ConsumerInfo struct {
	Name string
	// Pending is the number of its pending entries.
	Pending int64
	// Idle is the time since its last attempt to read, and Inactive the time since it last received
	// an entry; negative if it never did, or if the server does not know, as before Redis 7.2.
	Idle, Inactive time.Duration
}

func (c *Client) pendingSummary(ctx context.Context, r *request) (PendingSummary, error) {
	return reply(ctx, c, r, pendingSummaryOf)
}

func (c *Client) pendings(ctx context.Context, r *request) ([]Pending, error) {
	return reply(ctx, c, r, func(d *resp.Decoder, tok resp.Token) ([]Pending, error) { return listOf(d, tok, pendingOf) })
}

func (c *Client) claimed(ctx context.Context, r *request) (Claimed, error) {
	return reply(ctx, c, r, claimedOf)
}

func (c *Client) claimedEntries(ctx context.Context, r *request) ([]Entry, error) {
	return reply(ctx, c, r, claimedEntriesOf)
}

func (c *Client) streamInfo(ctx context.Context, r *request) (StreamInfo, error) {
	return reply(ctx, c, r, streamInfoOf)
}

func (c *Client) groupInfos(ctx context.Context, r *request) ([]GroupInfo, error) {
	return reply(ctx, c, r, func(d *resp.Decoder, tok resp.Token) ([]GroupInfo, error) { return listOf(d, tok, groupInfoOf) })
}

func (c *Client) consumerInfos(ctx context.Context, r *request) ([]ConsumerInfo, error) {
	return reply(ctx, c, r, func(d *resp.Decoder, tok resp.Token) ([]ConsumerInfo, error) { return listOf(d, tok, consumerInfoOf) })
}

// isTuple reports whether tok starts an array of n values.
func isTuple(tok resp.Token, n int) bool {
	return tok.Kind == resp.Array && !tok.Null && tok.Len == n
}

// nextOf decodes the next value with f.
func nextOf[T any](d *resp.Decoder, dst *T, f func(*resp.Decoder, resp.Token) (T, error)) error {
	tok, err := d.Next()
	if err != nil {
		return &DecodeError{Err: err}
	}
	*dst, err = f(d, tok)
	return err
}

func pendingSummaryOf(d *resp.Decoder, tok resp.Token) (s PendingSummary, err error) {
	if !isTuple(tok, 4) {
		return s, mismatch[PendingSummary](tok, errMismatch)
	}
	var first, last *string // null if nothing is pending
	for _, dst := range []any{&s.Count, &first, &last} {
		if err = next(d, dst); err != nil {
			return s, err
		}
	}
	if first != nil && last != nil {
		s.First, s.Last = *first, *last
	}
	err = nextOf(d, &s.Consumers, func(d *resp.Decoder, tok resp.Token) ([]ConsumerPending, error) {
		return listOf(d, tok, func(d *resp.Decoder, tok resp.Token) (p ConsumerPending, err error) {
			if !isTuple(tok, 2) {
				return p, mismatch[ConsumerPending](tok, errMismatch)
			}
			if err = next(d, &p.Name); err == nil {
				err = next(d, &p.Count)
			}
			return p, err
		})
	})
	return s, err
}

func pendingOf(d *resp.Decoder, tok resp.Token) (p Pending, err error) {
	if !isTuple(tok, 4) {
		return p, mismatch[Pending](tok, errMismatch)
	}
	var idle int64
	for _, dst := range []any{&p.ID, &p.Consumer, &idle, &p.Deliveries} {
		if err = next(d, dst); err != nil {
			return p, err
		}
	}
	p.Idle = inMilliseconds(idle)
	return p, nil
}

// inMilliseconds returns n milliseconds as a duration, or the longest duration if n is too large.
func inMilliseconds(n int64) time.Duration { return inUnits(n, time.Millisecond) }

func inUnits(n int64, unit time.Duration) time.Duration {
	most := math.MaxInt64 / int64(unit)
	return time.Duration(max(min(n, most), -most)) * unit
}

func claimedOf(d *resp.Decoder, tok resp.Token) (c Claimed, err error) {
	if !isTuple(tok, 2) && !isTuple(tok, 3) {
		return c, mismatch[Claimed](tok, errMismatch)
	}
	if err = next(d, &c.Next); err != nil {
		return c, err
	}
	if err = nextOf(d, &c.Entries, claimedEntriesOf); err != nil || tok.Len == 2 {
		return c, err
	}
	return c, next(d, &c.Deleted)
}

// claimedEntriesOf decodes claimed entries. Redis 6 sends null in place of a deleted entry.
func claimedEntriesOf(d *resp.Decoder, tok resp.Token) ([]Entry, error) {
	gone := false
	list, err := listOf(d, tok, func(d *resp.Decoder, tok resp.Token) (Entry, error) {
		if tok.Null {
			gone = true
			return Entry{}, nil
		}
		return entryOf(d, tok)
	})
	if gone {
		list = slices.DeleteFunc(list, func(e Entry) bool { return e.ID == "" })
	}
	return list, err
}

// properties decodes alternating names and values, or a map. The property must is required. Of
// decodes the value of a name, and returns false if it does not know the name.
func properties[T any](d *resp.Decoder, tok resp.Token, must string, of func(name string, tok resp.Token) (bool, error)) error {
	if tok.Null || tok.Kind != resp.Map && tok.Kind != resp.Array {
		return mismatch[T](tok, errMismatch)
	}
	found := false
	e := elements{d, tok.Len}
	for {
		key, ok, err := e.next()
		switch {
		case err != nil:
			return err
		case !ok && !found:
			return mismatch[T](tok, errors.New("it lacks "+must))
		case !ok:
			return nil
		}
		name, err := scalarOf(key, stringOf)
		if err != nil {
			return err
		}
		value, ok, err := e.next()
		switch {
		case err != nil:
			return err
		case !ok:
			return mismatch[T](tok, errMismatch)
		}
		found = found || name == must
		known, err := of(name, value)
		if err == nil && !known {
			err = skip(d, value)
		}
		if err != nil {
			return at(err, "."+name)
		}
	}
}

func streamInfoOf(d *resp.Decoder, tok resp.Token) (s StreamInfo, err error) {
	s.EntriesAdded = -1
	err = properties[StreamInfo](d, tok, "length", func(name string, tok resp.Token) (bool, error) {
		switch name {
		case "length":
			return true, into(d, tok, &s.Length)
		case "groups":
			return true, into(d, tok, &s.Groups)
		case "last-generated-id":
			return true, into(d, tok, &s.LastID)
		case "max-deleted-entry-id":
			return true, into(d, tok, &s.MaxDeletedID)
		case "recorded-first-entry-id":
			return true, into(d, tok, &s.RecordedFirstID)
		case "entries-added":
			return true, into(d, tok, &s.EntriesAdded)
		case "radix-tree-keys":
			return true, into(d, tok, &s.RadixTreeKeys)
		case "radix-tree-nodes":
			return true, into(d, tok, &s.RadixTreeNodes)
		case "first-entry":
			s.First, err = maybeEntryOf(d, tok)
			return true, err
		case "last-entry":
			s.Last, err = maybeEntryOf(d, tok)
			return true, err
		}
		return false, nil
	})
	return s, err
}

func maybeEntryOf(d *resp.Decoder, tok resp.Token) (*Entry, error) {
	if tok.Null {
		return nil, nil
	}
	e, err := entryOf(d, tok)
	if err != nil {
		return nil, err
	}
	return &e, nil
}

func groupInfoOf(d *resp.Decoder, tok resp.Token) (g GroupInfo, err error) {
	g.EntriesRead, g.Lag = -1, -1
	err = properties[GroupInfo](d, tok, "name", func(name string, tok resp.Token) (bool, error) {
		switch name {
		case "name":
			return true, into(d, tok, &g.Name)
		case "consumers":
			return true, into(d, tok, &g.Consumers)
		case "pending":
			return true, into(d, tok, &g.Pending)
		case "last-delivered-id":
			return true, into(d, tok, &g.LastDelivered)
		case "entries-read":
			return true, maybeInto(d, tok, &g.EntriesRead)
		case "lag":
			return true, maybeInto(d, tok, &g.Lag)
		}
		return false, nil
	})
	return g, err
}

// maybeInto is like into, for a number that may be null; n is unchanged then.
func maybeInto(d *resp.Decoder, tok resp.Token, n *int64) error {
	if tok.Null {
		return nil
	}
	return into(d, tok, n)
}

func consumerInfoOf(d *resp.Decoder, tok resp.Token) (c ConsumerInfo, err error) {
	idle, inactive := int64(-1), int64(-1)
	err = properties[ConsumerInfo](d, tok, "name", func(name string, tok resp.Token) (bool, error) {
		switch name {
		case "name":
			return true, into(d, tok, &c.Name)
		case "pending":
			return true, into(d, tok, &c.Pending)
		case "idle":
			return true, into(d, tok, &idle)
		case "inactive":
			return true, into(d, tok, &inactive)
		}
		return false, nil
	})
	c.Idle, c.Inactive = inMilliseconds(idle), inMilliseconds(inactive)
	return c, err
}
