package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
)

func TestMain(m *testing.M) {
	loadproc.Child(targets())
	os.Exit(m.Run())
}

func TestLoads(t *testing.T) {
	o, err := parse([]string{"-load", "null", "-other", "/old"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range o.loads("") {
		names = append(names, l.name)
		if old := strings.HasSuffix(l.name, "other"); old != (l.spec.Program == "/old") {
			t.Errorf("%s runs %q", l.name, l.spec.Program)
		}
	}
	if got, want := strings.Join(names, ", "), "null open this, null open other, null closed this, null closed other"; got != want {
		t.Errorf("loads %s, want %s", got, want)
	}
}

func TestTheTableHasEveryLoad(t *testing.T) {
	o := options{rate: 2000, callers: 4, rounds: 1, duration: 50 * time.Millisecond, process: "poisson", only: "null"}
	loads := o.loads("")
	m, err := o.measure(t.Context(), loads, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := m.write(&out, loads); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	open, closed := strings.Fields(lines[1]), strings.Fields(lines[2])
	if len(lines) != 5 || len(open) != 3+len(columns)+1 || open[6] == "-" || closed[6] != "-" {
		t.Errorf("table\n%s", &out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if m, err := o.measure(ctx, loads, io.Discard); !errors.Is(err, context.Canceled) || len(m) != 0 || m.write(io.Discard, loads) != nil {
		t.Errorf("%v, %d loads of an interrupted run", err, len(m))
	}
}
