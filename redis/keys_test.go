package redis_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// keyedInvocations are commands with keys of every form. Words are separated by blanks, and "" is
// an empty word. A prefix with a colon is the first version of Redis that finds the same keys.
var keyedInvocations = []string{
	"GET k", "SET k v EX 5", "APPEND k v", "MGET a", "MGET a b c", "MSET a 1", "MSET a 1 b 2 c 3", "MSETNX a 1 b 2", "DEL a b c", "UNLINK a b", "EXISTS a a b", "TOUCH a b",
	"COPY a b", "COPY a b DB 3 REPLACE", "RENAME a b", "RENAMENX a b", "LCS a b", "LCS a b LEN", "SMOVE a b m", "LMOVE a b LEFT RIGHT", "RPOPLPUSH a b",
	"BLMOVE a b LEFT RIGHT 0", "BRPOPLPUSH a b 0", "BLPOP a 0", "BLPOP a b c 0", "BRPOP a b 0", "BZPOPMIN a b 0", "BZPOPMAX a 0",
	"LMPOP 1 a LEFT", "LMPOP 3 a b c RIGHT COUNT 2", "ZMPOP 2 a b MIN", "BLMPOP 0 2 a b LEFT", "BLMPOP 0 1 a LEFT COUNT 5", "BZMPOP 1.5 2 a b MAX COUNT 2",
	"SDIFF a b c", "SINTER a", "SUNION a b", "SDIFFSTORE d a b", "SINTERSTORE d a", "SUNIONSTORE d a b c", "SINTERCARD 2 a b", "SINTERCARD 3 a b c LIMIT 2",
	"ZDIFF 2 a b WITHSCORES", "ZINTER 2 a b WEIGHTS 1 2 AGGREGATE MAX", "ZUNION 1 a", "ZINTERCARD 2 a b LIMIT 1", "ZDIFFSTORE d 2 a b", "ZINTERSTORE d 2 a b WEIGHTS 2 3",
	"ZUNIONSTORE d 3 a b c AGGREGATE MIN", "ZRANGESTORE d a 0 -1", "GEOSEARCHSTORE d a FROMMEMBER m BYRADIUS 1 km", "PFCOUNT a b", "PFMERGE d a b", "PFADD a e f",
	"BITOP AND d a b", "BITOP NOT d a", "BITOP OR d a b c", "BITFIELD k GET u8 0 SET u8 0 1", "BITFIELD_RO k GET u8 0",
	"XADD k * f v", "XREAD STREAMS a 0", "XREAD COUNT 2 STREAMS a b c 0 0 0", "XREAD COUNT 2 BLOCK 5 STREAMS a b 0 $", "xread block 0 streams streams $",
	"XREADGROUP GROUP g c STREAMS a >", "XREADGROUP GROUP g c COUNT 1 BLOCK 5 NOACK STREAMS a b > >", "8:XREADGROUP COUNT 1 GROUP g STREAMS STREAMS a >",
	"8:XREADGROUP GROUP STREAMS STREAMS STREAMS k >", "XGROUP CREATE k g $ MKSTREAM", "XGROUP DESTROY k g", "XINFO STREAM k FULL", "XINFO CONSUMERS k g", "XACK k g 1-1",
	"XAUTOCLAIM k g c 0 0", "OBJECT ENCODING k", "OBJECT FREQ k", "MEMORY USAGE k", "MEMORY USAGE k SAMPLES 5", "DUMP k", "RESTORE k 0 dump REPLACE",
	"EVAL source 1 a", "EVAL source 2 a b x y", "EVALSHA hash 1 a x", "EVAL_RO source 2 a b", "EVALSHA_RO hash 1 a", "FCALL f 2 a b x", "FCALL_RO f 1 a",
	"SORT k", "SORT k BY w_* LIMIT 0 5 GET # GET o_* ASC ALPHA", "SORT k STORE d", "sort k limit 1 2 store d", "SORT k BY STORE LIMIT 0 1 STORE d",
	"SORT k STORE a STORE b", "SORT k GET STORE", "SORT_RO k BY w_* GET o_*", "SORT k STORE d ALPHA",
	"GEORADIUS k 1 2 3 km", "GEORADIUS k 1 2 3 km WITHDIST COUNT 3 ASC", "GEORADIUS k 1 2 3 km STORE d", "GEORADIUS k 1 2 3 km COUNT 5 STOREDIST d",
	"8:GEORADIUS k 1 2 3 km STORE a STORE b", "8:GEORADIUS k 1 2 3 km STORE a STOREDIST b", "8:GEORADIUS k 1 2 3 km STORE STOREDIST ASC", "GEORADIUSBYMEMBER k m 3 km STORE d",
	"8:GEORADIUSBYMEMBER k STORE 3 km storedist d", "GEORADIUSBYMEMBER_RO k m 3 km", "GEORADIUS_RO k 1 2 3 km",
	"MIGRATE h 6379 k 0 100", "MIGRATE h 6379 k 0 100 COPY REPLACE AUTH secret", `MIGRATE h 6379 "" 0 100 KEYS a`, `MIGRATE h 6379 "" 0 100 COPY AUTH2 KEYS KEYS keys a b c`,
	`MIGRATE h 6379 "" 0 100 REPLACE AUTH KEYS KEYS a b`, "WATCH a b c", "HSET k f v", "HSCAN k 0", "SSCAN k 0 MATCH x", "LINSERT k BEFORE p v", "ZADD k 1 m 2 n",
}

// unkeyedInvocations are commands without keys, some of which could have keys, and commands whose
// arguments the server rejects. Those with ~ are rejected only when they are executed.
var unkeyedInvocations = []string{
	"PING", "PUBLISH c m", "SPUBLISH c m", "SSUBSCRIBE a b", "EVAL source 0", "EVAL source 0 x y", "EVALSHA hash 0 x", "FCALL f 0", "FCALL_RO f 0 x", "INFO server", "KEYS *",
	"SCAN 0", "CONFIG SET a b", "FLUSHALL", "SCRIPT LOAD x", "OBJECT HELP", "XINFO HELP", "PUBSUB SHARDNUMSUB a",
	"EVAL source 2 a", "EVAL source -1 a b", "EVAL source x a", "EVAL source 99999999999999999999 a", "~EVAL source 4294967297 a", "LMPOP 5 a LEFT", "LMPOP -2 a b LEFT",
	"~LMPOP 01 a LEFT", "~LMPOP +1 a LEFT", "ZUNION 18446744073709551617 a", "SINTERCARD 0 a", "BLMPOP 0 9 a LEFT", "XREAD STREAMS a", "XREAD STREAMS a b 0", "XREAD COUNT 5 BLOCK 1",
	"MIGRATE h 6379 k 0 100 KEYS a b",
}

// words splits an invocation.
func words(invocation string) []string {
	list := strings.Fields(invocation)
	for i := range list {
		if list[i] == `""` {
			list[i] = ""
		}
	}
	return list
}

// getKeys queries the server for the keys of a command; ok is false if it has none, or if the
// server says that the command is wrong.
func getKeys(t *testing.T, c *redis.Client, command []string) (keys []string, ok bool) {
	t.Helper()
	args := []any{"GETKEYS"}
	for _, word := range command {
		args = append(args, word)
	}
	err := c.Do(t.Context(), &keys, redis.Cmd("COMMAND", args...))
	return keys, err == nil
}

// TestKeysAreThoseOfTheServer compares the keys of commands of every form with those that the
// server finds.
func TestKeysAreThoseOfTheServer(t *testing.T) {
	c := start(t)
	var info string
	must(t, c.Do(t.Context(), &info, redis.Cmd("INFO", "server")))
	isOld := strings.Contains(info, "redis_version:7.")
	for _, invocation := range keyedInvocations {
		invocation, exact := strings.CutPrefix(invocation, "8:")
		command := words(invocation)
		got, _ := redis.KeysOf(command[0], command[1:]...)
		if exact && isOld {
			continue
		}
		if want, ok := getKeys(t, c, command); !ok || !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("%s: keys %q, the server says %q, %t", invocation, got, want, ok)
		}
	}
	for _, invocation := range unkeyedInvocations {
		invocation, lax := strings.CutPrefix(invocation, "~")
		command := words(invocation)
		if got, channels := redis.KeysOf(command[0], command[1:]...); len(got) > 0 && !channels {
			t.Errorf("%s: keys %q", invocation, got)
		}
		if want, ok := getKeys(t, c, command); ok && len(want) > 0 && !lax && !(isOld && command[0] == "XREAD") {
			t.Errorf("%s: the server says %q", invocation, want)
		}
	}
	if len(keyedInvocations) < 60 {
		t.Errorf("only %d invocations", len(keyedInvocations))
	}
}

// TestKeysOfRandomCommandsAreThoseOfTheServer generates commands from what the server reports
// about each command with keys: its number of arguments and its key specifications.
func TestKeysOfRandomCommandsAreThoseOfTheServer(t *testing.T) {
	c := start(t)
	var list []redis.Value
	must(t, c.Do(t.Context(), &list, redis.Cmd("COMMAND")))
	r := testkit.Rand(t)
	keyed, compared := 0, 0
	var check func(v redis.Value)
	check = func(v redis.Value) {
		for _, sub := range v.Elems[9].Elems {
			check(sub)
		}
		specs := v.Elems[8].Elems
		name := strings.Split(strings.ToUpper(v.Elems[0].Text), "|")
		if len(specs) == 0 || len(v.Elems[9].Elems) > 0 {
			return
		}
		keyed++
		before := compared
		for range 20 {
			command := slices.Concat(name, randomArguments(r, int(v.Elems[1].Int), len(name), specs))
			want, ok := getKeys(t, c, command)
			got, channels := redis.KeysOf(command[0], command[1:]...)
			if ok && !channels {
				compared++
				if !slices.Equal(got, want) {
					t.Errorf("%q: keys %q, the server says %q", command, got, want)
				}
			}
		}
		if _, channels := redis.KeysOf(name[0], "x"); compared == before && !channels {
			t.Errorf("%s: the server accepted no generated command", v.Elems[0].Text)
		}
	}
	for _, v := range list {
		check(v)
	}
	if keyed < 150 || compared < 1500 {
		t.Errorf("%d commands with keys, %d comparisons", keyed, compared)
	}
}

// randomArguments returns arguments that fit the arity of a command whose name has n words. All of
// them except numbers and keywords differ, so that a key shows its position.
func randomArguments(r *rand.Rand, arity, n int, specs []redis.Value) []string {
	least := max(arity, -arity) - n
	size := least
	if arity < 0 {
		size = max(least, 1) + r.IntN(6)
	}
	args := make([]string, size)
	for i := range args {
		args[i] = "w" + strconv.Itoa(i)
	}
	for _, spec := range specs {
		begin := fieldOf(spec, "begin_search")
		if keyword := fieldOf(fieldOf(begin, "spec"), "keyword").Text; keyword != "" {
			from := int(fieldOf(fieldOf(begin, "spec"), "startfrom").Int)
			switch {
			case keyword == "STREAMS":
				args = streamArguments(r, from > 1)
			case r.IntN(2) == 0 || slices.Contains(args, "STORE"): // old servers find both STORE and STOREDIST
			case from < 0 && len(args) > 6:
				args[2], args[len(args)-2] = "", keyword
			case from > 0 && from < len(args):
				args[from-n+r.IntN(len(args)-from)] = keyword
			}
			continue
		}
		if fieldOf(fieldOf(spec, "find_keys"), "type").Text != "keynum" {
			continue
		}
		if at := int(fieldOf(fieldOf(begin, "spec"), "index").Int) - n; at < len(args) {
			args[at] = strconv.Itoa(1 + r.IntN(max(1, len(args)-at-1)))
		}
	}
	return args
}

// streamArguments returns arguments of XREAD or of XREADGROUP.
func streamArguments(r *rand.Rand, group bool) (args []string) {
	if group {
		args = append(args, "GROUP", "g", "c")
	}
	if r.IntN(2) == 0 {
		args = append(args, "COUNT", "5")
	}
	args = append(args, "STREAMS")
	for i := range 2 * (1 + r.IntN(4)) {
		args = append(args, "w"+strconv.Itoa(i))
	}
	return args
}

// fieldOf returns a field of a map.
func fieldOf(v redis.Value, name string) redis.Value {
	for i := 0; i+1 < len(v.Elems); i += 2 {
		if v.Elems[i].Text == name {
			return v.Elems[i+1]
		}
	}
	return redis.Value{}
}

// TestReplicasExecuteWhatTheServerCallsReadonly compares the table with the flag readonly.
func TestReplicasExecuteWhatTheServerCallsReadonly(t *testing.T) {
	seen := 0
	for _, d := range described(t, start(t)) {
		name, sub, isSub := strings.Cut(d.name, "|")
		args := []string{}
		if isSub {
			args = append(args, sub)
		}
		want := slices.Contains(d.flags, "readonly")
		if got := redis.KnownForReplicas(name, args...); got != want {
			t.Errorf("%s: a replica may execute it: %t, the server says %t", d.name, got, want)
		}
		if want {
			seen++
		}
	}
	if seen < 80 {
		t.Errorf("the server reports only %d commands as readonly", seen)
	}
}

// TestShardChannels: channels of a shard are routed like keys, but are not keys.
func TestShardChannels(t *testing.T) {
	for invocation, want := range map[string]string{
		"SPUBLISH c m": "[c] true", "SSUBSCRIBE a b": "[a b] true", "SUNSUBSCRIBE": "[] true", "PUBLISH c m": "[] false", "SUBSCRIBE c": "[] false", "GET k": "[k] false",
	} {
		command := words(invocation)
		keys, channels := redis.KeysOf(command[0], command[1:]...)
		if got := fmt.Sprint(keys, channels); got != want {
			t.Errorf("%s: %s, want %s", invocation, got, want)
		}
	}
}
