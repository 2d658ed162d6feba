package tarantool_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool"
)

// mutant: tarantool-no-wait-waits
func TestClientStartsBeforeItsServer(t *testing.T) {
	testkit.NoLeaks(t)
	s := testkit.StartTarantool(t, setup)
	s.Kill()
	if _, err := tarantool.Connect(t.Context(), tarantool.Options{Addr: s.Addr}); err == nil {
		t.Fatal("connected to a server that is down")
	}
	c := connect(t, tarantool.Options{Addr: s.Addr, NoWait: true, DialTimeout: time.Minute, MaxBackoff: 50 * time.Millisecond})
	users := tarantool.SpaceOf[user](c, "users")
	for name, call := range map[string]func(context.Context) error{
		"request": func(ctx context.Context) error { return c.Do(ctx, nil, tarantool.Ping()) },
		"space":   func(ctx context.Context) error { _, err := users.Get(ctx, new(user), tarantool.Int(1)); return err },
		"stream":  func(ctx context.Context) error { _, err := c.Stream(ctx); return err },
		"watcher": func(ctx context.Context) error { _, err := c.Watch(ctx, "key"); return err },
	} {
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if err := call(impatient); slipstream.OutcomeOf(err) != slipstream.NotSent || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s without a server: %v", name, err)
		}
		cancel()
	}
	waiting := make(chan error, 1)
	go func() { // ends with the call
		_, err := users.Get(t.Context(), new(user), tarantool.Int(1))
		waiting <- err
	}()
	s.Restart(t)
	must(t, <-waiting)
	must(t, c.Do(t.Context(), nil, tarantool.Ping()))
}

// Which features an old server lacks is known only after the first connection.
func TestRequestsWaitUntilTheServerIsKnown(t *testing.T) {
	testkit.NoLeaks(t)
	s := testkit.StartTarantool(t, setup) // 2.6, which has no streams
	s.Kill()
	c := connect(t, tarantool.Options{Addr: s.Addr, NoWait: true, DialTimeout: time.Minute, MaxBackoff: 50 * time.Millisecond})
	waiting := make(chan error, 1)
	go func() { // ends with the connection
		_, err := c.Stream(t.Context())
		waiting <- err
	}()
	s.Restart(t)
	err := <-waiting
	if _, old := errors.AsType[*tarantool.UnsupportedError](err); !old && err != nil {
		t.Error(err)
	}
}
