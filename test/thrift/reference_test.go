package thrift

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift/gen"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

// edit changes the IDL for some or all languages where version 0.17 of the compiler, or thriftpy2,
// does not support it, although the language allows it.
type edit struct {
	languages string // "" for all
	file      string // "" for all
	old       string // a regular expression
	new       string
	whyTheyDo string
}

var edits = []edit{
	{"", "", `\buuid\b`, "string", "0.17 has no uuid"},
	{"", "types.thrift", `(?m)^.* places = .*\n`, "", "constants are refused as elements of the default of a list of structs"},
	{"", "types.thrift", `(?m)^.* words = shared.WORDS\n`, "", "a constant list as a default is an empty list"},
	{"", "types.thrift", `text = "unset"`, "text", "the default of a field of a union is a second value of it, or no value at all"},
	{"", "shop.thrift", `(?m)^const Order .*\n`, "", "constants are refused as elements of a list of structs"},
	{"", "constants.thrift", `(?m)^const .*\n`, "", "constants that need others are refused or do not compile; they are not sent"},
	{"", "constants.thrift", `-0\.0`, "0.5", "constants of Go have no negative zero"},
	{"", "names.thrift", `(?m)^.* i32 string\n`, "", "names of types are refused as names of fields"},
	{"", "lib/shared.thrift", `(?m)^const binary .*\n`, "", "a binary becomes a constant of Go, which does not compile"},
	{"go", "shop.thrift", `(?m)^ *SENT_BACK.*\n`, "", "two names of a value become two cases of a switch, which does not compile"},
	{"go", "ids.thrift", `(?m)^union .*\n`, "", "negative IDs in a union make code that does not compile"},
	{"go", "evolve.thrift", `-5: optional `, "-5: ", "an optional field with a negative ID makes code that does not compile"},
	{"go", "types.thrift", `maybe_words = .*`, "maybe_words", "only getters return defaults that are pointers"},
	{"go", "types.thrift", `(?m)^.* place = .*\n`, "", "the same, and a struct that is nil is written without the fields that are required"},
	{"go", "types.thrift", `(?m)^.*map<(list|set)<.*\n`, "", "containers are refused as keys"},
	{"python", "names.thrift", `(bool is|string as)\n`, "${1}_\n", "keywords of Python are refused as names"},
	{"python thriftpy2", "types.thrift", `(?m)^.*(map<(list|set|shared.Point|WithDefaults)\b|set<Numbers>).*\n`, "", "containers and structs cannot be keys in Python"},
	{"python thriftpy2", "types.thrift", `WithDefaults (changed|same) = .*`, "WithDefaults $1", "a struct as a default is used before it is declared"},
	{"python thriftpy2", "constants.thrift", `(Inner inner) = \{[^}]*\}|(by_name) = .*?\}\}`, "$1$2", "a struct as a default is used before it is declared"},
}

// TestForeignCode generates code with the compiler of Apache Thrift for the IDL with which our
// generator is tested. Programs with that code and tests with ours exchange structs and messages.
// So does a program with thriftpy2, which reads the IDL itself:
//
//	make reference
//
// What the tests in testdata/inner skip or expect for only one language is listed there with the
// reason, like the changes of the IDL in edits.
func TestForeignCode(t *testing.T) {
	compiler, python, thriftpy2 := os.Getenv("SLIPSTREAM_THRIFT"), os.Getenv("SLIPSTREAM_PYTHON"), os.Getenv("SLIPSTREAM_THRIFTPY2")
	if compiler == "" || python == "" || thriftpy2 == "" {
		t.Skip("SLIPSTREAM_THRIFT, SLIPSTREAM_PYTHON and SLIPSTREAM_THRIFTPY2 are not paths of programs: make reference runs this test")
	}
	for _, language := range []string{"thriftpy2", "python", "go"} {
		t.Run(language, func(t *testing.T) {
			m := newModule(t, gen.Config{KeepUnknown: true, SortedKeys: true}, edited(t, language), "peers_test.go")
			write(t, filepath.Join(m.dir, "testpkg/messages_test.go"), read(t, "testdata/inner/messages_test.go"))
			if language == "thriftpy2" {
				m.test(t, "PEER_LANGUAGE=thriftpy2", "PEER="+thriftpy2+" "+absolute(t, "testdata/peer/thriftpy.py")+" "+filepath.Join(m.dir, "idl"))
				return
			}
			if language == "python" {
				m.test(t, "PEER_LANGUAGE=python", "PEER="+buildPython(t, compiler, python, m))
				return
			}
			// Code of the old compiler runs with the library of its version and with the newest
			// one.
			for _, version := range []string{"v0.17.0", "v0.25.0"} {
				m.test(t, "PEER_LANGUAGE=go", "PEER="+buildGo(t, compiler, version, m))
			}
		})
	}
}

// edited returns the IDL for a language.
func edited(t *testing.T, language string) map[string]string {
	t.Helper()
	all := sources(t)
	switch language {
	case "go":
		delete(all, "names.thrift") // 0.17 does not resolve names that collide in Go
	case "thriftpy2":
		delete(all, "names.thrift") // the compiler refuses keywords of many languages as names
	}
	for _, e := range edits {
		if e.languages != "" && !strings.Contains(e.languages, language) {
			continue
		}
		done := false
		for name, text := range all {
			if e.file != "" && name != e.file {
				continue
			}
			all[name] = regexp.MustCompile(e.old).ReplaceAllString(text, e.new)
			done = done || all[name] != text
		}
		if _, there := all[e.file]; !done && (there || e.file == "") {
			t.Errorf("the edit %q of %s changes nothing", e.old, e.file)
		}
	}
	namespace := regexp.MustCompile(`(?m)^namespace `)
	for name, text := range all {
		base := strings.TrimSuffix(filepath.Base(name), ".thrift")
		at := namespace.FindStringIndex(text)
		if at == nil {
			t.Fatalf("%s has no namespace", name)
		}
		all[name] = text[:at[0]] + "namespace py peer." + base + "\n" + text[at[0]:]
	}
	return all
}

// compile runs the compiler for each file of a module.
func compile(t *testing.T, compiler, target, out string, m module) {
	t.Helper()
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(m.dir, "idl/*.thrift"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		run(t, m.dir, nil, compiler, "-r", "-allow-neg-keys", "--gen", target, "-out", out, file)
	}
}

// buildPython returns the command of a peer.
func buildPython(t *testing.T, compiler, python string, m module) string {
	t.Helper()
	dir := t.TempDir()
	compile(t, compiler, "py", dir, m)
	write(t, filepath.Join(dir, "main.py"), read(t, "testdata/peer/peer.py"))
	return python + " " + filepath.Join(dir, "main.py")
}

// buildGo returns the command of a peer that uses a version of the library.
func buildGo(t *testing.T, compiler, version string, m module) string {
	t.Helper()
	dir := t.TempDir()
	compile(t, compiler, "go:package_prefix=peer/", dir, m)
	remotes, err := filepath.Glob(filepath.Join(dir, "testpkg/*/*-remote"))
	if err != nil {
		t.Fatal(err)
	}
	for _, remote := range remotes {
		if err := os.RemoveAll(remote); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "go.mod"), "module peer\n\ngo 1.26.0\n\nrequire github.com/apache/thrift "+version+"\n")
	write(t, filepath.Join(dir, "main.go"), read(t, "testdata/peer/main.go"))
	write(t, filepath.Join(dir, "structs.go"), constructors(m))
	run(t, dir, []string{"GOFLAGS=-mod=mod", "GOWORK=off", "GOTOOLCHAIN=local"}, "go", "build", "-o", "peer", ".")
	return filepath.Join(dir, "peer")
}

// constructors returns a file with the constructors of all structs.
func constructors(m module) string {
	var list []string
	imports := make(map[string]bool)
	for _, f := range m.program.Files {
		dir := strings.ReplaceAll(f.Namespace("go"), ".", "/")
		for _, d := range f.Decls {
			if s, ok := d.(*idl.Struct); ok {
				imports[dir] = true
				list = append(list, fmt.Sprintf("\t\"%s.%s\": func() thrift.TStruct { return %s.New%s() },\n", f.Name, s.Name, packageVar(dir), s.Name))
			}
		}
	}
	slices.Sort(list)
	text := "package main\n\nimport (\n\t\"github.com/apache/thrift/lib/go/thrift\"\n"
	for dir := range imports {
		text += fmt.Sprintf("\t%s \"peer/%s\"\n", packageVar(dir), dir)
	}
	return text + ")\n\nvar structs = map[string]func() thrift.TStruct{\n" + strings.Join(list, "") + "}\n"
}
