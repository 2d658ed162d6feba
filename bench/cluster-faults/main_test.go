package main

import (
	"os"
	"testing"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
)

// The test program starts itself as the load process, as the command does.
func TestMain(m *testing.M) {
	loadproc.Child(targets())
	os.Exit(m.Run())
}
