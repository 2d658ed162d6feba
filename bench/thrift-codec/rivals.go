package main

import (
	"context"
	"errors"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/workshop"
)

// Tools that are Go modules; versions.mod has their versions.
const (
	thriftgoTool = "github.com/cloudwego/thriftgo"
	kitexTool    = "github.com/cloudwego/kitex/tool/cmd/kitex"
	goTool       = "google.golang.org/protobuf/cmd/protoc-gen-go"
	vtTool       = "github.com/planetscale/vtprotobuf/cmd/protoc-gen-go-vtproto"
	capnpTool    = "capnproto.org/go/capnp/v3/capnpc-go"
	capnpModule  = "capnproto.org/go/capnp/v3"
)

// A rival is code that a tool generates, in package gen/name, and the subjects that use it, in
// program/name.go.
type rival struct {
	name     string
	subjects map[string][]string // by operation
	compiler string              // a program of the system that it needs; if empty, none
	debian   string              // the package that has the program
	// pointers says that program/pointers is repeated for it.
	pointers bool
	generate func(ctx context.Context, w workshop.Workshop) error
}

// everywhere returns subjects that have all operations.
func everywhere(names ...string) map[string][]string {
	return map[string][]string{"encode": names, "decode": names, "whole": names}
}

var allRivals = []rival{
	{name: "fastgo", pointers: true, generate: generateFastgo,
		subjects: map[string][]string{"encode": {"fastgo", "fastgo-append"}, "decode": {"fastgo"}, "whole": {"fastgo"}}},
	{name: "kitex", pointers: true, generate: generateKitex, subjects: everywhere("kitex", "gopkg")},
	{name: "frugal", pointers: true, generate: generateFrugal, subjects: everywhere("frugal")},
	{name: "apache", pointers: true, generate: generateApache, subjects: everywhere("apache"), compiler: "thrift", debian: "thrift-compiler"},
	{name: "protobuf", pointers: true, generate: generateProtobuf, compiler: "protoc", debian: "protobuf-compiler",
		subjects: map[string][]string{
			"encode": {"protobuf-go", "vtprotobuf"},
			"decode": {"protobuf-go", "vtprotobuf", "vtprotobuf-unsafe"},
			"whole":  {"protobuf-go", "vtprotobuf", "vtprotobuf-unsafe"},
		}},
	{name: "capnproto", generate: generateCapnp, compiler: "capnp", debian: "capnproto",
		subjects: map[string][]string{"whole": {"capnp"}}},
}

// available returns the rivals whose compilers are installed, and why others are not.
func available() (there []rival, missing []error) {
	for _, r := range allRivals {
		if r.compiler != "" {
			if err := workshop.Compiler(r.name, r.compiler, r.debian); err != nil {
				missing = append(missing, err)
				continue
			}
		}
		there = append(there, r)
	}
	return there, missing
}

// byThriftgo lets thriftgo generate with a backend and its options.
func byThriftgo(ctx context.Context, w workshop.Workshop, name, backend string) error {
	file, err := w.Thrift(shapesIDL, name)
	if err != nil {
		return err
	}
	tool, err := w.Tool(ctx, thriftgoTool)
	if err != nil {
		return err
	}
	return w.Run(ctx, tool, "-g", backend, "-o", "gen", file)
}

func generateFastgo(ctx context.Context, w workshop.Workshop) error {
	return byThriftgo(ctx, w, "fastgo", "fastgo:no_default_serdes")
}

// generateFrugal generates only types: frugal reads the tags of their fields.
func generateFrugal(ctx context.Context, w workshop.Workshop) error {
	return byThriftgo(ctx, w, "frugal", "go:frugal_tag,template=slim")
}

func generateKitex(ctx context.Context, w workshop.Workshop) error {
	file, err := w.Thrift(shapesIDL, "kitex")
	if err != nil {
		return err
	}
	tool, err := w.Tool(ctx, kitexTool)
	if err != nil {
		return err
	}
	return w.Run(ctx, tool, "-module", modulePath, "-type", "thrift", "-gen-path", "gen", "-no-dependency-check", file)
}

func generateApache(ctx context.Context, w workshop.Workshop) error {
	file, err := w.Thrift(shapesIDL, "apache")
	if err != nil {
		return err
	}
	return w.Run(ctx, "thrift", "--gen", "go:skip_remote,package_prefix="+modulePath+"/gen/", "-out", "gen", file)
}

func generateProtobuf(ctx context.Context, w workshop.Workshop) error {
	text, err := source.ReadFile("idl/shapes.proto")
	if err == nil {
		err = w.Write("shapes.proto", string(text))
	}
	plain, err1 := w.Tool(ctx, goTool)
	vt, err2 := w.Tool(ctx, vtTool)
	if err := errors.Join(err, err1, err2); err != nil {
		return err
	}
	return w.Run(ctx, "protoc",
		"--plugin=protoc-gen-go="+plain, "--go_out=.", "--go_opt=module="+modulePath,
		"--plugin=protoc-gen-go-vtproto="+vt, "--go-vtproto_out=.", "--go-vtproto_opt=module="+modulePath,
		"--go-vtproto_opt=features=marshal+unmarshal+unmarshal_unsafe+size", "shapes.proto")
}

func generateCapnp(ctx context.Context, w workshop.Workshop) error {
	text, err := source.ReadFile("idl/shapes.capnp")
	if err == nil {
		err = w.Write("gen/capnproto/shapes.capnp", string(text))
	}
	tool, err1 := w.Tool(ctx, capnpTool)
	library, err2 := w.Output(ctx, "go", "list", "-m", "-f", "{{.Dir}}", capnpModule)
	if err := errors.Join(err, err1, err2); err != nil {
		return err
	}
	return w.Run(ctx, "capnp", "compile", "-I", strings.TrimSpace(library)+"/std", "-o"+tool, "gen/capnproto/shapes.capnp")
}
