package gateway_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

func shutdown(t *testing.T, g *gateway.Gateway) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return g.Shutdown(ctx)
}

// TestShutdownDrains: a request that waits for its load is answered, new
// connections are refused, operators can watch, and nothing is left.
func TestShutdownDrains(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, rollbackJournal+company)
	s := serveReady(t, path, deptResource)
	s.cached("/depts/1")
	// An idle connection does not delay the drain, and is closed.
	idle, err := net.Dial("tcp", s.gateway.AdminAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if _, err := io.WriteString(idle, "GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	_, release := lock(t, path)
	slow := make(chan answer)
	go func() { // ends with its answer, awaited below
		a, err := s.try(t.Context(), http.MethodGet, s.http+"/depts/2")
		if err != nil {
			t.Error(err)
		}
		slow <- a
	}()
	s.awaitMetric("slipstream_loads_in_flight", 1)
	drained := make(chan error)
	go func() { drained <- shutdown(t, s.gateway) }() // ends within patience, awaited below
	testkit.Eventually(t, patience, func() error {
		c, err := net.Dial("tcp", s.gateway.HTTPAddr().String())
		if err == nil {
			c.Close()
			return errors.New("still accepting")
		}
		return nil
	})
	if a := s.do(http.MethodGet, s.admin+"/live"); a.status != 200 {
		t.Errorf("/live while draining: %v", a)
	}
	select {
	case err := <-drained:
		t.Fatalf("drained (%v) before its request was answered", err)
	default:
	}
	release()
	if a := <-slow; a.status != 200 || !strings.Contains(a.body, "dept 2") {
		t.Errorf("the request in flight: %v", a)
	}
	if err := <-drained; err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := idle.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if page, err := io.ReadAll(idle); err != nil || !strings.Contains(string(page), `{"live":true}`) {
		t.Errorf("the idle connection of an operator: %v after %q; expected its page and the end", err, page)
	}
	if err := s.gateway.Wait(); err != nil {
		t.Errorf("Wait after Shutdown: %v", err)
	}
	if err := shutdown(t, s.gateway); err != nil {
		t.Errorf("second shutdown: %v", err)
	}
}

// TestShutdownCutsOff: requests that do not end before the context are cut off,
// the error says so, and further calls, also concurrent ones, wait for the same
// end.
func TestShutdownCutsOff(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company)
	cfg := configure(t, path, deptResource)
	g, err := gateway.New(cfg, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", g.HTTPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("GET /depts/1 HTTP/1.1\r\nHost: localhost\r\n")); err != nil { // without the empty line at the end
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // until the server has begun to read it
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := g.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shutdown with an unfinished request: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("cut off after %v", took)
	}
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			if err := shutdown(t, g); err != nil {
				t.Errorf("another shutdown: %v", err)
			}
		})
	}
	callers.Wait()
}

// TestShutdownAfterAFailedStart: however Start failed, Shutdown is clean, and the
// other listener's port is free again.
func TestShutdownAfterAFailedStart(t *testing.T) {
	testkit.NoLeaks(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	path := newDatabase(t, writeAhead+company)
	for _, test := range []struct {
		name        string
		http, admin string
		database    string
		resources   string
		check       func(error) bool
	}{
		{"http port taken", taken.Addr().String(), "127.0.0.1:0", path, deptResource,
			func(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }},
		{"admin port taken", "127.0.0.1:0", taken.Addr().String(), path, deptResource,
			func(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }},
		{"port taken, no database", "127.0.0.1:0", taken.Addr().String(), filepath.Join(t.TempDir(), "none.db"), deptResource,
			func(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }},
		{"wrong table", "127.0.0.1:0", "127.0.0.1:0", path, "resources: { depts: { table: depp, key: [deptno] } }",
			func(err error) bool {
				_, ok := errors.AsType[*origin.SchemaError](err)
				return ok && strings.Contains(err.Error(), `did you mean "dept"?`)
			}},
	} {
		cfg := configure(t, test.database, test.resources)
		cfg.Frontends.HTTP, cfg.Admin.Address = config.ListenAt(test.http), test.admin
		g, err := gateway.New(cfg, gateway.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Start(t.Context()); err == nil || !test.check(err) {
			t.Errorf("%s: Start returned %v", test.name, err)
		}
		for range 2 {
			if err := shutdown(t, g); err != nil {
				t.Errorf("%s: shutdown: %v", test.name, err)
			}
		}
	}
	// One gateway that was never started, and one that cannot reach its database.
	g, err := gateway.New(configure(t, path, deptResource), gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := shutdown(t, g); err != nil {
		t.Errorf("shutdown without a start: %v", err)
	}
	waiting := serve(t, configure(t, filepath.Join(t.TempDir(), "none.db"), deptResource))
	began := time.Now()
	if err := shutdown(t, waiting.gateway); err != nil || time.Since(began) > time.Second {
		t.Errorf("shutdown while waiting for the database: %v after %v", err, time.Since(began))
	}
}

// TestStartIsBoundedByItsContext: a locked database does not delay the start
// beyond the context.
func TestStartIsBoundedByItsContext(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, rollbackJournal+company)
	_, release := lock(t, path)
	g, err := gateway.New(configure(t, path, deptResource), gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	err = g.Start(ctx)
	if took := time.Since(began); took > 900*time.Millisecond {
		t.Errorf("Start took %v with a context of 100 ms", took)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start returned %v; expected that its context had expired", err)
	}
	release()
	if err := shutdown(t, g); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}
