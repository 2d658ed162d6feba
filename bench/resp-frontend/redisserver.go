package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/pages"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/redis"
)

// A redisServer is redis-server with the documents, without persistence.
type redisServer struct{ path, dir string }

func newRedisServer(dir string) (*redisServer, error) {
	path, err := subject.Find(redisName)
	if err != nil {
		return nil, err
	}
	return &redisServer{path: path, dir: dir}, os.MkdirAll(dir, 0o755)
}

// startLimit is how long starting and filling the server may take.
const startLimit = 30 * time.Second

// Start implements [subject.Program].
func (r *redisServer) Start(ctx context.Context, env ...string) (*subject.Server, error) {
	address, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	p, err := proc.Start(env, r.path, "--bind", host, "--port", port, "--dir", r.dir, "--save", "", "--appendonly", "no")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := p.Await(ctx, func(ctx context.Context) error { return fill(ctx, address) }); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return &subject.Server{Process: p, Address: address, Redis: address}, nil
}

// fill stores all documents.
func fill(ctx context.Context, address string) (err error) {
	c, err := redis.Connect(ctx, redis.Options{Addr: address})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for n := range pages.Count {
		if err := c.Set(ctx, pages.Key(n), string(pages.Document(n))); err != nil {
			return fmt.Errorf("fill %s: %w", address, err)
		}
	}
	return nil
}
