package testkit

import (
	"os"
	"testing"
)

// InMatrix reports whether make matrix runs the tests, which may take as long as they need.
func InMatrix() bool { return os.Getenv("SLIPSTREAM_MATRIX") != "" }

// OnlyInMatrix skips a test in make test, where tests of servers that change roles for ten seconds would take too much
// of its time.
func OnlyInMatrix(t testing.TB) {
	t.Helper()
	if !InMatrix() {
		t.Skip("it takes long, so only make matrix runs it (SLIPSTREAM_MATRIX=1)")
	}
}
