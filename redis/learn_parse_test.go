package redis

import (
	"fmt"
	"strings"
	"testing"
)

// infoReply is a reply to COMMAND INFO of one command, whose keys move if specs are given.
func infoReply(flags string, first, last, step int, specs ...string) string {
	words := strings.Fields(flags)
	var b strings.Builder
	fmt.Fprintf(&b, "*1\r\n*10\r\n$3\r\nx.y\r\n:-2\r\n*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&b, "+%s\r\n", word)
	}
	fmt.Fprintf(&b, ":%d\r\n:%d\r\n:%d\r\n*0\r\n*0\r\n*%d\r\n%s*0\r\n", first, last, step, len(specs), strings.Join(specs, ""))
	return b.String()
}

// spec is a key specification: its flags, how the search begins, and how keys are found.
func spec(flag, begin, find string) string {
	return fmt.Sprintf("*6\r\n$5\r\nflags\r\n*1\r\n+%s\r\n$12\r\nbegin_search\r\n%s$9\r\nfind_keys\r\n%s", flag, begin, find)
}

// how is a way to search or to find, with its numbers by name.
func how(kind string, fields ...any) string {
	s := fmt.Sprintf("*4\r\n$4\r\ntype\r\n$%d\r\n%s\r\n$4\r\nspec\r\n*%d\r\n", len(kind), kind, len(fields))
	for _, f := range fields {
		if text, ok := f.(string); ok {
			s += fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
		} else {
			s += fmt.Sprintf(":%d\r\n", f)
		}
	}
	return s
}

// TestKeysThatAServerDescribes: the keys of X.Y a b c d e, in which b is 2, by the reply to COMMAND INFO. What the reply
// does not say, or says in a way that no server does, is guessed: the first argument is the key.
//
// mutant: redis-learned-incomplete-keys, redis-learned-keys-out-of-range
func TestKeysThatAServerDescribes(t *testing.T) {
	const movable = "movablekeys"
	at := func(i int) string { return how("index", "index", i) }
	keys := func(last, step, limit int) string {
		return how("range", "lastkey", last, "keystep", step, "limit", limit)
	}
	counted := how("keynum", "keynumidx", 0, "firstkey", 1, "keystep", 1)
	one := keys(0, 1, 0)
	for name, test := range map[string]struct{ reply, want string }{
		"one key":                   {infoReply("write", 1, 1, 1), "a"},
		"another key":               {infoReply("write", 3, 3, 1), "c"},
		"step of one key":           {infoReply("write", 3, 3, 0), "c"},
		"all from the third":        {infoReply("write", 3, -1, 1), "c d e"},
		"every second":              {infoReply("write", 1, -1, 2), "a c e"},
		"none":                      {infoReply("fast", 0, 0, 0), ""},
		"keys that nobody sent":     {infoReply("write", 9, 9, 1), ""},
		"a number of keys":          {infoReply(movable, 0, 0, 0, spec("RO", at(2), counted)), "c d"},
		"the first and a number":    {infoReply(movable, 1, 1, 1, spec("RW", at(1), one), spec("RO", at(2), counted)), "a c d"},
		"up to the last but one":    {infoReply(movable, 1, 1, 1, spec("RW", at(2), keys(-2, 1, 0))), "2 c d"},
		"two":                       {infoReply(movable, 1, 1, 1, spec("RW", at(2), keys(1, 1, 0))), "2 c"},
		"what is known comes first": {infoReply(movable, 1, 1, 1, spec("RW", at(3), one), spec("RW", how("keyword", "keyword", "STORE", "startfrom", 4), one)), "c"},
		"a channel":                 {infoReply(movable, 1, 1, 1, spec("not_key", at(4), one)), "d"},
		// Guessed.
		"moving keys without a place": {infoReply(movable, 0, 0, 0), "guess a"},
		"incomplete":                  {infoReply(movable, 2, 2, 1, spec("incomplete", at(2), one)), "guess a"},
		"unknown":                     {infoReply(movable, 2, 2, 1, spec("RW", how("unknown"), how("unknown"))), "guess a"},
		"half of the arguments":       {infoReply(movable, 2, 2, 1, spec("RW", at(2), keys(-1, 1, 2))), "guess a"},
		"other numbers":               {infoReply(movable, 2, 2, 1, spec("RW", at(2), how("keynum", "keynumidx", 1, "firstkey", 2, "keystep", 1))), "guess a"},
		"old server":                  {"*1\r\n*6\r\n$3\r\nx.y\r\n:-2\r\n*1\r\n+movablekeys\r\n:0\r\n:0\r\n:0\r\n", "guess a"},
		"old server, two keys":        {"*1\r\n*6\r\n$3\r\nx.y\r\n:-2\r\n*1\r\n+write\r\n:2\r\n:3\r\n:1\r\n", "2 c"},
		"not known":                   {"*1\r\n*-1\r\n", "guess a"},
		"not known, protocol 3":       {"*1\r\n_\r\n", "guess a"},
		// Hostile.
		"first key far away":        {infoReply("write", 128, 128, 1), "guess a"},
		"first key before all":      {infoReply("write", -1, -1, 1), "guess a"},
		"last key before all":       {infoReply("write", 1, -128, 1), "guess a"},
		"last key far away":         {infoReply("write", 1, 1<<40, 1), "guess a"},
		"last before first":         {infoReply("write", 3, 1, 1), "guess a"},
		"no step":                   {infoReply("write", 1, -1, 0), "guess a"},
		"steps back":                {infoReply("write", 1, -1, -1), "guess a"},
		"long steps":                {infoReply("write", 1, -1, 1<<40), "guess a"},
		"index of great size":       {infoReply(movable, 0, 0, 0, spec("RO", at(1<<62), keys(1<<62, 1, 0))), "guess a"},
		"index before all":          {infoReply(movable, 0, 0, 0, spec("RO", at(-1<<62), keys(1<<62, 1, 0))), "guess a"},
		"the same key twice":        {infoReply(movable, 0, 0, 0, spec("RO", at(3), one), spec("RO", at(3), one)), "c"},
		"an earlier key later":      {infoReply(movable, 0, 0, 0, spec("RO", at(3), one), spec("RO", at(1), one)), "c"},
		"specs without end":         {infoReply(movable, 0, 0, 0, strings.Repeat(spec("RO", at(1), one), 1000)), "guess a"},
		"a number":                  {":1\r\n", "guess a"},
		"an error":                  {"*1\r\n-ERR x\r\n", "guess a"},
		"texts instead":             {"*1\r\n*6\r\n$1\r\nx\r\n$1\r\nx\r\n$1\r\nx\r\n$1\r\nx\r\n$1\r\nx\r\n$1\r\nx\r\n", "guess a"},
		"two commands":              {"*2\r\n*-1\r\n*-1\r\n", "guess a"},
		"flags by the thousand":     {infoReply(strings.Repeat("write ", 1000), 3, 3, 1), "c"},
		"flags by the ten thousand": {infoReply(strings.Repeat("write ", 10_000), 3, 3, 1), "guess a"},
	} {
		cmd := Cmd("X.Y", "a", 2, "c", "d", "e")
		cmd.learned(lessonOf([]byte(test.reply)))
		var got []string
		if cmd.info.guessed() {
			got = append(got, "guess")
		}
		keys := cmd.info.keysIn(cmd.frame)
		for from, to, ok := keys.next(); ok; from, to, ok = keys.next() {
			got = append(got, string(cmd.frame[from:to]))
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s: %q, want %q", name, text, test.want)
		}
		if first := strings.TrimPrefix(test.want, "guess "); string(cmd.key()) != strings.Split(first, " ")[0] {
			t.Errorf("%s: the first key is %q", name, cmd.key())
		}
	}
}

// TestSubcommandsThatAServerDescribes: each has keys of its own.
func TestSubcommandsThatAServerDescribes(t *testing.T) {
	sub := func(name string, first int) string {
		return fmt.Sprintf("*6\r\n$%d\r\n%s\r\n:2\r\n*0\r\n:%d\r\n:%d\r\n:1\r\n", len(name), name, first, first)
	}
	reply := "*1\r\n*10\r\n$1\r\nx\r\n:-2\r\n*0\r\n:0\r\n:0\r\n:0\r\n*0\r\n*0\r\n*0\r\n*4\r\n" + sub("x|get", 2) + sub("x|put", 3) + sub("odd", 1) + "*0\r\n"
	l := lessonOf([]byte(reply))
	for _, test := range []struct {
		args []any
		key  string
		safe bool
	}{
		{[]any{"GET", "a", "b"}, "a", true}, {[]any{"Put", "a", "b"}, "b", true}, {[]any{"NEW", "a", "b"}, "", false}, {nil, "", false},
	} {
		cmd := Cmd("X", test.args...)
		cmd.learned(l)
		if string(cmd.key()) != test.key || cmd.info.guessed() == test.safe {
			t.Errorf("%v: key %q, guessed: %t", test.args, cmd.key(), cmd.info.guessed())
		}
	}
}

// FuzzLesson: whatever a server says of a command, its keys are arguments of it.
func FuzzLesson(f *testing.F) {
	f.Add([]byte(infoReply("movablekeys", 1, 1, 1, spec("RW", how("index", "index", 1), how("keynum", "keynumidx", 0, "firstkey", 1, "keystep", 1)))))
	f.Add([]byte(infoReply("write blocking", 2, -1, 2)))
	f.Add([]byte("*1\r\n*-1\r\n"))
	f.Fuzz(func(t *testing.T, reply []byte) {
		l := lessonOf(reply)
		for _, args := range [][]any{nil, {"a"}, {"a", 3, "b", "c", "d"}, {"get", "a", 99999, "b"}} {
			cmd := Cmd("X.Y", args...)
			cmd.learned(l)
			keys, n := cmd.info.keysIn(cmd.frame), 0
			for from, to, ok := keys.next(); ok; from, to, ok = keys.next() {
				if n++; from < 0 || to < from || to > len(cmd.frame) || n > len(args) {
					t.Fatalf("key %d of %d arguments is at %d:%d", n, len(args), from, to)
				}
			}
			_ = cmd.key()
		}
	})
}
