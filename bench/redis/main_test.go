package main

import (
	"os"
	"testing"
)

// Like the harness, the test program starts itself as the load process and as the process for
// probes.
func TestMain(m *testing.M) {
	children()
	os.Exit(m.Run())
}
