package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ProfileFile returns the file of a profile of a subject in a scenario: the requested one, or one in
// the system's temporary directory.
func ProfileFile(asked, suite, subject, scenario string) (string, error) {
	if asked == "" {
		asked = filepath.Join(os.TempDir(), fmt.Sprintf("%s-%s-%s.pprof", suite, subject, strings.ReplaceAll(scenario, "/", "-")))
	}
	return filepath.Abs(asked)
}
