package redis_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/redis"
)

// say formats the results of a method as a string.
func say(values ...any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, " ")
}

// said formats the results of an appending method as a string.
func said(dst []byte, found bool, err error) string { return say(string(dst), found, err) }

// eachProtocol runs a test with both versions of the protocol, each on an empty server. Is compares
// strings.
func eachProtocol(t *testing.T, test func(t *testing.T, c *redis.Client, is func(got, want string))) {
	for _, protocol := range []int{2, 3} {
		t.Run(strconv.Itoa(protocol), func(t *testing.T) {
			c := start(t, func(o *redis.Options) { o.Protocol = protocol })
			test(t, c, func(got, want string) {
				t.Helper()
				if got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		})
	}
}

func fieldsOf(words ...string) (list []redis.Field) {
	for i := 0; i < len(words); i += 2 {
		list = append(list, redis.Field{Name: words[i], Value: words[i+1]})
	}
	return list
}

func pairsOf(words ...string) (list []redis.KeyValue) {
	for i := 0; i < len(words); i += 2 {
		list = append(list, redis.KeyValue{Key: words[i], Value: words[i+1]})
	}
	return list
}

func TestTypedStrings(t *testing.T) {
	eachProtocol(t, func(t *testing.T, c *redis.Client, is func(got, want string)) {
		ctx := t.Context()
		is(say(c.Append(ctx, "k", "hello")), "5 <nil>")
		is(say(c.Append(ctx, "k", " world")), "11 <nil>")
		is(say(c.StrLen(ctx, "k")), "11 <nil>")
		is(say(c.GetRange(ctx, "k", -5, -1)), "world <nil>")
		b, err := c.GetRangeAppend(ctx, []byte("> "), "k", 0, 4)
		is(say(string(b), err), "> hello <nil>")
		is(say(c.SetRange(ctx, "k", 6, "there")), "11 <nil>")
		is(say(c.SetGet(ctx, "k", "5")), "hello there true <nil>")
		is(say(c.SetGet(ctx, "new", "x")), " false <nil>")
		is(say(c.SetGet(ctx, "k", "6")), "5 true <nil>")
		is(say(c.Decr(ctx, "k")), "5 <nil>")
		is(say(c.DecrBy(ctx, "k", 7)), "-2 <nil>")
		is(say(c.IncrByFloat(ctx, "k", 2.5)), "0.5 <nil>")
		is(say(c.GetEX(ctx, "k", time.Hour)), "0.5 true <nil>")
		ttl, found, err := c.TTL(ctx, "k")
		is(say(ttl > 59*time.Minute, found, err), "true true <nil>")
		is(say(c.GetPersist(ctx, "k")), "0.5 true <nil>")
		is(say(c.TTL(ctx, "k")), "-1ns true <nil>")
		is(say(c.GetDel(ctx, "k")), "0.5 true <nil>")
		is(say(c.GetDel(ctx, "k")), " false <nil>")
		is(say(c.MSet(ctx, pairsOf("a", "1", "b", "ohmytext")...)), "<nil>")
		is(say(c.MSetNX(ctx, pairsOf("b", "3", "c", "4")...)), "false <nil>")
		is(say(c.MSetNX(ctx, pairsOf("c", "mynewtext")...)), "true <nil>")
		is(say(c.LCS(ctx, "b", "c")), "mytext <nil>")
		is(say(c.LCSLen(ctx, "b", "c")), "6 <nil>")
		is(say(c.SetEX(ctx, "p", "v", time.Minute)), "<nil>")
		is(say(c.SetNX(ctx, "p", "w")), "false <nil>")
		is(say(c.SetNX(ctx, "q", "w")), "true <nil>")
		is(say(c.Type(ctx, "q")), "string <nil>")
	})
}

func TestTypedHashes(t *testing.T) {
	eachProtocol(t, func(t *testing.T, c *redis.Client, is func(got, want string)) {
		ctx := t.Context()
		is(say(c.HSet(ctx, "h", fieldsOf("a", "1", "b", "two")...)), "2 <nil>")
		is(say(c.HSet(ctx, "h", fieldsOf("c", "3")...)), "1 <nil>")
		is(say(c.HGet(ctx, "h", "b")), "two true <nil>")
		is(say(c.HGet(ctx, "h", "none")), " false <nil>")
		is(said(c.HGetAppend(ctx, []byte("= "), "h", "b")), "= two true <nil>")
		is(say(c.HGetAll(ctx, "h")), "[{a 1} {b two} {c 3}] <nil>")
		is(say(c.HGetAll(ctx, "none")), "[] <nil>")
		is(say(c.HMGet(ctx, "h", "a", "none", "c")), "[{1 true} { false} {3 true}] <nil>")
		is(say(c.HExists(ctx, "h", "a")), "true <nil>")
		is(say(c.HExists(ctx, "h", "none")), "false <nil>")
		is(say(c.HIncrBy(ctx, "h", "a", 4)), "5 <nil>")
		is(say(c.HIncrByFloat(ctx, "h", "a", 0.5)), "5.5 <nil>")
		is(say(c.HKeys(ctx, "h")), "[a b c] <nil>")
		is(say(c.HVals(ctx, "h")), "[5.5 two 3] <nil>")
		is(say(c.HLen(ctx, "h")), "3 <nil>")
		is(say(c.HStrLen(ctx, "h", "b")), "3 <nil>")
		is(say(c.HSetNX(ctx, "h", "a", "x")), "false <nil>")
		is(say(c.HDel(ctx, "h", "a", "b", "none")), "2 <nil>")
		is(say(c.HRandField(ctx, "h")), "c true <nil>")
		is(say(c.HRandFields(ctx, "h", -2)), "[c c] <nil>")
		is(say(c.HRandField(ctx, "none")), " false <nil>")
	})
}

func TestTypedLists(t *testing.T) {
	eachProtocol(t, func(t *testing.T, c *redis.Client, is func(got, want string)) {
		ctx := t.Context()
		is(say(c.RPush(ctx, "l", "a", "b", "c")), "3 <nil>")
		is(say(c.LPush(ctx, "l", "z", "y")), "5 <nil>")
		is(say(c.RPushX(ctx, "none", "a")), "0 <nil>")
		is(say(c.LPushX(ctx, "none", "a")), "0 <nil>")
		is(say(c.LRange(ctx, "l", 0, -1)), "[y z a b c] <nil>")
		is(say(c.LRange(ctx, "l", 1, 2)), "[z a] <nil>")
		is(say(c.LLen(ctx, "l")), "5 <nil>")
		is(say(c.LIndex(ctx, "l", -1)), "c true <nil>")
		is(say(c.LIndex(ctx, "l", 99)), " false <nil>")
		is(say(c.LInsertBefore(ctx, "l", "a", "m")), "6 <nil>")
		is(say(c.LInsertAfter(ctx, "l", "none", "m")), "-1 <nil>")
		is(say(c.LSet(ctx, "l", 0, "Y")), "<nil>")
		is(say(c.LRem(ctx, "l", 0, "m")), "1 <nil>")
		is(say(c.LPos(ctx, "l", "b")), "3 true <nil>")
		is(say(c.LPos(ctx, "l", "none")), "0 false <nil>")
		is(say(c.LTrim(ctx, "l", 0, 3)), "<nil>")
		is(say(c.LMove(ctx, "l", "m", "LEFT", "RIGHT")), "Y true <nil>")
		is(say(c.RPopLPush(ctx, "l", "m")), "b true <nil>")
		is(say(c.LPop(ctx, "l")), "z true <nil>")
		is(say(c.RPop(ctx, "l")), "a true <nil>")
		is(say(c.RPop(ctx, "l")), " false <nil>")
		is(say(c.LPopN(ctx, "m", 5)), "[b Y] <nil>")
		is(say(c.RPopN(ctx, "m", 5)), "[] <nil>")
		c.RPush(ctx, "l", "1", "2", "3")
		is(say(c.LMPop(ctx, "RIGHT", 2, "none", "l")), "l [3 2] <nil>")
		is(say(c.LMPop(ctx, "RIGHT", 2, "none")), " [] <nil>")
		is(say(c.BLPop(ctx, time.Second, "none", "l")), "l 1 true <nil>")
		is(say(c.BRPop(ctx, 10*time.Millisecond, "none", "l")), "  false <nil>")
		c.RPush(ctx, "l", "1", "2", "3")
		is(say(c.BLMove(ctx, time.Second, "l", "m", "LEFT", "LEFT")), "1 true <nil>")
		is(say(c.BRPopLPush(ctx, time.Second, "l", "m")), "3 true <nil>")
		is(say(c.BRPopLPush(ctx, time.Millisecond, "none", "m")), " false <nil>")
		is(say(c.BLMPop(ctx, time.Second, "LEFT", 9, "none", "m")), "m [3 1] <nil>")
		is(say(c.BLMPop(ctx, time.Millisecond, "LEFT", 9, "none")), " [] <nil>")
	})
}

func TestTypedSets(t *testing.T) {
	eachProtocol(t, func(t *testing.T, c *redis.Client, is func(got, want string)) {
		ctx := t.Context()
		is(say(c.SAdd(ctx, "s", "1", "2", "3")), "3 <nil>")
		is(say(c.SAdd(ctx, "o", "3", "4")), "2 <nil>")
		is(say(c.SCard(ctx, "s")), "3 <nil>")
		is(say(c.SMembers(ctx, "s")), "[1 2 3] <nil>")
		is(say(c.SIsMember(ctx, "s", "2")), "true <nil>")
		is(say(c.SMIsMember(ctx, "s", "2", "9")), "[1 0] <nil>")
		is(say(c.SDiff(ctx, "s", "o")), "[1 2] <nil>")
		is(say(c.SInter(ctx, "s", "o")), "[3] <nil>")
		is(say(c.SUnion(ctx, "s", "o")), "[1 2 3 4] <nil>")
		is(say(c.SInterCard(ctx, []string{"s", "o"})), "1 <nil>")
		is(say(c.SInterCardLimit(ctx, []string{"s", "s"}, 2)), "2 <nil>")
		is(say(c.SDiffStore(ctx, "d", "s", "o")), "2 <nil>")
		is(say(c.SInterStore(ctx, "d", "s", "o")), "1 <nil>")
		is(say(c.SUnionStore(ctx, "d", "s", "o")), "4 <nil>")
		is(say(c.SMove(ctx, "s", "o", "1")), "true <nil>")
		is(say(c.SMove(ctx, "s", "o", "1")), "false <nil>")
		is(say(c.SRem(ctx, "s", "2", "9")), "1 <nil>")
		is(say(c.SRandMember(ctx, "s")), "3 true <nil>")
		is(say(c.SRandMembers(ctx, "s", -2)), "[3 3] <nil>")
		is(say(c.SPop(ctx, "s")), "3 true <nil>")
		is(say(c.SPop(ctx, "s")), " false <nil>")
		popped, err := c.SPopN(ctx, "o", 9)
		is(say(len(popped), err), "3 <nil>")
	})
}

func TestTypedSortedSets(t *testing.T) {
	eachProtocol(t, func(t *testing.T, c *redis.Client, is func(got, want string)) {
		ctx := t.Context()
		m := func(score float64, name string) redis.Member { return redis.Member{Name: name, Score: score} }
		is(say(c.ZAdd(ctx, "z", m(1, "a"), m(2.5, "b"), m(3, "c"))), "3 <nil>")
		is(say(c.ZAddNX(ctx, "z", m(9, "a"), m(4, "d"))), "1 <nil>")
		is(say(c.ZAddXX(ctx, "z", m(0, "a"), m(4, "none"))), "1 <nil>")
		is(say(c.ZAddGT(ctx, "z", m(1, "a"), m(1, "b"))), "1 <nil>")
		is(say(c.ZAddLT(ctx, "z", m(9, "a"), m(2, "b"))), "1 <nil>")
		is(say(c.ZCard(ctx, "z")), "4 <nil>")
		is(say(c.ZCount(ctx, "z", "(1", "+inf")), "3 <nil>")
		is(say(c.ZScore(ctx, "z", "b")), "2 true <nil>")
		is(say(c.ZScore(ctx, "z", "none")), "0 false <nil>")
		is(say(c.ZMScore(ctx, "z", "a", "none")), "[{1 true} {0 false}] <nil>")
		is(say(c.ZIncrBy(ctx, "z", 0.5, "b")), "2.5 <nil>")
		is(say(c.ZRange(ctx, "z", 0, -1)), "[a b c d] <nil>")
		is(say(c.ZRangeWithScores(ctx, "z", 0, 1)), "[{a 1} {b 2.5}] <nil>")
		is(say(c.ZRangeRev(ctx, "z", 0, 1)), "[d c] <nil>")
		is(say(c.ZRangeRevWithScores(ctx, "z", 0, 0)), "[{d 4}] <nil>")
		is(say(c.ZRangeByScore(ctx, "z", "2", "3")), "[b c] <nil>")
		is(say(c.ZRangeByScoreWithScores(ctx, "z", "3", "3")), "[{c 3}] <nil>")
		is(say(c.ZRangeByScoreLimit(ctx, "z", "-inf", "+inf", 1, 2)), "[b c] <nil>")
		is(say(c.ZRevRangeByScore(ctx, "z", "3", "2")), "[c b] <nil>")
		is(say(c.ZRevRangeByScoreWithScores(ctx, "z", "3", "3")), "[{c 3}] <nil>")
		is(say(c.ZRangeStore(ctx, "copy", "z", 1, 2)), "2 <nil>")
		is(say(c.ZRank(ctx, "z", "b")), "1 true <nil>")
		is(say(c.ZRank(ctx, "z", "none")), "0 false <nil>")
		is(say(c.ZRevRank(ctx, "z", "b")), "2 true <nil>")
		is(say(c.ZRevRank(ctx, "z", "none")), "0 false <nil>")
		c.ZAdd(ctx, "o", m(10, "b"), m(20, "x"))
		is(say(c.ZDiff(ctx, []string{"z", "o"})), "[a c d] <nil>")
		is(say(c.ZDiffWithScores(ctx, []string{"o", "z"})), "[{x 20}] <nil>")
		is(say(c.ZDiffStore(ctx, "d", []string{"o", "z"})), "1 <nil>")
		is(say(c.ZInter(ctx, []string{"z", "o"})), "[b] <nil>")
		is(say(c.ZInterWithScores(ctx, []string{"z", "o"})), "[{b 12.5}] <nil>")
		is(say(c.ZInterCard(ctx, []string{"z", "o"})), "1 <nil>")
		is(say(c.ZInterStore(ctx, "d", []string{"z", "o"})), "1 <nil>")
		is(say(c.ZUnion(ctx, []string{"d", "o"})), "[x b] <nil>")
		is(say(c.ZUnionWithScores(ctx, []string{"o"})), "[{b 10} {x 20}] <nil>")
		is(say(c.ZUnionStore(ctx, "d", []string{"z", "o"})), "5 <nil>")
		is(say(c.ZPopMax(ctx, "d", 2)), "[{x 20} {b 12.5}] <nil>")
		is(say(c.ZPopMin(ctx, "d", 1)), "[{a 1}] <nil>")
		is(say(c.ZPopMin(ctx, "none", 1)), "[] <nil>")
		is(say(c.ZMPop(ctx, "MAX", 1, "none", "d")), "d [{d 4}] <nil>")
		is(say(c.ZMPop(ctx, "MAX", 1, "none")), " [] <nil>")
		is(say(c.BZPopMin(ctx, time.Second, "none", "d")), "d {c 3} true <nil>")
		is(say(c.BZPopMax(ctx, time.Millisecond, "none")), " { 0} false <nil>")
		is(say(c.BZMPop(ctx, time.Second, "MIN", 2, "z")), "z [{a 1} {b 2.5}] <nil>")
		c.ZAdd(ctx, "lex", m(0, "a"), m(0, "b"), m(0, "c"), m(0, "d"))
		is(say(c.ZLexCount(ctx, "lex", "[b", "+")), "3 <nil>")
		is(say(c.ZRangeByLex(ctx, "lex", "-", "(c")), "[a b] <nil>")
		is(say(c.ZRevRangeByLex(ctx, "lex", "(c", "-")), "[b a] <nil>")
		is(say(c.ZRemRangeByLex(ctx, "lex", "[a", "[a")), "1 <nil>")
		is(say(c.ZRemRangeByRank(ctx, "lex", 0, 0)), "1 <nil>")
		is(say(c.ZRemRangeByScore(ctx, "lex", "1", "2")), "0 <nil>")
		is(say(c.ZRem(ctx, "lex", "c", "none")), "1 <nil>")
		is(say(c.ZRandMember(ctx, "lex")), "d true <nil>")
		is(say(c.ZRandMembers(ctx, "lex", -2)), "[d d] <nil>")
	})
}

func TestTypedBitsAndGeo(t *testing.T) {
	eachProtocol(t, func(t *testing.T, c *redis.Client, is func(got, want string)) {
		ctx := t.Context()
		is(say(c.SetBit(ctx, "b", 7, 1)), "0 <nil>")
		is(say(c.SetBit(ctx, "b", 9, 1)), "0 <nil>")
		is(say(c.GetBit(ctx, "b", 7)), "1 <nil>")
		is(say(c.BitCount(ctx, "b")), "2 <nil>")
		is(say(c.BitCountRange(ctx, "b", 0, 0)), "1 <nil>")
		is(say(c.BitPos(ctx, "b", 1)), "7 <nil>")
		is(say(c.BitPosRange(ctx, "b", 1, 1, -1)), "9 <nil>")
		var numbers []int64
		is(say(c.BitField(ctx, &numbers, "f", "SET", "u8", "0", "200", "INCRBY", "u8", "0", "1")), "<nil>")
		is(say(c.BitFieldRO(ctx, &numbers, "f", "GET", "u8", "0")), "<nil>")
		is(say(numbers), "[201]")
		is(say(c.BitOpAnd(ctx, "r", "b", "b")), "2 <nil>")
		is(say(c.BitOpOr(ctx, "r", "b", "f")), "2 <nil>")
		is(say(c.BitOpXor(ctx, "r", "b", "f")), "2 <nil>")
		is(say(c.BitOpNot(ctx, "r", "b")), "2 <nil>")
		is(say(c.PFAdd(ctx, "p", "a", "b")), "true <nil>")
		is(say(c.PFAdd(ctx, "p", "a")), "false <nil>")
		is(say(c.PFMerge(ctx, "q", "p")), "<nil>")
		is(say(c.PFCount(ctx, "p", "q")), "2 <nil>")

		is(say(c.GeoAdd(ctx, "g", redis.Location{Name: "Palermo", Longitude: 13.361389, Latitude: 38.115556},
			redis.Location{Name: "Catania", Longitude: 15.087269, Latitude: 37.502669})), "2 <nil>")
		is(say(c.GeoDist(ctx, "g", "Palermo", "Catania", "km")), "166.2742 true <nil>")
		is(say(c.GeoDist(ctx, "g", "Palermo", "none", "km")), "0 false <nil>")
		is(say(c.GeoHash(ctx, "g", "Palermo", "none")), "[{sqc8b49rny0 true} { false}] <nil>")
		at, err := c.GeoPos(ctx, "g", "Palermo", "none")
		is(say(len(at), int(at[0].Longitude), int(at[0].Latitude), at[0].Found, at[1], err), "2 13 38 true {0 0 false} <nil>")
		query := []string{"FROMLONLAT", "15", "37", "BYRADIUS", "200", "km", "ASC"}
		is(say(c.GeoSearch(ctx, "g", query...)), "[Catania Palermo] <nil>")
		is(say(c.GeoSearchWith(ctx, "g", query...)), "[{{Catania 0 0} 0 0} {{Palermo 0 0} 0 0}] <nil>")
		is(say(c.GeoSearchWith(ctx, "g", append(query, "WITHDIST", "WITHHASH")...)), "[{{Catania 0 0} 56.4413 3479447370796909} {{Palermo 0 0} 190.4424 3479099956230698}] <nil>")
		found, err := c.GeoSearchWith(ctx, "g", append(query, "WITHCOORD", "WITHDIST")...)
		is(say(found[0].Name, int(found[0].Longitude), int(found[0].Latitude), found[0].Distance, len(found), err), "Catania 15 37 56.4413 2 <nil>")
		is(say(c.GeoSearchWith(ctx, "none", append(query, "WITHDIST")...)), "[] <nil>")
		is(say(c.GeoSearchStore(ctx, "near", "g", query...)), "2 <nil>")
		var names []string
		is(say(c.GeoRadius(ctx, &names, "g", 15, 37, 200, "km", "ASC")), "<nil>")
		is(say(names), "[Catania Palermo]")
		var stored int
		is(say(c.GeoRadius(ctx, &stored, "g", 15, 37, 200, "km", "STORE", "near")), "<nil>")
		is(say(stored), "2")
		is(say(c.GeoRadiusRO(ctx, "g", 15, 37, 100, "km", "WITHDIST")), "[{{Catania 0 0} 56.4413 0}] <nil>")
		is(say(c.GeoRadiusByMember(ctx, &names, "g", "Palermo", 1, "km")), "<nil>")
		is(say(names), "[Palermo]")
		is(say(c.GeoRadiusByMemberRO(ctx, "g", "Palermo", 1, "km")), "[{{Palermo 0 0} 0 0}] <nil>")
	})
}

func TestTypedStreams(t *testing.T) {
	eachProtocol(t, func(t *testing.T, c *redis.Client, is func(got, want string)) {
		ctx := t.Context()
		is(say(c.XAdd(ctx, "s", "1-1", fieldsOf("a", "1")...)), "1-1 <nil>")
		is(say(c.XAdd(ctx, "s", "2-1", fieldsOf("a", "2", "b", "3")...)), "2-1 <nil>")
		is(say(c.XAddMaxLenApprox(ctx, "s", 2, "3-1", fieldsOf("a", "3")...)), "3-1 <nil>")
		is(say(c.XTrimMaxLenApprox(ctx, "s", 2)), "0 <nil>")
		is(say(c.XLen(ctx, "s")), "3 <nil>")
		is(say(c.XRange(ctx, "s", "-", "+", 2)), "[{1-1 [{a 1}]} {2-1 [{a 2} {b 3}]}] <nil>")
		is(say(c.XRevRange(ctx, "s", "+", "-", 1)), "[{3-1 [{a 3}]}] <nil>")
		is(say(c.XRange(ctx, "none", "-", "+", 0)), "[] <nil>")
		is(say(c.XRead(ctx, redis.XReadOptions{Count: 1}, redis.StreamPosition{Stream: "s", ID: "1-1"}, redis.StreamPosition{Stream: "none", ID: "0"})), "[{s [{2-1 [{a 2} {b 3}]}]}] <nil>")
		is(say(c.XRead(ctx, redis.XReadOptions{Block: 5 * time.Millisecond}, redis.StreamPosition{Stream: "s", ID: "$"})), "[] <nil>")
		is(say(c.XGroupCreate(ctx, "s", "g", "0")), "<nil>")
		is(say(c.XGroupCreateMkStream(ctx, "made", "g", "$")), "<nil>")
		is(say(c.XGroupCreateConsumer(ctx, "s", "g", "me")), "true <nil>")
		read := func(id string, o redis.XReadOptions) ([]redis.StreamEntries, error) {
			return c.XReadGroup(ctx, "g", "me", o, redis.StreamPosition{Stream: "s", ID: id})
		}
		is(say(read(">", redis.XReadOptions{Count: 2, Block: -1})), "[{s [{1-1 [{a 1}]} {2-1 [{a 2} {b 3}]}]}] <nil>")
		is(say(read(">", redis.XReadOptions{NoAck: true})), "[{s [{3-1 [{a 3}]}]}] <nil>")
		is(say(c.XAck(ctx, "s", "g", "1-1", "9-9")), "1 <nil>")
		is(say(c.XDel(ctx, "s", "2-1")), "1 <nil>")
		is(say(read("0", redis.XReadOptions{})), "[{s [{2-1 []}]}] <nil>")
		is(say(c.XPending(ctx, "s", "g")), "{1 2-1 2-1 [{me 1}]} <nil>")
		is(say(c.XClaim(ctx, "s", "g", "other", 0, "2-1")), "[] <nil>")
		is(say(c.XPending(ctx, "s", "g")), "{0   []} <nil>")
		is(say(c.XGroupSetID(ctx, "s", "g", "0")), "<nil>")
		is(say(c.XGroupDelConsumer(ctx, "s", "g", "me")), "0 <nil>")
		is(say(c.XGroupDestroy(ctx, "s", "g")), "true <nil>")
		is(say(c.XGroupDestroy(ctx, "s", "g")), "false <nil>")
		is(say(c.XSetID(ctx, "s", "9-1")), "<nil>")
		is(say(c.XTrimMinID(ctx, "s", "2-0")), "1 <nil>")
		is(say(c.XAddMaxLen(ctx, "s", 1, "9-2", fieldsOf("a", "4")...)), "9-2 <nil>")
		is(say(c.XRange(ctx, "s", "-", "+", 0)), "[{9-2 [{a 4}]}] <nil>")
		is(say(c.XTrimMaxLen(ctx, "s", 0)), "1 <nil>")
	})
}

func TestTypedKeys(t *testing.T) {
	eachProtocol(t, func(t *testing.T, c *redis.Client, is func(got, want string)) {
		ctx := t.Context()
		must(t, c.Set(ctx, "k", "v"))
		is(say(c.Copy(ctx, "k", "l")), "true <nil>")
		is(say(c.Copy(ctx, "k", "l")), "false <nil>")
		is(say(c.CopyReplace(ctx, "k", "l")), "true <nil>")
		dump, found, err := c.Dump(ctx, "k")
		is(say(len(dump) > 5, found, err), "true true <nil>")
		is(say(c.Restore(ctx, "m", 0, dump)), "<nil>")
		is(say(c.RestoreReplace(ctx, "m", time.Hour, dump)), "<nil>")
		at := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		is(say(c.ExpireAt(ctx, "k", at)), "true <nil>")
		is(say(c.ExpireAt(ctx, "none", at)), "false <nil>")
		is(say(c.ExpireTime(ctx, "k")), say(at.Local(), true, nil))
		is(say(c.ExpireTime(ctx, "none")), say(time.Time{}, false, nil))
		is(say(c.Persist(ctx, "k")), "true <nil>")
		is(say(c.Persist(ctx, "k")), "false <nil>")
		is(say(c.ExpireTime(ctx, "k")), say(time.Time{}, true, nil))
		is(say(c.Keys(ctx, "[k]")), "[k] <nil>")
		is(say(c.Move(ctx, "m", 1)), "true <nil>")
		is(say(c.ObjectEncoding(ctx, "k")), "embstr true <nil>")
		is(say(c.ObjectRefCount(ctx, "k")), "1 <nil>")
		is(say(c.ObjectIdleTime(ctx, "k")), "0s <nil>")
		must(t, c.Do(ctx, nil, redis.Cmd("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")))
		_, err = c.ObjectFreq(ctx, "k")
		is(say(err), "<nil>")
		is(say(c.Rename(ctx, "l", "n")), "<nil>")
		is(say(c.RenameNX(ctx, "n", "k")), "false <nil>")
		is(say(c.Touch(ctx, "k", "n", "none")), "2 <nil>")
		is(say(c.Unlink(ctx, "n", "none")), "1 <nil>")
		is(say(c.RandomKey(ctx)), "k true <nil>")
		c.RPush(ctx, "numbers", "3", "1", "2")
		is(say(c.Sort(ctx, "numbers", "DESC", "GET", "none_*", "GET", "#")), "[{ false} {3 true} { false} {2 true} { false} {1 true}] <nil>")
		is(say(c.SortRO(ctx, "numbers")), "[{1 true} {2 true} {3 true}] <nil>")
		is(say(c.SortStore(ctx, "numbers", "STORE", "sorted")), "3 <nil>")
		is(say(c.DBSize(ctx)), "3 <nil>")
		is(say(c.FlushDB(ctx)), "<nil>")
		is(say(c.FlushAll(ctx)), "<nil>")
		is(say(c.RandomKey(ctx)), " false <nil>")
		is(say(c.Echo(ctx, "hello")), "hello <nil>")
		info, err := c.Info(ctx, "server")
		is(say(strings.Contains(info, "redis_version"), err), "true <nil>")
	})
}

func TestTypedScripting(t *testing.T) {
	eachProtocol(t, func(t *testing.T, c *redis.Client, is func(got, want string)) {
		ctx := t.Context()
		const source = "return {KEYS[1], ARGV[1]}"
		var got []string
		is(say(c.Eval(ctx, &got, source, []string{"k"}, 1)), "<nil>")
		is(say(c.EvalRO(ctx, &got, source, []string{"k"}, 2)), "<nil>")
		hash, err := c.ScriptLoad(ctx, source)
		is(say(err), "<nil>")
		is(say(c.EvalSha(ctx, &got, hash, []string{"k"}, 3)), "<nil>")
		is(say(c.EvalShaRO(ctx, &got, hash, []string{"k"}, 4)), "<nil>")
		is(say(got), "[k 4]")
		is(say(c.ScriptExists(ctx, hash, "none")), "[1 0] <nil>")
		is(say(c.ScriptFlush(ctx)), "<nil>")
		is(say(strings.Contains(c.ScriptKill(ctx).Error(), "NOTBUSY")), "true")
		const library = "#!lua name=lib\nredis.register_function{function_name='f', callback=function(keys, args) return keys end, flags={'no-writes'}}"
		is(say(c.FunctionLoad(ctx, library)), "lib <nil>")
		is(say(c.FCall(ctx, &got, "f", []string{"x"})), "<nil>")
		is(say(c.FCallRO(ctx, &got, "f", []string{"y"})), "<nil>")
		is(say(got), "[y]")
		var v redis.Value
		is(say(c.FunctionList(ctx, &v)), "<nil>")
		is(say(c.FunctionStats(ctx, &v)), "<nil>")
		dump, err := c.FunctionDump(ctx)
		is(say(err), "<nil>")
		is(say(c.FunctionDelete(ctx, "lib")), "<nil>")
		is(say(c.FunctionRestore(ctx, dump)), "<nil>")
		is(say(c.FunctionFlush(ctx)), "<nil>")
		is(say(strings.Contains(c.FunctionKill(ctx).Error(), "NOTBUSY")), "true")
		is(say(c.Publish(ctx, "c", "m")), "0 <nil>")
		is(say(c.SPublish(ctx, "c", "m")), "0 <nil>")
		is(say(c.PubSubChannels(ctx, "*")), "[] <nil>")
		is(say(c.PubSubShardChannels(ctx, "*")), "[] <nil>")
		is(say(c.PubSubNumPat(ctx)), "0 <nil>")
		var counts map[string]int64
		is(say(c.PubSubNumSub(ctx, &counts, "c")), "<nil>")
		is(say(c.PubSubShardNumSub(ctx, &counts, "c")), "<nil>")
		is(say(counts), "map[c:0]")
	})
}

// TestCommandsWithoutMethods: commands that Redis considers obsolete have no methods, and are sent
// by Do.
func TestCommandsWithoutMethods(t *testing.T) {
	eachProtocol(t, func(t *testing.T, c *redis.Client, is func(got, want string)) {
		ctx := t.Context()
		do := func(name string, args ...any) string {
			var v any
			err := c.Do(ctx, &v, redis.Cmd(name, args...))
			return say(v, err)
		}
		is(do("PSETEX", "k", 60_000, "hello"), "OK <nil>")
		is(do("SUBSTR", "k", 0, 3), "hell <nil>")
		is(do("GETSET", "k", "next"), "hello <nil>")
		is(do("HMSET", "h", "a", "1", "b", "2"), "OK <nil>")
		is(say(c.HMGet(ctx, "h", "a", "b")), "[{1 true} {2 true}] <nil>")
		is(do("ZADD", "z", 1, "a", 2, "b"), "2 <nil>")
		is(do("ZREVRANGE", "z", 0, -1), "[b a] <nil>")
	})
	for _, name := range []string{"SUBSTR", "ZREVRANGE"} {
		if !redis.KnownReadOnly(name, "k", 0, 1) {
			t.Errorf("%s is not known as a command that only reads", name)
		}
	}
}

// TestTimesAtTheEdges checks times that a duration cannot represent, and the numbers that mean that
// there is no time.
func TestTimesAtTheEdges(t *testing.T) {
	const most = "9223372036854775807"
	s := fake(t, func(_ int, args []string) string {
		switch args[0] {
		case "HPTTL", "HPEXPIRETIME":
			return "*4\r\n:-2\r\n:-1\r\n:1500\r\n:" + most + "\r\n"
		}
		return ":" + most + "\r\n"
	})
	c := connect(t, redis.Options{Addr: s.Addr, Protocol: 2, OmitClientInfo: true})
	ctx := t.Context()
	const longest = time.Duration(1<<63 - 1)
	ttls, err := c.HTTL(ctx, "h", nil)
	must(t, err)
	if want := []redis.MaybeDuration{{}, {Value: redis.NoExpiry, Found: true}, {Value: 1500 * time.Millisecond, Found: true},
		{Value: longest.Truncate(time.Millisecond), Found: true}}; !slices.Equal(ttls, want) {
		t.Errorf("%v, want %v", ttls, want)
	}
	times, err := c.HExpireTime(ctx, "h", nil)
	must(t, err)
	if want := []redis.MaybeTime{{}, {Found: true}, {Value: time.UnixMilli(1500), Found: true}, {Value: time.UnixMilli(1<<63 - 1), Found: true}}; !slices.Equal(times, want) {
		t.Errorf("%v, want %v", times, want)
	}
	if ttl, found, err := c.TTL(ctx, "k"); ttl != longest.Truncate(time.Millisecond) || !found || err != nil {
		t.Errorf("%v, %t, %v", ttl, found, err)
	}
	if idle, err := c.ObjectIdleTime(ctx, "k"); idle != longest.Truncate(time.Second) || err != nil {
		t.Errorf("%v, %v", idle, err)
	}
}
