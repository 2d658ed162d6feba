package proc

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestDescendants(t *testing.T) {
	p, err := Start(nil, "sh", "-c", "(sleep 60; true) & sleep 60; wait")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	var got []int
	for deadline := time.Now().Add(10 * time.Second); len(got) < 3 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if got, err = Descendants(p.PID()); err != nil {
			t.Fatal(err)
		}
	}
	// A shell with its sleep, and a sleep.
	if len(got) != 3 || slices.Contains(got, p.PID()) {
		t.Errorf("descendants of %d: %v, want 3 others", p.PID(), got)
	}
	for _, pid := range got {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
}
