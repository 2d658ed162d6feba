package main

import (
	"os"
	"testing"
)

// The test program starts itself as the load process and as the one for probes,
// as the harness does.
func TestMain(m *testing.M) {
	children()
	os.Exit(m.Run())
}
