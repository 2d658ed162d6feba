package gateway_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

const withDisk = deptResource + `
tiers: { memory: 16MiB, disk: { path: tier, size: 64MiB } }
`

func (a answer) fromDisk() bool {
	return a.head.Get("Cache-Status") == "slipstream; hit; detail=disk"
}

// stop drains the gateway; the cleanup of the test may do it again.
func (s *served) stop() {
	s.t.Helper()
	s.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.gateway.Shutdown(ctx); err != nil {
		s.t.Errorf("shutdown: %v", err)
	}
}

// again starts another gateway after one was stopped.
func (s *served) again() *served {
	s.t.Helper()
	next := serve(s.t, s.config)
	next.awaitReady()
	return next
}

func diskConfig(t *testing.T, path string) *config.Config {
	t.Helper()
	cfg := configure(t, path, withDisk)
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// Documents are served from disk after a restart, except those that changed while the gateway
// was down.
func TestDiskTierOverARestart(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead, company)
	s := serve(t, diskConfig(t, path))
	s.awaitReady()
	for i := range 300 {
		s.get(fmt.Sprintf("/depts/%d", i+1))
	}
	s.stop()
	write(t, path, "UPDATE emp SET ename = 'changed while down' WHERE deptno = 7")
	s = s.again()
	hits := 0
	for i := range 300 {
		a := s.get(fmt.Sprintf("/depts/%d", i+1))
		if i+1 != 7 && (a.fromDisk() || a.hit()) { // the warm-up may have loaded it first
			hits++
		}
		if i+1 == 7 && (a.fromDisk() || !strings.Contains(a.body, "changed while down")) {
			t.Errorf("what changed meanwhile: %v", a)
		}
		if i+1 != 7 && !strings.Contains(a.body, fmt.Sprintf("emp of %d", i+1)) {
			t.Errorf("%d: %v", i+1, a)
		}
	}
	if hits != 299 {
		t.Errorf("%d of 299 from disk", hits)
	}
	if f := s.gateway.Stats().Resources[0]; f.Loaded != 1 {
		t.Errorf("%d documents were loaded", f.Loaded)
	}
	if a := s.get("/depts/8"); !a.hit() {
		t.Errorf("the second time: %v", a)
	}
	committed := write(t, path, "UPDATE emp SET ename = 'changed later' WHERE deptno = 8")
	s.expectChange("/depts/8", "changed later", committed)
	s.stop()
	s = s.again()
	if a := s.get("/depts/8"); !strings.Contains(a.body, "changed later") {
		t.Errorf("after another restart: %v", a)
	}
	info, err := os.Stat(filepath.Join(filepath.Dir(path), "tier", "documents.bbolt"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// Another database at the same path has none of the documents, even if it looks the same.
func TestDiskTierOfAnotherDatabase(t *testing.T) {
	for _, changes := range []bool{false, true} {
		path := newDatabase(t, writeAhead, company)
		s := serve(t, diskConfig(t, path))
		s.awaitReady()
		if changes {
			write(t, path, "UPDATE dept SET dname = 'x' WHERE deptno = 300")
		}
		s.cached("/depts/7")
		s.stop()
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(path + suffix); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
		createDatabase(t, path, writeAhead, company, "UPDATE emp SET ename = 'of another' WHERE deptno = 7")
		if err := gateway.ApplyTriggers(t.Context(), s.config, gateway.DatabaseOptions{}); err != nil {
			t.Fatal(err)
		}
		if changes {
			write(t, path, "UPDATE dept SET dname = 'x' WHERE deptno = 300")
		}
		s = s.again()
		if a := s.get("/depts/7"); a.fromDisk() || !strings.Contains(a.body, "of another") {
			t.Errorf("changes %v: %v", changes, a)
		}
		s.stop()
	}
}

// Another definition of a resource drops its documents and no others.
func TestDiskTierOfAnotherDefinition(t *testing.T) {
	path := newDatabase(t, writeAhead, company)
	cfg := configure(t, path, withDisk+`
`)
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg)
	s.awaitReady()
	s.cached("/depts/7")
	s.stop()
	cfg = configure(t, path, strings.Replace(withDisk, "columns: [empno, ename]", "columns: [ename]", 1))
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	s = serve(t, cfg)
	s.awaitReady()
	if a := s.get("/depts/7"); a.fromDisk() || strings.Contains(a.body, "empno") {
		t.Errorf("%v", a)
	}
}
