package command

import (
	"errors"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/load"
)

func TestFailures(t *testing.T) {
	rows := []load.Row{{Scenario: "a/1", Subject: load.Ours}, {Scenario: "a/1", Subject: "rival"}, {Scenario: "b/2", Subject: "rival"}}
	if err := Failures(rows); err != nil {
		t.Error(err)
	}
	rows[1].Errors, rows[2].Errors = 3, 4
	err := Failures(rows)
	for _, want := range []string{"7 requests failed", "3 of rival in a/1", "4 of rival in b/2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that contains %q", err, want)
		}
	}
}

func TestReportMissing(t *testing.T) {
	var out strings.Builder
	ReportMissing(&out, []error{errors.New("the program x is not installed")})
	if got, want := out.String(), "LEFT OUT: the program x is not installed. The comparison with it is missing from this run.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
