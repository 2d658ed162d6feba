package idl

import (
	"strings"
	"testing"
)

func TestNamesAreResolved(t *testing.T) {
	a := files{
		"a.thrift": `include "b.thrift"
typedef b.Id Key
typedef list<Key> Keys
struct A { 1: Keys keys, 2: b.Level level = b.Level.HIGH, 3: i32 n = M, 4: B own }
struct B {}
const i32 M = N
const i32 N = b.LIMIT
const b.Level L = 2
exception E {}
service S extends b.Base { Key f(1: A a) throws (1: E e) }`,
		"b.thrift": "typedef i64 Id\nenum Level { LOW = 1, HIGH = 2 }\nconst i16 LIMIT = 7\nservice Base { void ping() }",
	}.mustLoad(t)
	b := a.Includes[0].File
	s := a.Type("A").(*Struct)

	keys := s.Field("keys").Type
	if keys.Kind != Named || keys.Decl != a.Type("Keys") || keys.True().Kind != List || keys.True().Elem.True().Kind != I64 || keys.String() != "Keys" {
		t.Errorf("keys is %+v", keys)
	}
	level := s.Field("level")
	if level.Type.Enum() != b.Type("Level") || level.Default.EnumValue != level.Type.Enum().Value("HIGH") || level.Type.Struct() != nil {
		t.Errorf("level is %+v", level)
	}
	if n := s.Field("n").Default; n.Const != a.Const("M") || n.Literal().Int != 7 || n.Literal().Kind != IntValue {
		t.Errorf("the default of n is %+v", n)
	}
	if own := s.Field("own").Type; own.Struct() != a.Type("B") || own.True() != own {
		t.Errorf("own is %+v", own)
	}
	if l := a.Const("L").Value; l.EnumValue != b.Type("Level").(*Enum).ByNumber(2) || l.Literal() != l {
		t.Errorf("L is %+v", l)
	}
	service := a.Service("S")
	if service.Base != b.Service("Base") || service.Function("ping") != service.Base.Functions[0] || service.Function("pong") != nil {
		t.Errorf("the service is %+v", service)
	}
	f := service.Function("f")
	if f.Result.True().Kind != I64 || f.Args[0].Type.Struct() != s || f.Throws[0].Type.Struct().Kind != Exception || f.Throws[0].Type.Struct().File != a {
		t.Errorf("the function is %+v", f)
	}
	if a.Type("S") != nil || a.Service("A") != nil || a.Type("Nope") != nil || a.Const("A") != nil {
		t.Error("a name was found as another kind of declaration")
	}
}

func TestNamespaceOfALanguage(t *testing.T) {
	f, err := Parse("a.thrift", []byte("namespace * all\nnamespace go some.go\nnamespace py p"))
	if err != nil {
		t.Fatal(err)
	}
	for language, want := range map[string]string{"go": "some.go", "py": "p", "java": "all"} {
		if got := f.Namespace(language); got != want {
			t.Errorf("the namespace of %s is %q, expected %q", language, got, want)
		}
	}
	if got := (&File{}).Namespace("go"); got != "" {
		t.Errorf("a file without namespaces has %q", got)
	}
}

func TestAnnotationsKeepTheirOrder(t *testing.T) {
	f, err := Parse("a.thrift", []byte(`struct A {} (b = "1", a, b = "2")`))
	if err != nil {
		t.Fatal(err)
	}
	all := f.Decls[0].Info().Annotations
	value, ok := all.Get("b")
	_, none := all.Get("c")
	if len(all) != 3 || all[1].Value != "1" || value != "2" || !ok || none || all[1].Pos != (Pos{1, 23}) {
		t.Errorf("the annotations are %+v", all)
	}
}

// Identical types are the same type, regardless of their names: a constant of one may be used as a
// value of the other.
func TestConstantStandsForAValueOfAnIdenticalType(t *testing.T) {
	files{"a.thrift": `typedef list<N> Numbers
typedef i32 N
typedef Numbers More
const map<string, More> A = {"a": [1]}
const map<string, list<i32>> B = A
const list<i32> C = [1]
const map<string, Numbers> D = {"c": C}`}.mustLoad(t)
	_, err := files{"a.thrift": "const list<i32> A = [1]\nconst list<i64> B = A\nconst set<i32> C = A\n" +
		"const map<i32, i32> D = {1: 1}\nconst map<i64, i32> E = D"}.load("a.thrift")
	wantError(t, err, "a.thrift:2:21: expected a list<i64>, found A, which is a list<i32>", "a.thrift:3:20: expected a set<i32>",
		"a.thrift:5:25: expected a map<i64,i32>, found D, which is a map<i32,i32>")
}

func TestStructThatRequiresItself(t *testing.T) {
	p, err := files{"a.thrift": `struct A { 1: required B b }
struct B { 1: required i32 n, 2: required C c }
typedef A Again
struct C { 1: required Again a }
struct Fine { 1: optional Fine a, 2: required list<Fine> b, 3: required U u }
union U { 1: Fine fine }`}.load("a.thrift")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0].Error(), "a.thrift:4:30: A requires itself through C.a") {
		t.Errorf("the warnings are %v", p.Warnings)
	}
}

func TestExceptionAsAValueIsWarnedOf(t *testing.T) {
	p, err := files{"a.thrift": "exception E {}\nstruct A { 1: list<E> a }\nservice S { E f(1: E e) throws (1: E x) }"}.load("a.thrift")
	if err != nil || len(p.Warnings) != 3 {
		t.Errorf("the warnings are %v, %v", p.Warnings, err)
	}
}

func TestFileThatBeginsWithAByteOrderMark(t *testing.T) {
	f, err := Parse("a.thrift", []byte("\xef\xbb\xbfstruct A {}\r\nstruct B {}\r\n"))
	if err != nil || len(f.Decls) != 2 || f.Decls[1].Info().Pos != (Pos{2, 8}) {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestCommentsBelongToWhatTheyStandAt(t *testing.T) {
	for _, c := range []struct{ name, src, doc, comment string }{
		{"line above", "// a\nstruct A {}", "a", ""},
		{"lines above", "// a\n//  b\n#c\nstruct A {}", "a\n b\nc", ""},
		{"empty line between", "// a\n\nstruct A {}", "", ""},
		{"two groups", "// a\n\n// b\nstruct A {}", "b", ""},
		{"block", "/* a */ struct A {}", "a", ""},
		{"doc wins", "/** a */\n// b\nstruct A {}", "a", ""},
		{"doc before an empty line", "/** a */\n\nstruct A {}", "a", ""},
		{"last doc", "/** a */\n/** b */\nstruct A {}", "b", ""},
		{"block of lines", "/**\n * a\n *\n *  b\n */\nstruct A {}", "a\n\n b", ""},
		{"block without stars", "/**\n   a\n     b\n*/\nstruct A {}", "a\n  b", ""},
		{"windows", "/**\r\n * a\r\n * b\r\n */\r\nstruct A {}", "a\nb", ""},
		{"after the brace", "struct A { // a\n}", "", "a"},
		{"after the end", "struct A {} // a", "", "a"},
		{"after annotations", "struct A {} (a) /* b */", "", "b"},
		{"not of the next", "const i32 A = 1, // a\nstruct B {}", "", "a"},
		{"only stars", "/***/\nstruct A {}", "", ""},
		{"below", "struct A {}\n// a\n", "", ""},
	} {
		f, err := Parse("a.thrift", []byte(c.src))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if n := f.Decls[0].Info(); n.Doc != c.doc || n.Comment != c.comment {
			t.Errorf("%s: doc %q, comment %q; expected %q and %q", c.name, n.Doc, n.Comment, c.doc, c.comment)
		}
	}
}

// The last annotation counts, a key without a value means true, and other values than true and
// false are reported.
//
// mutant: thrift-idl-idempotent-by-any-annotation
func TestIdempotentFunctions(t *testing.T) {
	f, err := Parse("a.thrift", []byte(`service S {
  void a() (slipstream.idempotent = "true") void b() (slipstream.idempotent) void c() (slipstream.idempotent = "false") void d()
  void e() (other = "true") void f() (slipstream.idempotent = "false", slipstream.idempotent = "1") void g() (slipstream.idempotent = "maybe", other = "x")
}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, fn := range f.Decls[0].(*Service).Functions {
		is, wrong := fn.Idempotent()
		if want := strings.Contains("abf", fn.Name); is != want {
			t.Errorf("%s: %v, want %v", fn.Name, is, want)
		}
		if (wrong != nil) != (fn.Name == "g") || wrong != nil && wrong.Value != "maybe" {
			t.Errorf("%s: %v is wrong", fn.Name, wrong)
		}
	}
}
