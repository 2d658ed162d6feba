package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/internal/load"
)

// Verdict returns the word for a target that is not a ratio of paired rounds.
func Verdict(met bool) load.Outcome {
	if met {
		return load.Met
	}
	return load.Missed
}

// Find returns the row of a subject in a scenario.
func Find(rows []load.Row, scenario, subject string) (load.Row, bool) {
	i := slices.IndexFunc(rows, func(r load.Row) bool { return r.Scenario == scenario && r.Subject == subject })
	if i < 0 {
		return load.Row{}, false
	}
	return rows[i], true
}

// Failures returns an error if any request of the rows failed.
func Failures(rows []load.Row) error {
	var failed uint64
	var where []string
	for _, row := range rows {
		if row.Errors > 0 {
			failed += row.Errors
			where = append(where, fmt.Sprintf("%d of %s in %s", row.Errors, row.Subject, row.Scenario))
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d requests failed, want none: %s", failed, strings.Join(where, ", "))
	}
	return nil
}

// ReportMissing prints prominently which subjects were omitted, and why.
func ReportMissing(w io.Writer, missing []error) {
	for _, err := range missing {
		fmt.Fprintf(w, "LEFT OUT: %v. The comparison with it is missing from this run.\n", err)
	}
}
