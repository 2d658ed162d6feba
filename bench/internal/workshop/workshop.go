// Package workshop builds programs that need generated code of rivals. They are built in a separate
// module, in a directory that is removed afterwards, so that neither the rivals nor their generated
// code are in this module.
package workshop

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/gen"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

// A Workshop is the directory in which programs are built. Dir and Source must be set.
type Workshop struct {
	Dir    string
	Source fs.FS    // the sources of programs
	Env    []string // added to the environment of the tools, and of the go command
}

// Module writes go.mod and go.sum: versions.mod and versions.sum of the source. bench is the
// directory of the module of the benchmarks; in versions.mod, BENCH stands for it, and ROOT for the
// directory of the module under test.
func (w Workshop) Module(bench string) error {
	for from, to := range map[string]string{"versions.mod": "go.mod", "versions.sum": "go.sum"} {
		text, err := fs.ReadFile(w.Source, from)
		if err != nil {
			return err
		}
		paths := strings.NewReplacer("=> ROOT", "=> "+filepath.Dir(bench), "=> BENCH", "=> "+bench)
		if err := w.Write(to, paths.Replace(string(text))); err != nil {
			return err
		}
	}
	return nil
}

// Ignored is the first line of files that the go command must not build where they are.
const Ignored = "//go:build ignore\n"

// Copy copies a file of the source.
func (w Workshop) Copy(name string) error { return w.CopyTo(name, name) }

// CopyTo copies a file of the source to another name.
func (w Workshop) CopyTo(name, to string) error {
	text, err := fs.ReadFile(w.Source, name)
	if err != nil {
		return err
	}
	return w.Write(to, strings.TrimPrefix(string(text), Ignored))
}

// Thrift copies an IDL of the source to name.thrift, replaces NAMESPACE with the name, and returns
// the path.
func (w Workshop) Thrift(from, name string) (string, error) {
	text, err := fs.ReadFile(w.Source, from)
	if err != nil {
		return "", err
	}
	file := name + ".thrift"
	return file, w.Write(file, strings.Replace(string(text), "NAMESPACE", name, 1))
}

// Ours generates our code for an IDL of the source in gen/ours.
func (w Workshop) Ours(from string, config gen.Config) error {
	file, err := w.Thrift(from, "ours")
	if err != nil {
		return err
	}
	program, err := idl.Load(idl.Config{}, filepath.Join(w.Dir, file))
	if err != nil {
		return err
	}
	files, err := gen.Generate(config, program)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := w.Write("gen/"+f.Name, string(f.Content)); err != nil {
			return err
		}
	}
	return nil
}

// Write writes a file.
func (w Workshop) Write(name, text string) error {
	file := filepath.Join(w.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// Tool builds a tool of the versions in versions.mod and returns its program.
func (w Workshop) Tool(ctx context.Context, pkg string) (string, error) {
	program := filepath.Join(w.Dir, "bin", path.Base(pkg))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	return program, w.Run(ctx, "go", "build", "-o", program, pkg)
}

// Run runs a program in the directory.
func (w Workshop) Run(ctx context.Context, name string, args ...string) error {
	_, err := w.Output(ctx, name, args...)
	return err
}

// Output runs a program in the directory and returns what it prints.
func (w Workshop) Output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = w.Dir
	cmd.Env = append(append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off"), w.Env...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		text := append(problems.Bytes(), out.Bytes()...)
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, text[:min(4000, len(text))])
	}
	return out.String(), nil
}

// Compiler returns an error if a program that generates the code of a rival is not installed. debian is the
// package that has it.
func Compiler(rival, program, debian string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s: %w (apt-get install %s)", rival, err, debian)
	}
	return nil
}
