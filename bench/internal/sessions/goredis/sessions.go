// Package goredis contains the program with go-redis from which docs/tutorial-redis.md starts. It
// is here because only this module requires go-redis.
package goredis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// Session is what a shop knows about a visitor.
type Session struct {
	User  string `redis:"user"`
	Items int    `redis:"items"`
}

// Sessions stores sessions in Redis.
type Sessions struct{ client *redis.Client }

// New returns the sessions of a server.
func New(addr string) *Sessions {
	return &Sessions{redis.NewClient(&redis.Options{Addr: addr})}
}

// Save stores a session for an hour.
func (s *Sessions) Save(ctx context.Context, id string, v Session) error {
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, "session:"+id, "user", v.User, "items", v.Items)
		p.Expire(ctx, "session:"+id, time.Hour)
		return nil
	})
	return err
}

// Load returns a session, and reports whether it exists.
func (s *Sessions) Load(ctx context.Context, id string) (v Session, found bool, err error) {
	err = s.client.HGetAll(ctx, "session:"+id).Scan(&v)
	return v, v != Session{}, err
}

// Visit counts a visit to a page and returns the number of visits so far.
func (s *Sessions) Visit(ctx context.Context, page string) (int64, error) {
	return s.client.Incr(ctx, "visits:"+page).Result()
}

// Banner returns the text above every page.
func (s *Sessions) Banner(ctx context.Context) (string, error) {
	text, err := s.client.Get(ctx, "banner").Result()
	if errors.Is(err, redis.Nil) {
		return "Welcome!", nil
	}
	return text, err
}
