package slipstream_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// An adapter with its own module needs the root package and its library only: not the clients, of
// which a program may use one, and not what only its tests need.
func TestOpenTelemetryIsPaidForByItsUsers(t *testing.T) {
	const library = "go.opentelemetry.io/otel"
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(mod, []byte(library)) {
		t.Errorf("go.mod requires %s, which only slipstreamotel/go.mod may", library)
	}
	files, err := filepath.Glob("slipstreamotel/*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			seen++
			if ours, is := ownPath(path); is && ours != "." || strings.HasPrefix(path, library+"/sdk") {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d imports were checked", seen)
	}
}

// Every script and workflow that runs in all modules names each of them.
func TestEveryModuleIsChecked(t *testing.T) {
	for file, modules := range map[string][]string{
		"Makefile":                   {"bench", "test", "slipstreamotel", "thrift/apache", "examples/foo"},
		"scripts/test.sh":            {"test", "slipstreamotel", "thrift/apache", "examples/foo"},
		"scripts/fuzz.sh":            {"test", "slipstreamotel", "thrift/apache", "examples/foo"},
		"scripts/vulnerabilities.sh": {"slipstreamotel", "thrift/apache", "examples/foo"},
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		words := strings.FieldsFunc(string(text), func(r rune) bool { return strings.ContainsRune(" \t\n\";,[]()", r) })
		for _, module := range modules {
			if !slices.Contains(words, module) {
				t.Errorf("%s does not name the module %s", file, module)
			}
		}
	}
}
