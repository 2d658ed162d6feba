package gen

import (
	"errors"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// Names are those of Kitex's tool: words are capitalized, and names that are in use, or look like
// those of constructors, arguments and results, get underscores.
func TestKitexNames(t *testing.T) {
	for name, want := range map[string]string{
		"user": "User", "user_id": "UserId", "userId": "UserId", "html_url": "HtmlUrl", "MAX_SIZE": "MAX_SIZE", "a_1_2": "A_1_2", "a__b": "A_B", "a_": "A_", "_a": "_A",
		"new_user": "NewUser_", "find_args": "FindArgs_", "result": "Result_", "renew": "Renew", "a_New": "A_New",
	} {
		if got := kitexName(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	p := source(t, "a.thrift", `struct a { 1: i32 read, 2: i32 get_b, 3: i32 b, 4: i32 B, 5: i32 reset, 6: a _c, 7: i32 set_b, 8: optional a d, 9: i32 is_set_d }
		struct A { 1: i32 new_x }
		union u { 1: i32 count_set_fields }
		exception e { 1: string error }
		enum k { A, B }
		typedef a t
		const a a_value = {"b": 1}
		service s { void f_x(1: a type, 2: i32 ctx, 3: i32 r), oneway void fX(1: i32 first_argument) }
		service S extends s { a F_x() }`)
	text := string(generate(t, Config{Kitex: true}, p)[0].Content)
	for _, want := range []string{
		"type A struct {", "type A_ struct {", "Read_ ", "GetB__ ", "B ", "B_ ", "func (p *A) GetB() (v int32) { return p.B }", "func (p *A) GetB_() (v int32) { return p.B_ }",
		"Reset ", "func (p *A) Reset_() {", "X_C ", "func (p *A) Get_C() (v *A) {", "func (p *A) IsSetD() bool {", "IsSetD_ ", "NewX_ ", "CountSetFields_ ", "Error_ ",
		"K_A K = 0", "type T = A", "func NewT() *T { return NewA() }", "var AValue = &A{B: 1}", "type S interface {",
		"FX(ctx context.Context, _type *A, ctx_ int32, r_ int32) (err error)", "FX_(ctx context.Context, firstArgument int32) (err error)",
		"type S_ interface {\n\tS\n\tFX__(ctx context.Context) (r *A, err error)\n}",
		"type SFXArgs struct {", "type SFXArgs_ struct {", "GetFirstArgument_() (v int32)", "type SFXResult struct{}",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing", want)
		}
	}
}

// A field without an ID has the ID of the previous field plus 1.
func TestKitexCountsIDs(t *testing.T) {
	p := source(t, "a.thrift", "struct A { i32 a, 7: i32 b, i32 c } service S { i32 f(i32 x, i32 y) throws (E e) } exception E {}")
	text := string(generate(t, Config{Kitex: true}, p)[0].Content)
	for _, want := range []string{"(q, 0, 1, p.A)", "(q, 7, 7, p.B)", "(q, 14, 8, p.C)", "(q, 0, 1, p.X)", "(q, 7, 2, p.Y)", "thrift.TypeStruct, 0, 1)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	_, err := Generate(Config{Kitex: true}, source(t, "a.thrift", "struct A { i32 a, 1: i32 b }"))
	if err == nil || !strings.Contains(err.Error(), "the ID 1 of b is already used by a") {
		t.Error(err)
	}
}

// Kitex cannot be combined with options that need our types, or with streaming functions.
func TestKitexExcludes(t *testing.T) {
	p := source(t, "a.thrift", `struct A {} service S { A f(1: A a) (streaming.mode = "bidirectional") }`)
	for name, c := range map[string]Config{"Equal": {Equal: true}, "Views": {Views: true}, "Setters": {Setters: true}} {
		c.Kitex = true
		_, err := Generate(c, p)
		if wrong, ok := errors.AsType[*ConfigError](err); !ok || wrong.Fields != [2]string{"Kitex", name} || !strings.Contains(err.Error(), "both Kitex and "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Generate(Config{Kitex: true}, p)
	if _, ok := errors.AsType[idl.ErrorList](err); !ok || !strings.Contains(err.Error(), `the function f has the streaming mode "bidirectional"`) {
		t.Error(err)
	}
	generate(t, Config{}, p)
}
