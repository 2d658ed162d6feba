package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
)

func TestMain(m *testing.M) {
	loadproc.Child()
	os.Exit(m.Run())
}

func TestMistakesAreNamed(t *testing.T) {
	t.Setenv("REF", "")
	for want, args := range map[string][]string{
		"want -ref":         nil,
		"no-such-commit":    {"-ref", "no-such-commit"},
		"positive number":   {"-ref", "HEAD", "-callers", "many"},
		"redis-hit or miss": {"-ref", "HEAD", "-scenario", "hits"},
		"flag provided but": {"-against", "HEAD"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q in it", args, err, want)
		}
	}
}
