package slipstream_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every page in docs has an entry in the navigation of the site. Sphinx reports a page without one, too, but
// only make docs runs it.
func TestPagesAreInTheNavigation(t *testing.T) {
	conf, err := os.ReadFile("docs/site/conf.py")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("pages %q, %v", pages, err)
	}
	listed := navigationOf(string(conf))
	for _, page := range pages {
		if name := strings.TrimSuffix(filepath.ToSlash(page), ".md"); !listed[name] {
			t.Errorf("%s is not in the navigation of docs/site/conf.py", page)
		}
	}
	for name := range listed {
		if _, err := os.Stat(strings.TrimRight(name, "*/") + ".md"); err == nil {
			continue
		}
		if info, err := os.Stat(strings.TrimRight(name, "*")); err != nil || !info.IsDir() {
			t.Errorf("the navigation of docs/site/conf.py has %s, which is no page and no folder", name)
		}
	}
}

// navigationOf returns the pages and folders that the navigation in a configuration of Sphinx lists.
func navigationOf(conf string) map[string]bool {
	_, text, _ := strings.Cut(conf, "\nnavigation = {")
	text, _, _ = strings.Cut(text, "\n}")
	listed := make(map[string]bool)
	for _, entries := range regexp.MustCompile(`\[[^\]]*\]`).FindAllString(text, -1) {
		for _, entry := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(entries, -1) {
			listed[entry[1]] = true
		}
	}
	return listed
}

func TestNavigationCheckBites(t *testing.T) {
	listed := navigationOf("x = [\"docs/x\"]\nnavigation = {\n\t\"README\": {\"A\": [\"docs/a\", \"docs/b/*\"]},\n}\ny = [\"docs/y\"]\n")
	if len(listed) != 2 || !listed["docs/a"] || !listed["docs/b/*"] {
		t.Errorf("%v", listed)
	}
}
