// Package redisloadtest checks that the Redis clients of the benchmarks return right results.
package redisloadtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/redisload"
	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
)

// Exercise reads keys of a server that is filled with values of a size, stores and reads others,
// and requests a missing one, with and without a context that can end, and from with.Callers
// concurrent callers. A cluster need not be filled.
func Exercise(t *testing.T, k redisload.Kind, with redisload.Setting, size int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := k.Open(ctx, with)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	var callers sync.WaitGroup
	for i := range with.Callers {
		// Ends with its requests, at the latest with ctx; waited for below.
		callers.Go(func() {
			call := ctx
			if i%2 == 0 {
				call = context.Background()
			}
			dst := make([]byte, 0, size+64)
			for j := range 20 {
				key := redisserver.Key(i*100 + j)
				var err error
				if with.Cluster != nil {
					err = c.Set(call, key, redisserver.Value(key, size))
				}
				value, getErr := c.Get(call, dst, key)
				if err = errors.Join(err, getErr); err == nil {
					err = redisserver.Check(key, value, size)
				}
				if err != nil {
					t.Errorf("get: %v", err)
					return
				}
				own := fmt.Sprintf("%s:%s:%08d", k.Name, "key", i)
				if err := c.Set(call, own, redisserver.Value(own, size)); err != nil {
					t.Errorf("set: %v", err)
					return
				}
				value, err = c.Get(call, dst, own)
				if err != nil || string(value) != redisserver.Value(own, size) {
					t.Errorf("stored value: %.30q, %v", value, err)
					return
				}
			}
			if value, err := c.Get(call, dst, "missing"); err == nil {
				t.Errorf("a missing key has the value %q", value)
			}
		})
	}
	callers.Wait()
}
