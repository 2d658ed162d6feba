package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

func TestMain(m *testing.M) { blackbox.Main(m) }

// TestExitCodes: tests in other packages rely on the same codes.
func TestExitCodes(t *testing.T) {
	for _, c := range [][2]int{
		{exitOK, blackbox.ExitOK}, {exitFailure, blackbox.ExitFailure}, {exitUsage, blackbox.ExitUsage}, {exitIncomplete, blackbox.ExitIncomplete},
		{exitUnreachable, blackbox.ExitUnreachable}, {exitLimited, blackbox.ExitLimited}, {exitInterrupted, blackbox.ExitInterrupted},
	} {
		if c[0] != c[1] {
			t.Errorf("exit code %d, the tests expect %d", c[0], c[1])
		}
	}
	if demoFile != blackbox.DemoFile {
		t.Errorf("the database of the demo is %q, the tests expect %q", demoFile, blackbox.DemoFile)
	}
}

// TestLogFormat: collectors get JSON, and messages below the level are omitted.
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
