//go:build !race

package redis_test

import (
	"testing"

	"github.com/slipstream-go/slipstream/redis"
)

// TestTypedAllocations covers the generated methods, one for each way of encoding and decoding:
// with a destination, none of them allocates.
func TestTypedAllocations(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	fields := fieldsOf("a", "1", "b", "2")
	pairs := pairsOf("a", "1", "b", "2")
	members := []redis.Member{{Name: "a", Score: 1}, {Name: "b", Score: 2.5}}
	names := []string{"a", "b", "none"}
	keys := []string{"s", "s"}
	must(t, c.Set(ctx, "k", "value"))
	for _, err := range []error{
		second(c.HSet(ctx, "h", fields...)), second(c.RPush(ctx, "l", names...)), second(c.SAdd(ctx, "s", names...)), second(c.ZAdd(ctx, "z", members...)),
	} {
		must(t, err)
	}
	dst := make([]byte, 0, 4096)
	bytesOf := func(_ []byte, _ bool, err error) error { return err }
	for name, call := range map[string]func() error{
		"HSet":           func() error { return second(c.HSet(ctx, "h", fields...)) },
		"HLen":           func() error { return second(c.HLen(ctx, "h")) },
		"HExists":        func() error { return second(c.HExists(ctx, "h", "a")) },
		"HIncrBy":        func() error { return second(c.HIncrBy(ctx, "h", "n", 1)) },
		"HIncrByFloat":   func() error { return second(c.HIncrByFloat(ctx, "h", "x", 0.5)) },
		"HGetAppend":     func() error { return bytesOf(c.HGetAppend(ctx, dst, "h", "a")) },
		"LSet":           func() error { return c.LSet(ctx, "l", 0, "a") },
		"SInterCard":     func() error { return second(c.SInterCard(ctx, keys)) },
		"ZAdd":           func() error { return second(c.ZAdd(ctx, "z", members...)) },
		"ZScore":         func() error { _, _, err := c.ZScore(ctx, "z", "a"); return err },
		"ZRank":          func() error { _, _, err := c.ZRank(ctx, "z", "a"); return err },
		"ExpireTime":     func() error { _, _, err := c.ExpireTime(ctx, "k"); return err },
		"ZIncrBy":        func() error { return second(c.ZIncrBy(ctx, "z", 1, "a")) },
		"GetRangeAppend": func() error { _, err := c.GetRangeAppend(ctx, dst, "k", 0, 2); return err },
		"MSet":           func() error { return c.MSet(ctx, pairs...) },
		"BitCount":       func() error { return second(c.BitCount(ctx, "k")) },
		"PFAdd":          func() error { return second(c.PFAdd(ctx, "p", names...)) },
		"XLen":           func() error { return second(c.XLen(ctx, "none")) },
		"Persist":        func() error { return second(c.Persist(ctx, "k")) },
		"Touch":          func() error { return second(c.Touch(ctx, names...)) },
		"Publish":        func() error { return second(c.Publish(ctx, "c", "m")) },
	} {
		for range 100 {
			must(t, call())
		}
		if n := testing.AllocsPerRun(200, func() {
			if err := call(); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// second returns the error of a call that also returns a value.
func second[T any](_ T, err error) error { return err }
