package main

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
)

func testServer(t *testing.T, size int) *redisserver.Server {
	t.Helper()
	s, err := redisserver.Start(t.Context(), t.TempDir(), size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Every subject answers right: small and large values, stores, a missing key,
// with and without a context that can end, and from many callers at once.
func TestClientsAnswerRight(t *testing.T) {
	const size = 1000
	s := testServer(t, size)
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			exercise(t, k, setting{Address: s.Address, Callers: 16}, size)
		})
	}
}

func exercise(t *testing.T, k kind, with setting, size int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := k.open(ctx, with)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	var callers sync.WaitGroup
	for i := range with.Callers {
		callers.Go(func() {
			call := ctx
			if i%2 == 0 {
				call = context.Background()
			}
			dst := make([]byte, 0, size+64)
			for j := range 20 {
				key := redisserver.Key(i*100 + j)
				value, err := c.get(call, dst, key)
				if err == nil {
					err = redisserver.Check(key, value, size)
				}
				if err != nil {
					t.Errorf("get: %v", err)
					return
				}
				own := fmt.Sprintf("%s:%s:%08d", k.name, "key", i)
				if err := c.set(call, own, redisserver.Value(own, size)); err != nil {
					t.Errorf("set: %v", err)
					return
				}
				value, err = c.get(call, dst, own)
				if err != nil || string(value) != redisserver.Value(own, size) {
					t.Errorf("stored value: %.30q, %v", value, err)
					return
				}
			}
			if value, err := c.get(call, dst, "missing"); err == nil {
				t.Errorf("a missing key has the value %q", value)
			}
		})
	}
	callers.Wait()
}
