package operation

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// TestServeReopensTheRequestLog: SIGHUP, as sent by logrotate, does not end the process if there is
// a request log, and the timeout of the drain comes from the configuration.
func TestServeReopensTheRequestLog(t *testing.T) {
	file, http, admin := blackbox.DemoConfig(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	blackbox.Write(t, file, string(text)+"\nlog: { requests: requests.log }\ndrain: { grace: 0s, timeout: 7s }\n")
	p := testkit.Start(t, testkit.Command{Path: blackbox.Program(), Args: []string{"serve", "-c", file}, Ready: blackbox.Alive(admin)})
	log := filepath.Join(filepath.Dir(file), "requests.log")
	for i := range 3 {
		if status, _, body, err := blackbox.Get(t.Context(), http+"/depts/1"); err != nil || status != 503 {
			t.Fatalf("/depts/1 without a database: %d %s %v", status, body, err)
		}
		if err := errors.Join(os.Rename(log, fmt.Sprint(log, ".", i)), p.Signal(syscall.SIGHUP)); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, 15*time.Second, func() error { _, err := os.Stat(log); return err })
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := blackbox.ExitCode(t, p, 15*time.Second); code != blackbox.ExitOK {
		t.Errorf("exit code %d, want 0\n%s", code, p.Log())
	}
	if !bytes.Contains([]byte(p.Log()), []byte("within=7s")) {
		t.Errorf("the drain does not have the configured timeout:\n%s", p.Log())
	}
	lines := 0
	for i := range 3 {
		text, err := os.ReadFile(fmt.Sprint(log, ".", i))
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte(`"target":"/depts/1","status":503`))
	}
	if lines != 3 {
		t.Errorf("got %d lines, want 3", lines)
	}
}
