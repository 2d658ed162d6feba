package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// start returns a client with its own server. Both are stopped when the test ends.
func start(t testing.TB, change ...func(*redis.Options)) *redis.Client {
	t.Helper()
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	o := redis.Options{Addr: server.Addr}
	for _, f := range change {
		f(&o)
	}
	return connect(t, o)
}

// connect returns a client that is closed when the test ends.
func connect(t testing.TB, o redis.Options) *redis.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := redis.Connect(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// must fails the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
