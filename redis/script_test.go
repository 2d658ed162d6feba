package redis_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/redis"
)

func TestScript(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	add := redis.NewScript(`return redis.call("INCRBY", KEYS[1], ARGV[1])`)
	for i := range 3 {
		var n int
		must(t, add.Do(ctx, c, &n, []string{"n"}, 5))
		if n != 5*(i+1) {
			t.Errorf("run %d: %d", i, n)
		}
		if i == 1 {
			must(t, c.Do(ctx, nil, redis.Cmd("SCRIPT", "FLUSH")))
		}
	}
	var known []bool
	must(t, c.Do(ctx, &known, redis.Cmd("SCRIPT", "EXISTS", add.Hash())))
	if !known[0] {
		t.Error("the server uses another hash for the script")
	}
	wrong := redis.NewScript(`return redis.call("INCRBY", KEYS[1])`)
	var e *redis.ServerError
	if err := wrong.Do(ctx, c, nil, []string{"n"}); !errors.As(err, &e) {
		t.Errorf("a script that fails: %v", err)
	}
	writes := redis.NewReadOnlyScript(`return redis.call("INCR", KEYS[1])`)
	if err := writes.Do(ctx, c, nil, []string{"n"}); !errors.As(err, &e) {
		t.Errorf("a script that must not write: %v", err)
	}
}

// TestScriptInABatch: a script runs at its position in the batch, whether or not the server knows
// it.
func TestScriptInABatch(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	appends := redis.NewScript(`return redis.call("APPEND", KEYS[1], ARGV[1])`)
	for name, do := range map[string]func(*redis.Batch) error{
		"batch":       func(b *redis.Batch) error { return c.DoBatch(ctx, b) },
		"transaction": func(b *redis.Batch) error { return c.DoTransaction(ctx, b) },
	} {
		t.Run(name, func(t *testing.T) {
			must(t, c.Do(ctx, nil, redis.Cmd("SCRIPT", "FLUSH")))
			var b redis.Batch
			var length int
			b.Add(nil, redis.Cmd("SET", "k", "a"))
			b.AddScript(nil, appends, []string{"k"}, "b")
			b.Add(nil, redis.Cmd("APPEND", "k", "c"))
			b.AddScript(&length, appends, []string{"k"}, "d")
			must(t, do(&b))
			if got, _, err := c.Get(ctx, "k"); got != "abcd" || length != 4 || err != nil {
				t.Errorf("got %q, %d, %v", got, length, err)
			}
		})
	}
}

func TestLibrary(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	lib := redis.NewLibrary("#!lua name=mine\nredis.register_function('add', function(keys, args) return redis.call('INCRBY', keys[1], args[1]) end)")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := lib.Call(ctx, c, nil, "add", []string{"n"}, 2); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	must(t, c.Do(ctx, nil, redis.Cmd("FUNCTION", "FLUSH")))
	var n int
	must(t, lib.Call(ctx, c, &n, "add", []string{"n"}, 2))
	if n != 18 {
		t.Errorf("n is %d, want 18", n)
	}
	if err := lib.Call(ctx, c, nil, "none", nil); err == nil {
		t.Error("a function that is not in the library")
	}
}

func TestScans(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	const n = 500
	var b redis.Batch
	for i := range n {
		b.Add(nil, redis.Cmd("SET", "user:"+strconv.Itoa(i), i))
		b.Add(nil, redis.Cmd("HSET", "hash", "f"+strconv.Itoa(i), i))
		b.Add(nil, redis.Cmd("SADD", "set", i))
		b.Add(nil, redis.Cmd("ZADD", "sorted", float64(i)/2, i))
	}
	must(t, c.DoBatch(ctx, &b))
	keys := map[string]bool{}
	for key, err := range c.Scan(ctx, redis.ScanOptions{Match: "user:*", Count: 50}) {
		must(t, err)
		keys[key] = true
	}
	var hashes []string
	for key, err := range c.Scan(ctx, redis.ScanOptions{Type: "hash"}) {
		must(t, err)
		hashes = append(hashes, key)
	}
	fields := map[string]string{}
	for f, err := range c.HScan(ctx, "hash", redis.ScanOptions{}) {
		must(t, err)
		fields[f.Name] = f.Value
	}
	members := map[string]bool{}
	for m, err := range c.SScan(ctx, "set", redis.ScanOptions{Count: 100}) {
		must(t, err)
		members[m] = true
	}
	scores := map[string]float64{}
	for m, err := range c.ZScan(ctx, "sorted", redis.ScanOptions{}) {
		must(t, err)
		scores[m.Name] = m.Score
	}
	if len(keys) != n || len(hashes) != 1 || len(fields) != n || len(members) != n || len(scores) != n {
		t.Errorf("%d keys, %d hashes, %d fields, %d members, %d scores", len(keys), len(hashes), len(fields), len(members), len(scores))
	}
	if fields["f77"] != "77" || scores["77"] != 38.5 {
		t.Errorf("f77 is %q, the score of 77 is %v", fields["f77"], scores["77"])
	}
	seen := 0
	for range c.Scan(ctx, redis.ScanOptions{}) {
		if seen++; seen == 3 {
			break
		}
	}
	for _, err := range c.HScan(ctx, "set", redis.ScanOptions{}) {
		var e *redis.ServerError
		if !errors.As(err, &e) || e.Code != "WRONGTYPE" {
			t.Errorf("the fields of a set: %v", err)
		}
	}
	for range c.HScan(ctx, "none", redis.ScanOptions{}) {
		t.Error("a hash that does not exist has a field")
	}
}
