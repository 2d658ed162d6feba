package idl

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// FuzzParse checks these properties for every source: Parse and Load return without a panic; their
// errors have positions that exist; a source that Parse accepts is unchanged after it is printed
// and parsed again; and in a source that Load accepts, all names are resolved.
func FuzzParse(f *testing.F) {
	for _, folder := range []string{"accept", "reject"} {
		for _, path := range setFiles(f, folder) {
			src, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > 1<<16 {
			return
		}
		if _, err := Parse("a.thrift", src); err != nil {
			checkErrors(t, err, src)
		} else {
			checkRoundTrip(t, "a.thrift", src)
		}
		p, err := Load(Config{ReadFile: func(path string) ([]byte, error) {
			switch {
			case path == "a.thrift":
				return src, nil
			case strings.HasSuffix(path, "shared.thrift"):
				return os.ReadFile("testdata/accept/lib/shared.thrift")
			}
			return nil, fs.ErrNotExist
		}}, "a.thrift")
		if err != nil {
			checkErrors(t, err, src)
			return
		}
		for _, file := range p.Files {
			for _, d := range file.Decls {
				checkResolved(t, d)
			}
		}
	})
}

func checkErrors(t *testing.T, err error, src []byte) {
	t.Helper()
	var list ErrorList
	if !errors.As(err, &list) || len(list) == 0 || len(list) > maxErrors+1 || list.Error() == "" {
		t.Fatalf("the error is %v", err)
	}
	lines := strings.Split(string(src), "\n")
	for _, e := range list {
		if e.File != "a.thrift" || e.Pos.Line == 0 {
			continue
		}
		if int(e.Pos.Line) > len(lines) || e.Pos.Col < 1 || int(e.Pos.Col) > len(lines[e.Pos.Line-1])+1 {
			t.Fatalf("%s is not a position in the source: %v", e.Pos, e)
		}
	}
}

func checkResolved(t *testing.T, d Decl) {
	t.Helper()
	switch d := d.(type) {
	case *Const:
		checkType(t, d.Type)
		checkValue(t, d.Value)
	case *Typedef:
		checkType(t, d.Type)
	case *Struct:
		checkFields(t, d.Fields)
	case *Service:
		if (d.Base != nil) != (d.Extends != "") {
			t.Fatalf("%s has no base", d.Name)
		}
		for _, f := range d.Functions {
			checkType(t, f.Result)
			checkFields(t, f.Args)
			checkFields(t, f.Throws)
		}
	}
}

func checkFields(t *testing.T, fields []*Field) {
	t.Helper()
	ids := make(map[int16]bool)
	for _, f := range fields {
		checkType(t, f.Type)
		if f.Default != nil {
			checkValue(t, f.Default)
		}
		if ids[f.ID] {
			t.Fatalf("the ID of %s occurs twice", f.Name)
		}
		ids[f.ID] = true
	}
}

func checkType(t *testing.T, typ *Type) {
	t.Helper()
	if typ == nil {
		return
	}
	if (typ.Decl != nil) != (typ.Kind == Named) || typ.True().Kind == Named && typ.Enum() == nil && typ.Struct() == nil {
		t.Fatalf("the type %s is not resolved", typ)
	}
	checkType(t, typ.Key)
	checkType(t, typ.Elem)
}

func checkValue(t *testing.T, v *Value) {
	t.Helper()
	if v.Kind == NameValue && (v.Const == nil) == (v.EnumValue == nil) {
		t.Fatalf("the value %s is not resolved", v.Text)
	}
	if lit := v.Literal(); lit == nil || lit.Const != nil {
		t.Fatalf("the value %s has no literal", v.Text)
	}
	for i := range v.List {
		checkValue(t, &v.List[i])
	}
	for i := range v.Map {
		checkValue(t, &v.Map[i].Key)
		checkValue(t, &v.Map[i].Value)
	}
}
