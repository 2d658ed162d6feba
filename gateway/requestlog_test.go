package gateway_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestRequestLog: each request has a line, a file that was renamed is followed by a
// new one, and the drain loses none.
func TestRequestLog(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company)
	s := serveReady(t, path, deptResource+"\nlog: { requests: requests.log }\n")
	file := filepath.Join(filepath.Dir(path), "requests.log")
	const each = 20
	for range each {
		s.get("/depts/1")
	}
	if err := os.Rename(file, file+".1"); err != nil {
		t.Fatal(err)
	}
	s.gateway.ReopenLogs()
	testkit.Eventually(t, patience, func() error { _, err := os.Stat(file); return err })
	for range each {
		s.get("/depts/x")
	}
	testkit.Eventually(t, patience, func() error {
		if s.metric("slipstream_request_log_lines_total") != 2*each {
			return errors.New("lines are missing")
		}
		return nil
	})
	if n := s.metric("slipstream_request_log_dropped_lines_total"); n != 0 {
		t.Errorf("%v lines were lost", n)
	}
	s.client.CloseIdleConnections()
	if err := shutdown(t, s.gateway); err != nil {
		t.Fatal(err)
	}
	// Requests in flight when the new file appears may still be written to the old
	// one.
	var statuses []float64
	for _, name := range []string{file + ".1", file} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) == 0 {
			t.Errorf("%s is empty", name)
		}
		for one := range bytes.Lines(text) {
			var got map[string]any
			if err := json.Unmarshal(one, &got); err != nil || got["client"] != "127.0.0.1" || got["request_id"] == "" {
				t.Fatalf("%s: %s, %v", name, one, err)
			}
			status, _ := got["status"].(float64)
			statuses = append(statuses, status)
		}
	}
	if want := slices.Concat(slices.Repeat([]float64{200}, each), slices.Repeat([]float64{400}, each)); !slices.Equal(statuses, want) {
		t.Errorf("statuses %v of both files, want %v", statuses, want)
	}
}

// TestRequestLogSampled: with a sample of 0, only failures have lines.
func TestRequestLogSampled(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+company)
	s := serveReady(t, path, deptResource+"\nlog: { requests: { file: requests.log, sample: 0 }, slow: 0s }\n")
	s.get("/depts/1")
	s.get("/depts/1000")
	s.get("/depts/x")
	s.client.CloseIdleConnections()
	if err := shutdown(t, s.gateway); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), "requests.log"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil || got["status"] != 400.0 || got["sample"] != 1.0 {
		t.Errorf("got %s, %v; want one line, of status 400 and sample 1", text, err)
	}
}

// TestRequestLogCannotBeOpened: the gateway does not start if it cannot write the
// configured log.
func TestRequestLogCannotBeOpened(t *testing.T) {
	testkit.NoLeaks(t)
	cfg := configure(t, newDatabase(t, writeAhead+company), deptResource+"\nlog: { requests: none/requests.log }\n")
	if g, err := gateway.New(cfg, gateway.Options{}); err == nil || !strings.Contains(err.Error(), "log.requests: ") {
		t.Errorf("got %v, want an error of log.requests", err)
		_ = shutdown(t, g)
	}
}
