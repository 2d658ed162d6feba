package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
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
	compiler string              // a program of the system that it needs; empty: none
	debian   string              // the package that has the program
	// pointers says that program/pointers is repeated for it.
	pointers bool
	generate func(ctx context.Context, w workshop) error
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
			if _, err := exec.LookPath(r.compiler); err != nil {
				missing = append(missing, fmt.Errorf("%s: %w (apt-get install %s)", r.name, err, r.debian))
				continue
			}
		}
		there = append(there, r)
	}
	return there, missing
}

// thriftIDL writes the IDL with the name of a rival as its namespace, and returns the file.
func thriftIDL(w workshop, name string) (string, error) {
	text, err := source.ReadFile("idl/shapes.thrift")
	if err != nil {
		return "", err
	}
	file := name + ".thrift"
	return file, w.write(file, strings.Replace(string(text), "NAMESPACE", name, 1))
}

// byThriftgo lets thriftgo generate with a backend and its options.
func byThriftgo(ctx context.Context, w workshop, name, backend string) error {
	file, err := thriftIDL(w, name)
	if err != nil {
		return err
	}
	tool, err := w.tool(ctx, thriftgoTool)
	if err != nil {
		return err
	}
	return w.run(ctx, tool, "-g", backend, "-o", "gen", file)
}

func generateFastgo(ctx context.Context, w workshop) error {
	return byThriftgo(ctx, w, "fastgo", "fastgo:no_default_serdes")
}

// generateFrugal generates types alone: frugal reads the tags of their fields.
func generateFrugal(ctx context.Context, w workshop) error {
	return byThriftgo(ctx, w, "frugal", "go:frugal_tag,template=slim")
}

func generateKitex(ctx context.Context, w workshop) error {
	file, err := thriftIDL(w, "kitex")
	if err != nil {
		return err
	}
	tool, err := w.tool(ctx, kitexTool)
	if err != nil {
		return err
	}
	return w.run(ctx, tool, "-module", modulePath, "-type", "thrift", "-gen-path", "gen", "-no-dependency-check", file)
}

func generateApache(ctx context.Context, w workshop) error {
	file, err := thriftIDL(w, "apache")
	if err != nil {
		return err
	}
	return w.run(ctx, "thrift", "--gen", "go:skip_remote,package_prefix="+modulePath+"/gen/", "-out", "gen", file)
}

func generateProtobuf(ctx context.Context, w workshop) error {
	text, err := source.ReadFile("idl/shapes.proto")
	if err == nil {
		err = w.write("shapes.proto", string(text))
	}
	plain, err1 := w.tool(ctx, goTool)
	vt, err2 := w.tool(ctx, vtTool)
	if err := errors.Join(err, err1, err2); err != nil {
		return err
	}
	return w.run(ctx, "protoc",
		"--plugin=protoc-gen-go="+plain, "--go_out=.", "--go_opt=module="+modulePath,
		"--plugin=protoc-gen-go-vtproto="+vt, "--go-vtproto_out=.", "--go-vtproto_opt=module="+modulePath,
		"--go-vtproto_opt=features=marshal+unmarshal+unmarshal_unsafe+size", "shapes.proto")
}

func generateCapnp(ctx context.Context, w workshop) error {
	text, err := source.ReadFile("idl/shapes.capnp")
	if err == nil {
		err = w.write("gen/capnproto/shapes.capnp", string(text))
	}
	tool, err1 := w.tool(ctx, capnpTool)
	library, err2 := w.output(ctx, "go", "list", "-m", "-f", "{{.Dir}}", capnpModule)
	if err := errors.Join(err, err1, err2); err != nil {
		return err
	}
	return w.run(ctx, "capnp", "compile", "-I", strings.TrimSpace(library)+"/std", "-o"+tool, "gen/capnproto/shapes.capnp")
}
