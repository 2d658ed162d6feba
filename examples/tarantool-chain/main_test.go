package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool"
)

// The chain counts every visit once on a real server.
func TestChain(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartTarantool(t, "")
	var out strings.Builder
	const users, visits = 50, 20_000
	if err := run(t.Context(), &out, server.Addr, users, visits); err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
	client, err := tarantool.Connect(t.Context(), tarantool.Options{Addr: server.Addr})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var sum [1]int
	if err := client.Do(t.Context(), &sum, tarantool.Eval("local n = 0; for _, u in box.space.visits_demo:pairs() do n = n + u[3] end; return n")); err != nil || sum[0] != visits {
		t.Errorf("%d visits were counted, %v; want %d", sum[0], err, visits)
	}
}

// However the chain ends, it reports the reason and leaves no goroutines.
func TestChainThatFails(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartTarantool(t, "")
	client, err := tarantool.Connect(t.Context(), tarantool.Options{Addr: server.Addr})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Do(t.Context(), nil, tarantool.Eval(prepare, 10)); err != nil {
		t.Fatal(err)
	}
	if n, err := chain(t.Context(), client, 11, 1000); err == nil || n == 1000 {
		t.Errorf("a user that does not exist: %d counted, %v", n, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if n, err := chain(ctx, client, 10, 1<<30); err == nil || n == 1<<30 {
		t.Errorf("a context that ended: %d counted, %v", n, err)
	}
	if err := run(t.Context(), &strings.Builder{}, server.Addr, 0, 1); err == nil {
		t.Error("no users were accepted")
	}
}
