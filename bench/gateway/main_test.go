package main

import (
	"os"
	"testing"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
)

// Like the harness, the test program starts itself as the load process.
func TestMain(m *testing.M) {
	loadproc.Child()
	os.Exit(m.Run())
}
