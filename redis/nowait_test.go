package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// mutant: redis-no-wait-waits
func TestClientStartsBeforeItsServer(t *testing.T) {
	testkit.NoLeaks(t)
	s := testkit.StartRedis(t)
	s.Kill()
	if _, err := redis.Connect(t.Context(), redis.Options{Addr: s.Addr}); err == nil {
		t.Fatal("connected to a server that is down")
	}
	failed := make(chan redis.Event, 1)
	c := connect(t, redis.Options{
		Addr: s.Addr, NoWait: true, DialTimeout: time.Minute, MaxBackoff: 50 * time.Millisecond,
		OnEvent: func(e redis.Event) {
			select {
			case failed <- e:
			default:
			}
		},
	})
	if e := <-failed; e.Kind != redis.DialFailed || e.Err == nil {
		t.Errorf("%+v, want %v", e, redis.DialFailed)
	}
	impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := c.Ping(impatient); slipstream.OutcomeOf(err) != slipstream.NotSent || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a server: %v", err)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- c.Set(t.Context(), "k", "v") }() // ends with the call
	s.Restart(t)
	must(t, <-waiting)
	if v, _, err := c.Get(t.Context(), "k"); v != "v" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
}
