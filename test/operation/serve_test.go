package operation

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/demo"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// TestServeWaitsForTheDatabase: without the file, requests get clear errors; with the file and the
// triggers, the same process becomes ready.
func TestServeWaitsForTheDatabase(t *testing.T) {
	file, http, admin := blackbox.DemoConfig(t)
	p := testkit.Start(t, testkit.Command{Path: blackbox.Program(), Args: []string{"serve", "-c", file}, Ready: blackbox.Alive(admin)})

	status, _, body, err := blackbox.Get(t.Context(), admin+"/ready")
	if err != nil || status != 503 || !strings.Contains(body, "database") {
		t.Errorf("/ready without a database: %d %s %v", status, body, err)
	}
	for _, path := range []string{"/depts/42", "/orders/emea/17"} {
		status, head, body, err := blackbox.Get(t.Context(), http+path)
		if err != nil || status != 503 || head.Get("Content-Type") != "application/problem+json" || !strings.Contains(body, `"detail"`) {
			t.Errorf("%s without a database: %d %v %s %v", path, status, head, body, err)
		}
	}

	// The file appears complete, as after a restore.
	path := filepath.Join(filepath.Dir(file), blackbox.DemoFile)
	if err := demo.Create(path+".new", 1); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 15*time.Second, func() error {
		status, _, body, err := blackbox.Get(t.Context(), http+"/depts/42")
		if err == nil && (status != 200 || !strings.HasPrefix(body, `{"deptno":42,`)) {
			err = fmt.Errorf("%d %s", status, body)
		}
		return err
	})
	// Served without a promise: the triggers are missing, as the first poll of the stream detects.
	testkit.Eventually(t, 15*time.Second, func() error {
		status, _, body, err := blackbox.Get(t.Context(), admin+"/ready")
		if err == nil && (status != 503 || !strings.Contains(body, "db apply")) {
			err = fmt.Errorf("/ready without triggers: %d %s", status, body)
		}
		return err
	})
	blackbox.Expect(t, blackbox.ExitOK, "statements were run", "", "db", "apply", "-c", file)
	testkit.Eventually(t, 15*time.Second, func() error {
		status, _, body, err := blackbox.Get(t.Context(), admin+"/ready")
		if err == nil && status != 200 {
			err = fmt.Errorf("%d %s", status, body)
		}
		return err
	})

	for path, want := range map[string]string{
		"/config":  "table: dept",
		"/metrics": "slipstream_",
	} {
		if status, _, body, err := blackbox.Get(t.Context(), admin+path); err != nil || status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s %v", path, status, body, err)
		}
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := blackbox.ExitCode(t, p, 10*time.Second); code != blackbox.ExitOK || !strings.Contains(p.Log(), "msg=drained") {
		t.Errorf("exit code %d after SIGTERM\n%s", code, p.Log())
	}
}

// TestServeEndsOnAWrongDatabase: waiting does not help if a database appears that
// lacks a table.
func TestServeEndsOnAWrongDatabase(t *testing.T) {
	file, _, admin := blackbox.DemoConfig(t)
	p := testkit.Start(t, testkit.Command{Path: blackbox.Program(), Args: []string{"serve", "-c", file}, Ready: blackbox.Alive(admin)})
	path := filepath.Join(filepath.Dir(file), blackbox.DemoFile)
	if err := demo.Create(path+".new", 1); err != nil {
		t.Fatal(err)
	}
	blackbox.Execute(t, path+".new", "DROP TABLE shipment")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if code := blackbox.ExitCode(t, p, 20*time.Second); code != blackbox.ExitUsage || !strings.Contains(p.Log(), file+":") || !strings.Contains(p.Log(), `"shipment"`) {
		t.Errorf("exit code %d\n%s", code, p.Log())
	}
}

// unfinished opens a connection and sends a request that never ends.
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

// TestDrainIsBounded: a request that does not end is cut off after --drain, and immediately by a
// second signal.
func TestDrainIsBounded(t *testing.T) {
	for _, test := range []struct {
		name, drain string
		second      bool
		code        int
		within      time.Duration
	}{
		{"time is up", "1s", false, blackbox.ExitFailure, 10 * time.Second},
		{"second signal", "1m", true, blackbox.ExitInterrupted, 10 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			file, http, admin := blackbox.DemoConfig(t)
			if err := demo.Create(filepath.Join(filepath.Dir(file), blackbox.DemoFile), 1); err != nil {
				t.Fatal(err)
			}
			p := testkit.Start(t, testkit.Command{Path: blackbox.Program(), Args: []string{"serve", "-c", file, "--drain", test.drain}, Ready: blackbox.Alive(admin)})
			unfinished(t, http)
			if err := p.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			time.Sleep(400 * time.Millisecond) // within 200 ms, the command treats a second signal as the same
			if test.second {
				if err := p.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			if code := blackbox.ExitCode(t, p, 30*time.Second); code != test.code {
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
	file := blackbox.DemoFiles(t)
	taken := filepath.Join(filepath.Dir(file), "taken.yaml")
	blackbox.Write(t, taken, demo.Config(blackbox.DemoFile, l.Addr().String(), "127.0.0.1:0"))
	blackbox.Expect(t, blackbox.ExitFailure, "", "another process listens there", "serve", "-c", taken)
	blackbox.Write(t, taken, demo.Config(blackbox.DemoFile, "127.0.0.1:0", l.Addr().String()))
	blackbox.Expect(t, blackbox.ExitFailure, "", "another process listens there", "serve", "-c", taken)
	blackbox.Write(t, taken, demo.Config(blackbox.DemoFile, "192.0.2.1:8080", "127.0.0.1:0"))
	blackbox.Expect(t, blackbox.ExitFailure, "", "this machine has no such address", "serve", "-c", taken)
}
