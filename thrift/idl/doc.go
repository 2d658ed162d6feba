// Package idl parses and checks files of Thrift's interface definition language.
//
// [Parse] parses one file. [Load] parses files and all files that they include, checks them and
// resolves their names: the result is a [Program]. It is meant for code generators, and for
// programs that learn about a service at run time.
//
//	program, err := idl.Load(idl.Config{Dirs: []string{"/usr/share/idl"}}, "shop.thrift")
//	...
//	for _, decl := range program.Roots[0].Decls {
//		switch d := decl.(type) {
//		case *idl.Struct:
//			...
//		case *idl.Service:
//			...
//		}
//	}
//
// Load reads files of the operating system, unless [Config].ReadFile is set.
//
// Generated code can contain its IDL: see [Embedded].
//
// # Errors
//
// Parse and Load report all errors together, as an [ErrorList]. Each error has a file, a line and a
// column, describes what was found and what was expected, and shows the line:
//
//	shop.thrift:3:14: unknown type Usr; did you mean User?
//		  1: required Usr buyer
//		              ^
//
// Constructs that are accepted but probably not intended, such as a field without an ID, are
// reported in [Program].Warnings.
//
// The package does not panic, whatever the contents of a file. The size and the number of files and
// the depth of nesting are limited, and the time and the memory for a file are proportional to its
// size. Load opens the files that an include names: programs that load files from untrusted sources
// must set ReadFile.
//
// # Language
//
// The language is that of https://thrift.apache.org/docs/idl as implemented by the compiler of
// Apache Thrift (thrifty.yy and thriftl.ll in its sources), up to version 0.25: uuid is a type, and
// names of fields may be keywords. Fields without an ID get the IDs -1, -2 and so on, and so do
// fields with an ID that is not positive, unless Config.NegativeIDs is set. Fields of unions are
// optional. The keyword async means oneway. The types slist and senum, and headers such as
// java_package, are rejected. A value of an enum type is written with the name of the enum, such as
// Color.RED, or as its number.
//
// The package differs from that compiler in these rules:
//
//   - Declarations may be in any order. That compiler reads a file from top to bottom, and only
//     types may be used before they are declared.
//   - A constant may be used as the value of a list, set, map or struct of an identical type, and
//     as a value of an enum.
//   - Integers, IDs and doubles that do not fit into their type are rejected, and so are booleans
//     other than 0 and 1, a map with the same key twice, a list in place of a map, a union that
//     sets two fields, a oneway function with a result, a file that is not found, and a name that
//     is declared by two included files with the same name.
//   - Names that are reserved in a target language, such as class, are accepted, as by newer versions of that compiler.
//
// The files in testdata contain an example of each difference.
//
// # Concurrency
//
// Parse and Load are safe for concurrent use, if Config.ReadFile is. A tree does not change after
// they have returned it, so several goroutines may read it.
package idl
