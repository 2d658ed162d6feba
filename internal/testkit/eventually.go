package testkit

import (
	"testing"
	"time"
)

// Eventually calls cond until it returns nil, and fails the test with its last
// error when that takes longer than timeout. Cond runs on the calling goroutine.
func Eventually(t testing.TB, timeout time.Duration, cond func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	// The pause grows from 1 ms so that quick conditions cost nothing and slow
	// ones do not take a core from the program under test.
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := cond()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not true after %v: %v", timeout, err)
		}
		time.Sleep(pause)
	}
}
