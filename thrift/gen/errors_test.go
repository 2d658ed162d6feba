package gen

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

func TestErrors(t *testing.T) {
	long := strings.Repeat("n", 256)
	for name, test := range map[string]struct {
		files []string
		want  []string
	}{
		"import cycle": {
			[]string{"a1.thrift", "namespace go a\ninclude \"b.thrift\"\nstruct A1 { 1: b.B b }", "a2.thrift", "namespace go a\nstruct A2 {}",
				"b.thrift", "namespace go b\ninclude \"a2.thrift\"\nstruct B { 1: a2.A2 a }"},
			[]string{"b.thrift:2:9: import cycle of Go packages: a imports b in a1.thrift, b imports a in b.thrift. Files that refer", "\n\tinclude \"a2.thrift\"\n\t        ^"},
		},
		"the import path is not known": {
			[]string{"a.thrift", "include \"b.thrift\"\nstruct A { 1: b.B b }", "b.thrift", "struct B {}"},
			[]string{"a.thrift:1:9: the Go package a imports b, but the import path of the output directory is not known"},
		},
		"a default that contains itself": {
			[]string{"a.thrift", "struct A { 1: B b = {} }\nstruct B { 1: list<A> a = [ONE, {\"b\": {}}] }\nconst A ONE = {}\nstruct C { 1: C c = {} }"},
			[]string{"a.thrift:4:17: the default of c contains a C", "a.thrift:2:23: the default of a contains a B"},
		},
		"long names": {
			[]string{"a.thrift", "enum " + long + " { X }\nstruct A { 1: i32 " + long + " }\nservice S { void f(1: i32 " + long + ") }\nconst i32 " + long[1:] + " = 1"},
			[]string{"a.thrift:1:6: the name nnnnnnnnnnnnnnnnnnnn… is longer than 255 bytes", "a.thrift:2:19: the name", "a.thrift:3:27: the name"},
		},
		"capitals": {
			[]string{"a.thrift", "namespace go x.Shop\ninclude \"b.thrift\"", "b.thrift", "namespace go x.shop"},
			[]string{"a.thrift: the Go package x/Shop differs from the package x/shop of b.thrift only by capitals"},
		},
	} {
		module := "example.com/generated"
		if name == "the import path is not known" {
			module = ""
		}
		_, err := Generate(Config{Module: module}, source(t, test.files...))
		if errors.Is(err, ErrNoModule) != (module == "") {
			t.Errorf("%s: errors.Is says that ErrNoModule is %v", name, module != "")
		}
		if _, ok := errors.AsType[idl.ErrorList](err); !ok {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}

// An include of which no type is used is not an import, so it is not part of a cycle.
func TestIncludesThatAreNotUsed(t *testing.T) {
	generate(t, Config{}, source(t, "a1.thrift", "namespace go a\ninclude \"b.thrift\"\nstruct A1 { 1: i32 b }", "a2.thrift", "namespace go a\nstruct A2 {}",
		"b.thrift", "namespace go b\ninclude \"a2.thrift\"\nstruct B {}"))
}

func TestTwoFieldsWithTheIDZero(t *testing.T) {
	for _, src := range []string{"struct A { 0: i32 a, 0: i32 b }", "exception E {} service S { i32 f() throws (0: E e) }"} {
		p, err := idl.Load(idl.Config{NegativeIDs: true, ReadFile: func(string) ([]byte, error) { return []byte(src), nil }}, "a.thrift")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Generate(Config{}, p); err == nil || !strings.Contains(err.Error(), "the ID 0 of ") {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func TestErrorsOfPluginsAreReturned(t *testing.T) {
	mistake := errors.New("a mistake")
	_, err := Generate(Config{Plugins: []Plugin{func(*GoFile) error { return mistake }}}, source(t, "a.thrift", "struct A {}"))
	if !errors.Is(err, mistake) {
		t.Error(err)
	}
}

func TestPluginsAddDeclarationsAndFiles(t *testing.T) {
	plugin := func(f *GoFile) error {
		for _, d := range f.IDL.Decls {
			s, ok := d.(*idl.Struct)
			if !ok {
				continue
			}
			f.Printf("")
			f.Printf("var %s = %s.Itoa(%s.Len64(1))", f.Declare("Added"), f.Import("strconv"), f.Import("math/bits"))
			f.Printf("")
			f.Printf("func (*%s) First() (v %s) { return v }", f.NameOf(s), f.TypeOf(s.Fields[0].Type))
			if f.FieldOf(s, s.Fields[0]) != "Items" || f.FieldOf(s, new(idl.Field)) != "" {
				t.Error(f.FieldOf(s, s.Fields[0]))
			}
		}
		f.AddFile("../extra.go", []byte("package "+f.Package()+"\n"))
		return nil
	}
	files := generate(t, Config{Module: "example.com/m", Plugins: []Plugin{plugin}}, source(t, "a.thrift", `namespace go x.y
		include "b.thrift"
		struct Added { 1: list<b.B> items }`, "b.thrift", "struct B { 1: i32 items }"))
	for _, err := range typeErrors("example.com/m", files) {
		t.Error(err)
	}
	if len(files) != 4 || files[2].Name != "x/y/a_thrift.go" || files[3].Name != "x/y/extra.go" {
		t.Errorf("%d files, the last one is %s", len(files), files[len(files)-1].Name)
	}
	for _, want := range []string{"var Added_ = strconv.Itoa(bits.Len64(1))", "func (*Added) First() (v []b.B) { return v }", "\t\"strconv\"\n"} {
		if !strings.Contains(string(files[2].Content), want) && !strings.Contains(string(files[2].Content), strings.ReplaceAll(want, "b.B", "bpkg.B")) {
			t.Errorf("%s is missing in\n%s", want, files[2].Content)
		}
	}
}

func TestNames(t *testing.T) {
	for in, want := range map[string]string{
		"id": "ID", "user_id": "UserID", "userId": "UserID", "UserID": "UserID", "url": "URL", "html_url": "HTMLURL", "by_name": "ByName",
		"_private": "Private", "__": "X", "_1": "X1", "a_1_2": "A1_2", "a_12": "A12", "MAX_SIZE": "MaxSize", "SKU": "SKU", "HTTPServer": "HTTPServer",
		"user_id_": "UserID", "x2y": "X2y", "utf8_text": "UTF8Text", "A_": "A", "user_ids": "UserIDs", "https": "HTTPS", "URLS": "URLs",
	} {
		if got := Exported(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{"RED": "Red", "red": "Red", "MAX_ID": "MaxID", "Mixed": "Mixed"} {
		if got := exported(in, true); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"shop": "shop_thrift", "my shop.v1": "my_shop_v1_thrift", "_x": "x_thrift", "": "x_thrift", "a_linux": "a_linux_thrift", "a_test": "a_test_thrift", "é": "x_thrift",
	} {
		if got := fileName(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// Files with the same name in one package get different names.
func TestFilesWithTheSameName(t *testing.T) {
	files := generate(t, Config{}, source(t, "a.thrift", "namespace go p\ninclude \"x/a.thrift\"\nstruct A {}", "x/a.thrift", "namespace go p\nstruct B {}"))
	if len(files) != 2 || files[0].Name != "p/a_thrift.go" || files[1].Name != "p/a_thrift_.go" {
		t.Errorf("%v", files)
	}
}

func TestOutputIsDeterministic(t *testing.T) {
	c := variants["table"]
	c.Module = module
	first, err := Generate(c, load(t, "testdata/idl/*.thrift"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := Generate(c, load(t, "testdata/idl/*.thrift"))
	if err != nil || len(again) != len(first) {
		t.Fatal(err)
	}
	for i, f := range first {
		if again[i].Name != f.Name || string(again[i].Content) != string(f.Content) {
			t.Errorf("%s differs", f.Name)
		}
	}
}

// Small hostile files are processed quickly, and cause an error or output that is not much larger.
func TestHostileFiles(t *testing.T) {
	var maps, structs, names, texts, widths strings.Builder
	maps.WriteString("typedef map<i32,i32> T0\n")
	for i := range 45 {
		fmt.Fprintf(&maps, "typedef map<T%d,T%d> T%d\n", i, i, i+1)
	}
	maps.WriteString("struct A { 1: T45 a, 2: list<T40> b }")
	structs.WriteString("struct S0 { 1: i32 a = 1 }\n")
	for i := range 200 {
		fmt.Fprintf(&structs, "struct S%d { 1: S%d a = {}, 2: S%d b = {} }\nconst list<S%d> C%d = [{}, {}]\n", i+1, i, i, i, i)
	}
	names.WriteString("struct A {\n")
	for i := range 1 << 12 {
		name := make([]byte, 0, 40)
		for bit := range 12 {
			if name = append(name, 'x'); i>>bit&1 != 0 {
				name = append(name, '_')
			}
			name = append(name, 'Y')
		}
		fmt.Fprintf(&names, "%d: i32 %s\n", i+1, name)
	}
	names.WriteString("}")
	fmt.Fprintf(&texts, "const binary B = %q\nconst list<string> L = [", strings.Repeat("x", 100_000))
	for range 1000 {
		texts.WriteString("B,")
	}
	texts.WriteString("]")
	fmt.Fprintf(&widths, "struct A {\n1: i32 %s\n", strings.Repeat("x", 255))
	for i := range 1 << 12 {
		fmt.Fprintf(&widths, "%d:i8 f%d\n", i+2, i)
	}
	widths.WriteString("}")
	comment := "/** " + strings.Repeat("a", 1<<20) + " */ struct A {}"
	for name, src := range map[string]string{
		"maps": maps.String(), "structs": structs.String(), "names": names.String(), "texts": texts.String(), "widths": widths.String(), "a comment": comment,
	} {
		start := time.Now()
		files, err := Generate(variants["table"], source(t, "a.thrift", src))
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s: %v", name, took)
		}
		switch {
		case (err != nil) != (name == "maps" || name == "texts"):
			t.Errorf("%s: %v", name, err)
		case err == nil && len(files[0].Content) > 200*len(src):
			t.Errorf("%s: %d bytes for %d", name, len(files[0].Content), len(src))
		}
	}
}

// Identical types share functions; a list of sets is not a list of lists.
func TestContainersThatDifferOnlyInside(t *testing.T) {
	files := generate(t, Config{}, source(t, "a.thrift", "typedef list<i32> L struct A { 1: list<set<i32>> a, 2: list<list<i32>> b, 3: set<list<i32>> c, 4: list<L> d }"))
	for _, want := range []string{"appendListSetI32(b, p.A)", "appendListListI32(b, p.B)", "appendListListI32(b, p.C)", "appendListListI32(b, p.D)",
		"AppendList(b, thrift.TypeSet, len(v))", "AppendList(b, thrift.TypeList, len(v))"} {
		if !strings.Contains(string(files[0].Content), want) {
			t.Errorf("%s is missing in\n%s", want, files[0].Content)
		}
	}
}

// Reused elements of a list do not keep their maps.
func TestOldElementsLoseTheirMaps(t *testing.T) {
	files := generate(t, Config{}, source(t, "a.thrift", "struct A { 1: map<i32, i32> a, 2: optional map<string, string> b, 3: map<bool, A> c, 4: list<A> d }"))
	want := "\t\t\t\t\tp.D[i].A, p.D[i].C = nil, nil\n\t\t\t\t\tp.D[i].Reset()\n"
	if n := strings.Count(string(files[0].Content), want); n != 2 {
		t.Errorf("%q appears %d times in\n%s", want, n, files[0].Content)
	}
}
