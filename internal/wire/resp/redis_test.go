package resp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// session is a plain connection to a real server, whose replies are read in
// pieces of random size.
type session struct {
	t       *testing.T
	conn    net.Conn
	r       *rand.Rand
	scanner Scanner
	buf     []byte  // received but not scanned yet
	pushes  []Value // received so far
}

func dial(t *testing.T, server *testkit.Redis, r *rand.Rand) *session {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &session{t: t, conn: conn, r: r}
}

func (s *session) send(b []byte) {
	s.t.Helper()
	if _, err := s.conn.Write(b); err != nil {
		s.t.Fatal(err)
	}
}

// do sends a command and returns its reply.
func (s *session) do(args ...string) Value {
	s.t.Helper()
	s.send(AppendCommand(nil, args...))
	return s.reply()
}

// reply returns the next message that is not a push.
func (s *session) reply() Value {
	s.t.Helper()
	for {
		v, verdict := s.message()
		if verdict == Done {
			return v
		}
		s.pushes = append(s.pushes, v)
	}
}

// push returns the oldest push that has not been returned yet.
func (s *session) push() Value {
	s.t.Helper()
	if len(s.pushes) == 0 {
		v, verdict := s.message()
		if verdict != Push {
			s.t.Fatalf("got %s, want a push", render(v))
		}
		s.pushes = append(s.pushes, v)
	}
	v := s.pushes[0]
	s.pushes = s.pushes[1:]
	return v
}

// message reads until the scanner has found a message, and checks that all readers agree about it.
func (s *session) message() (Value, Verdict) {
	s.t.Helper()
	for {
		n, verdict, err := s.scanner.Scan(s.buf)
		if err != nil {
			s.t.Fatalf("Scan(%s): %v", short(string(s.buf)), err)
		}
		if verdict != More {
			frame := bytes.Clone(s.buf[:n])
			s.buf = append(s.buf[:0], s.buf[n:]...)
			v, rest, err := Parse(frame, Limits{})
			if err != nil || len(rest) > 0 {
				s.t.Fatalf("Parse(%s): rest %q, %v", short(string(frame)), rest, err)
			}
			if got := decoded(s.t, frame); got != render(v) {
				s.t.Fatalf("%q: tree %s, token by token %s", frame, render(v), got)
			}
			if back, _, err := Parse(AppendValue(nil, v), Limits{}); err != nil || render(back) != render(v) {
				s.t.Fatalf("%s encoded and read back: %s, %v", render(v), render(back), err)
			}
			return v, verdict
		}
		// Most pieces are small. Large messages are read in one piece, because the test would take
		// minutes otherwise.
		piece := make([]byte, 1+s.r.IntN(1+max(16, n-len(s.buf))))
		got, err := s.conn.Read(piece)
		if err != nil {
			s.t.Fatalf("read: %v; so far %s", err, short(string(s.buf)))
		}
		s.buf = append(s.buf, piece[:got]...)
	}
}

// exchange is a command and its replies in both protocols. If the second is empty, both are the
// same.
type exchange struct {
	command string // split at spaces
	// A want2 of "any" is not checked, because versions of the server differ.
	want2, want3 string
}

var exchanges = []exchange{
	{"PING", "+PONG", ""},
	{"PING hello", `"hello"`, ""},
	{"SET k v", "+OK", ""},
	{"GET k", `"v"`, ""},
	{"GET missing", "$null", "_"},
	{"SET k w GET", `"v"`, ""},
	{"APPEND k x", ":2", ""},
	{"DEL k", ":1", ""},
	{"INCRBY n -9223372036854775808", ":-9223372036854775808", ""},
	{"DECR n", "-ERR increment or decrement would overflow", ""},
	{"SET n 9223372036854775807", "+OK", ""},
	{"INCRBY n 0", ":9223372036854775807", ""},
	{"INCRBYFLOAT f 10.5", `"10.5"`, ""},
	{"GET", "-ERR wrong number of arguments for 'get' command", ""},
	{"MSET a 1 b 2", "+OK", ""},
	{"MGET a missing b", `["1" $null "2"]`, `["1" _ "2"]`},
	{"RPUSH l x y z", ":3", ""},
	{"GET l", "-WRONGTYPE Operation against a key holding the wrong kind of value", ""},
	{"LRANGE l 0 -1", `["x" "y" "z"]`, ""},
	{"LRANGE l 5 9", "[]", ""},
	{"LPOP l 2", `["x" "y"]`, ""},
	{"LPOP missing", "$null", "_"},
	{"LPOP missing 1", "*null", "_"},
	{"BLPOP missing 0.01", "*null", "_"},
	{"LMPOP 1 l LEFT", `["l" ["z"]]`, ""},
	{"HSET h a 1 b 2", ":2", ""},
	{"HGETALL h", `["a" "1" "b" "2"]`, `{"a" "1" "b" "2"}`},
	{"HGETALL missing", "[]", "{}"},
	{"HRANDFIELD h 2 WITHVALUES", `["a" "1" "b" "2"]`, `[["a" "1"] ["b" "2"]]`},
	{"SADD s 1", ":1", ""},
	{"SMEMBERS s", `["1"]`, `~["1"]`},
	{"SMEMBERS missing", "[]", "~[]"},
	{"SISMEMBER s 1", ":1", ""},
	{"ZADD z 1.5 a inf b -inf c 1e300 d", ":4", ""},
	{"ZSCORE z a", `"1.5"`, ",1.5"},
	{"ZSCORE z b", `"inf"`, ",inf"},
	{"ZSCORE z c", `"-inf"`, ",-inf"},
	{"ZSCORE z missing", "$null", "_"},
	{"ZRANGE z 0 1 WITHSCORES", `["c" "-inf" "a" "1.5"]`, `[["c" ,-inf] ["a" ,1.5]]`},
	{"ZMSCORE z a missing", `["1.5" $null]`, "[,1.5 _]"},
	{"ZADD z INCR 0.25 a", `"1.75"`, ",1.75"},
	{"GEOADD g 13.361389 38.115556 p", ":1", ""},
	{"GEOPOS g missing", "[*null]", "[_]"},
	{"GEODIST g p p", `"0.0000"`, ""},
	{"XADD x 1-1 f v", `"1-1"`, ""},
	{"XRANGE x - +", `[["1-1" ["f" "v"]]]`, ""},
	{"XREAD STREAMS x 0", `[["x" [["1-1" ["f" "v"]]]]]`, `{"x" [["1-1" ["f" "v"]]]}`},
	{"XREAD STREAMS x 9", "*null", "_"},
	{"MULTI", "+OK", ""},
	{"GET a", "+QUEUED", ""},
	{"HGETALL h", "+QUEUED", ""},
	{"LPOP h", "+QUEUED", ""},
	{"GET missing", "+QUEUED", ""},
	{"EXEC", `["1" ["a" "1" "b" "2"] -WRONGTYPE Operation against a key holding the wrong kind of value $null]`,
		`["1" {"a" "1" "b" "2"} -WRONGTYPE Operation against a key holding the wrong kind of value _]`},
	{"EXEC", "-ERR EXEC without MULTI", ""},
	{"CONFIG GET maxmemory-policy", `["maxmemory-policy" "noeviction"]`, `{"maxmemory-policy" "noeviction"}`},
	{"OBJECT ENCODING a", `"int"`, ""},
	{"COMMAND GETKEYS MSET a 1 b 2", `["a" "b"]`, ""},
	// Types that only scripts can select.
	{"EVAL return{1,2,{3,'x'},false,4} 0", `[:1 :2 [:3 "x"] $null :4]`, `[:1 :2 [:3 "x"] _ :4]`},
	{"EVAL return{double=3.25} 0", `"3.25"`, ",3.25"},
	{"EVAL return{map={a=1}} 0", `["a" :1]`, `{"a" :1}`},
	{"EVAL return{set={a=true}} 0", `["a"]`, `~["a"]`},
	{"EVAL return{big_number='-123456789012345678901234567890'} 0", `"-123456789012345678901234567890"`, "(-123456789012345678901234567890"},
	{"EVAL return{verbatim_string={format='mkd',string='*x*'}} 0", `"*x*"`, `=mkd"*x*"`},
	{"EVAL redis.setresp(3);return(redis.call('HGETALL',KEYS[1])) 1 h", `["a" "1" "b" "2"]`, `{"a" "1" "b" "2"}`},
	{"EVAL redis.setresp(3);return(true) 0", ":1", "#t"},
	{"EVAL redis.setresp(3);return(false) 0", ":0", "#f"},
	{"EVAL return{err='MY-error'} 0", "-MY-error", ""},
	{"EVAL return{ok='fine'} 0", "+fine", ""},
	// Every type of the protocol.
	{"DEBUG PROTOCOL string", `"Hello World"`, ""},
	{"DEBUG PROTOCOL integer", ":12345", ""},
	{"DEBUG PROTOCOL double", `"3.141"`, ",3.141"},
	{"DEBUG PROTOCOL null", "$null", "_"},
	{"DEBUG PROTOCOL array", "[:0 :1 :2]", ""},
	{"DEBUG PROTOCOL set", "[:0 :1 :2]", "~[:0 :1 :2]"},
	{"DEBUG PROTOCOL map", "[:0 :0 :1 :1 :2 :0]", "{:0 #f :1 #t :2 #f}"},
	{"DEBUG PROTOCOL attrib", "any", `|{"key-popularity" ["key:123" :90]}"Some real reply following the attribute"`},
	{"DEBUG PROTOCOL push", "any", `"Some real reply following the push reply"`},
	{"DEBUG PROTOCOL verbatim", `"This is a verbatim\nstring"`, `=txt"This is a verbatim\nstring"`},
	{"DEBUG PROTOCOL bignum", `"1234567999999999999999999999999999999"`, "(1234567999999999999999999999999999999"},
	{"DEBUG PROTOCOL true", ":1", "#t"},
	{"DEBUG PROTOCOL false", ":0", "#f"},
}

func TestRealServer(t *testing.T) {
	server := testkit.StartRedis(t, "--enable-debug-command", "yes")
	seed := testkit.Seed(t)
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", version), func(t *testing.T) {
			s := dial(t, server, testkit.Fork(seed, uint64(version)))
			if version == 3 {
				checkHello(t, s.do("HELLO", "3"))
			}
			s.do("FLUSHALL")
			for _, e := range exchanges {
				want := e.want2
				if version == 3 && e.want3 != "" {
					want = e.want3
				}
				if got := render(s.do(strings.Fields(e.command)...)); got != want && want != "any" {
					t.Errorf("%s: %s, want %s", e.command, got, want)
				}
			}
			if version == 3 {
				if got := render(s.push()); got != `>["server-cpu-usage" :42]` {
					t.Errorf("DEBUG PROTOCOL push: %s", got)
				}
			}
			checkPipeline(t, s)
			checkLargeReplies(t, s, version)
		})
	}
	t.Run("pushes", func(t *testing.T) { checkPushes(t, server, seed) })
	t.Run("published in RESP2", func(t *testing.T) { checkPublished(t, server, seed) })
}

func checkHello(t *testing.T, v Value) {
	t.Helper()
	if v.Kind != Map {
		t.Fatalf("HELLO 3: %s, want a map", render(v))
	}
	for i := 0; i < len(v.Elems); i += 2 {
		if string(v.Elems[i].Str) == "proto" && v.Elems[i+1].Int == 3 {
			return
		}
	}
	t.Fatalf("HELLO 3: %s, want proto 3", render(v))
}

// checkPipeline sends many commands together. Each reply identifies its command.
func checkPipeline(t *testing.T, s *session) {
	t.Helper()
	var b []byte
	var want []string
	for i := range 2000 {
		value := fmt.Sprintf("%d:%s", i, anyBytes(s.r))
		switch s.r.IntN(4) {
		case 0:
			b = AppendCommand(b, "ECHO", value)
			want = append(want, fmt.Sprintf("%q", value))
		case 1:
			b = AppendArrayHeader(b, 2)
			b = AppendBulk(b, []byte("ECHO"))
			b = AppendBulkInt(b, int64(-i))
			want = append(want, fmt.Sprintf("%q", fmt.Sprint(-i)))
		case 2:
			b = AppendCommand(b, "EVAL", "return {KEYS[1],#KEYS[1]}", "1", value)
			want = append(want, fmt.Sprintf("[%q :%d]", value, len(value)))
		case 3:
			b = AppendArrayHeader(b, 2)
			b = AppendBulkString(b, "STRLEN")
			b = AppendBulkFloat(b, float64(i)+0.5)
			want = append(want, ":0")
		}
	}
	// The two megabytes may not fit into the buffers of both sides, so the writer must not wait for
	// the reader.
	written := make(chan error, 1)
	go func() { _, err := s.conn.Write(b); written <- err }() // awaited below
	for i, w := range want {
		v := s.reply()
		got := render(v)
		if got != w {
			t.Fatalf("reply %d: %s, want %s", i, got, w)
		}
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
}

// checkLargeReplies reads replies that are long or deeply nested.
func checkLargeReplies(t *testing.T, s *session, version int) {
	t.Helper()
	s.r = rand.New(rand.NewPCG(1, 1))
	large := strings.Repeat("0123456789abcdef\r\n", 1<<16)
	if got := render(s.do("SET", "large", large)); got != "+OK" {
		t.Fatal(got)
	}
	if v := s.do("GET", "large"); string(v.Str) != large || v.Kind != BulkString {
		t.Errorf("GET large: %v of %d bytes, want %d", v.Kind, len(v.Str), len(large))
	}
	count := s.do("COMMAND", "COUNT")
	if v := s.do("COMMAND"); v.Kind != Array || int64(len(v.Elems)) != count.Int {
		t.Errorf("COMMAND: %v of %d, want an array of %d", v.Kind, len(v.Elems), count.Int)
	}
	kind, each := Array, 2
	if version == 3 {
		kind = Map
	}
	if v := s.do("COMMAND", "DOCS"); v.Kind != kind || int64(len(v.Elems)) != count.Int*int64(each) {
		t.Errorf("COMMAND DOCS: %v of %d, want %v of %d", v.Kind, len(v.Elems), kind, count.Int*int64(each))
	}
	if v := s.do("MEMORY", "STATS"); v.Kind != kind || len(v.Elems) < 20 {
		t.Errorf("MEMORY STATS: %s", render(v))
	}
	kind = BulkString
	if version == 3 {
		kind = VerbatimString
	}
	for _, command := range []string{"INFO", "CLIENT LIST", "LATENCY DOCTOR"} {
		if v := s.do(strings.Fields(command)...); v.Kind != kind || len(v.Str) < 40 {
			t.Errorf("%s: %s, want %v", command, render(v), kind)
		}
	}
}

// checkPushes checks where a server sends out-of-band data.
func checkPushes(t *testing.T, server *testkit.Redis, seed uint64) {
	s, other := dial(t, server, testkit.Fork(seed, 10)), dial(t, server, testkit.Fork(seed, 11))
	checkHello(t, s.do("HELLO", "3"))
	// The only reply to a subscription is a push.
	s.send(AppendCommand(nil, "SUBSCRIBE", "c", "d"))
	for _, want := range []string{`>["subscribe" "c" :1]`, `>["subscribe" "d" :2]`} {
		if got := render(s.push()); got != want {
			t.Errorf("SUBSCRIBE: %s, want %s", got, want)
		}
	}
	if got := render(other.do("PUBLISH", "c", "m\r\n")); got != ":1" {
		t.Errorf("PUBLISH: %s", got)
	}
	if got := render(s.push()); got != `>["message" "c" "m\r\n"]` {
		t.Errorf("message: %s", got)
	}
	s.send(AppendCommand(nil, "UNSUBSCRIBE"))
	s.push()
	s.push()
	// Inside a transaction, the push is an element of the array.
	s.do("MULTI")
	s.do("SUBSCRIBE", "e")
	s.do("PING")
	if got := render(s.do("EXEC")); got != `[>["subscribe" "e" :1] +PONG]` {
		t.Errorf("EXEC with SUBSCRIBE: %s", got)
	}
	s.send(AppendCommand(nil, "UNSUBSCRIBE"))
	s.push()
	// Invalidations, including those from the session's own commands inside a transaction.
	s.do("CLIENT", "TRACKING", "ON")
	s.do("SET", "tracked", "1")
	s.do("GET", "tracked")
	other.do("SET", "tracked", "2")
	if got := render(s.do("PING")); got != "+PONG" {
		t.Errorf("PING: %s", got)
	}
	if got := render(s.push()); got != `>["invalidate" ["tracked"]]` {
		t.Errorf("invalidation: %s", got)
	}
	s.do("GET", "tracked")
	s.do("MULTI")
	s.do("SET", "tracked", "3")
	s.do("GET", "tracked")
	if got := render(s.do("EXEC")); got != `[+OK "3"]` {
		t.Errorf("EXEC with an invalidation: %s", got)
	}
	if got := render(s.do("PING")); got != "+PONG" {
		t.Errorf("PING behind it: %s", got)
	}
}

// checkPublished checks that published messages are ordinary arrays in RESP2, which has no pushes.
func checkPublished(t *testing.T, server *testkit.Redis, seed uint64) {
	s, other := dial(t, server, testkit.Fork(seed, 12)), dial(t, server, testkit.Fork(seed, 13))
	if got := render(s.do("PSUBSCRIBE", "c*")); got != `["psubscribe" "c*" :1]` {
		t.Errorf("PSUBSCRIBE: %s", got)
	}
	other.do("PUBLISH", "c1", "m")
	if got := render(s.reply()); got != `["pmessage" "c*" "c1" "m"]` {
		t.Errorf("message: %s", got)
	}
	if got := render(s.do("PING")); got != `["pong" ""]` {
		t.Errorf("PING: %s", got)
	}
}

// TestInlineCommandsLikeTheServer sends random lines of words and quotes to a server that reports
// how it split them.
func TestInlineCommandsLikeTheServer(t *testing.T) {
	server := testkit.StartRedis(t)
	seed := testkit.Seed(t)
	r := testkit.Fork(seed, 0)
	s := dial(t, server, testkit.Fork(seed, 1))
	var scanner CommandScanner
	refused := 0
	for range 3000 {
		const alphabet = `ab  "'\nxf1` + "\t\v\f\r"
		line := []byte("EVAL return(ARGV) 0 ")
		for range r.IntN(24) {
			line = append(line, alphabet[r.IntN(len(alphabet))])
		}
		line = append(line, "\r\n"...)
		n, args, v, err := scanner.Scan(line)
		s.send(line)
		got := s.reply()
		if got.Kind == SimpleError {
			if !strings.Contains(string(got.Str), "unbalanced quotes") || err == nil {
				t.Fatalf("%q: the server says %s, the scanner %q, %v", line, got.Str, texts(args), err)
			}
			refused++
			s, scanner = dial(t, server, testkit.Fork(seed, uint64(refused)+1)), CommandScanner{}
			continue
		}
		if n != len(line) || v != Done || err != nil || len(args) != 3+len(got.Elems) {
			t.Fatalf("%q: the server says %s, the scanner %d, %q, %v, %v", line, render(got), n, texts(args), v, err)
		}
		for i, e := range got.Elems {
			if !bytes.Equal(e.Str, args[3+i]) {
				t.Fatalf("%q: the server says %s, the scanner %q", line, render(got), texts(args[3:]))
			}
		}
	}
	if refused < 100 || refused > 2900 {
		t.Errorf("%d of 3000 lines were refused: that tests one side only", refused)
	}
}
