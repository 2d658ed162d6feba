package slipstream_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goBlock is a code block of Go: what follows the language on its first line, and its text.
var goBlock = regexp.MustCompile("(?ms)^```go([^\n]*)\n(.*?)^```$")

// misquoted returns the number of blocks of Go in a page, and what is wrong with them: each has a title that names a file of
// which it is a part.
func misquoted(page string, read func(path string) (string, error)) (found int, wrong []string) {
	title := regexp.MustCompile(`^ title="([^"]+)"$`)
	for _, m := range goBlock.FindAllStringSubmatch(page, -1) {
		found++
		named := title.FindStringSubmatch(m[1])
		if named == nil {
			wrong = append(wrong, "a block of Go has no title: expected ```go title=\"FILE\":\n"+m[2])
			continue
		}
		text, err := read(named[1])
		if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		if !strings.Contains(text, m[2]) {
			wrong = append(wrong, named[1]+" has no such lines:\n"+m[2])
		}
	}
	return found, wrong
}

// The Go code of the tutorials is that of programs, which are compiled and run.
func TestTutorialsQuoteTheirPrograms(t *testing.T) {
	for page, least := range map[string]int{"docs/tutorial-redis.md": 6, "docs/tutorial-thrift.md": 6} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		found, wrong := misquoted(string(text), func(path string) (string, error) {
			file, err := os.ReadFile(filepath.FromSlash(path))
			return string(file), err
		})
		for _, w := range wrong {
			t.Errorf("%s: %s", page, w)
		}
		if found < least {
			t.Errorf("%s has %d blocks of Go, expected at least %d", page, found, least)
		}
	}
}

func TestQuoteCheckBites(t *testing.T) {
	read := func(path string) (string, error) {
		if path != "a.go" {
			return "", os.ErrNotExist
		}
		return "package a\n\nfunc f() {}\n", nil
	}
	for page, want := range map[string]int{
		"```go title=\"a.go\"\nfunc f() {}\n```\n":   0,
		"```go title=\"a.go\"\nfunc g() {}\n```\n":   1,
		"```go title=\"b.go\"\nfunc f() {}\n```\n":   1,
		"```go\nfunc f() {}\n```\n":                  1,
		"```go title=\"a.go\"\nfunc f() {}\n\n```\n": 1,
	} {
		if found, wrong := misquoted(page, read); found != 1 || len(wrong) != want {
			t.Errorf("%q: %d blocks, wrong %q; want 1 and %d", page, found, wrong, want)
		}
	}
}
