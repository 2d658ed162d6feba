//go:build unix && !race

package tarantool_test

import (
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool"
)

// A request through a pool of several instances allocates nothing.
func TestPoolAllocations(t *testing.T) {
	testkit.NoLeaks(t)
	addrs := []string{testkit.StartTarantool(t, setup).Addr, testkit.StartTarantool(t, setup).Addr}
	p := newPool(t, tarantool.PoolOptions{Addrs: addrs})
	for _, addr := range addrs {
		awaitState(t, p, addr, tarantool.InstanceReadWrite)
	}
	users := tarantool.PoolSpaceOf[nameless](p, "users", tarantool.PreferReadOnly)
	names, all := &nameless{}, &tuples{}
	req := tarantool.Request(tarantool.Select("users").Key(tarantool.Int(7)))
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"request": func() error { return p.Do(ctx, all, req, tarantool.ReadWrite) },
		"future":  func() error { return p.Start(ctx, req, tarantool.AnyInstance).Wait(all) },
		"get":     func() error { _, err := users.Get(ctx, names, tarantool.Int(70)); return err },
	} {
		for range 50 { // each of the clients loads the schema once
			must(t, call())
		}
		if got := testing.AllocsPerRun(200, func() { must(t, call()) }); got > 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}
