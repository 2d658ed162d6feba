package disk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A file that is open elsewhere is not touched, and opening it returns an error that names
// the process; once that process has ended in any way, the file is free.
func TestFileHeldByAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	tier := openTier(t, dir, nil)
	tier.Put(key("a"), document("a", 1))
	tier.Checkpoint(at(5))
	expectHeld := func(pid int) {
		t.Helper()
		began := time.Now()
		second, err := Open(Options{Dir: dir, Budget: MinBudget})
		if err == nil {
			second.Close()
		}
		held, is := errors.AsType[*HeldError](err)
		if !is || held.PID != pid || !strings.Contains(err.Error(), fmt.Sprintf("is open in process %d;", pid)) {
			t.Errorf("%v; want an error that process %d holds the file", err, pid)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the error came after %v", took)
		}
	}
	expectHeld(os.Getpid())
	holds(t, tier, "a", "a")
	tier.Close()
	other := testkit.Start(t, child("hold", dir, 0))
	testkit.Eventually(t, 20*time.Second, func() error {
		if log := other.Log(); log != "held\n" {
			return fmt.Errorf("the other process: %q", log)
		}
		return nil
	})
	expectHeld(other.PID())
	if _, err := Inspect(dir); !errors.As(err, new(*HeldError)) {
		t.Errorf("inspect: %v", err)
	}
	other.Kill()
	tier = openTier(t, dir, nil)
	holds(t, tier, "a", "a")
}

// A user that may not write to the directory or the file gets that error, and the file is
// not changed.
func TestDirectoryThatCannotBeWritten(t *testing.T) {
	parent, err := os.MkdirTemp("", "slipstream-disk-") // which every user can enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.Chmod(parent, 0o700)
		os.RemoveAll(parent)
	})
	dir := filepath.Join(parent, "tier")
	tier := openTier(t, dir, nil)
	tier.Put(key("a"), document("a", 1))
	tier.Checkpoint(at(5))
	tier.Close()
	path := filepath.Join(dir, FileName)
	program := filepath.Join(parent, "program")
	text, err := os.ReadFile(child("open", dir, 0).Path)
	if err == nil {
		err = os.WriteFile(program, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(parent, "empty")
	for _, c := range []struct {
		name string
		dir  string
		make func() error
	}{
		{"a directory that is not there and cannot be made", filepath.Join(parent, "none"), func() error { return os.Chmod(parent, 0o555) }},
		{"a directory that cannot be written", empty, func() error {
			return errors.Join(os.Chmod(parent, 0o755), os.Mkdir(empty, 0o555), os.Chmod(parent, 0o555))
		}},
		{"a file that cannot be written", dir, func() error { return errors.Join(os.Chmod(dir, 0o555), os.Chmod(path, 0o444)) }},
	} {
		if err := c.make(); err != nil {
			t.Fatal(err)
		}
		command := child("open", c.dir, 0)
		cmd := exec.Command(program)
		cmd.Dir = parent
		cmd.Env = command.Env
		cmd.SysProcAttr = asNobody()
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "permission denied") || !strings.Contains(string(out), "this user must be able to write to") {
			t.Errorf("%s: %v, %s", c.name, err, out)
		}
	}
	if err := errors.Join(os.Chmod(parent, 0o700), os.Chmod(dir, 0o700), os.Chmod(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	tier = openTier(t, dir, nil)
	holds(t, tier, "a", "a")
}
