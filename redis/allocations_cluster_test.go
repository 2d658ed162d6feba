//go:build !race

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

// The client of a cluster allocates as little as the client of a single server when all keys have the
// same slot.
func TestAllocationsOverACluster(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{})
	c := connectCluster(t, cluster)
	checkAllocations(t, c, 10)
	checkAllocationsOfCompleters(t, c)
	checkAllocationsAcross(t, c)
}

// A call with a Completer does not allocate anything either, with a single server.
func TestAllocationsOfCompleters(t *testing.T) { checkAllocationsOfCompleters(t, start(t)) }

// signal is a Completer that signals each completion.
type signal chan error

func (s signal) Complete(_ redis.Reply, err error) { s <- err }

func checkAllocationsOfCompleters(t *testing.T, c *redis.Client) {
	t.Helper()
	done, command := make(signal, 1), redis.Cmd("GET", "k")
	cancellable, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for _, ctx := range []context.Context{context.Background(), cancellable} {
		var failed error
		n := testing.AllocsPerRun(300, func() {
			err := c.DoFunc(ctx, command, done)
			if err == nil {
				err = <-done
			}
			failed = errors.Join(failed, err)
		})
		if failed != nil || n > 0 {
			t.Errorf("DoFunc: %v allocations, want none (context that can end: %v); %v", n, ctx.Done() != nil, failed)
		}
	}
}

// checkAllocationsAcross checks methods with keys of several slots: they allocate the result and a
// bounded number of objects for each slot.
func checkAllocationsAcross(t *testing.T, c *redis.Client) {
	t.Helper()
	ctx := t.Context()
	keys := make([]string, 10)
	for i := range keys {
		keys[i] = "key:" + strconv.Itoa(i)
		must(t, c.Set(ctx, keys[i], strings.Repeat("v", 100)))
	}
	var b redis.Batch
	values := make([][]byte, len(keys))
	dst, spans := make([]byte, 0, 4096), make([]redis.Span, 0, len(keys))
	for _, test := range []struct {
		name string
		most float64
		call func() error
	}{
		{"MGet", 40, func() error {
			items, err := c.MGet(ctx, keys...)
			if err == nil && (len(items) != len(keys) || !items[9].Found) {
				err = fmt.Errorf("%d items", len(items))
			}
			return err
		}},
		{"MGetAppend", 30, func() error { _, _, err := c.MGetAppend(ctx, dst[:0], spans[:0], keys...); return err }},
		{"Exists", 30, func() error { _, err := c.Exists(ctx, keys...); return err }},
		{"a batch", 5, func() error {
			b.Reset()
			for i, key := range keys {
				b.AddStrings(&values[i], "GET", key)
			}
			return c.DoBatch(ctx, &b)
		}},
	} {
		for range 100 {
			must(t, test.call())
		}
		var failed error
		n := testing.AllocsPerRun(300, func() { failed = errors.Join(failed, test.call()) })
		t.Logf("%s of %d keys in several slots: %v allocations", test.name, len(keys), n)
		if failed != nil || n > test.most {
			t.Errorf("%s of %d keys in several slots: %v allocations, want at most %v; %v", test.name, len(keys), n, test.most, failed)
		}
	}
}
