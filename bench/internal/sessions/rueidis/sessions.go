// Package rueidis contains the program with rueidis from which docs/tutorial-redis.md starts. It is
// here because only this module requires rueidis.
package rueidis

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"
)

// Session is what a shop knows about a visitor.
type Session struct {
	User  string
	Items int
}

// Sessions stores sessions in Redis.
type Sessions struct{ client rueidis.Client }

// New returns the sessions of a server.
func New(addr string) (*Sessions, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	return &Sessions{client}, err
}

// Save stores a session for an hour.
func (s *Sessions) Save(ctx context.Context, id string, v Session) error {
	b := s.client.B
	for _, reply := range s.client.DoMulti(ctx,
		b().Multi().Build(),
		b().Hset().Key("session:"+id).FieldValue().FieldValue("user", v.User).FieldValue("items", strconv.Itoa(v.Items)).Build(),
		b().Expire().Key("session:"+id).Seconds(3600).Build(),
		b().Exec().Build(),
	) {
		if err := reply.Error(); err != nil {
			return err
		}
	}
	return nil
}

// Load returns a session, and reports whether it exists.
func (s *Sessions) Load(ctx context.Context, id string) (v Session, found bool, err error) {
	fields, err := s.client.Do(ctx, s.client.B().Hgetall().Key("session:"+id).Build()).AsStrMap()
	if err != nil || len(fields) == 0 {
		return v, false, err
	}
	v.User = fields["user"]
	v.Items, err = strconv.Atoi(fields["items"])
	return v, true, err
}

// Visit counts a visit to a page and returns the number of visits so far.
func (s *Sessions) Visit(ctx context.Context, page string) (int64, error) {
	return s.client.Do(ctx, s.client.B().Incr().Key("visits:"+page).Build()).AsInt64()
}

// Banner returns the text above every page.
func (s *Sessions) Banner(ctx context.Context) (string, error) {
	text, err := s.client.Do(ctx, s.client.B().Get().Key("banner").Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return "Welcome!", nil
	}
	return text, err
}
