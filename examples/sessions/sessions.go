package main

import (
	"context"
	"time"

	"github.com/slipstream-go/slipstream/redis"
)

// Session is what a shop knows about a visitor.
type Session struct {
	User  string `redis:"user"`
	Items int    `redis:"items"`
}

// Sessions stores sessions in Redis. All methods are safe for concurrent use.
type Sessions struct{ client *redis.Client }

// Save stores a session for an hour.
func (s *Sessions) Save(ctx context.Context, id string, v Session) error {
	var b redis.Batch
	b.AddCmd(nil, "HSET", "session:"+id, "user", v.User, "items", v.Items)
	b.AddCmd(nil, "PEXPIRE", "session:"+id, time.Hour.Milliseconds())
	return s.client.DoTransaction(ctx, &b)
}

// Load returns a session, and reports whether it exists.
func (s *Sessions) Load(ctx context.Context, id string) (v Session, found bool, err error) {
	err = s.client.Do(ctx, &v, redis.Cmd("HGETALL", "session:"+id))
	return v, v != Session{}, err
}

// Visit counts a visit to a page and returns the number of visits so far.
func (s *Sessions) Visit(ctx context.Context, page string) (int64, error) {
	return s.client.Incr(ctx, "visits:"+page)
}

// Banner returns the text above every page.
func (s *Sessions) Banner(ctx context.Context) (string, error) {
	text, found, err := s.client.Get(ctx, "banner")
	if err == nil && !found {
		return "Welcome!", nil
	}
	return text, err
}
