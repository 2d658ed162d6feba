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

// TestPropertiesAreThoseOfTheServer compares commands.txt with what Redis 8.0 states of its
// commands, and adds that to commands.txt with -update. It must not lack a command.
func TestPropertiesAreThoseOfTheServer(t *testing.T) {
	testkit.UseRedis8(t)
	version, facts := stated(t)
	got, other, lacking := withFacts(commands, facts)
	for command := range other {
		if !strings.Contains(command, ".") && !slices.Contains(notOfRedis8, command) {
			t.Errorf("%s is no command of the server", command)
		}
	}
	if !strings.HasPrefix(version, "8.0.") {
		t.Skipf("Redis %s is not the one that the table describes; it has further commands: %q", version, lacking)
	}
	if len(lacking) > 0 {
		t.Errorf("commands.txt lacks %q", lacking)
	}
	testkit.Golden(t, "../commands.txt", []byte(got))
}

// notOfRedis8 are commands of the table that Redis 8.0 does not have, or does not describe.
var notOfRedis8 = []string{"CLUSTERSCAN", "DEBUG SLEEP", "DELIFEQ"}

// olderStatements are the commands of which Redis 7.0 states something else: it does not call
// specifications inexact although they are, and tips were added and corrected later.
var olderStatements = []string{
	"ACL DELUSER", "ACL SAVE", "ACL SETUSER", "CLIENT SETNAME", "CONFIG RESETSTAT", "CONFIG REWRITE", "GEORADIUS", "GEORADIUSBYMEMBER", "LATENCY RESET",
	"MSETNX", "RANDOMKEY", "SCAN", "XREAD", "XREADGROUP",
}

// TestPropertiesAreThoseOfAnOlderServer: the table holds for Redis 7.0 too, except for what is
// listed.
func TestPropertiesAreThoseOfAnOlderServer(t *testing.T) {
	version, facts := stated(t)
	text, _, lacking := withFacts(commands, facts)
	if !strings.HasPrefix(version, "7.0.") {
		t.Skipf("Redis %s is not the one that this test is about", version)
	}
	if len(lacking) > 0 {
		t.Errorf("commands.txt lacks %q", lacking)
	}
	var differing []string
	got, want := strings.Split(text, "\n"), strings.Split(commands, "\n")
	for i := range got {
		if got[i] == want[i] {
			continue
		}
		command := strings.TrimSpace(strings.Split(want[i], "|")[1])
		differing = append(differing, command)
		if !slices.Contains(olderStatements, command) {
			t.Errorf("the server states %s\ninstead of %s", got[i], want[i])
		}
	}
	if slices.Sort(differing); !slices.Equal(differing, olderStatements) {
		t.Errorf("the server differs in %q, want %q", differing, olderStatements)
	}
}

// fact is what a server states of a command.
type fact struct {
	readOnly          bool
	keys              string // the property key, keys or channels; empty: there are none
	request, response string // the properties; empty: there are none
}

// stated returns the version of a new server, and what it states of its commands and subcommands.
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

// note notes a command and its subcommands.
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

// notation returns a key specification as commands.txt has it.
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
		return "", fmt.Errorf("a search that begins by %q", kind)
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

// has reports whether a list has a word.
func has(list redis.Value, word string) bool {
	return slices.ContainsFunc(list.Elems, func(v redis.Value) bool { return v.Text == word })
}

// withFacts returns the text of commands.txt with what a server states; the commands of which it
// states nothing; and those that the text lacks.
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

// added returns properties with those that the server states.
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
