package redis

import (
	"errors"
	"math"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"
)

type (
	named      string
	namedInt   int8
	namedUint  uint16
	namedFloat float32
	namedBool  bool
	namedBytes []byte
	binary     struct{ n byte }
	failing    struct{}
)

func (b binary) MarshalBinary() ([]byte, error)  { return []byte{'b', b.n}, nil }
func (b *binary) UnmarshalBinary(p []byte) error { b.n = p[len(p)-1]; return nil }
func (failing) MarshalText() ([]byte, error)     { return nil, errors.New("no text today") }

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		arg  any
		want string
	}{
		{"", ""}, {"text", "text"}, {[]byte("by\r\ntes"), "by\r\ntes"}, {[]byte(nil), ""},
		{int(-1), "-1"}, {int8(math.MinInt8), "-128"}, {int16(1), "1"}, {int32(-2), "-2"}, {int64(math.MinInt64), "-9223372036854775808"},
		{uint(1), "1"}, {uint8(255), "255"}, {uint16(2), "2"}, {uint32(3), "3"}, {uint64(math.MaxUint64), "18446744073709551615"},
		{0.1, "0.1"}, {float32(0.1), "0.1"}, {math.Inf(-1), "-inf"}, {float32(math.Inf(1)), "inf"}, {1e21, "1e+21"},
		{true, "1"}, {false, "0"},
		{named("n"), "n"}, {namedInt(-3), "-3"}, {namedUint(4), "4"}, {namedFloat(0.1), "0.1"}, {namedBool(true), "1"}, {namedBytes("nb"), "nb"},
		{netip.MustParseAddr("10.0.0.1"), "10.0.0.1"}, {big.NewInt(7), "7"}, {binary{'x'}, "bx"}, {&binary{'y'}, "by"},
		{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "2026-01-02T03:04:05Z"},
	} {
		cmd := Cmd("ECHO", c.arg)
		if cmd.err != nil {
			t.Errorf("%T: %v", c.arg, cmd.err)
			continue
		}
		args := encodedArgs{cmd.frame[len("*2\r\n$4\r\nECHO\r\n"):]}
		got, ok := args.next()
		if !ok || string(got) != c.want || len(args.rest) != 0 {
			t.Errorf("%T %v: %q, want %q", c.arg, c.arg, got, c.want)
		}
	}
}

func TestWrongArguments(t *testing.T) {
	var noPointer *binary
	for _, c := range []struct {
		arg  any
		want string
	}{
		{nil, "nil"}, {noPointer, "nil *redis.binary"}, {struct{}{}, "struct {}"}, {[]string{"a"}, "[]string"}, {map[string]int{}, "map"},
		{time.Second, "time.Duration"}, {failing{}, "no text today"}, {make(chan int), "chan int"}, {1i, "complex128"},
	} {
		cmd := Cmd("SET", "k", c.arg)
		if cmd.err == nil || !strings.HasPrefix(cmd.err.Error(), "argument 2 ") || !strings.Contains(cmd.err.Error(), c.want) {
			t.Errorf("%T: %v, want argument 2 and %q", c.arg, cmd.err, c.want)
		}
	}
}

func TestCommandsKeepTheirArguments(t *testing.T) {
	value := []byte("before")
	cmd := Cmd("set", "k", value)
	copy(value, "after!")
	if got, want := string(cmd.frame), "*3\r\n$3\r\nset\r\n$1\r\nk\r\n$6\r\nbefore\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if cmd.Name() != "SET" || cmd.String() != "SET" || string(cmd.key()) != "k" {
		t.Errorf("%q %q %q", cmd.Name(), cmd, cmd.key())
	}
	if again := cmd.Idempotent(); again.repeatable() == cmd.repeatable() {
		t.Error("Idempotent changed the original command, or had no effect")
	}
	if slow := cmd.SlowFor(time.Minute); slow.slowFor != time.Minute || cmd.slowFor != 0 {
		t.Errorf("%v, %v", slow.slowFor, cmd.slowFor)
	}
	if cmd.SlowFor(-1).slowFor != 0 {
		t.Error("a negative time")
	}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		cmd  Command
		want string
	}{
		{Cmd("GET", "k"), "k"}, {Cmd("mget", "a", "b"), "a"}, {Cmd("PING"), ""}, {Cmd("GET"), ""}, {Cmd("OBJECT", "ENCODING", "k"), "k"},
		{Cmd("EVAL", "return 1", 1, "k"), "k"}, {Cmd("EVAL", "return 1", 0), ""}, {Cmd("JSON.SET", "doc", "$", "1"), "doc"}, {Cmd("INFO", "server"), ""},
	} {
		if got := string(c.cmd.key()); got != c.want {
			t.Errorf("%v: key %q, want %q", c.cmd, got, c.want)
		}
	}
}

func TestClassification(t *testing.T) {
	for _, c := range []struct {
		cmd      Command
		readOnly bool
		why      string
	}{
		{Cmd("get", "k"), true, ""}, {Cmd("Set", "k", "v"), false, ""}, {Cmd("INCR", "k"), false, ""}, {Cmd("NOSUCH"), false, ""},
		{Cmd(strings.Repeat("X", 100)), false, ""}, {Cmd("CLIENT", "list"), true, ""}, {Cmd("CLIENT", "KILL", "ID", 3), false, ""}, {Cmd("CLIENT"), false, ""},
		{Cmd("object", "encoding", "k"), true, ""}, {Cmd("CONFIG", "SET", "a", "b"), false, ""}, {Cmd("EVAL_RO", "x", 0), true, ""}, {Cmd("EVAL", "x", 0), false, ""},
		{Cmd("blpop", "k", 0), false, whyBlocks}, {Cmd("WAIT", 1, 0), false, whyWaits}, {Cmd("MULTI"), false, whyTransaction},
		{Cmd("Select", 1), false, whyDatabase}, {Cmd("subscribe", "c"), false, whySubscribes}, {Cmd("CLIENT", "reply", "OFF"), false, whyState},
		{Cmd("client", "SetName", "x"), false, whyName}, {Cmd("SCRIPT", "DEBUG", "YES"), false, whyState}, {Cmd("SCRIPT", "LOAD", "x"), false, ""},
		{Cmd("XREAD", "STREAMS", "s", "0"), true, ""}, {Cmd("XREAD", "COUNT", 5, "block", 0, "STREAMS", "s", "$"), false, whyBlocks},
		{Cmd("XREAD", "STREAMS", "BLOCK", "0"), true, ""}, {Cmd("XREADGROUP", "GROUP", "BLOCK", "BLOCK", "STREAMS", "s", ">"), false, ""},
		{Cmd("XREADGROUP", "GROUP", "g", "c", "COUNT", 1, "BLOCK", 5, "STREAMS", "s", ">"), false, whyBlocks},
		{Cmd("CLIENT", "PAUSE", 100), false, whyStops}, {Cmd("CLIENT", "UNPAUSE"), false, ""}, {Cmd("quit"), false, whyQuit},
	} {
		if c.cmd.repeatable() != c.readOnly {
			t.Errorf("%v: repeatable %v", c.cmd, c.cmd.repeatable())
		}
		if err := c.cmd.unshared; c.why == "" && err != nil || c.why != "" && (!errors.Is(err, ErrShared) || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%v: %v, want %q", c.cmd, err, c.why)
		}
		if waits := c.why == whyBlocks; c.cmd.waits != waits {
			t.Errorf("%v: waits is %t, want %t", c.cmd, c.cmd.waits, waits)
		}
	}
	if Cmd("").err == nil {
		t.Error("a command without a name")
	}
}

func TestSlowCommands(t *testing.T) {
	for _, c := range []struct {
		cmd  Command
		want time.Duration
	}{
		{Cmd("GET", "k"), 0}, {Cmd("KEYS", "*"), 30 * time.Second}, {Cmd("eval", "x", 0), 5 * time.Second}, {Cmd("FLUSHALL"), 5 * time.Minute},
		{Cmd("DEBUG", "SLEEP", 2), 3 * time.Second}, {Cmd("DEBUG", "sleep", "0.5"), 750 * time.Millisecond}, {Cmd("DEBUG", "SLEEP", "NaN"), 0},
		{Cmd("DEBUG", "SLEEP", "-5"), 0}, {Cmd("DEBUG", "SLEEP", "1e300"), 1_500_000 * time.Second}, {Cmd("DEBUG", "SLEEP"), 0}, {Cmd("DEBUG", "JMAP"), 30 * time.Second},
	} {
		if c.cmd.slowFor != c.want {
			t.Errorf("%v: %v, want %v", c.cmd, c.cmd.slowFor, c.want)
		}
	}
}

// No name in the table may be longer than the longest one that a lookup supports.
func TestTableNames(t *testing.T) {
	seen := 0
	for name, in := range commands {
		seen++
		if len(name) > longestName || name != strings.ToUpper(name) || in.name != name {
			t.Errorf("%q: %q", name, in.name)
		}
		for sub, child := range in.subcommands {
			if len(sub) > longestName || sub != strings.ToUpper(sub) || child.name != name+" "+sub {
				t.Errorf("%q %q: %q", name, sub, child.name)
			}
		}
		if in.refusal != "" && in.flags&flagReadOnly != 0 {
			t.Errorf("%s is both refused and repeatable", name)
		}
	}
	if seen < 200 {
		t.Errorf("the table has only %d commands", seen)
	}
}

// TestTransactionIsWhole: every call of a transaction is marked as part of one.
func TestTransactionIsWhole(t *testing.T) {
	var b Batch
	b.Add(nil, Cmd("INCR", "k"))
	b.Add(nil, Cmd("BLPOP", "k", 0))
	framed, err := b.framed()
	if err != nil || len(framed) != 4 {
		t.Fatalf("%d commands, %v", len(framed), err)
	}
	for _, cmd := range framed {
		if !cmd.whole || cmd.unshared != nil {
			t.Errorf("%v: %+v", cmd, cmd)
		}
	}
}
