package rpcsuite

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/bench/internal/workshop"
	"github.com/slipstream-go/slipstream/thrift/gen"
)

// The sources of the programs: their code, the descriptions of the service, and the versions of the
// rivals.
//
//go:embed program/*.go idl versions.mod versions.sum
var source embed.FS

// modulePath is the path of the module that is built. Because it is below the path of this module,
// it may use the internal packages of both. No directory of this module has that path.
const modulePath = "github.com/slipstream-go/slipstream/bench/thrift-rpc-programs"

// echoIDL describes the services.
const echoIDL = "idl/echo.thrift"

// Tools that are Go modules; versions.mod contains their versions.
const (
	kitexTool    = "github.com/cloudwego/kitex/tool/cmd/kitex"
	protobufTool = "google.golang.org/protobuf/cmd/protoc-gen-go"
)

// programs are the names of the programs.
var programs = []string{"ours", "kitex", "apache", "grpc"}

// generators generate the code that a program needs, by its name.
var generators = map[string]func(context.Context, workshop.Workshop) error{
	"ours": func(_ context.Context, w workshop.Workshop) error {
		return w.Ours(echoIDL, gen.Config{Module: modulePath + "/gen", RPC: true, Views: true, Setters: true})
	},
	"kitex": func(ctx context.Context, w workshop.Workshop) error {
		file, err := w.Thrift(echoIDL, "kitex")
		if err != nil {
			return err
		}
		tool, err := w.Tool(ctx, kitexTool)
		if err != nil {
			return err
		}
		return w.Run(ctx, tool, "-module", modulePath, "-type", "thrift", "-gen-path", "gen", "-no-dependency-check", "-streamx", file)
	},
	"apache": func(ctx context.Context, w workshop.Workshop) error {
		file, err := w.Thrift(echoIDL, "apache")
		if err != nil {
			return err
		}
		return w.Run(ctx, "thrift", "--gen", "go:skip_remote,package_prefix="+modulePath+"/gen/", "-out", "gen", file)
	},
	"grpc": func(ctx context.Context, w workshop.Workshop) error {
		if err := w.CopyTo("idl/echo.proto", "echo.proto"); err != nil {
			return err
		}
		tool, err := w.Tool(ctx, protobufTool)
		if err != nil {
			return err
		}
		return w.Run(ctx, "protoc", "--plugin=protoc-gen-go="+tool, "--go_out=.", "--go_opt=module="+modulePath, "echo.proto")
	},
}

// missing returns the programs whose compilers are not installed.
func missing() map[string]error {
	all := make(map[string]error)
	for name, compiler := range map[string][2]string{"apache": {"thrift", "thrift-compiler"}, "grpc": {"protoc", "protobuf-compiler"}} {
		if err := workshop.Compiler(name, compiler[0], compiler[1]); err != nil {
			all[name] = err
		}
	}
	return all
}

// build generates the code of a program and builds it.
func (h *harness) build(ctx context.Context, name string) (*subject.Rival, error) {
	if !h.begun {
		if err := h.shop.Module(h.place.Module); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Join(h.shop.Dir, "gen"), 0o755); err != nil { // the compiler of Apache Thrift creates no directories
			return nil, err
		}
		h.begun = true
	}
	if err := generators[name](ctx, h.shop); err != nil {
		return nil, fmt.Errorf("code of %s: %w", name, err)
	}
	if err := h.shop.CopyTo("program/"+name+".go", name+"/main.go"); err != nil {
		return nil, err
	}
	binary := filepath.Join(h.shop.Dir, "bin", name+".exe")
	return subject.RivalAt(binary), h.shop.Run(ctx, "go", "build", "-o", binary, "./"+name)
}
