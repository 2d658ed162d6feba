package gen

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// Views and setters are written only with their options, which change no other declarations.
func TestViewsAreAnOption(t *testing.T) {
	p := load(t, "testdata/idl/*.thrift")
	texts := func(c Config) []string {
		c.Module = module
		var all []string
		for _, f := range generate(t, c, p) {
			all = append(all, string(f.Content))
		}
		return all
	}
	plain, views, setters := texts(Config{}), texts(Config{Views: true}), texts(Config{Views: true, Setters: true})
	if other := texts(Config{Setters: true}); strings.Join(other, "") != strings.Join(plain, "") {
		t.Error("setters were written without views")
	}
	for i := range plain {
		before, _, found := strings.Cut(views[i], "\n\n// ViewsOf")
		if !found || strings.Contains(plain[i], "thrift.View") {
			if strings.Contains(plain[i], " struct {") {
				t.Errorf("views are missing with the option, or present without it, in\n%.300s", plain[i])
			}
			continue
		}
		if before+"\n" != plain[i] {
			t.Errorf("the option changes other declarations: %s", difference(before, plain[i]))
		}
		if strings.Contains(views[i], "x, true)") || !strings.Contains(setters[i], "func (v *") {
			t.Errorf("setters are missing with the option, or present without it, in\n%.300s", plain[i])
		}
	}
}

// Getters have the names of fields, unless the view has a method with that name. Views have unique
// names.
func TestNamesOfViews(t *testing.T) {
	p := source(t, "a.thrift", `struct A { 1: i32 read_thrift, 2: i32 b, 3: i32 set_b, 4: A c, 5: i32 set_c_view, 6: i32 unwrap }
		struct AView {}
		const i32 a_view_at = 1
		struct ViewsOfA {}`)
	text := string(generate(t, Config{Views: true, Setters: true}, p)[0].Content)
	for _, want := range []string{
		"var ViewsOfA_ = ", "type AView_ struct", "func AView_At(", "func (v *AView_) ReadThrift_() int32 {", "func (v *AView_) SetB() int32 {", "func (v *AView_) SetB_(x int32) {",
		"func (v *AView_) SetCView_(x *AView_) {", "func (v *AView_) Unwrap_() int32 {", "type AViewView struct",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}

// A struct with more than 64 fields has more than one word of bits for required fields. Negative
// IDs are treated as large ones.
func TestTablesOfViews(t *testing.T) {
	var src strings.Builder
	src.WriteString("struct A { -1: required i32 last, 1: required i32 first\n")
	for i := range 70 {
		fmt.Fprintf(&src, "%d: i32 f%d\n", i+2, i)
	}
	src.WriteString("}\nunion U { 1: i32 a }\nstruct E {}")
	p, err := idl.Load(idl.Config{NegativeIDs: true, ReadFile: func(string) ([]byte, error) { return []byte(src.String()), nil }}, "a.thrift")
	if err != nil {
		t.Fatal(err)
	}
	text := string(generate(t, Config{Views: true}, p)[0].Content)
	for _, want := range []string{"Required: []uint64{0x1, 0x80},", "{Key: thrift.TypeI32<<16 | 65535},\n\t\t},", "return v.view.I32(v.at[71], 0) }", "\tUnion: true,\n", "// E\n\t{},"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}

// A few bytes of IDL can name a type that has a very long name in views.
func TestTypesOfViewsAreBounded(t *testing.T) {
	var src strings.Builder
	src.WriteString("typedef list<string> T0\n")
	for i := range 5 {
		fmt.Fprintf(&src, "typedef map<T%d, T%d> T%d\n", i, i, i+1)
	}
	src.WriteString("struct A {\n")
	for i := range 2000 {
		fmt.Fprintf(&src, "%d: T5 f%d\n", i+1, i)
	}
	src.WriteString("}")
	p := source(t, "a.thrift", src.String())
	_, err := Generate(Config{Views: true}, p)
	list, ok := errors.AsType[idl.ErrorList](err)
	if !ok || !strings.Contains(list[0].Error(), "the types of views exceed the limit") {
		t.Errorf("%.300v", err)
	}
	if _, err := Generate(Config{}, p); err != nil {
		t.Error(err)
	}
}
