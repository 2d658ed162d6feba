package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/thrift/gen"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

// What the program is built from: code that needs no generated package, code that does, descriptions
// of the messages, and the versions of the rivals.
//
//go:embed shapes/*.go measure/*.go program/*.go program/pointers/*.go idl versions.mod versions.sum
var source embed.FS

// modulePath is the path of the module that is built. It is that of this package, so that copies of
// the packages shapes and measure keep their paths.
const modulePath = "github.com/slipstream-go/slipstream/bench/thrift-codec"

// A workshop is the directory in which the program is built.
type workshop struct{ dir string }

// build generates the code of ours and of the rivals, and builds the program that measures.
func build(ctx context.Context, p command.Place, rivals []rival) (program string, err error) {
	w := workshop{filepath.Join(p.Scratch, "codec")}
	if err := w.begin(filepath.Dir(p.Module)); err != nil {
		return "", err
	}
	if err := w.ours(); err != nil {
		return "", err
	}
	for _, r := range rivals {
		if err := r.generate(ctx, w); err != nil {
			return "", fmt.Errorf("code of %s: %w", r.name, err)
		}
		if err := w.copy("program/" + r.name + ".go"); err != nil {
			return "", err
		}
		if r.pointers {
			if err := w.stamp(r.name); err != nil {
				return "", err
			}
		}
	}
	program = filepath.Join(w.dir, "measure.exe")
	return program, w.run(ctx, "go", "build", "-trimpath", "-o", program, "./program")
}

// begin writes go.mod and the packages that need no rival. root is the directory of the module under test.
func (w workshop) begin(root string) error {
	for from, to := range map[string]string{"versions.mod": "go.mod", "versions.sum": "go.sum"} {
		text, err := source.ReadFile(from)
		if err != nil {
			return err
		}
		if err := w.write(to, strings.ReplaceAll(string(text), "=> ROOT", "=> "+root)); err != nil {
			return err
		}
	}
	for _, pattern := range []string{"shapes/*.go", "measure/*.go"} {
		files, err := embedded(pattern)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := w.copy(file); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{"main", "codec", "ours", "lists"} {
		if err := w.copy("program/" + name + ".go"); err != nil {
			return err
		}
	}
	return nil
}

// embedded returns embedded files that are no tests.
func embedded(pattern string) (files []string, err error) {
	entries, err := source.ReadDir(path.Dir(pattern))
	for _, e := range entries {
		if ok, _ := path.Match(path.Base(pattern), e.Name()); ok && !strings.HasSuffix(e.Name(), "_test.go") {
			files = append(files, path.Dir(pattern)+"/"+e.Name())
		}
	}
	return files, err
}

// ignored is the first line of files that the go command must not build where they are.
const ignored = "//go:build ignore\n"

// copy copies an embedded file.
func (w workshop) copy(name string) error {
	text, err := source.ReadFile(name)
	if err != nil {
		return err
	}
	return w.write(name, strings.TrimPrefix(string(text), ignored))
}

// stamp repeats program/pointers for a rival.
func (w workshop) stamp(name string) error {
	text, err := source.ReadFile("program/pointers/pointers.go")
	if err != nil {
		return err
	}
	body := strings.TrimPrefix(string(text), ignored)
	return w.write("pointers/"+name+"/pointers.go", strings.Replace(body, "gen/POINTERS", "gen/"+name, 1))
}

// ours generates our code.
func (w workshop) ours() error {
	file, err := thriftIDL(w, "ours")
	if err != nil {
		return err
	}
	program, err := idl.Load(idl.Config{}, filepath.Join(w.dir, file))
	if err != nil {
		return err
	}
	files, err := gen.Generate(gen.Config{Module: modulePath + "/gen"}, program)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := w.write("gen/"+f.Name, string(f.Content)); err != nil {
			return err
		}
	}
	return nil
}

func (w workshop) write(name, text string) error {
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// tool builds a tool of the versions in versions.mod and returns its program.
func (w workshop) tool(ctx context.Context, pkg string) (string, error) {
	program := filepath.Join(w.dir, "bin", path.Base(pkg))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	return program, w.run(ctx, "go", "build", "-o", program, pkg)
}

// run runs a program in the directory.
func (w workshop) run(ctx context.Context, name string, args ...string) error {
	_, err := w.output(ctx, name, args...)
	return err
}

// output runs a program in the directory and returns what it prints.
func (w workshop) output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "CGO_ENABLED=0", "GOWORK=off")
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		text := append(problems.Bytes(), out.Bytes()...)
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, text[:min(4000, len(text))])
	}
	return out.String(), nil
}
