package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/demo"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

func mustWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// execute runs SQL as another application.
func execute(t *testing.T, path, sql string) {
	t.Helper()
	db, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Exec(sql); err != nil {
		t.Fatalf("%v\nin %s", err, sql)
	}
}

// demoConfig writes the demo's configuration on free ports into a new folder.
func demoConfig(t *testing.T) (file, http, admin string) {
	t.Helper()
	http, admin = fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	return writeFile(t, "slipstream.yaml", demo.Config(demoFile, http, admin)), "http://" + http, "http://" + admin
}

// demoFiles is demoConfig with the database, but without triggers.
func demoFiles(t *testing.T) (file string) {
	t.Helper()
	file, _, _ = demoConfig(t)
	if err := demo.Create(filepath.Join(filepath.Dir(file), demoFile), 1); err != nil {
		t.Fatal(err)
	}
	return file
}

// alive is a readiness probe of the admin listener's /live.
func alive(admin string) func(context.Context) error {
	return func(ctx context.Context) error {
		status, _, _, err := get(ctx, admin+"/live")
		if err == nil && status != 200 {
			err = fmt.Errorf("/live: %d", status)
		}
		return err
	}
}

// exitCode waits for the end of a process.
func exitCode(t *testing.T, p *testkit.Process, within time.Duration) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	err := p.Wait(ctx)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, p.Log())
	}
	return 0
}

// TestServeWaitsForTheDatabase: no file, no answers but clear ones; with the
// file and the triggers the same process becomes ready.
func TestServeWaitsForTheDatabase(t *testing.T) {
	file, http, admin := demoConfig(t)
	p := testkit.Start(t, testkit.Command{Path: binary, Args: []string{"serve", "-c", file}, Ready: alive(admin)})

	status, _, body, err := get(t.Context(), admin+"/ready")
	if err != nil || status != 503 || !strings.Contains(body, "database") {
		t.Errorf("/ready without a database: %d %s %v", status, body, err)
	}
	for _, path := range []string{"/depts/42", "/orders/emea/17"} {
		status, head, body, err := get(t.Context(), http+path)
		if err != nil || status != 503 || head.Get("Content-Type") != "application/problem+json" || !strings.Contains(body, `"detail"`) {
			t.Errorf("%s without a database: %d %v %s %v", path, status, head, body, err)
		}
	}

	// The file appears whole, as a restore would make it.
	path := filepath.Join(filepath.Dir(file), demoFile)
	if err := demo.Create(path+".new", 1); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 15*time.Second, func() error {
		status, _, body, err := get(t.Context(), http+"/depts/42")
		if err == nil && (status != 200 || !strings.HasPrefix(body, `{"deptno":42,`)) {
			err = fmt.Errorf("%d %s", status, body)
		}
		return err
	})
	// Served, but not promised: the triggers are missing, which the first poll
	// of the stream finds.
	testkit.Eventually(t, 15*time.Second, func() error {
		status, _, body, err := get(t.Context(), admin+"/ready")
		if err == nil && (status != 503 || !strings.Contains(body, "db apply")) {
			err = fmt.Errorf("/ready without triggers: %d %s", status, body)
		}
		return err
	})
	expect(t, exitOK, "statements were run", "", "db", "apply", "-c", file)
	testkit.Eventually(t, 15*time.Second, func() error {
		status, _, body, err := get(t.Context(), admin+"/ready")
		if err == nil && status != 200 {
			err = fmt.Errorf("%d %s", status, body)
		}
		return err
	})

	for path, want := range map[string]string{
		"/config":  "table: dept",
		"/metrics": "slipstream_",
	} {
		if status, _, body, err := get(t.Context(), admin+path); err != nil || status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s %v", path, status, body, err)
		}
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, p, 10*time.Second); code != exitOK || !strings.Contains(p.Log(), "msg=drained") {
		t.Errorf("exit code %d after SIGTERM\n%s", code, p.Log())
	}
}

// TestServeEndsOnAWrongDatabase: waiting does not mend a database that appears
// and lacks a table.
func TestServeEndsOnAWrongDatabase(t *testing.T) {
	file, _, admin := demoConfig(t)
	p := testkit.Start(t, testkit.Command{Path: binary, Args: []string{"serve", "-c", file}, Ready: alive(admin)})
	path := filepath.Join(filepath.Dir(file), demoFile)
	if err := demo.Create(path+".new", 1); err != nil {
		t.Fatal(err)
	}
	execute(t, path+".new", "DROP TABLE shipment")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, p, 20*time.Second); code != exitUsage || !strings.Contains(p.Log(), file+":") || !strings.Contains(p.Log(), `"shipment"`) {
		t.Errorf("exit code %d\n%s", code, p.Log())
	}
}

// TestLogFormat: collectors get JSON, and what is below the level is left out.
func TestLogFormat(t *testing.T) {
	var out strings.Builder
	log := newLogger(&out, config.Log{Level: "warn", Format: "json"})
	log.Info("left out")
	log.Warn("kept", "resource", "depts")
	var line struct{ Level, Msg, Resource string }
	if err := json.Unmarshal([]byte(out.String()), &line); err != nil || line.Msg != "kept" || line.Level != "WARN" || line.Resource != "depts" {
		t.Errorf("%v: %s", err, &out)
	}
}

// unfinished opens a connection that has begun a request and does not end it.
func unfinished(t *testing.T, http string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(http, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write([]byte("GET /depts/42 HTTP/1.1\r\nHost: localhost\r\n")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // until the server has read it
}

// TestDrainIsBounded: a request that does not end is cut off after --drain, and
// at once by a second signal.
func TestDrainIsBounded(t *testing.T) {
	for _, test := range []struct {
		name, drain string
		second      bool
		code        int
		within      time.Duration
	}{
		{"time is up", "1s", false, exitFailure, 10 * time.Second},
		{"second signal", "1m", true, exitInterrupted, 10 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			file, http, admin := demoConfig(t)
			if err := demo.Create(filepath.Join(filepath.Dir(file), demoFile), 1); err != nil {
				t.Fatal(err)
			}
			p := testkit.Start(t, testkit.Command{Path: binary, Args: []string{"serve", "-c", file, "--drain", test.drain}, Ready: alive(admin)})
			unfinished(t, http)
			if err := p.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * sameSignal)
			if test.second {
				if err := p.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			if code := exitCode(t, p, 30*time.Second); code != test.code {
				t.Errorf("exit code %d; expected %d\n%s", code, test.code, p.Log())
			}
			if took := time.Since(start); took > test.within {
				t.Errorf("ended after %v; expected %v", took, test.within)
			}
		})
	}
}

func TestServeOnATakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file := demoFiles(t)
	taken := filepath.Join(filepath.Dir(file), "taken.yaml")
	mustWrite(t, taken, demo.Config(demoFile, l.Addr().String(), "127.0.0.1:0"))
	expect(t, exitFailure, "", "another process listens there", "serve", "-c", taken)
	mustWrite(t, taken, demo.Config(demoFile, "127.0.0.1:0", l.Addr().String()))
	expect(t, exitFailure, "", "another process listens there", "serve", "-c", taken)
	mustWrite(t, taken, demo.Config(demoFile, "192.0.2.1:8080", "127.0.0.1:0"))
	expect(t, exitFailure, "", "this machine has no such address", "serve", "-c", taken)
}
