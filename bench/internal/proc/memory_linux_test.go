package proc

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestMemoryAndWrites(t *testing.T) {
	pid := os.Getpid()
	for name, read := range map[string]func(int) (int64, error){"RSSAnon": RSSAnon, "RSSFile": RSSFile} {
		if got, err := read(pid); err != nil || got < 100<<10 || got > 1<<40 {
			t.Errorf("%s: %d, %v", name, got, err)
		}
		if _, err := read(1 << 30); err == nil {
			t.Errorf("%s of a process that does not exist", name)
		}
	}
	before, err := WriteBytes(pid)
	if err != nil {
		t.Fatal(err)
	}
	const size = 3 << 20
	if err := os.WriteFile(filepath.Join(t.TempDir(), "file"), make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	after, err := WriteBytes(pid)
	if err != nil {
		t.Fatal(err)
	}
	// If the directory for temporary files is in memory, nothing is written to a device.
	if grown := after - before; grown != 0 && (grown < size || grown > 2*size) {
		t.Errorf("a file of %d bytes caused %d to be written", size, grown)
	}
	if _, err := lineOf("/proc/self/io", "nothing"); err == nil {
		t.Error("a line that does not exist was found")
	}
}

func TestCalls(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	before, err := Calls(0)
	if err != nil {
		t.Fatal(err)
	}
	const calls = 500
	for range calls {
		if _, err := w.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	after, err := Calls(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if grown := after - before; grown < 2*calls || grown > 2*calls+100 {
		t.Errorf("%d calls were counted, want %d", grown, 2*calls)
	}
	if _, err := Calls(1 << 30); err == nil {
		t.Error("calls of a process that does not exist")
	}
}

func TestReads(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	before, err := Reads(0)
	if err != nil {
		t.Fatal(err)
	}
	const reads = 500
	for range reads {
		if _, err := w.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	after, err := Reads(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if grown := after - before; grown < reads || grown > reads+100 {
		t.Errorf("%d reads were counted, want %d", grown, reads)
	}
}

func TestSleeps(t *testing.T) {
	before, err := Sleeps(0)
	if err != nil {
		t.Fatal(err)
	}
	const sleeps = 100
	for range sleeps {
		if err := syscall.Nanosleep(&syscall.Timespec{Nsec: 100_000}, nil); err != nil && err != syscall.EINTR {
			t.Fatal(err)
		}
	}
	after, err := Sleeps(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if grown := after - before; grown < sleeps*9/10 {
		t.Errorf("%d sleeps were counted, want %d", grown, sleeps)
	}
	if _, err := Sleeps(1 << 30); err == nil {
		t.Error("sleeps of a process that does not exist")
	}
}
