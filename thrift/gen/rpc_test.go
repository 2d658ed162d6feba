package gen

import (
	"strings"
	"testing"
)

// Functions are idempotent if an annotation says so, and the names of clients and their methods are free.
func TestClients(t *testing.T) {
	files, err := Generate(Config{RPC: true, Module: "example.com/m"}, source(t,
		"a.thrift", `include "base.thrift"
struct SClient {}
service S extends base.Base {
  void stub(1: i32 p, 2: i32 ctx, 3: i32 r, 4: i32 err)
  i32 invoke() (slipstream.idempotent = "true")
  void baseClient() (slipstream.idempotent = "false")
  oneway void gone()
}`, "base.thrift", "namespace go base\nservice Base { void ping() (slipstream.idempotent) }"))
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, f := range files {
		all += string(f.Content)
	}
	for _, want := range []string{
		`rpc.Function{Service: "Base", Name: "ping", Idempotent: true}`,
		`rpc.Function{Service: "S", Name: "stub"}`,
		`rpc.Function{Service: "S", Name: "invoke", Idempotent: true}`,
		`rpc.Function{Service: "S", Name: "baseClient"}`,
		`rpc.Function{Service: "S", Name: "gone", Oneway: true}`,
		"type SClient_ struct {\n\tbase.BaseClient\n}",
		"func NewSClient_(caller rpc.Caller) *SClient_ {",
		"func (p *SClient_) Stub_(ctx context.Context, p_ int32, ctx_ int32, r_ int32, err_ int32) error {",
		"func (p *SClient_) Invoke_(ctx context.Context) (int32, error) {",
		"func (p *SClient_) BaseClient_(ctx context.Context) error {",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the code does not have %q", want)
		}
	}
	for _, err := range typeErrors("example.com/m", files) {
		t.Error(err)
	}
	_, err = Generate(Config{RPC: true}, source(t, "a.thrift", `service S { void f() (slipstream.idempotent = "maybe") }`))
	if err == nil || !strings.Contains(err.Error(), `a.thrift:1:23: the annotation slipstream.idempotent of f is "maybe"; expected true or false`) {
		t.Errorf("a wrong annotation: %v", err)
	}
}
