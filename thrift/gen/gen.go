package gen

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// Config configures Generate. The zero value generates types with the Binary and the Compact
// protocol.
type Config struct {
	// Module is the import path of the directory of the generated files. It is needed only if one
	// generated package imports another one.
	Module string
	// Equal adds the methods Equal, Copy and String to structs, and names of fields to errors.
	Equal bool
	// JSON adds the methods of thrift.JSONStruct, MarshalJSON and UnmarshalJSON to structs, and
	// names of fields to errors.
	JSON bool
	// Body adds the method of thrift.BodyStruct, which links large strings and binaries into the
	// body of a request instead of copying them.
	Body bool
	// KeepUnknown keeps unknown fields of structs, and writes them back.
	KeepUnknown bool
	// Pointers makes optional scalars and strings pointers, as other generators do, instead of
	// thrift.Opt. Reading allocates each of them separately.
	Pointers bool
	// SortedKeys writes maps in the order of their keys, including in MarshalJSON, so that equal
	// values have the same encoding. Maps whose keys Go cannot compare are slices, which keep their
	// order.
	SortedKeys bool
	// FixedFirst writes fields whose size is fixed before the others, in the Binary protocol.
	// Otherwise fields are written in the order of their IDs.
	FixedFirst bool
	// Kitex generates the same Go names and types as Kitex's tool does for its package kitex_gen,
	// with constructors, getters and setters, and an interface for each service: see the package
	// documentation. The methods that read and write are still those of this package. A field
	// without an ID has the ID of the previous field plus 1, as in Kitex; Kitex keeps IDs that are
	// not positive, so the files should be loaded with idl.Config.NegativeIDs. JSON is then that of
	// Kitex's generic calls. Pointers has no effect; Equal, Views and Setters cannot be added.
	Kitex bool
	// Views adds views of structs, which give access to the fields of a message in the Binary
	// protocol without decoding it: see thrift.View. A view has a getter for each field.
	Views bool
	// Setters adds methods to views that replace fields. Without Views, there are none.
	Setters bool
	// Descriptors embeds the IDL without its comments, for programs that learn about their types and
	// services at run time: see idl.Embedded. Generated packages then import idl, and those of all
	// included files.
	Descriptors bool
	// RPC adds an interface for the handlers of each service, a function that returns a service
	// with a handler for a server of package thrift/rpc, and a client. With Views, there is a
	// second interface, whose functions receive views of their arguments, and clients have methods
	// that return views of results.
	RPC bool
	// Plugins are called for each file, in this order.
	Plugins []Plugin
}

// File is a generated file.
type File struct {
	Name    string // with slashes, relative to the directory of Config.Module
	Content []byte
}

// ErrNoModule is the Err of errors for an import that cannot be written because Config.Module is
// empty.
var ErrNoModule = errors.New("thrift/gen: Config.Module is empty")

// ConfigError reports which fields of a Config exclude each other.
type ConfigError struct {
	Fields [2]string
}

// Error returns the names of the fields.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("gen: Config has both %s and %s; expected only one of them", e.Fields[0], e.Fields[1])
}

// check returns an error if fields exclude each other.
func (c *Config) check() error {
	if !c.Kitex {
		return nil
	}
	for _, other := range []struct {
		name string
		set  bool
	}{{"Equal", c.Equal}, {"Views", c.Views}, {"Setters", c.Setters}} {
		if other.set {
			return &ConfigError{[2]string{"Kitex", other.name}}
		}
	}
	return nil
}

// Generate returns Go files for all files of a program, in the order of their names. Errors are an
// [idl.ErrorList], unless the Config is wrong or a plug-in has failed.
func Generate(c Config, p *idl.Program) ([]File, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	g := &generator{config: c, packages: make(map[string]*goPackage), structs: make(map[*idl.Struct]*structure),
		names: make(map[any]string), functions: make(map[*idl.Function]*functionNames), stubs: make(map[*idl.Service]*stubs), viewStubs: make(map[*idl.Service]*viewStubs), streamNames: make(map[*idl.Service]*streamNames), clients: make(map[*idl.Service]string), methods: make(map[*idl.Service]names), keys: make(map[*idl.Type]string), numbers: make(map[idl.Decl]int), files: make(map[*idl.File]*GoFile)}
	g.sort(p)
	if g.checkNames(); len(g.errs) > 0 {
		return nil, g.errs
	}
	if c.Kitex {
		g.assignKitexNames()
	} else {
		g.assignNames()
	}
	if c.RPC {
		g.assignStubNames()
		if c.Views {
			g.assignViewStubNames()
		}
	}
	g.checkTypes()
	if len(g.errs) > 0 {
		return nil, g.errs
	}
	g.measure()
	if !c.Kitex { // With Kitex, a struct literal has no defaults.
		g.checkDefaults()
	}
	for _, f := range g.order {
		f.declarations()
		for _, plugin := range c.Plugins {
			if err := plugin(f); err != nil {
				return nil, err
			}
		}
	}
	g.checkImports()
	if len(g.errs) > 0 {
		return nil, g.errs
	}
	var out []File
	for _, f := range g.order {
		out = append(append(out, f.finish()), f.extra...)
	}
	slices.SortStableFunc(out, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// generator is one call of Generate.
type generator struct {
	config    Config
	packages  map[string]*goPackage // by directory
	files     map[*idl.File]*GoFile
	order     []*GoFile // each after the files that it includes
	structs   map[*idl.Struct]*structure
	names     map[any]string // Go names of declarations, and of values of enums
	functions map[*idl.Function]*functionNames
	stubs     map[*idl.Service]*stubs // empty unless they are generated
	viewStubs map[*idl.Service]*viewStubs

	streamNames map[*idl.Service]*streamNames // names for services with streaming functions
	clients     map[*idl.Service]string       // names of clients that Kitex's tool picks
	methods     map[*idl.Service]names        // of interfaces, without those of services that they extend
	keys        map[*idl.Type]string
	numbers     map[idl.Decl]int // numbers of types in keys
	fields      int              // number of fields of all structs
	expanded    int              // bytes of strings that replaced names of constants
	viewText    int              // bytes of the types of views
	errs        idl.ErrorList
}

func (g *generator) errorf(f *idl.File, pos idl.Pos, format string, args ...any) {
	g.failf(nil, f, pos, format, args...)
}

// failf reports an error whose cause is err, which may be nil.
func (g *generator) failf(err error, f *idl.File, pos idl.Pos, format string, args ...any) {
	if len(g.errs) < 100 {
		e := f.Errorf(pos, format, args...)
		e.Err = err
		g.errs = append(g.errs, e)
	}
}

// goPackage is a package that is being generated.
type goPackage struct {
	dir, name  string
	files      []*GoFile
	names      names // declared in the package
	fileNames  names
	containers map[string]string // suffixes of names of functions, by type
	viewElems  map[string]string // names of functions that return views of containers, by type
	// constructors are the names of functions that create a struct, by the name of its type.
	constructors map[string]string
	packageDoc   bool // a file has the package comment
}

func (p *goPackage) importPath(c *Config) string { return path.Join(c.Module, p.dir) }

// sort creates the packages and the files.
func (g *generator) sort(p *idl.Program) {
	folded := make(map[string]*GoFile) // by directory, without regard to case
	for _, f := range p.Files {
		namespace := f.Namespace("go")
		if namespace == "" {
			namespace = strings.ReplaceAll(strings.TrimSuffix(fileName(f.Name), "_thrift"), "-", "_")
		}
		dir := strings.ReplaceAll(namespace, ".", "/")
		pkg := g.packages[dir]
		if pkg == nil {
			pkg = &goPackage{dir: dir, name: packageName(path.Base(dir)), names: make(names), fileNames: make(names), containers: make(map[string]string), viewElems: make(map[string]string), constructors: make(map[string]string)}
			g.packages[dir] = pkg
			if other := folded[strings.ToLower(dir)]; other != nil {
				g.errorf(f, idl.Pos{}, "the Go package %s differs from the package %s of %s only by capitals", dir, other.pkg.dir, other.IDL.Path)
			}
		}
		file := &GoFile{IDL: f, gen: g, pkg: pkg, imports: make(map[string]string), importNames: make(names), uses: make(map[*goPackage]string), infos: make(map[string]string)}
		file.name = pkg.fileNames.pick(strings.ToLower(fileName(f.Name)))
		if folded[strings.ToLower(dir)] == nil {
			folded[strings.ToLower(dir)] = file
		}
		pkg.files = append(pkg.files, file)
		g.files[f] = file
		g.order = append(g.order, file)
	}
}

// assignNames gives Go names to all declarations: first to types, then to constants and values of
// enums, then to declarations that the generator adds.
func (g *generator) assignNames() {
	each := func(f func(file *GoFile, d idl.Decl)) {
		for _, file := range g.order {
			for _, d := range file.IDL.Decls {
				f(file, d)
			}
		}
	}
	each(func(file *GoFile, d idl.Decl) {
		switch d.(type) {
		case *idl.Typedef, *idl.Enum, *idl.Struct:
			g.names[d] = file.pkg.names.pick(exported(d.Info().Name, false))
		}
	})
	each(func(file *GoFile, d idl.Decl) {
		if _, ok := d.(*idl.Const); ok {
			g.names[d] = file.pkg.names.pick(exported(d.Info().Name, true))
		}
	})
	each(func(file *GoFile, d idl.Decl) {
		if e, ok := d.(*idl.Enum); ok {
			for _, v := range e.Values {
				g.names[v] = file.pkg.names.pick(g.names[d] + exported(v.Name, true))
			}
		}
	})
	each(func(file *GoFile, d idl.Decl) {
		switch d := d.(type) {
		case *idl.Struct:
			file.addStruct(d, g.names[d], isDeclared)
		case *idl.Service:
			file.addService(d)
		}
	})
	for _, file := range g.order {
		file.table = file.pkg.names.pick("TableOf" + exported(file.IDL.Name, false))
	}
	if g.config.Views {
		g.assignViewNames()
	}
	if g.config.Descriptors {
		g.assignDescriptorNames()
	}
}

// edge is an import of one generated package by another.
type edge struct {
	to   *goPackage
	file *GoFile
}

// checkImports reports import cycles, and imports of packages whose path is not known.
func (g *generator) checkImports() {
	edges := make(map[*goPackage][]edge)
	for _, f := range g.order {
		for _, to := range f.used() {
			edges[f.pkg] = append(edges[f.pkg], edge{to, f})
			if g.config.Module == "" {
				g.failf(ErrNoModule, f.IDL, f.includeOf(to), "the Go package %s imports %s, but the import path of the output directory is not known", f.pkg.dir, to.dir)
			}
		}
	}
	const visiting, visited = 1, 2
	state := make(map[*goPackage]int)
	var chain []edge
	var visit func(p *goPackage)
	visit = func(p *goPackage) {
		state[p] = visiting
		for _, e := range edges[p] {
			chain = append(chain, e)
			switch state[e.to] {
			case 0:
				visit(e.to)
			case visiting:
				g.importCycle(chain)
			}
			chain = chain[:len(chain)-1]
		}
		state[p] = visited
	}
	for _, f := range g.order {
		if state[f.pkg] == 0 {
			visit(f.pkg)
		}
	}
}

// importCycle reports the cycle that ends a chain of imports.
func (g *generator) importCycle(chain []edge) {
	last := chain[len(chain)-1]
	for chain[0].file.pkg != last.to {
		chain = chain[1:]
	}
	var text strings.Builder
	for i, e := range chain {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(e.file.pkg.dir + " imports " + e.to.dir + " in " + e.file.IDL.Path)
		if i == 8 {
			text.WriteString(" and so on")
			break
		}
	}
	e := last.file.IDL.Errorf(last.file.includeOf(last.to), "import cycle of Go packages")
	e.Msg += ": " + text.String() + ". Files that refer to each other need the same namespace go"
	if len(g.errs) < 100 {
		g.errs = append(g.errs, e)
	}
}
