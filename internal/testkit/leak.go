package testkit

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// leakPatience is how long NoLeaks waits for goroutines and descriptors that are about to end: the
// reader of a closed connection wakes up after some milliseconds, and later on a busy machine.
const leakPatience = 5 * time.Second

// NoLeaks fails the test if, when it ends, goroutines or descriptors exist that
// did not exist at the call. Call it first, so that its check runs after all
// other cleanups. It cannot be used in parallel tests, where it could not
// distinguish goroutines of other tests from leaks. On systems without /proc only
// goroutines are checked.
//
// Two things look like leaks but are not: io.Copy from socket to socket splices through pipes that
// package net keeps in a pool, and idle connections of http.DefaultClient stay open, so tests must
// use their own client and close it. No garbage collection is run, because it would also close
// leaked files.
func NoLeaks(t testing.TB) {
	t.Helper()
	// The first socket makes the runtime open its epoll and event descriptors,
	// which stay for the life of the process.
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close()
	}
	before := takeInventory()
	t.Cleanup(func() {
		t.Helper()
		if leaks := findLeaks(before, leakPatience); len(leaks) > 0 {
			t.Errorf("%d leaked:\n\n%s", len(leaks), strings.Join(leaks, "\n\n"))
		}
	})
}

// inventory holds the goroutines and descriptors of the process at one moment.
type inventory struct {
	goroutines  map[string]string // id -> stack
	descriptors map[string]string // number -> the file that it refers to
}

func takeInventory() inventory {
	return inventory{goroutines: goroutines(), descriptors: descriptors()}
}

// findLeaks returns a description of everything that exists now, did not exist before, and does not
// disappear within patience.
func findLeaks(before inventory, patience time.Duration) []string {
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		leaks := compare(before, takeInventory())
		if len(leaks) == 0 || time.Now().After(deadline) {
			return leaks
		}
		time.Sleep(pause)
	}
}

func compare(before, now inventory) []string {
	var leaks []string
	for _, id := range slices.Sorted(maps.Keys(now.goroutines)) {
		if _, known := before.goroutines[id]; !known {
			leaks = append(leaks, now.goroutines[id])
		}
	}
	for _, fd := range slices.Sorted(maps.Keys(now.descriptors)) {
		// The same number with another file is a new descriptor: the old one was closed in between.
		if before.descriptors[fd] != now.descriptors[fd] {
			leaks = append(leaks, fmt.Sprintf("descriptor %s -> %s", fd, now.descriptors[fd]))
		}
	}
	return leaks
}

var goroutineHeader = regexp.MustCompile(`^goroutine (\d+) `)

// harmless lists functions whose goroutines belong to the test binary or the runtime and live as
// long as the process.
var harmless = []string{
	"testing.(*T).Run(",      // a parent waiting for its sub-test
	"testing.tRunner.func",   // the runner of a test that is just ending
	"testing.runFuzzing(",    // fuzz coordinator
	"testing.(*F).Fuzz",      // fuzz worker
	"os/signal.signal_recv(", // started by the first signal.Notify, never ends
	"os/signal.loop(",        // the same, before it blocks
	"runtime.ensureSigM(",    // the same, in the runtime
}

// goroutines returns the stacks of all goroutines but the calling one.
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	all := make(map[string]string)
	for i, stack := range strings.Split(string(buf), "\n\n") {
		match := goroutineHeader.FindStringSubmatch(stack)
		if i == 0 || match == nil { // the first stack is the caller's
			continue
		}
		if !slices.ContainsFunc(harmless, func(f string) bool { return strings.Contains(stack, f) }) {
			all[match[1]] = strings.TrimSpace(stack)
		}
	}
	return all
}

// descriptors returns the file of each descriptor. The map is empty without /proc.
func descriptors() map[string]string {
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	open := make(map[string]string)
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // ReadDir's own descriptor, closed by now
		}
		open[e.Name()] = target
	}
	return open
}
