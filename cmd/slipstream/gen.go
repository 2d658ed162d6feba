package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/thrift/gen"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

func (p program) genCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "gen",
		Short: "Generate Go code",
		Long: `Some packages of this module are runtimes for generated code. These commands generate that code.

` + exitCodes,
		Example: `  slipstream gen thrift -o gen shop.thrift`,
	})
	c.AddCommand(p.genThrift())
	return c
}

// thriftFlags are the flags of slipstream gen thrift.
type thriftFlags struct {
	includes    []string
	output      string
	negativeIDs bool
	config      gen.Config
}

func (p program) genThrift() *cobra.Command {
	var f thriftFlags
	c := &cobra.Command{
		Use:   "thrift FILE...",
		Short: "Generate Go code for files of Thrift's interface definition language",
		Long: `Thrift generates Go types for the declarations in the files, with methods that write and
read the Binary and the Compact protocol, and for those in files that they include. The code
needs package github.com/slipstream-go/slipstream/thrift.

Each file becomes a Go file in the directory of its namespace: with "namespace go shop.api",
shop.thrift becomes shop/api/shop_thrift.go below the directory of --output. Pass all files
of a namespace at once: names that collide across its files get different Go names.

If packages import each other, the import path of the output directory must be known. It
follows from the go.mod file above it, or from --module.

A file whose content is unchanged is not written. A file that was not generated is not
replaced. If files have errors, all of them are printed with their lines, and nothing is written.

` + exitCodes,
		Example: `  slipstream gen thrift shop.thrift
  slipstream gen thrift -I idl -o internal/gen idl/shop.thrift idl/users.thrift
  slipstream gen thrift --equal --module example.com/shop/gen -o gen shop.thrift`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.ErrOrStderr(), args) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"thrift"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	flags := c.Flags()
	flags.StringArrayVarP(&f.includes, "include", "I", nil, "a `directory` to search for included files that are not next to the file that includes them; may be repeated")
	flags.StringVarP(&f.output, "output", "o", ".", "the `directory` for the generated packages")
	flags.StringVar(&f.config.Module, "module", "", "the import `path` of the output directory; by default from go.mod")
	flags.BoolVar(&f.config.Equal, "equal", false, "add the methods Equal, Copy and String, and names of fields to errors")
	flags.BoolVar(&f.config.JSON, "json", false, "add methods that write and read JSON, and names of fields to errors; it is not the JSON protocol of Thrift")
	flags.BoolVar(&f.config.Body, "body", false, "add a method that links large strings into the body of a request instead of copying them")
	flags.BoolVar(&f.config.KeepUnknown, "keep-unknown", false, "keep fields that a struct does not declare, and write them again")
	flags.BoolVar(&f.config.Pointers, "pointers", false, "make optional scalars and strings pointers, instead of thrift.Opt")
	flags.BoolVar(&f.config.Kitex, "kitex", false, "use the names and types of Kitex's package kitex_gen, and add interfaces of services")
	flags.BoolVar(&f.config.SortedKeys, "sorted-keys", false, "write maps in the order of their keys, so that equal values have the same encoding")
	flags.BoolVar(&f.config.FixedFirst, "fixed-first", false, "write fields with a fixed size first, in the Binary protocol")
	flags.BoolVar(&f.config.Views, "views", false, "add views, which read fields of a message in the Binary protocol without decoding it")
	flags.BoolVar(&f.config.Setters, "setters", false, "add methods to views that replace fields; needs --views")
	flags.BoolVar(&f.config.Descriptors, "descriptors", false, "embed the IDL, so that programs can inspect types and services at run time")
	flags.BoolVar(&f.config.RPC, "rpc", false, "add an interface of handlers and a client for each service, and what a server of package thrift/rpc needs")
	flags.BoolVar(&f.negativeIDs, "negative-ids", false, "keep field IDs that are not positive, instead of assigning new ones")
	for _, name := range []string{"include", "output"} {
		// Fails only if there is no such flag.
		_ = c.MarkFlagDirname(name)
	}
	return c
}

// run loads the files, generates and writes.
func (f *thriftFlags) run(stderr io.Writer, names []string) error {
	if f.config.Setters && !f.config.Views {
		return fail(exitUsage, errors.New("--setters adds methods to views; expected --views, too"), "")
	}
	if f.config.Kitex {
		for _, other := range []struct {
			flag string
			set  bool
		}{{"--equal", f.config.Equal}, {"--views", f.config.Views}} {
			if other.set {
				return fail(exitUsage, fmt.Errorf("--kitex cannot be combined with %s; expected one of them", other.flag), "")
			}
		}
	}
	p, err := idl.Load(idl.Config{Dirs: f.includes, NegativeIDs: f.negativeIDs || f.config.Kitex}, names...)
	if err != nil {
		return idlFailure(stderr, err)
	}
	for _, w := range p.Warnings {
		if name, _, found := strings.Cut(w.Msg, " has no ID and gets "); found && f.config.Kitex {
			w.Msg = name + " has no ID and gets that of the previous field plus 1, as with Kitex: adding or moving fields changes the meaning of messages"
		}
		w.Msg = "warning: " + w.Msg
		fmt.Fprintln(stderr, w)
	}
	if f.config.Module == "" {
		if f.config.Module, err = importPathOf(f.output); err != nil {
			return fail(exitFailure, err, "")
		}
	}
	files, err := gen.Generate(f.config, p)
	if err != nil {
		return idlFailure(stderr, err)
	}
	if err := writable(f.output, files); err != nil {
		return fail(exitFailure, err, "")
	}
	for _, file := range files {
		if err := writeGenerated(filepath.Join(f.output, filepath.FromSlash(file.Name)), file.Content); err != nil {
			return fail(exitFailure, err, "")
		}
	}
	return nil
}

// idlFailure prints errors as compilers do, so that editors find the positions.
func idlFailure(stderr io.Writer, err error) error {
	list, ok := errors.AsType[idl.ErrorList](err)
	if !ok {
		return fail(exitFailure, err, "")
	}
	fmt.Fprintln(stderr, list)
	hint := ""
	if errors.Is(err, gen.ErrNoModule) {
		hint = "--module PATH, or a go.mod file in the output directory or above it"
	}
	return fail(exitFailure, fmt.Errorf("nothing was written, because of %s", numbered(len(list), "error")), hint)
}

// importPathOf returns the import path of a directory, or "" if no directory above it has a file
// go.mod.
func importPathOf(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		text, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil {
			rel, err := filepath.Rel(at, dir)
			if err != nil {
				return "", err
			}
			module := modulePath(text)
			if module == "" {
				return "", fmt.Errorf("%s does not declare a module", filepath.Join(at, "go.mod"))
			}
			return path.Join(module, filepath.ToSlash(rel)), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if filepath.Dir(at) == at {
			return "", nil
		}
	}
}

// modulePath returns the path of the module that the text of a go.mod file declares, or "".
func modulePath(text []byte) string {
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		if len(words) != 2 || words[0] != "module" {
			continue
		}
		if unquoted, err := strconv.Unquote(words[1]); err == nil {
			return unquoted
		}
		return words[1]
	}
	return ""
}

// generatedMark is at the beginning of generated files.
const generatedMark = "// Code generated by slipstream "

// writable returns an error if an existing file was not generated. It is called before any file
// is written.
func writable(dir string, files []gen.File) error {
	for _, file := range files {
		name := filepath.Join(dir, filepath.FromSlash(file.Name))
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		mark := make([]byte, len(generatedMark))
		_, err = io.ReadFull(f, mark)
		f.Close()
		if err != nil || string(mark) != generatedMark {
			return fmt.Errorf("%s exists and was not generated; move it away", name)
		}
	}
	return nil
}

// writeGenerated writes a file, unless it already has the content: its time would change, which
// triggers rebuilds.
func writeGenerated(name string, content []byte) error {
	if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}
