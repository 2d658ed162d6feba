package tarantool_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/tarantool"
)

// A request that the engine did not accept ends immediately: its result can be taken without
// waiting, and contains the reason.
func TestFutureUnsent(t *testing.T) {
	testkit.NoLeaks(t)
	server := tarantoolsim.Start(t, tarantoolsim.Config{})
	must(t, server.CreateSpace(tarantoolsim.Space{
		Name: "users", Fields: []tarantoolsim.Field{{Name: "id", Type: "unsigned"}},
		Indexes: []tarantoolsim.Index{{Name: "primary", Parts: []string{"id"}}},
	}))
	c := connect(t, tarantool.Options{Addr: server.Addr()})
	users := tarantool.SpaceOf[user](c, "users")
	_, err := users.Get(t.Context(), new(user), tarantool.Int(1))
	must(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	f, tuple := c.Start(over, tarantool.Ping()), users.StartGet(over, tarantool.Int(1))
	for name, done := range map[string]<-chan struct{}{"request": f.Done(), "tuple": tuple.Done()} {
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			t.Fatalf("%s: the channel is open", name)
		}
	}
	if err := f.Wait(nil); !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("request: %v", err)
	}
	if _, err := tuple.Get(new(user)); !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("tuple: %v", err)
	}
	// Their memory belongs to other requests now.
	for range 4 {
		if err := c.Start(t.Context(), tarantool.Ping()).Wait(nil); err != nil {
			t.Error(err)
		}
	}
}

// The slot of a call that was not sent is released before its result is taken.
func TestFutureUnsentLeavesTheLane(t *testing.T) {
	testkit.NoLeaks(t)
	server := tarantoolsim.Start(t, tarantoolsim.Config{})
	server.Func("slow", func(r *tarantoolsim.Request) ([]any, error) { return nil, nil })
	c := connect(t, tarantool.Options{Addr: server.Addr(), MaxBlocking: 1})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	f := c.Start(over, tarantool.Call("slow").Blocking())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	must(t, c.Do(ctx, nil, tarantool.Call("slow").Blocking()))
	if err := f.Wait(nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
