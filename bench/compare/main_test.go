package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pages"
)

func TestMain(m *testing.M) {
	loadproc.Child(pages.Targets())
	os.Exit(m.Run())
}

func TestMistakesAreNamed(t *testing.T) {
	for _, name := range []string{"REF", "SUITE", "SCENARIO", "CALLERS"} {
		t.Setenv(name, "")
	}
	for want, args := range map[string][]string{
		"want -ref":                            nil,
		"no-such-commit":                       {"-ref", "no-such-commit"},
		"positive number":                      {"-ref", "HEAD", "-callers", "many"},
		`"hits" is not a scenario`:             {"-ref", "HEAD", "-scenario", "hits"},
		`"https" is not a suite`:               {"-ref", "HEAD", "-suite", "https"},
		`"none" callers`:                       {"-ref", "HEAD", "-scenario", "miss/none"},
		"flag provided but":                    {"-against", "HEAD"},
		`argument "HEAD"; expected only flags`: {"HEAD"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one that contains %q", args, err, want)
		}
	}
}

func TestChoice(t *testing.T) {
	for _, c := range []struct{ suites, scenarios, callers, want string }{
		{"", "memory-hit", "", "memory-hit/1 memory-hit/64 memory-hit/1024"},
		{"", "miss,redis-hit/7", "", "miss/1 miss/64 miss/1024 redis-hit/7"},
		{"", "miss", "1,4", "miss/1 miss/4"},
		{"http", "miss/64", "", "memory-hit/64 memory-hit/1024 memory-hit-p16/64 miss/64"},
		{"http", "", "2", "memory-hit/2 memory-hit-p16/2 miss/2"},
	} {
		chosen, err := choose(c.suites, c.scenarios, c.callers)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range chosen {
			names = append(names, s.name())
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%q and %q are %s, want %s", c.suites, c.scenarios, got, c.want)
		}
	}
	// The scenarios of every suite exist, and "all" selects all of them.
	all, err := choose("all", "", "")
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, s := range suites {
		want += len(s.scenarios)
	}
	if len(all) != want {
		t.Errorf("%d scenarios, want %d", len(all), want)
	}
}
