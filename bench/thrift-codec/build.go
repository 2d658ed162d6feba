package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/workshop"
	"github.com/slipstream-go/slipstream/thrift/gen"
)

// The sources of the program: code that needs no generated package, code that does, descriptions of
// the messages, and the versions of the rivals.
//
//go:embed shapes/*.go measure/*.go program/*.go program/pointers/*.go idl versions.mod versions.sum
var source embed.FS

// modulePath is the path of the module that is built. It is the path of this package, so that
// copies of the packages shapes and measure keep their paths.
const modulePath = "github.com/slipstream-go/slipstream/bench/thrift-codec"

// shapesIDL describes the messages.
const shapesIDL = "idl/shapes.thrift"

// newWorkshop returns the workshop in a directory.
func newWorkshop(dir string) workshop.Workshop {
	return workshop.Workshop{Dir: dir, Source: source, Env: []string{"CGO_ENABLED=0"}}
}

// build generates our code and that of the rivals, and builds the measuring program.
func build(ctx context.Context, p command.Place, rivals []rival) (program string, err error) {
	w := newWorkshop(filepath.Join(p.Scratch, "codec"))
	if err := begin(w, p.Module); err != nil {
		return "", err
	}
	for _, r := range rivals {
		if err := r.generate(ctx, w); err != nil {
			return "", fmt.Errorf("code of %s: %w", r.name, err)
		}
		if err := w.Copy("program/" + r.name + ".go"); err != nil {
			return "", err
		}
		if r.pointers {
			if err := stamp(w, r.name); err != nil {
				return "", err
			}
		}
	}
	program = filepath.Join(w.Dir, "measure.exe")
	return program, w.Run(ctx, "go", "build", "-trimpath", "-o", program, "./program")
}

// begin writes what does not depend on rivals: go.mod, our generated code, and the shared packages.
func begin(w workshop.Workshop, bench string) error {
	if err := w.Module(bench); err != nil {
		return err
	}
	for _, pattern := range []string{"shapes/*.go", "measure/*.go"} {
		files, err := embedded(pattern)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := w.Copy(file); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{"main", "codec", "ours", "lists"} {
		if err := w.Copy("program/" + name + ".go"); err != nil {
			return err
		}
	}
	return w.Ours(shapesIDL, gen.Config{Module: modulePath + "/gen"})
}

// embedded returns the embedded files that are not tests.
func embedded(pattern string) (files []string, err error) {
	entries, err := source.ReadDir(path.Dir(pattern))
	for _, e := range entries {
		if ok, _ := path.Match(path.Base(pattern), e.Name()); ok && !strings.HasSuffix(e.Name(), "_test.go") {
			files = append(files, path.Dir(pattern)+"/"+e.Name())
		}
	}
	return files, err
}

// stamp copies program/pointers for a rival.
func stamp(w workshop.Workshop, name string) error {
	text, err := fs.ReadFile(source, "program/pointers/pointers.go")
	if err != nil {
		return err
	}
	body := strings.TrimPrefix(string(text), workshop.Ignored)
	return w.Write("pointers/"+name+"/pointers.go", strings.Replace(body, "gen/POINTERS", "gen/"+name, 1))
}
