package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// TestProbe: a gateway without triggers is alive and not ready, one with them is both,
// and one that does not run is neither.
func TestProbe(t *testing.T) {
	file := blackbox.DemoFiles(t)
	blackbox.Expect(t, exitFailure, "", "slipstream: probe live: ", "probe", "live", "-c", file)
	testkit.Start(t, testkit.Command{Path: blackbox.Program(), Args: []string{"serve", "-c", file}})
	testkit.Eventually(t, 30*time.Second, func() error {
		if r := blackbox.Run(t, "probe", "live", "-c", file); r.Code != exitOK || r.Stdout != "live\n" {
			return errors.New(r.Stderr)
		}
		return nil
	})
	blackbox.Expect(t, exitFailure, "", "slipstream: probe ready: resource depts: ", "probe", "ready", "-c", file)
	blackbox.Expect(t, exitOK, "", "", "db", "apply", "-c", file)
	testkit.Eventually(t, 30*time.Second, func() error {
		if r := blackbox.Run(t, "probe", "ready", "-c", file); r.Code != exitOK {
			return errors.New(r.Stderr)
		}
		return nil
	})
}

// TestProbeOfSomethingElse: another server is distinguished from a gateway, and no proxy
// is used.
func TestProbeOfSomethingElse(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, r.URL.Path, http.StatusTeapot) }))
	defer s.Close()
	blackbox.Expect(t, exitFailure, "", "answers 418", "probe", "ready", "--admin", s.Listener.Addr().String())
	blackbox.Expect(t, exitUsage, "", "", "probe")
	blackbox.Expect(t, exitUsage, "", "", "probe", "awake")
	blackbox.Expect(t, exitUsage, "", "none.yaml", "probe", "live", "-c", "none.yaml")
}

func TestLocal(t *testing.T) {
	for address, want := range map[string]string{
		":9100": "localhost:9100", "0.0.0.0:9100": "localhost:9100", "[::]:9100": "localhost:9100",
		"127.0.0.1:9100": "127.0.0.1:9100", "[::1]:9100": "[::1]:9100", "ops.internal:9100": "ops.internal:9100", "9100": "9100",
	} {
		if got := local(address); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}
