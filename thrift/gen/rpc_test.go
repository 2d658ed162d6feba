package gen

import (
	"strings"
	"testing"
)

// Functions are idempotent if an annotation declares it, and the names of clients and their methods
// do not clash with others.
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
			t.Errorf("the code does not contain %q", want)
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

// Functions with Kitex's streaming annotation have streams.
func TestStreams(t *testing.T) {
	files, err := Generate(Config{RPC: true, Views: true, Module: "example.com/m"}, source(t,
		"a.thrift", `include "base.thrift"
struct A {}
struct B {}
struct SStreamClient {}
service S extends base.Base {
  B both(1: A a) (streaming.mode = "bidirectional")
  B up(1: A a) (Streaming.Mode = "client")
  /** Goes down. */
  base.C down(1: A a) (streaming.mode = "server")
  B streamStub(1: A a) (streaming.mode = "server")
  B plain(1: A a) (streaming.mode = "unary")
}
service Without extends base.None { B plain(1: A a) }`, "base.thrift", `namespace go base
struct C {}
service None {}
service Base extends None { C ping(1: C c) (streaming.mode = "client") }`))
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, f := range files {
		all += string(f.Content)
	}
	for _, want := range []string{
		"\tBoth(ctx context.Context, stream *rpc.BidiStreamingServer[A, B]) error\n",
		"\tUp(ctx context.Context, stream *rpc.ClientStreamingServer[A]) (*B, error)\n",
		"\tDown(ctx context.Context, request *A, stream *rpc.ServerStreamingServer[base.C]) error\n",
		"\tPlain(ctx context.Context, a *A) (*B, error)\n",
		`rpc.BidiMethod("both", h.Both)`, `rpc.ClientMethod("up", h.Up)`, `rpc.ServerMethod("down", h.Down)`,
		"type SStreamClient_ struct {\n\tbase.BaseStreamClient\n}",
		"type BaseStreamClient struct {\n\trpc.StreamStub\n}",
		"// Goes down.\nfunc (p *SStreamClient_) Down(ctx context.Context, request *A) (*rpc.ServerStreamingClient[base.C], error) {",
		"func (p *SStreamClient_) StreamStub_(",
		"func (p *SClient) Plain(",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the code does not have %q", want)
		}
	}
	for _, not := range []string{"WithoutStreamClient", "NoneStreamClient", "func (p *SClient) Both(", "func (p *SClient) BothView("} {
		if strings.Contains(all, not) {
			t.Errorf("the code has %q", not)
		}
	}
	for _, err := range typeErrors("example.com/m", files) {
		t.Error(err)
	}
	for function, want := range map[string]string{
		`A f(1: A a) (streaming.mode = "maybe")`:                   `the annotation streaming.mode of f is "maybe"; expected bidirectional, client, server or unary`,
		`A f() (streaming.mode = "client")`:                        "f is a streaming function; expected one argument, a struct",
		`A f(1: i32 a) (streaming.mode = "client")`:                "f is a streaming function; expected one argument, a struct",
		`A f(1: A a, 2: A b) (streaming.mode = "server")`:          "f is a streaming function; expected one argument, a struct",
		`void f(1: A a) (streaming.mode = "bidirectional")`:        "f is a streaming function; expected a struct as its result",
		`i32 f(1: A a) (streaming.mode = "bidirectional")`:         "f is a streaming function; expected a struct as its result",
		`oneway void f(1: A a) (streaming.mode = "bidirectional")`: "the function f has streams and is oneway",
	} {
		_, err := Generate(Config{RPC: true}, source(t, "a.thrift", "struct A {}\nservice S { "+function+" }"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", function, err)
		}
		if _, err := Generate(Config{}, source(t, "a.thrift", "struct A {}\nservice S { "+function+" }")); err != nil {
			t.Errorf("%s without stubs: %v", function, err)
		}
	}
}
