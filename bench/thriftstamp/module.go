package main

import (
	"bytes"
	"context"
	"debug/elf"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed proto/*.go rt/*.go speed/*.go order.thrift
var source embed.FS

const (
	ownPath         = "github.com/slipstream-go/slipstream/bench/thriftstamp/"
	thriftgo        = "github.com/cloudwego/thriftgo"
	thriftgoVersion = "v0.4.5"
	gopkg           = "github.com/cloudwego/gopkg@v0.2.0"
)

// module is a separate Go module with the measured code.
type module struct {
	ctx context.Context
	dir string
}

func (m module) write(name, text string) error {
	path := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// begin writes go.mod and the packages that all levels need.
func (m module) begin(rival bool) error {
	if err := m.write("go.mod", "module stamped\n\ngo 1.26.0\n"); err != nil {
		return err
	}
	err := fs.WalkDir(source, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := source.ReadFile(path)
		if err != nil {
			return err
		}
		return m.write(path, strings.ReplaceAll(string(text), ownPath, "stamped/"))
	})
	if err != nil || !rival {
		return err
	}
	if _, err := m.goTool("get", gopkg); err != nil {
		return err
	}
	_, err = m.goTool("get", "-tool", thriftgo+"@"+thriftgoVersion)
	return err
}

// goTool runs the go command in the module and returns its CPU time.
func (m module) goTool(args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(m.ctx, "go", args...)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "CGO_ENABLED=0", "GOWORK=off")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out.Bytes()[:min(2000, out.Len())])
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

func (m module) command(w io.Writer, name string) error {
	cmd := exec.CommandContext(m.ctx, name)
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	return cmd.Run()
}

var (
	designs = regexp.MustCompile(`\b([A-Za-z]\w*?)(?:Straight|Mixed|Calls|Table|Bits|Pointers)(View)?\b`)
	shapes  = regexp.MustCompile(`\b(?:Bits|Pointers)Order`)
)

// stamp copies files of the prototype into a package.
func (m module) stamp(pkg string, files []string, structs int) error {
	for _, name := range files {
		text, err := source.ReadFile("proto/" + name + ".go")
		if err != nil {
			return err
		}
		head, body := split(string(text))
		head = strings.Replace(strings.ReplaceAll(head, ownPath, "stamped/"), "package proto", "package "+pkg, 1)
		body = designs.ReplaceAllString(shapes.ReplaceAllString(body, "Order"), "$1$2")
		var b strings.Builder
		b.WriteString(head)
		for i := range structs {
			b.WriteString(rename(body, i))
		}
		formatted, err := format.Source([]byte(b.String()))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := m.write(filepath.Join(pkg, name+".go"), string(formatted)); err != nil {
			return err
		}
	}
	status, err := source.ReadFile("proto/status.go")
	if err != nil {
		return err
	}
	if err := m.write(filepath.Join(pkg, "status.go"), strings.Replace(string(status), "package proto", "package "+pkg, 1)); err != nil {
		return err
	}
	types := []string{""}
	if slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(f, "view") }) {
		types = append(types, "View")
	}
	if slices.Contains(files, "view_edit") {
		types = append(types, "Edit")
	}
	return m.main(pkg, structs, types)
}

func rename(text string, i int) string {
	return strings.NewReplacer("Order", fmt.Sprintf("S%04d", i), "order", fmt.Sprintf("s%04d", i)).Replace(text)
}

// split returns a Go file up to the end of its imports, and the rest.
func split(text string) (head, body string) {
	end := strings.Index(text, "\n") + 1
	if at := strings.Index(text, "\nimport ("); at >= 0 {
		end = at + strings.Index(text[at:], "\n)\n") + 3
	} else if at := strings.Index(text, "\nimport "); at >= 0 {
		end = at + 1 + strings.Index(text[at+1:], "\n") + 1
	}
	return text[:end], text[end:]
}

// generate generates a package for the same structs with thriftgo.
func (m module) generate(pkg, options string, structs int) error {
	idl, err := source.ReadFile("order.thrift")
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "namespace go %s\n\nenum Status {\n  NEW = 0\n  PAID = 1\n  SENT = 2\n}\n", pkg)
	for i := range structs {
		b.WriteString("\n" + rename(string(idl), i))
	}
	if err := m.write(pkg+".thrift", b.String()); err != nil {
		return err
	}
	if _, err := m.goTool("tool", thriftgo, "-g", strings.TrimSuffix("fastgo:"+options, ":"), "-o", ".", pkg+".thrift"); err != nil {
		return err
	}
	if strings.Contains(options, "slim") {
		if err := m.addNames(pkg, structs); err != nil {
			return err
		}
	}
	if _, err := m.goTool("mod", "tidy"); err != nil {
		return err
	}
	return m.main(pkg, structs, []string{""})
}

// addNames adds the names of fields that the template slim omits and that fastgo
// needs.
func (m module) addNames(pkg string, structs int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n", pkg)
	for i := range structs {
		fmt.Fprintf(&b, "\nvar fieldIDToName_S%04d = [...]string{1: \"id\"}\n", i)
	}
	return m.write(filepath.Join(pkg, "names.go"), b.String())
}

// main writes a program that needs all methods of some types for each struct of a package. Their
// names are that of the struct followed by one of types.
func (m module) main(pkg string, structs int, types []string) error {
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n\t\"os\"\n\t\"reflect\"\n\n")
	if structs > 0 {
		fmt.Fprintf(&b, "\tp \"stamped/%s\"\n", pkg)
	}
	b.WriteString(")\n\nfunc main() {\n\tfor _, v := range all {\n\t\tprintln(reflect.ValueOf(v).MethodByName(os.Args[1]).IsValid())\n\t}\n}\n\nvar all = []any{\n")
	for i := range structs {
		for _, t := range types {
			fmt.Fprintf(&b, "\t(*p.S%04d%s)(nil),\n", i, t)
		}
	}
	b.WriteString("}\n")
	return m.write(filepath.Join(pkg, "cmd", "main.go"), b.String())
}

func (m module) stampEmpty() error { return m.main("empty", 0, nil) }

// warm builds and vets the packages on which all others depend.
func (m module) warm(rival bool) error {
	packages := []string{"./warm"}
	if err := m.stamp("warm", levels[len(levels)-1].files, 1); err != nil {
		return err
	}
	if rival {
		packages = append(packages, "./warmrival")
		if err := m.generate("warmrival", rivals[len(rivals)-1].options, 1); err != nil {
			return err
		}
	}
	for _, what := range []string{"build", "vet"} {
		if _, err := m.goTool(append([]string{what}, packages...)...); err != nil {
			return err
		}
	}
	return nil
}

// cost is the cost of a package before it is linked.
type cost struct {
	source       int64
	lines        int
	builds, vets []float64 // CPU seconds.
}

func median(list []float64) float64 { return slices.Sorted(slices.Values(list))[len(list)/2] }

// measure vets and builds a package whose dependencies have been built.
func (m module) measure(pkg string, c *cost) error {
	files, err := filepath.Glob(filepath.Join(m.dir, pkg, "*.go"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("no files in %s", pkg))
	}
	c.source, c.lines = 0, 0
	for _, file := range files {
		if base := filepath.Base(file); base == "nonce.go" || base == "names.go" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		c.source += int64(len(text))
		c.lines += bytes.Count(text, []byte("\n"))
	}
	nonce := fmt.Sprintf("package %s\n\n// %d makes the cache of builds miss.\n", pkg, time.Now().UnixNano())
	if err := m.write(filepath.Join(pkg, "nonce.go"), nonce); err != nil {
		return err
	}
	vet, err := m.goTool("vet", "./"+pkg)
	if err != nil {
		return err
	}
	build, err := m.goTool("build", "./"+pkg)
	c.vets, c.builds = append(c.vets, vet.Seconds()), append(c.builds, build.Seconds())
	return err
}

// linked holds sizes of a program in bytes. own is the text of the functions of the package,
// including instantiations for its types.
type linked struct{ text, own, data, file int64 }

// link links the program of a package and returns its sizes. Data is everything that is loaded
// except text and the tables for stack traces.
func (m module) link(pkg string) (l linked, err error) {
	bin := filepath.Join(m.dir, pkg+".exe")
	if _, err := m.goTool("build", "-o", bin, "./"+pkg+"/cmd"); err != nil {
		return l, err
	}
	info, err := os.Stat(bin)
	if err != nil {
		return l, err
	}
	l.file = info.Size()
	f, err := elf.Open(bin)
	if err != nil {
		return l, fmt.Errorf("sizes are read from ELF files: %w", err)
	}
	defer f.Close()
	for _, s := range f.Sections {
		switch {
		case s.Name == ".text":
			l.text = int64(s.Size)
		case s.Flags&elf.SHF_ALLOC != 0 && s.Type != elf.SHT_NOBITS && s.Name != ".gopclntab":
			l.data += int64(s.Size)
		}
	}
	symbols, err := f.Symbols()
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && strings.Contains(s.Name, "stamped/"+pkg+".") {
			l.own += int64(s.Size)
		}
	}
	return l, err
}
