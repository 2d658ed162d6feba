package redis

import (
	"fmt"
	"strings"
	"testing"
)

// infoReply returns a reply to COMMAND INFO for one command with the given key specifications.
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

// spec returns a key specification: its flag, where the search for keys starts, and how keys are found.
func spec(flag, begin, find string) string {
	return fmt.Sprintf("*6\r\n$5\r\nflags\r\n*1\r\n+%s\r\n$12\r\nbegin_search\r\n%s$9\r\nfind_keys\r\n%s", flag, begin, find)
}

// how returns a begin_search or find_keys of a key specification, with its numbers by name.
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

// TestKeysThatAServerDescribes: the reply to COMMAND INFO says which arguments of X.Y a 2 c d e are keys.
// If the reply does not say, or is malformed, the client guesses that the first argument is the key.
//
// mutant: redis-lookup-incomplete-keys, redis-lookup-keys-out-of-range
func TestKeysThatAServerDescribes(t *testing.T) {
	const movable = "movablekeys"
	at := func(i int) string { return how("index", "index", i) }
	keys := func(last, step, limit int) string {
		return how("range", "lastkey", last, "keystep", step, "limit", limit)
	}
	counted := how("keynum", "keynumidx", 0, "firstkey", 1, "keystep", 1)
	one := keys(0, 1, 0)
	for name, test := range map[string]struct{ reply, want string }{
		"one key":                  {infoReply("write", 1, 1, 1), "a"},
		"another key":              {infoReply("write", 3, 3, 1), "c"},
		"step of one key":          {infoReply("write", 3, 3, 0), "c"},
		"all from the third":       {infoReply("write", 3, -1, 1), "c d e"},
		"every second":             {infoReply("write", 1, -1, 2), "a c e"},
		"no keys":                  {infoReply("fast", 0, 0, 0), ""},
		"a key past the arguments": {infoReply("write", 9, 9, 1), ""},
		"a number of keys":         {infoReply(movable, 0, 0, 0, spec("RO", at(2), counted)), "c d"},
		"the first and a number":   {infoReply(movable, 1, 1, 1, spec("RW", at(1), one), spec("RO", at(2), counted)), "a c d"},
		"up to the last but one":   {infoReply(movable, 1, 1, 1, spec("RW", at(2), keys(-2, 1, 0))), "2 c d"},
		"two keys":                 {infoReply(movable, 1, 1, 1, spec("RW", at(2), keys(1, 1, 0))), "2 c"},
		"only the first is exact":  {infoReply(movable, 1, 1, 1, spec("RW", at(3), one), spec("RW", how("keyword", "keyword", "STORE", "startfrom", 4), one)), "c"},
		"a channel":                {infoReply(movable, 1, 1, 1, spec("not_key", at(4), one)), "d"},
		// Guessed.
		"movable keys, no specs": {infoReply(movable, 0, 0, 0), "guess a"},
		"incomplete":             {infoReply(movable, 2, 2, 1, spec("incomplete", at(2), one)), "guess a"},
		"unknown":                {infoReply(movable, 2, 2, 1, spec("RW", how("unknown"), how("unknown"))), "guess a"},
		"half of the arguments":  {infoReply(movable, 2, 2, 1, spec("RW", at(2), keys(-1, 1, 2))), "guess a"},
		"other numbers":          {infoReply(movable, 2, 2, 1, spec("RW", at(2), how("keynum", "keynumidx", 1, "firstkey", 2, "keystep", 1))), "guess a"},
		"old server":             {"*1\r\n*6\r\n$3\r\nx.y\r\n:-2\r\n*1\r\n+movablekeys\r\n:0\r\n:0\r\n:0\r\n", "guess a"},
		"old server, two keys":   {"*1\r\n*6\r\n$3\r\nx.y\r\n:-2\r\n*1\r\n+write\r\n:2\r\n:3\r\n:1\r\n", "2 c"},
		"not known":              {"*1\r\n*-1\r\n", "guess a"},
		"not known, protocol 3":  {"*1\r\n_\r\n", "guess a"},
		// Hostile.
		"first key far away":   {infoReply("write", 128, 128, 1), "guess a"},
		"negative first key":   {infoReply("write", -1, -1, 1), "guess a"},
		"negative last key":    {infoReply("write", 1, -128, 1), "guess a"},
		"last key far away":    {infoReply("write", 1, 1<<40, 1), "guess a"},
		"last before first":    {infoReply("write", 3, 1, 1), "guess a"},
		"no step":              {infoReply("write", 1, -1, 0), "guess a"},
		"negative step":        {infoReply("write", 1, -1, -1), "guess a"},
		"long steps":           {infoReply("write", 1, -1, 1<<40), "guess a"},
		"huge index":           {infoReply(movable, 0, 0, 0, spec("RO", at(1<<62), keys(1<<62, 1, 0))), "guess a"},
		"negative index":       {infoReply(movable, 0, 0, 0, spec("RO", at(-1<<62), keys(1<<62, 1, 0))), "guess a"},
		"the same key twice":   {infoReply(movable, 0, 0, 0, spec("RO", at(3), one), spec("RO", at(3), one)), "c"},
		"an earlier key later": {infoReply(movable, 0, 0, 0, spec("RO", at(3), one), spec("RO", at(1), one)), "c"},
		"a thousand specs":     {infoReply(movable, 0, 0, 0, strings.Repeat(spec("RO", at(1), one), 1000)), "guess a"},
		"a number":             {":1\r\n", "guess a"},
		"an error":             {"*1\r\n-ERR x\r\n", "guess a"},
		"strings, not numbers": {"*1\r\n*6\r\n$1\r\nx\r\n$1\r\nx\r\n$1\r\nx\r\n$1\r\nx\r\n$1\r\nx\r\n$1\r\nx\r\n", "guess a"},
		"two commands":         {"*2\r\n*-1\r\n*-1\r\n", "guess a"},
		"a thousand flags":     {infoReply(strings.Repeat("write ", 1000), 3, 3, 1), "c"},
		"ten thousand flags":   {infoReply(strings.Repeat("write ", 10_000), 3, 3, 1), "guess a"},
	} {
		cmd := Cmd("X.Y", "a", 2, "c", "d", "e")
		cmd.applyDetails(parseCommandDetails([]byte(test.reply)))
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

// TestSubcommandsThatAServerDescribes: each subcommand has its own keys.
func TestSubcommandsThatAServerDescribes(t *testing.T) {
	sub := func(name string, first int) string {
		return fmt.Sprintf("*6\r\n$%d\r\n%s\r\n:2\r\n*0\r\n:%d\r\n:%d\r\n:1\r\n", len(name), name, first, first)
	}
	reply := "*1\r\n*10\r\n$1\r\nx\r\n:-2\r\n*0\r\n:0\r\n:0\r\n:0\r\n*0\r\n*0\r\n*0\r\n*4\r\n" + sub("x|get", 2) + sub("x|put", 3) + sub("odd", 1) + "*0\r\n"
	details := parseCommandDetails([]byte(reply))
	for _, test := range []struct {
		args []any
		key  string
		safe bool
	}{
		{[]any{"GET", "a", "b"}, "a", true}, {[]any{"Put", "a", "b"}, "b", true}, {[]any{"NEW", "a", "b"}, "", false}, {nil, "", false},
	} {
		cmd := Cmd("X", test.args...)
		cmd.applyDetails(details)
		if string(cmd.key()) != test.key || cmd.info.guessed() == test.safe {
			t.Errorf("%v: key %q, guessed: %t", test.args, cmd.key(), cmd.info.guessed())
		}
	}
}

// FuzzCommandDetails: whatever a server reports about a command, the keys that are found are among
// its arguments.
func FuzzCommandDetails(f *testing.F) {
	f.Add([]byte(infoReply("movablekeys", 1, 1, 1, spec("RW", how("index", "index", 1), how("keynum", "keynumidx", 0, "firstkey", 1, "keystep", 1)))))
	f.Add([]byte(infoReply("write blocking", 2, -1, 2)))
	f.Add([]byte("*1\r\n*-1\r\n"))
	f.Fuzz(func(t *testing.T, reply []byte) {
		details := parseCommandDetails(reply)
		for _, args := range [][]any{nil, {"a"}, {"a", 3, "b", "c", "d"}, {"get", "a", 99999, "b"}} {
			cmd := Cmd("X.Y", args...)
			cmd.applyDetails(details)
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
