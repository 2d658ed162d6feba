package redis

import (
	"context"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// NoExpiry is the time to live of a key, or of a field, that does not expire.
const NoExpiry time.Duration = -1

// MaybeDuration is a time to live that may be missing: Found is false if there is no such
// field. Value is NoExpiry if the field does not expire.
type MaybeDuration struct {
	Value time.Duration
	Found bool
}

// MaybeTime is a point in time that may be missing: Found is false if there is no such field.
// Value is the zero time if the field does not expire.
type MaybeTime struct {
	Value time.Time
	Found bool
}

// durationOf converts a reply in milliseconds: -1 means that there is no expiry, and -2 that there
// is no key or field.
func durationOf(n int64) MaybeDuration {
	switch {
	case n == -2:
		return MaybeDuration{}
	case n < 0:
		return MaybeDuration{Value: NoExpiry, Found: true}
	}
	return MaybeDuration{Value: inMilliseconds(n), Found: true}
}

// timeOf is like durationOf, for milliseconds since 1970.
func timeOf(n int64) MaybeTime {
	switch {
	case n == -2:
		return MaybeTime{}
	case n < 0:
		return MaybeTime{Found: true}
	}
	return MaybeTime{Value: time.UnixMilli(n), Found: true}
}

// seconds makes a call whose reply is a number of seconds.
func (c *Client) seconds(ctx context.Context, r *request) (time.Duration, error) {
	n, err := c.number(ctx, r)
	return inUnits(n, time.Second), err
}

func (c *Client) maybeTime(ctx context.Context, r *request) (at time.Time, found bool, err error) {
	n, err := c.number(ctx, r)
	if err != nil {
		return at, false, err
	}
	t := timeOf(n)
	return t.Value, t.Found, nil
}

func (c *Client) times(ctx context.Context, r *request) ([]MaybeTime, error) {
	return reply(ctx, c, r, func(d *resp.Decoder, tok resp.Token) ([]MaybeTime, error) {
		return listOf(d, tok, func(_ *resp.Decoder, tok resp.Token) (MaybeTime, error) {
			n, err := scalarOf(tok, intOf)
			return timeOf(n), err
		})
	})
}

func (c *Client) ttls(ctx context.Context, r *request) ([]MaybeDuration, error) {
	return reply(ctx, c, r, func(d *resp.Decoder, tok resp.Token) ([]MaybeDuration, error) {
		return listOf(d, tok, func(_ *resp.Decoder, tok resp.Token) (MaybeDuration, error) {
			n, err := scalarOf(tok, intOf)
			return durationOf(n), err
		})
	})
}
