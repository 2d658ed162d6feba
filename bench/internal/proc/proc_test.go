//go:build unix

package proc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestFirstLineAndStop(t *testing.T) {
	p, err := Start([]string{"GREETING=hello"}, "sh", "-c", "echo $GREETING; echo more; exec sleep 60")
	if err != nil {
		t.Fatal(err)
	}
	line, err := p.FirstLine(t.Context())
	if err != nil || line != "hello" {
		t.Errorf("first line %q, %v", line, err)
	}
	started := time.Now()
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// If a server dies at its start, the reason must be reported immediately.
func TestDeathBeforeReady(t *testing.T) {
	p, err := Start(nil, "sh", "-c", "echo no such table >&2; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	err = p.Await(t.Context(), func(context.Context) error { return errors.New("connection refused") })
	if err == nil || !strings.Contains(err.Error(), "no such table") {
		t.Errorf("error %v, want what the program printed", err)
	}
	if err := p.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v, want the exit status", err)
	}
	if err := p.Stop(); err == nil {
		t.Error("stopping a server that had already ended returned no error")
	}
}

func TestAwaitGivesUp(t *testing.T) {
	p, err := Start(nil, "sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	notYet := errors.New("not yet")
	if err := p.Await(ctx, func(context.Context) error { return notYet }); !errors.Is(err, notYet) {
		t.Errorf("error %v, want the last answer of the check", err)
	}
	if _, err := p.FirstLine(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}
