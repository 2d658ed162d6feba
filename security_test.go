package slipstream_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Each row of the threat model names the test that plays the attacker, each row of the limits
// the test that holds the bound, and each test that docs/SECURITY.md names exists.
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
	for section, least := range map[string]int{"Threat model": 30, "Limits": 100} {
		_, part, found := strings.Cut(string(text), "\n## "+section+"\n")
		if !found {
			t.Errorf("docs/SECURITY.md has no section %s", section)
			continue
		}
		part, _, _ = strings.Cut(part, "\n## ")
		rows := 0
		for line := range strings.Lines(part) {
			if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasSuffix(strings.TrimSpace(line), "| test |") {
				continue
			}
			rows++
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			if last := cells[len(cells)-1]; !named.MatchString(last) {
				t.Errorf("a row of the section %s names no test: %s", section, line)
			}
		}
		if rows < least {
			t.Errorf("%d rows in the section %s, want at least %d: is this the table?", rows, section, least)
		}
	}
}
