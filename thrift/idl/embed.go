package idl

import (
	"fmt"
	"strings"
	"sync"
)

//	IDL file --> idl.Load --> idl.File <-- Embedded.File <-- text in generated code (--descriptors)
//	                             |
//	JSON <-- generic.Codec --> map[string]any <-- generic.Codec --> Binary, Compact
//
// With the option for descriptors, each generated file contains its IDL, without comments and
// redundant spaces (idl.File.Source), as a constant, and a variable of type idl.Embedded that
// refers to the variables of the included files. The first call of File parses and checks; the
// result is the tree of this package, with everything that the IDL contains: names, IDs,
// requiredness, types, defaults, annotations, functions. Therefore a declaration has only one
// description, and no code runs when a program starts. A static table would need no parser, but
// would be a second description, and a larger one: in the IDL of the tests, a field takes 33 bytes
// of text in total; in thrift.Table, which has no services, annotations or defaults, it takes 48
// bytes and the name. The cost is package thrift/idl in the program, and parsing at the first use,
// 0.4 ms for shop.thrift and the files that it includes.
//
// An embedded file imports the packages of all files that it includes, including those whose types
// it does not use, because their names are needed to check the text. If these imports cause a
// cycle, the generator reports an error.

// Embedded is an IDL file that is part of a program. The code that slipstream gen thrift generates
// with the option for descriptors declares one for each file, in a variable such as IDLOfShop. It
// is statically initialized data: no code runs before File is called.
type Embedded struct {
	// Immutable.

	// Name is the Name of the File.
	Name string
	// Source is the text that the Source method of the File returns.
	Source string
	// Includes are the included files, in the order of the source.
	Includes []*Embedded
	// NegativeIDs is the value in the Config with which the file was loaded.
	NegativeIDs bool

	// Owned by once.
	once sync.Once
	file *File
	err  error
}

// Described is implemented by pointers to generated structs, unions and exceptions that refer to
// their declarations.
type Described interface {
	// ThriftIDL returns the file that declares the struct, and the name of the struct in that file.
	ThriftIDL() (file *Embedded, name string)
}

// StructOf returns the declaration of a generated struct.
func StructOf(v Described) (*Struct, error) {
	e, name := v.ThriftIDL()
	f, err := e.File()
	if err != nil {
		return nil, err
	}
	s, ok := f.Type(name).(*Struct)
	if !ok {
		return nil, fmt.Errorf("idl: %s declares no struct %s", f.Path, name)
	}
	return s, nil
}

// File returns the file with all names resolved, as Load does. The first call parses the source and
// the sources of the included files; later calls return the same result. For generated code, the
// error is always nil. If two files include a third one, each has its own tree of it.
//
// File is safe for concurrent use.
func (e *Embedded) File() (*File, error) {
	e.once.Do(func() {
		l := embeddedLoader{files: make(map[*Embedded]*File), nodes: maxNodes}
		f := l.load(e, 0)
		checkAll(l.order, &l.report)
		if e.err = l.report.err(l.order); e.err == nil {
			e.file = f
		}
	})
	return e.file, e.err
}

// embeddedLoader loads embedded files. It is used by one goroutine.
type embeddedLoader struct {
	files  map[*Embedded]*File
	order  []*File // each after the files that it includes
	report report
	nodes  int // number of nodes that may still be created
}

func (l *embeddedLoader) load(e *Embedded, depth int) *File {
	if f := l.files[e]; f != nil {
		return f
	}
	f := parse(e.Name+".thrift", []byte(e.Source), &l.report, &l.nodes, e.NegativeIDs)
	l.files[e] = f
	if len(f.Includes) != len(e.Includes) || depth >= maxDepth {
		l.report.errorf(f, Pos{}, "the file includes %d files, but %d are embedded with it, at depth %d", len(f.Includes), len(e.Includes), depth)
		f.complete = false
		return f
	}
	for i, include := range f.Includes {
		include.File = l.load(e.Includes[i], depth+1)
		f.complete = f.complete && include.File.complete
	}
	l.order = append(l.order, f)
	return f
}

// Source returns the text of the file without comments and redundant spaces. Line breaks are kept,
// except those of blank lines.
func (f *File) Source() string {
	var b strings.Builder
	x := newLexer(&File{Path: f.Path, src: f.src}, new(report))
	last := byte(0)
	for t := x.next(); t.kind != tokEOF; t = x.next() {
		text := x.src[t.span.start:t.span.end]
		if text == "" {
			continue
		}
		switch {
		case b.Len() == 0:
		case t.newLine:
			b.WriteByte('\n')
		case isWord(last) && isWord(text[0]):
			b.WriteByte(' ')
		}
		b.WriteString(text)
		last = text[len(text)-1]
	}
	return b.String()
}

// isWord reports whether a character can be a part of a name or a number.
func isWord(c byte) bool {
	return isLetter(c) || isDigit(c) || strings.IndexByte("+-.", c) >= 0
}

// NegativeIDs reports whether the file has an ID that is not positive and was kept. See
// Config.NegativeIDs.
func (f *File) NegativeIDs() bool {
	kept := func(fields []*Field) bool {
		for _, one := range fields {
			if one.ID <= 0 && !one.AutoID {
				return true
			}
		}
		return false
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *Struct:
			if kept(d.Fields) {
				return true
			}
		case *Service:
			for _, fn := range d.Functions {
				if kept(fn.Args) || kept(fn.Throws) {
					return true
				}
			}
		}
	}
	return false
}
