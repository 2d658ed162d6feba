package redis

import "testing"

func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		cmd      Command
		request  requestPolicy
		response responsePolicy
	}{
		{Cmd("GET", "k"), requestOne, responseJoin}, {Cmd("NOSUCH", "k"), requestOne, responseJoin}, {Cmd("PUBLISH", "c", "m"), requestOne, responseJoin},
		{Cmd("MGET", "a", "b"), requestMultiShard, responseJoin}, {Cmd("del", "a", "b"), requestMultiShard, responseSum}, {Cmd("MSET", "a", 1), requestMultiShard, responseAllSucceeded},
		{Cmd("MSETNX", "a", 1), requestOne, responseJoin}, // it sets all keys or none, so they must be in one slot
		{Cmd("KEYS", "*"), requestAllShards, responseJoin}, {Cmd("DBSIZE"), requestAllShards, responseSum}, {Cmd("WAIT", 1, 0), requestAllShards, responseMin},
		{Cmd("SCRIPT", "EXISTS", "h"), requestAllShards, responseAnd}, {Cmd("function", "kill"), requestAllShards, responseOneSucceeded},
		{Cmd("CONFIG", "SET", "a", "b"), requestAllNodes, responseAllSucceeded}, {Cmd("SLOWLOG", "GET"), requestAllNodes, responseJoin},
		{Cmd("SCAN", 0), requestSpecial, responseSpecial}, {Cmd("INFO"), requestAllShards, responseSpecial},
	} {
		if in := c.cmd.info; in.request != c.request || in.response != c.response {
			t.Errorf("%v: policies %d and %d, want %d and %d", c.cmd, in.request, in.response, c.request, c.response)
		}
	}
}
