package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// TestPropertiesAreThoseOfTheServer compares commands.txt with what Redis 8.0 reports about its
// commands, and adds that to commands.txt with -update. No command may be missing. Another version
// is compared as far as possible; see compareOther.
func TestPropertiesAreThoseOfTheServer(t *testing.T) {
	testkit.UseRedis8(t)
	version, facts := stated(t)
	got, other, lacking := withFacts(commands, facts)
	if !strings.HasPrefix(version, "8.0.") {
		compareOther(t, version, got, lacking)
		return
	}
	for command := range other {
		if !strings.Contains(command, ".") && !slices.Contains(notOfRedis8, command) {
			t.Errorf("%s is not a command of the server", command)
		}
	}
	if len(lacking) > 0 {
		t.Errorf("commands.txt lacks %q", lacking)
	}
	testkit.Golden(t, "../commands.txt", []byte(got))
}

// compareOther compares commands.txt with the report of a server that is neither Redis 7.0 nor 8.0.
// It reports an error if the server reports other keys for a command, or differs in whether the
// command reads, because calls are routed and retried by these properties. It ignores the commands
// for which 7.0 reports something else. Request and response tips vary between versions, and a
// client queries the server about commands that are not in the table, so these differences are only
// logged. The test is skipped in the end, with a message that says what was compared.
func compareOther(t *testing.T, version, got string, lacking []string) {
	t.Helper()
	var tips []string
	for command, d := range differences(got) {
		switch {
		case slices.Contains(olderStatements, command):
		case routing(d.server) != routing(d.table):
			t.Errorf("Redis %s reports %s\ninstead of %s", version, d.server, d.table)
		default:
			tips = append(tips, command)
		}
	}
	slices.Sort(tips)
	t.Skipf("the test describes Redis 7.0 and 8.0. For Redis %s, only keys and reading were compared; its tips differ for %q, and the table lacks %q. "+
		"To describe this version, let TestPropertiesAreThoseOfTheServer expect it, run it with -update and review commands.txt", version, tips, lacking)
}

// routing returns the properties of a line of commands.txt without the tips for several servers.
func routing(line string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(line), func(property string) bool {
		return strings.HasPrefix(property, "request:") || strings.HasPrefix(property, "response:")
	}), " ")
}

// difference is a line of commands.txt, as reported by a server and as it is.
type difference struct{ server, table string }

// differences returns the lines of commands.txt for which a server reports something else, by
// command.
func differences(got string) map[string]difference {
	all := make(map[string]difference)
	server, table := strings.Split(got, "\n"), strings.Split(commands, "\n")
	for i := range server {
		if server[i] != table[i] {
			all[strings.TrimSpace(strings.Split(table[i], "|")[1])] = difference{server[i], table[i]}
		}
	}
	return all
}

// notOfRedis8 are commands of the table that Redis 8.0 does not have, or does not describe.
var notOfRedis8 = []string{"CLUSTERSCAN", "DEBUG SLEEP", "DELIFEQ"}

// olderStatements are the commands for which Redis 7.0 reports something else: it does not mark
// some inexact specifications as inexact, and tips were added and corrected later.
var olderStatements = []string{
	"ACL DELUSER", "ACL SAVE", "ACL SETUSER", "CLIENT SETNAME", "CONFIG RESETSTAT", "CONFIG REWRITE", "GEORADIUS", "GEORADIUSBYMEMBER", "LATENCY RESET",
	"MSETNX", "RANDOMKEY", "SCAN", "XREAD", "XREADGROUP",
}

// TestPropertiesAreThoseOfAnOlderServer: the table is also correct for Redis 7.0, except for the
// listed commands.
func TestPropertiesAreThoseOfAnOlderServer(t *testing.T) {
	version, facts := stated(t)
	text, _, lacking := withFacts(commands, facts)
	if !strings.HasPrefix(version, "7.0.") {
		compareOther(t, version, text, lacking)
		return
	}
	if len(lacking) > 0 {
		t.Errorf("commands.txt lacks %q", lacking)
	}
	differing := differences(text)
	for command, d := range differing {
		if !slices.Contains(olderStatements, command) {
			t.Errorf("the server reports %s\ninstead of %s", d.server, d.table)
		}
	}
	for _, command := range olderStatements {
		if _, differs := differing[command]; !differs {
			t.Errorf("the server does not differ in %s", command)
		}
	}
}

// TestOtherVersionsAreCompared: for a server of another version, different keys are an error, and
// different tips are not.
func TestOtherVersionsAreCompared(t *testing.T) {
	for _, test := range []struct {
		old, new string
		same     bool
	}{
		{"GET | reads key:1", "GET | reads key:1", true},
		{"GET | reads key:1", "GET | reads key:1 request:all_nodes response:agg_sum", true},
		{"GET | reads key:1", "GET | reads key:2", false},
		{"GET | reads key:1", "GET | key:1", false},
	} {
		if same := routing(test.old) == routing(test.new); same != test.same {
			t.Errorf("%q and %q: the same for routing: %t", test.old, test.new, same)
		}
	}
}

// fact is what a server reports about a command.
type fact struct {
	readOnly          bool
	keys              string // the property key, keys or channels; empty if there are none
	request, response string // the properties; empty if there are none
}

// stated returns the version of a new server, and what it reports about its commands and
// subcommands.
func stated(t *testing.T) (version string, facts map[string]fact) {
	t.Helper()
	testkit.NoLeaks(t)
	client, err := redis.Connect(t.Context(), redis.Options{Addr: testkit.StartRedis(t).Addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	info, err := client.Info(t.Context(), "server")
	if err != nil {
		t.Fatal(err)
	}
	var list []redis.Value
	if err := client.Do(t.Context(), &list, redis.Cmd("COMMAND")); err != nil {
		t.Fatal(err)
	}
	facts = make(map[string]fact)
	for _, v := range list {
		note(t, facts, v)
	}
	if len(facts) < 300 {
		t.Fatalf("the server has only %d commands", len(facts))
	}
	return regexp.MustCompile(`redis_version:(\S+)`).FindStringSubmatch(info)[1], facts
}

// note records a command and its subcommands.
func note(t *testing.T, facts map[string]fact, command redis.Value) {
	t.Helper()
	name := strings.ReplaceAll(strings.ToUpper(command.Elems[0].Text), "|", " ")
	f := fact{readOnly: has(command.Elems[2], "readonly")}
	for _, tip := range command.Elems[7].Elems {
		if value, ok := strings.CutPrefix(tip.Text, "request_policy:"); ok {
			f.request = "request:" + value
		}
		if value, ok := strings.CutPrefix(tip.Text, "response_policy:"); ok {
			f.response = "response:" + value
		}
	}
	var specs []string
	channels := 0
	for _, spec := range command.Elems[8].Elems {
		text, err := notation(spec)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		specs = append(specs, text)
		if has(field(spec, "flags"), "not_key") {
			channels++
		}
	}
	switch {
	case channels == 0 && len(specs) == 1 && len(specs[0]) == 1:
		f.keys = "key:" + specs[0]
	case channels == 0 && len(specs) > 0:
		f.keys = "keys:" + strings.Join(specs, ",")
	case channels > 0 && channels == len(specs):
		f.keys = "channels:" + strings.Join(specs, ",")
	case channels > 0:
		t.Errorf("%s has keys and channels", name)
	}
	facts[name] = f
	for _, sub := range command.Elems[9].Elems {
		note(t, facts, sub)
	}
}

// notation returns a key specification in the notation of commands.txt.
func notation(spec redis.Value) (string, error) {
	begin, find := field(spec, "begin_search"), field(spec, "find_keys")
	number := func(v redis.Value, name string) int { return int(field(field(v, "spec"), name).Int) }
	text, base := "", 0
	switch kind := field(begin, "type").Text; kind {
	case "index":
		base = number(begin, "index")
		text = fmt.Sprint(base)
	case "keyword":
		text = fmt.Sprintf("%s@%d", field(field(begin, "spec"), "keyword").Text, number(begin, "startfrom"))
	case "unknown":
		return "?", nil
	default:
		return "", fmt.Errorf("a search that starts by %q", kind)
	}
	switch kind := field(find, "type").Text; kind {
	case "range":
		if last := number(find, "lastkey"); last < 0 {
			text += fmt.Sprintf("..%d", last)
		} else if last > 0 {
			text += fmt.Sprintf("..%d", base+last)
		}
		if step := number(find, "keystep"); step > 1 {
			text += fmt.Sprintf("/%d", step)
		}
		if limit := number(find, "limit"); limit > 1 {
			text += fmt.Sprintf("%%%d", limit)
		}
	case "keynum":
		if number(find, "keynumidx") != 0 || number(find, "firstkey") != 1 || number(find, "keystep") != 1 {
			return "", fmt.Errorf("%+v is not a number and keys after it", find)
		}
		text = "#" + text
	default:
		return "", fmt.Errorf("keys that are found by %q", kind)
	}
	if has(field(spec, "flags"), "incomplete") {
		text += "!"
	}
	return text, nil
}

// field returns a field of a map.
func field(v redis.Value, name string) redis.Value {
	for i := 0; i+1 < len(v.Elems); i += 2 {
		if v.Elems[i].Text == name {
			return v.Elems[i+1]
		}
	}
	return redis.Value{}
}

// has reports whether a list contains a word.
func has(list redis.Value, word string) bool {
	return slices.ContainsFunc(list.Elems, func(v redis.Value) bool { return v.Text == word })
}

// withFacts returns commands.txt with what a server reports, the commands about which the server
// reports nothing, and the commands that are missing in the text.
func withFacts(text string, facts map[string]fact) (with string, other map[string]bool, lacking []string) {
	lines := strings.Split(text, "\n")
	seen := make(map[string]bool)
	other = make(map[string]bool)
	for i, line := range lines {
		columns := strings.SplitN(line, "|", 4)
		if strings.HasPrefix(line, "#") || len(columns) < 3 {
			continue
		}
		command := strings.TrimSpace(columns[1])
		f, known := facts[command]
		if !known {
			other[command] = true
		}
		if !known || seen[command] {
			continue
		}
		seen[command] = true
		columns[2] = " " + f.added(columns[2])
		if len(columns) > 3 {
			columns[2] = strings.TrimRight(columns[2], " ") + " "
		}
		lines[i] = strings.TrimRight(strings.Join(columns, "|"), " ")
	}
	for command := range facts {
		isParent := slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "| "+command+" ") })
		if !seen[command] && !isParent {
			lacking = append(lacking, command)
		}
	}
	slices.Sort(lacking)
	return strings.Join(lines, "\n"), other, lacking
}

// added returns the properties with those that the server reports.
func (f fact) added(properties string) string {
	var head, options, rest []string
	for _, property := range strings.Fields(properties) {
		switch name, _, _ := strings.Cut(property, ":"); name {
		case "reads", "local", "key", "keys", "channels", "request", "response":
		case "options":
			options = append(options, property)
		default:
			rest = append(rest, property)
		}
	}
	reads := slices.Contains(strings.Fields(properties), "reads")
	switch {
	case f.readOnly:
		head = append(head, "reads")
	case reads:
		head = append(head, "reads", "local")
	}
	all := slices.Concat(head, []string{f.keys}, options, rest, []string{f.request, f.response})
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), " ")
}
