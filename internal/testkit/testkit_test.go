package testkit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// probe is a testing.TB that records failures instead of failing, so that the failures of helpers
// can be tested. Its Fatal ends the goroutine that run has started.
type probe struct {
	testing.TB // the real test: TempDir, Context, Helper, Name

	failures []string
	logs     []string
	cleanups []func()
}

func (p *probe) Logf(format string, args ...any) {
	p.logs = append(p.logs, fmt.Sprintf(format, args...))
}
func (p *probe) Errorf(format string, args ...any) {
	p.failures = append(p.failures, fmt.Sprintf(format, args...))
}
func (p *probe) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	runtime.Goexit()
}
func (p *probe) Fatal(args ...any)      { p.Fatalf("%s", fmt.Sprint(args...)) }
func (p *probe) Failed() bool           { return len(p.failures) > 0 }
func (p *probe) Cleanup(f func())       { p.cleanups = append(p.cleanups, f) }
func (p *probe) failure() string        { return strings.Join(p.failures, "\n") }
func (p *probe) runCleanups()           { p.run(func() { p.popCleanups() }) }
func (p *probe) contains(s string) bool { return strings.Contains(p.failure(), s) }

func (p *probe) popCleanups() {
	for len(p.cleanups) > 0 {
		f := p.cleanups[len(p.cleanups)-1]
		p.cleanups = p.cleanups[:len(p.cleanups)-1]
		f()
	}
}

func (p *probe) run(f func()) {
	done := make(chan struct{})
	// Ends with f; waited for on the next line.
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func TestChooseSeed(t *testing.T) {
	for _, c := range []struct {
		flag, env string
		want      uint64
	}{{"7", "8", 7}, {"", "8", 8}, {"0x10", "", 16}, {"", "18446744073709551615", 1<<64 - 1}} {
		if got, err := chooseSeed(c.flag, c.env); err != nil || got != c.want {
			t.Errorf("chooseSeed(%q, %q) = %d, %v; want %d", c.flag, c.env, got, err, c.want)
		}
	}
	for _, bad := range []string{"-1", "x", "18446744073709551616"} {
		if _, err := chooseSeed("", bad); err == nil || !strings.Contains(err.Error(), SeedEnv) {
			t.Errorf("chooseSeed of %q: %v, want an error that names %s", bad, err, SeedEnv)
		}
	}
	a, _ := chooseSeed("", "")
	b, _ := chooseSeed("", "")
	if a == b {
		t.Errorf("two random seeds are both %d", a)
	}
}

func TestSeedIsPrintedAndReplays(t *testing.T) {
	t.Setenv(SeedEnv, "42")
	p := &probe{TB: t}
	var first, second uint64
	p.run(func() { first = Rand(p).Uint64(); second = Rand(p).Uint64() })
	if first != second {
		t.Errorf("the same seed gave %d and %d", first, second)
	}
	if Fork(42, 0).Uint64() == Fork(42, 1).Uint64() {
		t.Error("two forks of one seed yield the same number")
	}
	if len(p.logs) == 0 || p.logs[0] != "seed 42" {
		t.Errorf("logged %q, want the seed first", p.logs)
	}
	p.Errorf("planted failure")
	p.runCleanups()
	const want = `replay with: SLIPSTREAM_SEED=42 go test -count=1 -run '^TestSeedIsPrintedAndReplays$' ./internal/testkit`
	if got := p.logs[len(p.logs)-1]; got != want {
		t.Errorf("logged %q\nwant   %q", got, want)
	}
}

func TestSoakTime(t *testing.T) {
	t.Setenv(SoakEnv, "")
	if got := SoakTime(t, 2*time.Second); got != 2*time.Second {
		t.Errorf("without %s: %v, want the short time", SoakEnv, got)
	}
	t.Setenv(SoakEnv, "10m")
	if got := SoakTime(t, 2*time.Second); got != 10*time.Minute {
		t.Errorf("with 10m: %v", got)
	}
	for _, bad := range []string{"10", "-1s", "soon"} {
		t.Setenv(SoakEnv, bad)
		p := &probe{TB: t}
		p.run(func() { SoakTime(p, time.Second) })
		if !p.contains(bad) {
			t.Errorf("%s=%s: failure %q", SoakEnv, bad, p.failure())
		}
	}
}

func TestEventually(t *testing.T) {
	calls := 0
	Eventually(t, 10*time.Second, func() error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if calls != 3 {
		t.Errorf("%d calls, want 3", calls)
	}
	p := &probe{TB: t}
	p.run(func() { Eventually(p, 5*time.Millisecond, func() error { return errors.New("door shut") }) })
	if !p.contains("door shut") {
		t.Errorf("failure %q, want one that contains the last error", p.failure())
	}
}

func TestGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "x.golden")
	p := &probe{TB: t}
	p.run(func() { golden(p, path, []byte("a"), false) })
	if !p.contains("-update") {
		t.Errorf("missing file: %q, want how to create it", p.failure())
	}
	golden(t, path, []byte("one\ntwo\n"), true)
	golden(t, path, []byte("one\ntwo\n"), false)
	for _, c := range []struct{ got, want string }{
		{"one\n2\n", "line 2"}, {"one\n", "line 2"}, {"one\ntwo\nthree", "line 3"}, {"one\ntwo", "line 2"},
	} {
		p := &probe{TB: t}
		p.run(func() { golden(p, path, []byte(c.got), false) })
		if !p.contains(c.want) {
			t.Errorf("%q: failure %q, want one that contains %q", c.got, p.failure(), c.want)
		}
	}
}

func TestNoLeaksSeesGoroutineAndDescriptor(t *testing.T) {
	before := takeInventory()
	stop := make(chan struct{})
	defer close(stop)
	// Stopped by the deferred close; it is the leak to be found.
	go leakyForTest(stop)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	found := strings.Join(findLeaks(before, 20*time.Millisecond), "\n")
	if !strings.Contains(found, "leakyForTest") {
		t.Errorf("goroutine not found in:\n%s", found)
	}
	if _, err := os.Stat("/proc/self/fd"); err == nil && !strings.Contains(found, "-> socket:") {
		t.Errorf("listening socket not found in:\n%s", found)
	}
}

func leakyForTest(stop chan struct{}) { <-stop }

func TestNoLeaksWaitsForWhatIsEnding(t *testing.T) {
	p := &probe{TB: t}
	p.run(func() { NoLeaks(p) })
	// Ends within the patience of NoLeaks.
	go time.Sleep(50 * time.Millisecond)
	p.runCleanups()
	if p.Failed() {
		t.Error(p.failure())
	}
}

// If a descriptor number was closed and reused for another file, that file is a leak.
func TestCompareSeesReusedDescriptorNumber(t *testing.T) {
	before := inventory{descriptors: map[string]string{"3": "socket:[1]"}}
	now := inventory{descriptors: map[string]string{"3": "socket:[2]"}}
	if got := compare(before, now); len(got) != 1 || got[0] != "descriptor 3 -> socket:[2]" {
		t.Errorf("compare = %q", got)
	}
}
