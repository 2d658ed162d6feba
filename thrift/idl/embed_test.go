package idl

import (
	"strings"
	"sync"
	"testing"
)

// withoutDocs removes what Source omits.
func withoutDocs(f *File) *File {
	f.Doc = ""
	strip := func(n *Node) { n.Doc, n.Comment = "", "" }
	fields := func(list []*Field) {
		for _, one := range list {
			strip(&one.Node)
			if one.Xsd != nil {
				for _, attr := range one.Xsd.Attrs {
					strip(&attr.Node)
				}
			}
		}
	}
	for _, d := range f.Decls {
		strip(d.Info())
		switch d := d.(type) {
		case *Struct:
			fields(d.Fields)
		case *Enum:
			for _, v := range d.Values {
				strip(&v.Node)
			}
		case *Service:
			for _, fn := range d.Functions {
				strip(&fn.Node)
				fields(fn.Args)
				fields(fn.Throws)
			}
		}
	}
	return f
}

func TestSourceDeclaresTheSame(t *testing.T) {
	p, err := Load(Config{}, setFiles(t, "accept")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range p.Files {
		source := f.Source()
		again, err := Parse(f.Path, []byte(source))
		if err != nil {
			t.Errorf("%v\n%s", err, source)
			continue
		}
		if got, want := print(withoutDocs(again)), print(withoutDocs(f)); got != want {
			t.Errorf("%s: the source is\n%s\nwhich is\n%s\nand not\n%s", f.Path, source, got, want)
		}
		if twice := again.Source(); twice != source || strings.Contains(source, "\n\n") {
			t.Errorf("%s: the source\n%s\nbecomes\n%s", f.Path, source, twice)
		}
	}
}

func TestSourceHasNoComments(t *testing.T) {
	f, err := Parse("a.thrift", []byte("\ufeff// a\n/** b */ struct  A{ # c\n  1 : i32 /* d */ x = -1 ; 2: string s = \" // e \"\n\n}const i32 C=0x1F const double D = .5"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := f.Source(), "struct A{\n1:i32 x=-1;2:string s=\" // e \"\n}const i32 C=0x1F const double D=.5"; got != want {
		t.Errorf("the source is\n%s\nand not\n%s", got, want)
	}
}

// embed returns the Embedded that the generator would write for a file.
func embed(f *File) *Embedded {
	e := &Embedded{Name: f.Name, Source: f.Source(), NegativeIDs: f.NegativeIDs()}
	for _, include := range f.Includes {
		e.Includes = append(e.Includes, embed(include.File))
	}
	return e
}

func TestEmbeddedFileIsResolved(t *testing.T) {
	a := files{
		"a.thrift":          "include \"dir/shared.thrift\"\ninclude \"b.thrift\"\nstruct A { 1: shared.B b, 2: b.C c } service S extends b.T { void f(1: A a) }",
		"dir/shared.thrift": "struct B { 1: i32 x }",
		"b.thrift":          "include \"dir/shared.thrift\"\nstruct C { -3: shared.B b } service T { void g() }",
	}
	p, err := Load(Config{ReadFile: a.read, NegativeIDs: true}, "a.thrift")
	if err != nil {
		t.Fatal(err)
	}
	e := embed(p.Roots[0])
	var wg sync.WaitGroup
	var got [4]*File
	for i := range got {
		wg.Go(func() { got[i], _ = e.File() }) // The test waits for the goroutine below.
	}
	wg.Wait()
	f := got[0]
	if f == nil || got[1] != f || got[2] != f || got[3] != f {
		_, err := e.File()
		t.Fatalf("%v: the files are %v", err, got)
	}
	s := f.Type("A").(*Struct)
	if b := s.Field("b").Type.Struct(); b == nil || b.Name != "B" || b.FieldByID(1).Name != "x" {
		t.Errorf("b is %+v", b)
	}
	if c := s.Field("c").Type.Struct(); c == nil || c.FieldByID(-3) == nil || c.FieldByID(-3).Type.Struct().Name != "B" {
		t.Errorf("c is %+v", c)
	}
	if f.Service("S").Function("g") == nil {
		t.Error("the function of the other service is missing")
	}
}

func TestEmbeddedFileThatIsWrong(t *testing.T) {
	cycle := &Embedded{Name: "a", Source: `include "a.thrift"`}
	cycle.Includes = []*Embedded{cycle}
	for _, e := range []*Embedded{
		{Name: "a", Source: "struct"},
		{Name: "a", Source: "struct A { 1: B b }"},
		{Name: "a", Source: `include "b.thrift"`},
		{Name: "a", Source: `include "b.thrift"`, Includes: []*Embedded{{Name: "b", Source: "struct"}}},
	} {
		if f, err := e.File(); err == nil || f != nil {
			t.Errorf("%q: %v", e.Source, f)
		}
	}
	if _, err := cycle.File(); err != nil && err.Error() == "" { // the call must return
		t.Error(err)
	}
	if _, err := StructOf(described{}); err == nil {
		t.Error("there is no such struct")
	}
}

type described struct{}

func (described) ThriftIDL() (*Embedded, string) {
	return &Embedded{Name: "a", Source: "struct A {}"}, "B"
}

func TestStructsOfMessages(t *testing.T) {
	f := files{"a.thrift": `exception E {}
service S {
  i32 f(3: i32 b, 1: i32 a = 5) throws (2: E e)
  void g()
}`}.mustLoad(t)
	fn := f.Service("S").Function("f")
	args, result := fn.ArgsStruct(), fn.ResultStruct()
	if args.Name != "f_args" || args.File != f || args.Field("a") != fn.Args[1] || args.ByID()[0].Name != "a" || args.FieldByID(3).Name != "b" || args.FieldByID(2) != nil {
		t.Errorf("the arguments are %+v", args)
	}
	success, e := result.Field("success"), result.FieldByID(2)
	if result.Name != "f_result" || len(result.Fields) != 2 || success.ID != 0 || success.Requirement != Optional || success.Type != fn.Result || e.Requirement != Optional ||
		fn.Throws[0].Requirement != Default {
		t.Errorf("the result is %+v", result)
	}
	if r := f.Service("S").Function("g").ResultStruct(); len(r.Fields) != 0 {
		t.Errorf("the result of a void function is %+v", r)
	}
}
