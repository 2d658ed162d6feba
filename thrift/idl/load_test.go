package idl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// files is a set of files in memory.
type files map[string]string

func (f files) read(path string) ([]byte, error) {
	src, ok := f[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return []byte(src), nil
}

func (f files) load(names ...string) (*Program, error) {
	return Load(Config{ReadFile: f.read}, names...)
}

// mustLoad loads the file "a.thrift".
func (f files) mustLoad(t *testing.T) *File {
	t.Helper()
	p, err := f.load("a.thrift")
	if err != nil {
		t.Fatal(err)
	}
	return p.Roots[0]
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, expected one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error is\n%v\nexpected %q in it", err, part)
		}
	}
}

func TestIncludesAreFoundBesideTheFileAndThenInDirs(t *testing.T) {
	f := files{
		"x/a.thrift":     "include \"y/b.thrift\"\ninclude \"c.thrift\"\nnamespace go a\n",
		"x/y/b.thrift":   "include \"../near.thrift\"\nnamespace go b\n",
		"x/near.thrift":  "namespace go near\n",
		"lib1/c.thrift":  "include \"d.thrift\"\nnamespace go c\n",
		"lib2/c.thrift":  "namespace go not_this_one\n",
		"lib2/d.thrift":  "namespace go d\n",
		"lib1/a.thrift":  "namespace go not_this_one\n",
		"y/b.thrift":     "namespace go not_this_one\n",
		"lib1/y/b.thrif": "",
	}
	p, err := Load(Config{ReadFile: f.read, Dirs: []string{"lib1", "./lib2/"}}, "./x/a.thrift")
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, file := range p.Files {
		order = append(order, file.Path)
	}
	if got := strings.Join(order, " "); got != "x/near.thrift x/y/b.thrift lib2/d.thrift lib1/c.thrift x/a.thrift" {
		t.Errorf("the files are %s", got)
	}
	if a := p.Roots[0]; a.Path != "x/a.thrift" || a.Name != "a" || a.Includes[1].File.Path != "lib1/c.thrift" {
		t.Errorf("the root is %+v", a)
	}
}

func TestFileThatSeveralIncludeIsLoadedOnce(t *testing.T) {
	reads := 0
	f := files{
		"a.thrift": "include \"b.thrift\"\ninclude \"c.thrift\"\ninclude \"./b.thrift\"\nstruct A { 1: b.B x, 2: c.C y }",
		"b.thrift": "include \"c.thrift\"\nstruct B { 1: c.C c }",
		"c.thrift": "struct C {}",
	}
	p, err := Load(Config{ReadFile: func(path string) ([]byte, error) { reads++; return f.read(path) }}, "a.thrift", "c.thrift", "a.thrift")
	if err != nil {
		t.Fatal(err)
	}
	if reads != 3 || len(p.Files) != 3 || len(p.Roots) != 3 || p.Roots[0] != p.Roots[2] || p.Roots[1] != p.Files[0] {
		t.Errorf("%d reads, files %v, roots %v", reads, p.Files, p.Roots)
	}
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0].Error(), "a.thrift:3:9: b.thrift is included twice") {
		t.Errorf("the warnings are %v", p.Warnings)
	}
}

func TestCycleOfIncludesIsRefusedWithItsChain(t *testing.T) {
	_, err := files{
		"a.thrift": "include \"b.thrift\"",
		"b.thrift": "include \"c.thrift\"",
		"c.thrift": "include \"d.thrift\"",
		"d.thrift": "include \"b.thrift\"",
	}.load("a.thrift")
	wantError(t, err, "d.thrift:1:9: include cycle: b.thrift includes c.thrift includes d.thrift includes b.thrift\n")
	_, err = files{"a.thrift": "include \"a.thrift\""}.load("a.thrift")
	wantError(t, err, "cycle: a.thrift includes a.thrift\n")
	long := files{}
	for i := range 90 {
		long[fmt.Sprintf("f%d.thrift", i)] = fmt.Sprintf("include \"f%d.thrift\"", (i+1)%90)
	}
	_, err = long.load("f0.thrift")
	wantError(t, err, "f7.thrift and 82 more includes f0.thrift")
}

func TestFilesThatCannotBeRead(t *testing.T) {
	denied := errors.New("connection lost")
	_, err := Load(Config{ReadFile: func(path string) ([]byte, error) {
		if path == "a.thrift" {
			return []byte("include \"b.thrift\""), nil
		}
		return nil, denied
	}}, "a.thrift", "c.thrift")
	wantError(t, err, "a.thrift:1:9: the file b.thrift cannot be read: connection lost", "c.thrift: the file c.thrift cannot be read")
	var one *Error
	if !errors.Is(err, denied) || !errors.As(err, &one) || one.File != "a.thrift" || one.Pos != (Pos{1, 9}) {
		t.Errorf("%v does not wrap its causes", err)
	}
	_, err = files{}.load("a.thrift")
	if wantError(t, err, "a.thrift: the file was not found"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
	_, err = Load(Config{}, filepath.Join(t.TempDir(), "none.thrift"))
	wantError(t, err, "none.thrift: the file was not found")
	_, err = Load(Config{}, t.TempDir())
	wantError(t, err, "cannot be read")
}

func TestNamesOfFilesAreShownWithoutCommandsOfATerminal(t *testing.T) {
	_, err := files{"a.thrift": "include \"\x1b[2J.thrift\""}.load("a.thrift", "\x1b.thrift")
	wantError(t, err, "tried ?[2J.thrift", "?.thrift: the file was not found")
	if strings.Contains(err.Error(), "\x1b") {
		t.Errorf("the error is %q", err)
	}
}

func TestFilesOfAnFS(t *testing.T) {
	fsys := fstest.MapFS{
		"idl/a.thrift": {Data: []byte("include \"sub/b.thrift\"\nstruct A { 1: b.B b }")},
		"lib/b.thrift": {Data: []byte("struct Other {}")},
		"idl/sub/b.thrift": {Data: []byte("include \"../../../../etc/passwd\"\n" +
			"struct B {}")},
	}
	config := Config{ReadFile: func(path string) ([]byte, error) { return fs.ReadFile(fsys, path) }}
	_, err := Load(config, "idl/a.thrift")
	wantError(t, err, `the file "../../../../etc/passwd" was not found`)
	fsys["idl/sub/b.thrift"].Data = []byte("struct B {}")
	if _, err := Load(config, "idl/a.thrift"); err != nil {
		t.Error(err)
	}
}

func TestAbsoluteIncludesAreNotSearched(t *testing.T) {
	folder := t.TempDir()
	lib := filepath.Join(folder, "lib.thrift")
	if err := os.WriteFile(lib, []byte("struct L {}"), 0o600); err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(folder, "main.thrift")
	src := fmt.Sprintf("include %q\nstruct A { 1: lib.L l }", filepath.ToSlash(lib))
	if err := os.WriteFile(main, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(Config{Dirs: []string{"elsewhere"}}, main); err != nil {
		t.Error(err)
	}
}

func TestFilesWithTheSameNameAreToldApartByWhatTheyDeclare(t *testing.T) {
	f := files{
		"a.thrift":   "include \"x/b.thrift\"\ninclude \"y/b.thrift\"\nstruct A { 1: b.X x, 2: b.Y y, 3: b.Both z }\nconst i32 C = b.N\nconst i32 D = b.M",
		"x/b.thrift": "namespace go x\nstruct X {}\nstruct Both {}\nconst i32 N = 1\nconst i32 M = 1",
		"y/b.thrift": "namespace go y\nstruct Y {}\nstruct Both {}\nconst i32 N = 1",
	}
	_, err := f.load("a.thrift")
	wantError(t, err, "a.thrift:3:35: b.Both is ambiguous: both x/b.thrift and y/b.thrift declare it", "a.thrift:4:15: b.N is ambiguous")
	if list := err.(ErrorList); len(list) != 2 {
		t.Errorf("there are %d errors: %v", len(list), err)
	}
}

// Consequences of a syntax error, such as missing names, are not reported.
func TestFileWithSyntaxErrorsIsNotCheckedFurther(t *testing.T) {
	_, err := files{
		"a.thrift": "include \"b.thrift\"\nstruct A { 1: b.B x, 2: Unknown y }",
		"b.thrift": "struct B { 1: i32 }\nstruct C { 1: Unknown z }",
		"c.thrift": "struct D { 1: Missing m }",
	}.load("a.thrift", "c.thrift")
	wantError(t, err, "b.thrift:1:19: expected the name", "c.thrift:1:15: unknown type Missing")
	if list := err.(ErrorList); len(list) != 2 {
		t.Errorf("there are %d errors: %v", len(list), err)
	}
}

func TestNegativeIDsAreKeptIfTheConfigurationSaysSo(t *testing.T) {
	f := files{"a.thrift": "struct A { -5: i32 a, i32 b, 0: i32 c, -1: i32 d }"}
	for negative, want := range map[bool]string{false: "[-1 -2 -3 -4]", true: "[-5 -6 0 -1]"} {
		p, err := Load(Config{ReadFile: f.read, NegativeIDs: negative}, "a.thrift")
		if err != nil {
			t.Fatal(err)
		}
		var ids []int16
		for _, field := range p.Roots[0].Type("A").(*Struct).Fields {
			ids = append(ids, field.ID)
		}
		if fmt.Sprint(ids) != want {
			t.Errorf("with NegativeIDs %v: %v, expected %s", negative, ids, want)
		}
	}
}

func TestAllErrorsComeAtOnceInTheirOrder(t *testing.T) {
	_, err := files{
		"a.thrift": "include \"b.thrift\"\nconst i32 X = \"a\"\nstruct A { 1: Nope a = 5, 2: i32 b = \"b\" }\nservice S extends T {}",
		"b.thrift": "const string Y = 1\nstruct B { 1: Nope b }",
	}.load("a.thrift")
	var places []string
	for _, e := range err.(ErrorList) {
		places = append(places, fmt.Sprintf("%s:%s", e.File, e.Pos))
	}
	if got := strings.Join(places, " "); got != "b.thrift:1:18 b.thrift:2:15 a.thrift:2:15 a.thrift:3:15 a.thrift:3:38 a.thrift:4:19" {
		t.Errorf("errors at %s", got)
	}
}
