package redis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// Values of every size are appended to the existing contents, with and without room for them.
func TestAppendsToDst(t *testing.T) {
	testkit.NoLeaks(t)
	c := connect(t, redis.Options{Addr: testkit.StartRedis(t).Addr})
	for _, n := range []int{0, 10, 16 << 10, 20_000, 70_000, 1 << 20, 3 << 20} {
		value := bytes.Repeat([]byte("value "), n/6+1)[:n]
		must(t, c.SetBytes(t.Context(), "k", value))
		for _, room := range []int{0, n / 2, n, n + 100} {
			dst := append(make([]byte, 0, 3+room), "abc"...)
			for name, get := range map[string]func() ([]byte, bool, error){
				"GetAppend": func() ([]byte, bool, error) { return c.GetAppend(t.Context(), dst, "k") },
				"GetRangeAppend": func() ([]byte, bool, error) {
					out, err := c.GetRangeAppend(t.Context(), dst, "k", 0, -1)
					return out, true, err
				},
			} {
				out, found, err := get()
				if err != nil || !found || string(out[:3]) != "abc" || !bytes.Equal(out[3:], value) {
					t.Fatalf("%s of %d bytes with room for %d: %d bytes, %v, %v", name, n, room, len(out), found, err)
				}
				if room >= n && &out[0] != &dst[0] {
					t.Errorf("%s of %d bytes with room for %d: the result is in other memory", name, n, room)
				}
			}
		}
	}
	dst := append(make([]byte, 0, 100_000), "abc"...)
	if out, found, err := c.GetAppend(t.Context(), dst, "no such key"); err != nil || found || string(out) != "abc" {
		t.Errorf("no such key: %q, %v, %v", out, found, err)
	}
	if _, err := c.LPush(t.Context(), "list", strings.Repeat("x", 100_000)); err != nil {
		t.Fatal(err)
	}
	var refused *redis.ServerError
	if out, _, err := c.GetAppend(t.Context(), dst, "list"); !errors.As(err, &refused) || string(out) != "abc" {
		t.Errorf("a list: %q, %v", out, err)
	}
}

// The memory of dst belongs to the caller again when GetAppend has returned, even if it was
// canceled while the value arrived.
func TestCancelWithinAValue(t *testing.T) {
	testkit.NoLeaks(t)
	const size = 1 << 20
	rest := make(chan struct{})
	s := fake(t, func(_ int, args []string) string {
		if args[1] == "large" {
			return fmt.Sprintf("$%d\r\n%s", size, strings.Repeat("v", size/2))
		}
		<-rest
		return strings.Repeat("v", size/2) + "\r\n$5\r\nsmall\r\n"
	})
	c := connect(t, redis.Options{Addr: s.Addr})
	dst := make([]byte, 0, size)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, _, err := c.GetAppend(ctx, dst, "large"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	room := dst[:size]
	for i := range room {
		room[i] = 'p'
	}
	close(rest)
	if v, _, err := c.Get(t.Context(), "small"); v != "small" || err != nil {
		t.Errorf("the next value is %q, %v", v, err)
	}
	if n := bytes.Count(room, []byte("p")); n != size {
		t.Errorf("%d bytes were written after GetAppend had returned", size-n)
	}
}
