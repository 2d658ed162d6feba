package slipstream_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Each row of the threat model names the test that plays the attacker, and each
// test that docs/SECURITY.md names exists.
func TestSecurityNamesItsTests(t *testing.T) {
	text, err := os.ReadFile("docs/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	exists := make(map[string]bool)
	definition := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	sources(t, func(path string, text []byte) {
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range definition.FindAllSubmatch(text, -1) {
				exists[string(m[1])] = true
			}
		}
	})
	named := regexp.MustCompile(`\bTest[A-Z]\w+`)
	for _, name := range named.FindAllString(string(text), -1) {
		if !exists[name] {
			t.Errorf("docs/SECURITY.md names %s, and there is no such test", name)
		}
	}
	_, model, found := strings.Cut(string(text), "\n## Threat model\n")
	if !found {
		t.Fatal("docs/SECURITY.md has no section Threat model")
	}
	model, _, _ = strings.Cut(model, "\n## ")
	rows := 0
	for line := range strings.Lines(model) {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasSuffix(strings.TrimSpace(line), "| test |") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if last := cells[len(cells)-1]; !named.MatchString(last) {
			t.Errorf("a row of the threat model names no test: %s", line)
		}
	}
	if rows < 30 {
		t.Errorf("%d rows in the threat model: is this the table?", rows)
	}
}
