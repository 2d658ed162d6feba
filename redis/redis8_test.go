package redis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// TestRedis8 repeats, with a server of another generation, the tests that depend on the
// server: the form of its replies, unsolicited messages, and how it treats a connection.
func TestRedis8(t *testing.T) {
	testkit.UseRedis8(t)
	var info string
	must(t, start(t).Do(t.Context(), &info, redis.Cmd("INFO", "server")))
	if strings.Contains(info, "redis_version:7.0.") || strings.Contains(info, "redis_version:6.") {
		t.Fatalf("redis-server-8 has an old version: %s", info)
	}
	for _, test := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"Greeting", TestGreeting}, {"ServersWithoutHello", TestServersWithoutHello}, {"TLS", TestTLS},
		{"Authentication", TestAuthentication}, {"CredentialRotation", TestCredentialRotation},
		{"ServersThatHangUp", TestServersThatHangUpOnTheGreeting},
		{"TableAgreesWithTheServer", TestTableAgreesWithTheServer}, {"CommandsHaveMethods", TestCommandsHaveMethods},
		{"KeysAreThoseOfTheServer", TestKeysAreThoseOfTheServer}, {"KeysOfRandomCommands", TestKeysOfRandomCommandsAreThoseOfTheServer},
		{"Replicas", TestReplicasExecuteWhatTheServerCallsReadonly},
		{"Strings", TestTypedStrings}, {"Hashes", TestTypedHashes}, {"Lists", TestTypedLists}, {"Sets", TestTypedSets},
		{"SortedSets", TestTypedSortedSets}, {"BitsAndGeo", TestTypedBitsAndGeo}, {"Streams", TestTypedStreams},
		{"Keys", TestTypedKeys}, {"Scripting", TestTypedScripting},
		{"Cache", TestCache}, {"CacheExpiry", TestCacheExpiry}, {"CacheIsEmptied", TestCacheIsEmptied},
		{"CacheNeverGoesBack", TestCacheNeverGoesBack},
		{"Subscribe", TestSubscribe}, {"Gap", TestGap}, {"SubscribeRefused", TestSubscribeRefused},
		{"SubscribeStorm", TestSubscribeStorm}, {"Monitor", TestMonitor},
		{"BlockingCommands", TestBlockingCommands}, {"CancelTakesNothing", TestCancelTakesNothing},
		{"CancelStorm", TestCancelStorm},
		{"Session", TestSession}, {"SessionLost", TestSessionLost}, {"SessionGivenUp", TestSessionGivenUp},
		{"DoTransaction", TestDoTransaction}, {"TransactionErrors", TestTransactionErrors},
		{"WatchUnderContention", TestWatchUnderContention},
	} {
		t.Run(test.name, test.run)
	}
}

// TestFieldsThatExpire tests the commands of Redis 7.4 and 8.0 for fields of a hash.
func TestFieldsThatExpire(t *testing.T) {
	testkit.UseRedis8(t)
	eachProtocol(t, func(t *testing.T, c *redis.Client, is func(got, want string)) {
		ctx := t.Context()
		// lives checks that fields have nearly an hour to live.
		lives := func(fields ...string) {
			t.Helper()
			ttls, err := c.HTTL(ctx, "h", fields)
			must(t, err)
			for i, ttl := range ttls {
				if !ttl.Found || ttl.Value <= time.Hour-time.Minute || ttl.Value > time.Hour {
					t.Errorf("%s has %v to live, want an hour", fields[i], ttl)
				}
			}
			is(say(len(ttls)), say(len(fields)))
		}
		is(say(c.HSet(ctx, "h", fieldsOf("a", "1", "b", "2", "c", "3")...)), "3 <nil>")
		is(say(c.HTTL(ctx, "h", []string{"a", "none"})), "[{-1ns true} {0s false}] <nil>")
		is(say(c.HTTL(ctx, "none", []string{"a"})), "[{0s false}] <nil>")
		is(say(c.HExpire(ctx, "h", time.Hour, []string{"a", "b", "none"})), "[1 1 -2] <nil>")
		lives("a", "b")
		at := time.Now().Add(2 * time.Hour).Truncate(time.Millisecond)
		is(say(c.HExpireAt(ctx, "h", at, []string{"a"})), "[1] <nil>")
		is(say(c.HExpireTime(ctx, "h", []string{"a", "c", "none"})), say([]redis.MaybeTime{{Value: at.Local(), Found: true}, {Found: true}, {}}, nil))
		is(say(c.HPersist(ctx, "h", []string{"a", "c", "none"})), "[1 -1 -2] <nil>")
		is(say(c.HTTL(ctx, "h", []string{"a"})), "[{-1ns true}] <nil>")
		is(say(c.HExpireAt(ctx, "h", time.Now().Add(-time.Hour), []string{"c"})), "[2] <nil>")
		is(say(c.HExists(ctx, "h", "c")), "false <nil>")

		is(say(c.HGetEX(ctx, "h", time.Hour, []string{"a", "none"})), "[{1 true} { false}] <nil>")
		lives("a")
		is(say(c.HGetPersist(ctx, "h", []string{"a"})), "[{1 true}] <nil>")
		is(say(c.HTTL(ctx, "h", []string{"a"})), "[{-1ns true}] <nil>")
		is(say(c.HSetEX(ctx, "h", time.Hour, fieldsOf("a", "4", "d", "5"))), "<nil>")
		lives("a", "d")
		is(say(c.HSetEXNX(ctx, "h", time.Hour, fieldsOf("e", "6", "d", "7"))), "false <nil>")
		is(say(c.HSetEXNX(ctx, "h", time.Hour, fieldsOf("e", "6"))), "true <nil>")
		is(say(c.HMGet(ctx, "h", "a", "d", "e")), "[{4 true} {5 true} {6 true}] <nil>")
		is(say(c.HGetDel(ctx, "h", []string{"a", "none", "d"})), "[{4 true} { false} {5 true}] <nil>")
		is(say(c.HGetDel(ctx, "h", []string{"e", "none"})), "[{6 true} { false}] <nil>")
		is(say(c.HGetAll(ctx, "h")), "[{b 2}] <nil>")

		must(t, c.HSetEX(ctx, "h", 20*time.Millisecond, fieldsOf("soon", "gone")))
		testkit.Eventually(t, 10*time.Second, func() error {
			if value, found, err := c.HGet(ctx, "h", "soon"); found || err != nil {
				return fmt.Errorf("%q, %w", value, err)
			}
			return nil
		})
	})
}

// TestCacheFieldsThatExpire: the client does not query when fields expire, so the server must
// report it, in every mode. If the client changes the expiry of a field, that counts as a change of
// the key.
func TestCacheFieldsThatExpire(t *testing.T) {
	testkit.UseRedis8(t)
	for name, o := range map[string]redis.CacheOptions{
		"reads": {}, "opt in": {Mode: redis.CacheOptIn}, "broadcast": {Mode: redis.CacheBroadcast},
	} {
		t.Run(name, func(t *testing.T) {
			c, other, _ := cached(t, o)
			ctx := t.Context()
			became := func(want string) {
				t.Helper()
				testkit.Eventually(t, 10*time.Second, func() error {
					var value *string
					err := c.DoCached(ctx, &value, redis.Cmd("HGET", "h", "f"))
					if err != nil || value == nil != (want == "") || value != nil && *value != want {
						return fmt.Errorf("want %q, %w", want, err)
					}
					return nil
				})
			}
			_, err := other.HSet(ctx, "h", fieldsOf("f", "one", "stays", "x")...)
			must(t, err)
			became("one")
			must(t, other.HSetEX(ctx, "h", time.Hour, fieldsOf("f", "two")))
			became("two")
			_, err = other.HExpire(ctx, "h", 50*time.Millisecond, []string{"f"})
			must(t, err)
			became("")
			must(t, other.HSetEX(ctx, "h", time.Hour, fieldsOf("f", "three")))
			became("three")
			_, err = other.HGetDel(ctx, "h", []string{"f"})
			must(t, err)
			became("")
			if s := c.Stats().Cache; s.Hits == 0 || s.Invalidated < 4 {
				t.Errorf("nothing was cached: %+v", s)
			}
		})
	}
}
