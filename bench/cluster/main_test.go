package main

import (
	"os"
	"testing"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/redisload"
)

// Like the harness, the test program starts itself as the load process.
func TestMain(m *testing.M) {
	loadproc.Child(redisload.Targets())
	os.Exit(m.Run())
}
