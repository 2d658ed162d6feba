package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// text is a log that can be read while it is written.
type text struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (w *text) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.Write(p)
}

func (w *text) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

func open(t *testing.T, path string) (*Log, *text) {
	t.Helper()
	out := new(text)
	l, err := Open(Config{Path: path, Log: slog.New(slog.NewTextHandler(out, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeLog(t, l) })
	return l, out
}

func closeLog(t *testing.T, l *Log) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Error(err)
	}
}

func lines(t *testing.T, path string) (all []Event) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Errorf("%v in %q", err, line)
			continue
		}
		all = append(all, e)
	}
	return all
}

// written returns nil once a complete line is in the file.
func written(path string) error {
	data, err := os.ReadFile(path)
	if err == nil && !bytes.HasSuffix(data, []byte("\n")) {
		err = fmt.Errorf("got %q", data)
	}
	return err
}

// TestFile: each event is a line, the file is for its owner only, and what was written before
// stays.
func TestFile(t *testing.T) {
	testkit.NoLeaks(t)
	path := filepath.Join(t.TempDir(), "audit.log")
	for range 2 {
		l, out := open(t, path)
		l.Record(Event{Event: Purge, Listener: "admin", Peer: "192.0.2.1:5", Rule: "token", Outcome: Done, Resource: "depts", Key: []string{"a\nb", "1"}})
		l.Record(Event{Event: KeyFileChanged, Outcome: Refused, File: "keys.txt", Detail: "wrong"})
		closeLog(t, l)
		if got := out.String(); got != "" {
			t.Errorf("in the log of the program: %s", got)
		}
		l.Record(Event{Event: Purge, Outcome: Done})
		if !strings.Contains(out.String(), "event=purge") {
			t.Error("an event after Close is lost")
		}
	}
	got := lines(t, path)
	if len(got) != 4 || got[2].Key[0] != "a\nb" || got[3].File != "keys.txt" || time.Since(got[0].Time) > time.Minute {
		t.Errorf("got %+v", got)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, want 0600", info.Mode())
	}
}

// TestWithoutFile: events are in the log of the program.
func TestWithoutFile(t *testing.T) {
	l, out := open(t, "")
	l.Record(Event{Event: Reload, Listener: "admin", Rule: "loopback", Outcome: Done, Changes: []string{"freshness"}})
	if got := out.String(); !strings.Contains(got, "msg=audit event=reload listener=admin rule=loopback outcome=done changes=[freshness]") {
		t.Errorf("got %s", got)
	}
	(*Log)(nil).Record(Event{}) // without a log
}

// TestFailedLoginsAreBounded: only one failed login per second at a listener has a line, those at
// another have their own, and the next line says how many were left out.
func TestFailedLoginsAreBounded(t *testing.T) {
	l, out := open(t, "")
	l.begun = time.Now().Add(-time.Hour)
	for range 100 {
		l.Record(Event{Event: LoginFailed, Listener: "http", Rule: "key", Outcome: Refused})
		l.Record(Event{Event: LoginFailed, Listener: "redis", Rule: "password", Outcome: Refused})
		l.Record(Event{Event: LoginFailed, Listener: "admin", Rule: "token", Outcome: Refused})
	}
	if n := strings.Count(out.String(), "\n"); n < 3 || n > 30 {
		t.Errorf("%d lines of 300, want 3", n)
	}
	l.begun = l.begun.Add(-time.Minute)
	l.Record(Event{Event: LoginFailed, Listener: "redis", Outcome: Refused})
	if !strings.Contains(out.String(), "left_out=") {
		t.Error("no line says how many were left out")
	}
}

// TestFullDisk: failures to write the file are counted, and the events are in the log of the
// program; after the file was replaced, lines are written again.
func TestFullDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // there is no /dev/full
	}
	testkit.NoLeaks(t)
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	l, out := open(t, path)
	l.Record(Event{Event: Purge, Outcome: Done, Resource: "depts"})
	l.Record(Event{Event: Purge, Outcome: Done, Resource: "items"})
	testkit.Eventually(t, 10*time.Second, func() error {
		if n := l.Failures(); n != 2 || strings.Count(out.String(), "event=purge") != 2 {
			return fmt.Errorf("%d failures, log %s", n, out)
		}
		return nil
	})
	if n := strings.Count(out.String(), "cannot be written"); n != 1 {
		t.Errorf("%d complaints, want one", n)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l.Reopen()
	testkit.Eventually(t, 10*time.Second, func() error {
		l.Record(Event{Event: Purge, Outcome: Done, Resource: "depts"})
		return written(path)
	})
	closeLog(t, l)
}

// TestReopen: after a rename, lines are in a new file, and an incomplete last line is ended.
func TestReopen(t *testing.T) {
	testkit.NoLeaks(t)
	path := filepath.Join(t.TempDir(), "audit.log")
	l, _ := open(t, path)
	l.Record(Event{Event: Purge, Outcome: Done})
	testkit.Eventually(t, 10*time.Second, func() error {
		return written(path)
	})
	if runtime.GOOS != "windows" { // where an open file cannot be renamed
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(`{"event":"pur`), 0o600); err != nil {
			t.Fatal(err)
		}
		l.Reopen()
		testkit.Eventually(t, 10*time.Second, func() error {
			l.Record(Event{Event: Reload, Outcome: Done})
			data, err := os.ReadFile(path)
			if err == nil && !strings.Contains(string(data), "pur\n{") {
				err = fmt.Errorf("got %q", data)
			}
			return err
		})
	}
	closeLog(t, l)
	if _, err := Open(Config{Path: filepath.Join(path, "no")}); err == nil {
		t.Error("a file that cannot exist was opened")
	}
}
