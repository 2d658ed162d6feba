package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const upper = "\tif v > high {\n\t\treturn high\n\t}\n"

func toyMutant(name, old, replacement string) mutant {
	return mutant{name: name, file: "toy.go", old: old, new: replacement, why: "a rule",
		command: []string{"go", "test", ".", "-run", "TestClamp", "-count=1"}}
}

func TestRunner(t *testing.T) {
	before, err := os.ReadFile("testdata/toy/toy.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		mutant mutant
		env    string
		want   outcome
		detail string
	}{
		{"a fault that a test notices", toyMutant("m", upper, ""), "", caught, "TestClamp"},
		{"a change without effect", toyMutant("m", "v > high", "v >= high"), "", survived, ""},
		{"a panic", toyMutant("m", "return low", `panic("boom")`), "", caught, "TestClamp"},
		{"a mutant that does not compile", toyMutant("m", "v > high", "v > hihg"), "", broken, "undefined: hihg"},
		{"an unused variable", toyMutant("m", "return low", "unused := 1; return low"), "", broken, "declared and not used"},
		{"text that is not there", toyMutant("m", "v > hihg", ""), "", broken, "occurs 0 times"},
		{"text that is there twice", toyMutant("m", "return v", "return low"), "", caught, "TestClamp"},
		{"ambiguous text", toyMutant("m", "\treturn ", "\treturn 1 + "), "", broken, "occurs 3 times"},
		{"a command that fails anyway", toyMutant("m", upper, ""), "TOY_RED", broken, "fails without a mutant"},
		{"a command that runs nothing", toyMutant("m", upper, ""), "none", broken, "runs no test"},
	} {
		t.Run(c.name, func(t *testing.T) {
			switch c.env {
			case "TOY_RED":
				t.Setenv("TOY_RED", "1")
				c.mutant.command[4] = "."
			case "none":
				c.mutant.command[4] = "TestNoSuch"
			}
			var log bytes.Buffer
			err := runner{root: "testdata/toy", log: &log}.runAll(t.Context(), []mutant{c.mutant})
			if (err == nil) != (c.want == caught) || err != nil && !errors.Is(err, errNotAllCaught) {
				t.Errorf("runAll = %v for a mutant that is to be %s", err, c.want)
			}
			if out := log.String(); !strings.Contains(out, string(c.want)) || !strings.Contains(out, c.detail) {
				t.Errorf("output lacks %q or %q:\n%s", c.want, c.detail, out)
			}
		})
	}
	after, err := os.ReadFile("testdata/toy/toy.go")
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the tree was changed (%v)", err)
	}
}

// A single survivor fails the whole run, and the table lists all mutants.
func TestOneSurvivorFailsTheRun(t *testing.T) {
	var log bytes.Buffer
	err := runner{root: "testdata/toy", log: &log}.runAll(t.Context(), []mutant{
		toyMutant("upper-bound-off", upper, ""),
		toyMutant("no-effect", "v > high", "v >= high"),
		toyMutant("lower-bound-off", "v < low", "v < low-100"),
	})
	if !errors.Is(err, errNotAllCaught) || !strings.Contains(log.String(), "2 of 3 mutants caught") {
		t.Errorf("runAll = %v, output:\n%s", err, &log)
	}
}

func TestParseList(t *testing.T) {
	const text = `# a comment
mutant: one
file: a/b.go
test: go test ./a -run 'TestA|Test B' -count=1
why: rule 1

# between
--- old
	if x {

		# kept
--- new
--- end
mutant: two
file: c.go
test: go test ./c
why: rule 2
--- old
a
--- new
b
c
--- end
`
	list, err := parseList("list", text)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 {
		t.Fatalf("%d mutants, want 2", len(list))
	}
	one, two := list[0], list[1]
	if one.name != "one" || one.file != "a/b.go" || one.why != "rule 1" || one.line != 2 || one.old != "\tif x {\n\n\t\t# kept" || one.new != "" {
		t.Errorf("first mutant %+v", one)
	}
	if got := strings.Join(one.command, "|"); got != "go|test|./a|-run|TestA|Test B|-count=1" {
		t.Errorf("command %q", got)
	}
	if two.old != "a" || two.new != "b\nc" {
		t.Errorf("second mutant %+v", two)
	}
}

func TestParseListErrors(t *testing.T) {
	head := "mutant: m\nfile: f\ntest: go test .\nwhy: w\n"
	for _, c := range []struct{ text, want string }{
		{"file: f\n", `list:1: got "file: f", expected "mutant:"`},
		{"mutant:\n", "expected \"mutant:\" and a value"},
		{"mutant: m\n", `ends inside mutant "m"`},
		{"mutant: m\nfile: f\ntest: rm -rf x\n", "expected one that begins with go test"},
		{"mutant: m\nfile: f\ntest: go test 'x\n", "open quote"},
		{head + "old text\n", `expected "--- old"`},
		{head + "--- old\na\n", `expected "--- new"`},
		{head + "--- old\na\n--- new\nb\n", `expected "--- end"`},
		{head + "--- old\na\n--- new\nb\n" + head, "line 9 begins a mutant inside the block"},
		{head + "--- old\na\n--- new\na\n--- end\n", "changes nothing"},
		{head + "--- old\n--- new\na\n--- end\n", "changes nothing"},
		{strings.Repeat(head+"--- old\na\n--- new\nb\n--- end\n", 2), "also at line 1"},
	} {
		if _, err := parseList("list", c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want one that contains %q", c.text, err, c.want)
		}
	}
}

// The list that ships parses, and its files and texts exist: every test run, not only make mutants,
// notices when the list no longer matches the code.
func TestShippedListMatchesTheCode(t *testing.T) {
	text, err := os.ReadFile("mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	list, err := parseList("mutants.txt", string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if _, err := (runner{root: filepath.Join("..", "..", "..")}).writeOverlay(t.TempDir(), m); err != nil {
			t.Errorf("mutants.txt:%d: %s: %v", m.line, m.name, err)
		}
	}
}

// Every alternative of every -run pattern in the list matches a test, so that a renamed test does
// not silently stop checking its rule.
func TestShippedListNamesTests(t *testing.T) {
	text, err := os.ReadFile("mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	list, err := parseList("mutants.txt", string(text))
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join("..", "..", "..")
	testsOf := make(map[string][]string) // by directory
	for _, m := range list {
		module, pattern, names := root, "", []string(nil)
		for i, arg := range m.command {
			switch {
			case arg == "-C":
				module = filepath.Join(root, m.command[i+1])
			case arg == "-run":
				pattern = m.command[i+1]
			case arg == "." || strings.HasPrefix(arg, "./"):
				dir := filepath.Join(module, arg)
				if _, read := testsOf[dir]; !read {
					testsOf[dir] = testNames(t, dir)
				}
				names = append(names, testsOf[dir]...)
			}
		}
		for _, alternative := range strings.Split(pattern, "|") {
			name, _, _ := strings.Cut(alternative, "/")
			re, err := regexp.Compile(name)
			if err != nil {
				t.Errorf("mutants.txt:%d: %s: %q: %v", m.line, m.name, name, err)
				continue
			}
			if !slices.ContainsFunc(names, re.MatchString) {
				t.Errorf("mutants.txt:%d: %s: no test matches %q", m.line, m.name, name)
			}
		}
	}
}

// testNames returns the names of the tests, fuzz targets and examples in a directory.
func testNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range declared.FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
	}
	return names
}

func TestRunChoosesByName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(path, []byte("mutant: m\nfile: f\ntest: go test .\nwhy: w\n--- old\na\n--- new\nb\n--- end\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-run", "zzz", path}, "none of its 1 mutants"},
		{[]string{"-run", "(", path}, "-run"},
		{nil, "expected the list file"},
		{[]string{filepath.Join(t.TempDir(), "no-such-list")}, "no such file"},
	} {
		if err := run(t.Context(), c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("run %q = %v, want an error that contains %q", c.args, err, c.want)
		}
	}
}
