package redis_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/redis"
)

func TestStrings(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		c := start(t, func(o *redis.Options) { o.Protocol = protocol })
		ctx := t.Context()
		if v, found, err := c.Get(ctx, "k"); v != "" || found || err != nil {
			t.Errorf("a missing key: %q, %v, %v", v, found, err)
		}
		must(t, c.Set(ctx, "k", "hello"))
		if v, found, err := c.Get(ctx, "k"); v != "hello" || !found || err != nil {
			t.Errorf("%q, %v, %v", v, found, err)
		}
		if b, found, err := c.GetAppend(ctx, []byte("say "), "k"); string(b) != "say hello" || !found || err != nil {
			t.Errorf("%q, %v, %v", b, found, err)
		}
		if b, found, err := c.GetAppend(ctx, []byte("say "), "none"); string(b) != "say " || found || err != nil {
			t.Errorf("%q, %v, %v", b, found, err)
		}
		// Every byte, an empty value, and values around the sizes at which the engine uses another
		// method.
		var every []byte
		for i := range 256 {
			every = append(every, byte(i))
		}
		values := [][]byte{nil, every}
		for _, n := range []int{63, 64, 65, 1000, 4095, 4096, 16384, 70_000, 1 << 20} {
			values = append(values, slices.Repeat([]byte{byte(n)}, n))
		}
		for _, v := range values {
			must(t, c.SetBytes(ctx, "k", v))
			if b, found, err := c.GetAppend(ctx, nil, "k"); string(b) != string(v) || !found || err != nil {
				t.Errorf("%d bytes: got %d, %v, %v", len(v), len(b), found, err)
			}
			if s, found, err := c.Get(ctx, "k"); s != string(v) || !found || err != nil {
				t.Errorf("%d bytes: got %d, %v, %v", len(v), len(s), found, err)
			}
		}
	}
}

func TestSetOptions(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	check := func(want bool, done bool, err error) {
		t.Helper()
		if done != want || err != nil {
			t.Errorf("%v, %v, want %v", done, err, want)
		}
	}
	done, err := c.SetWith(ctx, "k", "1", redis.SetOptions{XX: true})
	check(false, done, err)
	done, err = c.SetWith(ctx, "k", "1", redis.SetOptions{NX: true, TTL: time.Hour})
	check(true, done, err)
	done, err = c.SetBytesWith(ctx, "k", []byte("2"), redis.SetOptions{NX: true})
	check(false, done, err)
	done, err = c.SetWith(ctx, "k", "3", redis.SetOptions{XX: true, KeepTTL: true})
	check(true, done, err)
	if ttl, found, err := c.TTL(ctx, "k"); ttl <= time.Hour-time.Minute || ttl > time.Hour || !found || err != nil {
		t.Errorf("%v, %v, %v", ttl, found, err)
	}
	must(t, c.SetEX(ctx, "k", "4", 1500*time.Microsecond)) // rounded up to 2 ms
	if v, _, err := c.Get(ctx, "k"); err != nil || v != "4" && v != "" {
		t.Errorf("%q, %v", v, err)
	}
	for _, o := range []redis.SetOptions{{TTL: -1}, {NX: true, XX: true}, {TTL: 1, KeepTTL: true}} {
		if _, err := c.SetWith(ctx, "k", "", o); slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("%+v: %v", o, err)
		}
		if _, err := c.SetBytesWith(ctx, "k", nil, o); slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := c.SetEX(ctx, "k", "", 0); slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("a time to live of 0: %v", err)
	}
}

func TestNumbersAndKeys(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	number := func(want int64) func(int64, error) {
		return func(n int64, err error) {
			t.Helper()
			if n != want || err != nil {
				t.Errorf("%d, %v, want %d", n, err, want)
			}
		}
	}
	number(1)(c.Incr(ctx, "n"))
	number(-41)(c.IncrBy(ctx, "n", -42))
	must(t, c.Set(ctx, "a", "1"))
	number(3)(c.Exists(ctx, "a", "a", "n", "none"))
	if ttl, found, err := c.TTL(ctx, "a"); ttl != redis.NoExpiry || !found || err != nil {
		t.Errorf("%v, %v, %v", ttl, found, err)
	}
	if _, found, err := c.TTL(ctx, "none"); found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	if found, err := c.Expire(ctx, "a", time.Minute); !found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	if found, err := c.Expire(ctx, "none", time.Minute); found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	if found, err := c.Expire(ctx, "a", -time.Second); !found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	number(1)(c.Del(ctx, "n", "a", "none"))
	number(0)(c.Del(ctx))
	number(0)(c.Exists(ctx))
	must(t, c.Ping(ctx))

	must(t, c.Do(ctx, nil, redis.Cmd("LPUSH", "list", "x")))
	_, err := c.Incr(ctx, "list")
	var server *redis.ServerError
	if !errors.As(err, &server) || server.Code != "WRONGTYPE" || slipstream.OutcomeOf(err) != slipstream.Executed {
		t.Errorf("INCR of a list: %v", err)
	}
	if _, _, err = c.Get(ctx, "list"); !strings.Contains(err.Error(), "GET 127.0.0.1:") {
		t.Errorf("the error does not name the command and the server: %v", err)
	}
}

func TestMGet(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	must(t, c.Set(ctx, "a", "first"))
	must(t, c.Set(ctx, "b", ""))
	must(t, c.Do(ctx, nil, redis.Cmd("LPUSH", "list", "x")))
	keys := []string{"a", "none", "b", "list"}
	items, err := c.MGet(ctx, keys...)
	want := []redis.Item{{Value: "first", Found: true}, {}, {Found: true}, {}}
	if err != nil || !slices.Equal(items, want) {
		t.Errorf("%v, %v, want %v", items, err, want)
	}
	b, spans, err := c.MGetAppend(ctx, []byte("head "), nil, keys...)
	if err != nil || string(b) != "head first" || len(spans) != len(keys) {
		t.Fatalf("%q, %v, %v", b, spans, err)
	}
	for i, s := range spans {
		if s.Found() != want[i].Found || string(s.In(b)) != want[i].Value {
			t.Errorf("%s: %v, %q", keys[i], s.Found(), s.In(b))
		}
	}
	if items, err := c.MGet(ctx); items != nil || err != nil {
		t.Errorf("no keys: %v, %v", items, err)
	}
	if b, spans, err := c.MGetAppend(ctx, nil, nil); b != nil || spans != nil || err != nil {
		t.Errorf("no keys: %v, %v, %v", b, spans, err)
	}
}
