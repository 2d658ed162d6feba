package slipstream_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxDesignWords bounds docs/DESIGN.md, which is what a maintainer has to keep in mind. Details
// belong to the documentation of the packages.
const maxDesignWords = 6000

func TestDesignStaysShort(t *testing.T) {
	text, err := os.ReadFile("docs/DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(bytes.Fields(text)); n > maxDesignWords {
		t.Errorf("docs/DESIGN.md has %d words, the limit is %d: move details to the documentation of the packages", n, maxDesignWords)
	}
}

var (
	rulesQuoted = regexp.MustCompile("`([^`]+)`")
	testName    = regexp.MustCompile(`^Test[A-Z]\w+$`)
	mutantName  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`)
)

// rulesHeldByNothing returns the names in the last column of the tables of a page that do not
// exist, and the number of rows. A name is that of a test, of a mutant or of a Go file. Anything
// else is ignored, and a dash there is followed by the reason why there is no test.
func rulesHeldByNothing(page string, exists map[string]bool) (rows int, missing []string) {
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasSuffix(line, "| held by |") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		last := strings.TrimSpace(cells[len(cells)-1])
		if strings.HasPrefix(last, "-") {
			continue
		}
		names := rulesQuoted.FindAllStringSubmatch(last, -1)
		if len(names) == 0 && last == "" {
			missing = append(missing, "nothing: "+line)
		}
		for _, m := range names {
			name := m[1]
			if (testName.MatchString(name) || mutantName.MatchString(name) || strings.HasSuffix(name, ".go")) && !exists[name] {
				missing = append(missing, name)
			}
		}
	}
	return rows, missing
}

// Each rule that looks unnecessary names the test, the mutant or the file that enforces it, and the
// name exists.
func TestRulesNameWhatHoldsThem(t *testing.T) {
	exists := make(map[string]bool)
	definition := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	sources(t, func(path string, text []byte) {
		exists[filepath.Base(path)] = true
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range definition.FindAllSubmatch(text, -1) {
				exists[string(m[1])] = true
			}
		}
	})
	mutants, err := os.ReadFile("internal/testkit/mutants/mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^mutant: (\S+)$`).FindAllSubmatch(mutants, -1) {
		exists[string(m[1])] = true
	}
	page, err := os.ReadFile("docs/design/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, missing := rulesHeldByNothing(string(page), exists)
	for _, name := range missing {
		t.Errorf("docs/design/rules.md: a rule names %s, which does not exist", name)
	}
	if rows < 60 {
		t.Errorf("only %d rules were found", rows)
	}
	broken := "| a | b | held by |\n|---|---|---|\n| x | y | `TestOfNothing`, `no-such-mutant`, `none_such.go` |\n| x | y | `TestRulesNameWhatHoldsThem` |\n| x | y | - |\n| x | y | |\n"
	if rows, missing := rulesHeldByNothing(broken, exists); rows != 4 || len(missing) != 4 {
		t.Errorf("of 4 faults in %d rows, only %q were found", rows, missing)
	}
}
