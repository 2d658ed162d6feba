package redisclusters

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
)

// A cluster answers until it is stopped, and leaves no files outside its directory.
func TestStart(t *testing.T) {
	scratch := t.TempDir()
	c, err := Start(t.Context(), scratch, 3)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.PIDs()) != 3 || len(c.Addresses()) != 3 {
		t.Errorf("processes %v, addresses %v; want 3 of both", c.PIDs(), c.Addresses())
	}
	for _, address := range c.Addresses() {
		if err := redisserver.Ping(t.Context(), address); err != nil {
			t.Error(err)
		}
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	for _, address := range c.Addresses() {
		if redisserver.Ping(t.Context(), address) == nil {
			t.Errorf("%s answers after Stop", address)
		}
	}
}

// If a cluster cannot start, Start returns an error with the reason instead of ending the
// goroutine.
func TestStartFails(t *testing.T) {
	t.Setenv("SLIPSTREAM_REDIS", filepath.Join(t.TempDir(), "none"))
	if _, err := Start(t.Context(), t.TempDir(), 1); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("error %v", err)
	}
	t.Setenv("SLIPSTREAM_REDIS", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, t.TempDir(), 1); err == nil {
		t.Error("a cluster of an interrupted run")
	}
	if _, err := Start(t.Context(), string(os.PathSeparator)+"no such directory", 1); err == nil {
		t.Error("a cluster without a directory")
	}
}
