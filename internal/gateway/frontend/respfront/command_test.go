package respfront

import (
	"fmt"
	"strings"
	"testing"
)

// Every command answers like a Redis server that holds the documents as strings.
func TestCommands(t *testing.T) {
	bothBackends(t, echo, Config{}, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		c.expect([][2]string{
			{"GET depts:10", dept(10)},
			{"get depts:10", dept(10)},
			{"gEt depts:-7", dept(-7)},
			{"GET depts:0", "$-1"},
			{"GET depts:0", "$-1"},
			{"GET orders:eu:7", bulk(`{"id":"2:eu7"}`)},
			{"GET orders:e%3Au:7", bulk(`{"id":"3:e:u7"}`)},
			{"GET orders:e%3au:7", bulk(`{"id":"3:e:u7"}`)},
			{`GET "orders:a b:7"`, bulk(`{"id":"3:a b7"}`)},
			{"MGET depts:10 depts:0 orders:eu:7 depts:11", "*4\n" + dept(10) + "\n$-1\n" + bulk(`{"id":"2:eu7"}`) + "\n" + dept(11)},
			{"MGET depts:10", "*1\n" + dept(10)},
			{"MGET depts:10 depts:10", "*2\n" + dept(10) + "\n" + dept(10)},
			{"EXISTS depts:10", ":1"},
			{"EXISTS depts:10 depts:0 depts:10 depts:12", ":3"},
			{"STRLEN depts:10", ":11"},
			{"STRLEN depts:0", ":0"},
			{"STRLEN depts:4711", ":13"},
			{"TTL depts:10", ":-1"},
			{"TTL depts:0", ":-2"},
			{"PTTL depts:10", ":-1"},
			{"PTTL depts:0", ":-2"},
			{"TYPE depts:10", "+string"},
			{"TYPE depts:0", "+none"},
			{"GETRANGE depts:10 0 3", bulk(`{"id`)},
			{"GETRANGE depts:10 -3 -1", bulk(`0"}`)},
			{"GETRANGE depts:10 0 -1", dept(10)},
			{"GETRANGE depts:10 0 1000", dept(10)},
			{"GETRANGE depts:10 -1000 0", bulk("{")},
			{"GETRANGE depts:10 5 2", bulk("")},
			{"GETRANGE depts:10 -1 -3", bulk("")},
			{"GETRANGE depts:10 11 12", bulk("")},
			{"GETRANGE depts:10 -9223372036854775808 9223372036854775807", dept(10)},
			{"GETRANGE depts:0 0 -1", bulk("")},
			{"SUBSTR depts:10 1 2", bulk(`"i`)},
			{"GETRANGE depts:10 x 1", "-ERR value is not an integer or out of range"},
			{"GETRANGE depts:10 0 01", "-ERR value is not an integer or out of range"},
			{"PING", "+PONG"},
			{"PING hello", bulk("hello")},
			{"PING a b", "-ERR wrong number of arguments for 'ping' command"},
			{`ECHO "a b"`, bulk("a b")},
			{"SELECT 0", "+OK"},
			{"SELECT 1", "-ERR DB index is out of range"},
			{"SELECT -1", "-ERR DB index is out of range"},
			{"SELECT x", "-ERR value is not an integer or out of range"},
			{"CLIENT GETNAME", "$-1"},
			{"CLIENT SETNAME me", "+OK"},
			{"CLIENT GETNAME", bulk("me")},
			{`CLIENT SETNAME "a b"`, "-ERR Client names cannot contain spaces, newlines or special characters."},
			{"CLIENT SETNAME " + strings.Repeat("x", 65), "-ERR Client names cannot be longer than 64 bytes."},
			{"CLIENT GETNAME", bulk("me")},
			{`CLIENT SETNAME ""`, "+OK"},
			{"CLIENT GETNAME", "$-1"},
			{"CLIENT SETINFO LIB-NAME lib", "+OK"},
			{"CLIENT SETINFO lib-ver 1.2", "+OK"},
			{"CLIENT SETINFO other 1.2", "-ERR Unrecognized option 'other'"},
			{"CLIENT NO-EVICT on", "+OK"},
			{"CLIENT NO-TOUCH OFF", "+OK"},
			{"CLIENT NO-TOUCH maybe", "-ERR syntax error"},
			{"COMMAND COUNT", ":20"},
			{"CONFIG GET save", "*2\n" + bulk("save") + "\n" + bulk("")},
			{"CONFIG GET SAVE appendonly", "*4\n" + bulk("appendonly") + "\n" + bulk("no") + "\n" + bulk("save") + "\n" + bulk("")},
			{"CONFIG GET data*", "*2\n" + bulk("databases") + "\n" + bulk("1")},
			{"CONFIG GET nothing", "*0"},
			{"INFO nothing", bulk("")},
			{"INFO cluster", "$30\n# Cluster\ncluster_enabled:0\n"},
		})
		if got := c.line("CLIENT ID"); got == "" || got[0] != ':' || got == ":0" {
			t.Errorf("CLIENT ID: %q, want a number", got)
		}
		if got := c.line("QUIT"); got != "+OK" {
			t.Errorf("QUIT: %q", got)
		}
		if got := c.reply(); got != "EOF" {
			t.Errorf("after QUIT: %q, want the end", got)
		}
	})
}

// Refusals use the messages of Redis, or say what would be accepted.
func TestRefusals(t *testing.T) {
	bothBackends(t, echo, Config{}, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		long := strings.Repeat("y", 200)
		rows := [][2]string{
			{"FOO", "-ERR unknown command 'FOO', with args beginning with: "},
			{`foo a b "c d"`, "-ERR unknown command 'foo', with args beginning with: 'a' 'b' 'c d' "},
			{`foo "a\nb\x01\xff"`, "-ERR unknown command 'foo', with args beginning with: 'a?b??' "},
			{long + " " + long + " b", "-ERR unknown command '" + long[:128] + "', with args beginning with: '" + long[:128] + "' "},
			{"GET", "-ERR wrong number of arguments for 'get' command"},
			{"GET a b", "-ERR wrong number of arguments for 'get' command"},
			{"mget", "-ERR wrong number of arguments for 'mget' command"},
			{"getrange a 1", "-ERR wrong number of arguments for 'getrange' command"},
			{"CLIENT", "-ERR wrong number of arguments for 'client' command"},
			{"CLIENT SETNAME", "-ERR wrong number of arguments for 'client|setname' command"},
			{"CLIENT foo", "-ERR unknown subcommand 'foo'. Try CLIENT HELP."},
			{"CLIENT KILL x", "-ERR unknown subcommand 'KILL'. Try CLIENT HELP."},
			{"CONFIG", "-ERR wrong number of arguments for 'config' command"},
			{"CONFIG FOO", "-ERR unknown subcommand 'FOO'. Try CONFIG HELP."},
			{"CONFIG SET save x", "-READONLY the configuration is a file, which cannot be changed from here."},
			{"COMMAND FOO", "-ERR unknown subcommand 'FOO'. Try COMMAND HELP."},
			{"SET depts:1 x", "-READONLY this server is read-only; write to the database behind it."},
			{"set", "-READONLY *"},
			{"DEL depts:1", "-READONLY *"},
			{"ZREMRANGEBYSCORE a 1 2", "-READONLY *"},
			{"FLUSHALL", "-READONLY *"},
			{"SHUTDOWN", "-READONLY *"},
			{"SUBSCRIBE x", "-ERR unknown command 'SUBSCRIBE', with args beginning with: 'x' "},
			{"GET depts", "-ERR the key names a resource but no row; expected depts:{deptno}"},
			{"GET orders", "-ERR the key names a resource but no row; expected orders:{region}:{order_no}"},
			{"GET depts:", "-ERR resource depts, key column deptno: expected a decimal integer without '+' or leading zeros, got \"\"; expected depts:{deptno}"},
			{"GET depts:abc", "-ERR resource depts, key column deptno: expected a decimal integer without '+' or leading zeros, got \"abc\"; expected depts:{deptno}"},
			{"GET depts:07", "-ERR resource depts, key column deptno: expected a decimal integer*"},
			{"GET depts:1:2", "-ERR resource depts, key has too many segments, expected 1; expected depts:{deptno}"},
			{"GET orders:eu", "-ERR resource orders, key has 1 segments, expected 2 (region/order_no); expected orders:{region}:{order_no}"},
			{`GET "depts:\xff\n"`, "-ERR resource depts, key column deptno: expected a decimal integer without '+' or leading zeros, got \"\\xff\\n\"*"},
			{"GET depts:%", "-ERR resource depts, key column deptno: expected percent signs*"},
			{"GET nothing:1", "-ERR there is no such resource*"},
			{"GET :1", "-ERR there is no such resource*"},
			{`GET ""`, "-ERR there is no such resource*"},
			{"GET DEPTS:1", "-ERR there is no such resource*"},
			{"GET late:1", "-LOADING the database has not been reached yet"},
			{"GET depts:" + strings.Repeat("1", 8<<10), "-ERR the key is longer than 8192 bytes"},
			{"MGET depts:1 depts:x depts:2", "-ERR resource depts, key column deptno*"},
			{"MGET depts:1 late:2", "-LOADING *"},
			{"EXISTS depts:1 nothing:2", "-ERR there is no such resource*"},
			{"GET blobs:00", "-NOAUTH Authentication required."},
			{"MGET depts:1 blobs:00", "-NOAUTH Authentication required."},
			{"AUTH x", "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"},
			{"AUTH default x", "+OK"},
			{"AUTH a x", "-WRONGPASS invalid username-password pair or user is disabled."},
			{"AUTH a b c", "-ERR syntax error"},
			{"HELLO 4", "-NOPROTO unsupported protocol version"},
			{"HELLO abc", "-ERR Protocol version is not an integer or out of range"},
			{"HELLO 3 foo", "-ERR Syntax error in HELLO option 'foo'"},
			{"HELLO 3 AUTH a", "-ERR Syntax error in HELLO option 'AUTH'"},
			{`HELLO 3 SETNAME "a b"`, "-ERR Client names cannot contain spaces, newlines or special characters."},
			{"GET depts:1", dept(1)},
		}
		c.expect(rows)
		failed := int64(0)
		f.server.EachFailure(func(_ string, n int64) { failed += n })
		want := int64(0)
		for _, r := range rows {
			if r[1][0] == '-' {
				want++
			}
		}
		if failed != want {
			t.Errorf("%d errors counted, want %d", failed, want)
		}
	})
}

// RESP3 has its own null, maps, sets and verbatim text.
func TestShapes(t *testing.T) {
	bothBackends(t, echo, Config{}, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		greeting := c.line("HELLO 3 SETNAME me")
		if want := "%7\n$6\nserver\n$10\nslipstream\n$7\nversion\n$5\n7.2.0\n$5\nproto\n:3\n$2\nid\n:"; !strings.HasPrefix(greeting, want) {
			t.Errorf("HELLO 3: %q, want %q and so on", greeting, want)
		}
		c.expect([][2]string{
			{"GET depts:0", "_"},
			{"MGET depts:0 depts:1", "*2\n_\n" + dept(1)},
			{"CLIENT GETNAME", bulk("me")},
			{"CONFIG GET save", "%1\n" + bulk("save") + "\n" + bulk("")},
			{"INFO cluster", "=34\ntxt:# Cluster\ncluster_enabled:0\n"},
			{"CLIENT INFO", "=*"},
			{"COMMAND INFO get nothing", "*2\n*10\n$3\nget\n:2\n~2\n+readonly\n+fast\n:1\n:1\n:1\n~3\n+@read\n+@string\n+@fast\n*0\n~1\n%3\n$5\nflags\n~2*"},
			{"COMMAND DOCS ping", "%1\n$4\nping\n%2\n$7\nsummary*"},
			{"COMMAND DOCS nothing", "%0"},
			{"HELLO", "%7\n*"},
			{"HELLO 2", "*14\n$6\nserver\n$10\nslipstream\n$7\nversion\n$5\n7.2.0\n$5\nproto\n:2\n*"},
			{"GET depts:0", "$-1"},
			{"COMMAND INFO nothing", "*1\n$-1"},
			{"COMMAND INFO client|id MGET", "*2\n*10\n$9\nclient|id\n:2\n*"},
			{"COMMAND", "*20\n*10\n$3\nget\n*"},
			{"COMMAND DOCS", "*40\n$3\nget\n*4\n*"},
			{"HELLO 3", "%7\n*"},
			{"RESET", "+RESET"},
			{"GET depts:0", "$-1"},
			{"CLIENT GETNAME", "$-1"},
		})
	})
}

// Tools read INFO by the names of Redis.
func TestInfo(t *testing.T) {
	bothBackends(t, echo, Config{}, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		c.expect([][2]string{{"GET depts:1", dept(1)}, {"GET depts:1", dept(1)}, {"FOO", "-*"}})
		all := c.line("INFO")
		for _, line := range []string{
			"redis_version:7.2.0", "redis_mode:standalone", "connected_clients:1", "maxclients:17000", "loading:0",
			"role:master", "total_connections_received:1", "keyspace_hits:1", "keyspace_misses:1", "cluster_enabled:0",
			"errorstat_ERR:count=1", "db0:keys=1,expires=0,avg_ttl=0", "total_commands_processed:3",
			fmt.Sprintf("tcp_port:%s", f.server.Addr().String()[strings.LastIndex(f.server.Addr().String(), ":")+1:]),
		} {
			if !strings.Contains(all, "\n"+line+"\n") {
				t.Errorf("INFO lacks the line %q:\n%s", line, all)
			}
		}
		some := c.line("info SERVER clients")
		if !strings.Contains(some, "# Server\n") || !strings.Contains(some, "# Clients\n") || strings.Contains(some, "# Stats") {
			t.Errorf("INFO server clients: %q, want these sections", some)
		}
	})
}

// CLIENT LIST lists the open connections of the same user.
func TestClientList(t *testing.T) {
	bothBackends(t, echo, Config{Users: users()}, func(t *testing.T, f *fixture) {
		nobody, web, again := f.dial(t), f.dial(t), f.dial(t)
		nobody.expect([][2]string{{"CLIENT SETNAME anonymous", "+OK"}})
		web.expect([][2]string{{"AUTH web " + webPassword, "+OK"}, {"CLIENT SETNAME one", "+OK"}})
		again.expect([][2]string{{"HELLO 3 AUTH web " + webPassword + " SETNAME two", "%7*"}, {"CLIENT SETINFO lib-name lib", "+OK"}})
		names := func(list string) (all []string) {
			for _, word := range strings.Fields(list) {
				if name, ok := strings.CutPrefix(word, "name="); ok {
					all = append(all, name)
				}
			}
			return all
		}
		if got := names(nobody.line("CLIENT LIST")); len(got) != 1 || got[0] != "anonymous" {
			t.Errorf("a client without a login sees %q, want only its own connection", got)
		}
		list := web.line("CLIENT LIST")
		if got := names(list); len(got) != 2 || got[0]+got[1] != "onetwo" && got[0]+got[1] != "twoone" {
			t.Errorf("web sees %q, want one and two", got)
		}
		for _, part := range []string{" user=user:web ", "lib-name=lib lib-ver= resp=3\n", "cmd=client|setinfo", "addr=127.0.0.1:"} {
			if !strings.Contains(list, part) {
				t.Errorf("CLIENT LIST lacks %q: %s", part, list)
			}
		}
		again.conn.Close()
		deadline := 0
		for got := names(web.line("CLIENT LIST")); len(got) != 1; got = names(web.line("CLIENT LIST")) {
			if deadline++; deadline > 10_000 {
				t.Fatalf("web sees %q long after two was closed", got)
			}
		}
	})
}
