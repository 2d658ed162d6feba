package gen

// This file describes the internals of the generator for its maintainers.
// docs/decisions/0022-thrift-generated-code.md explains the code that it writes.
//
//	idl.Program --> packages --> Go names --> limits --> file by file: declarations, plug-ins --> imports --> []File
//
//   - All Go names are assigned before anything is written, in the order of the files, because a
//     file refers to names of others. Types come first, then constants, values of enums, and what
//     the generator adds. A name depends on the files that are generated together: files of one
//     package must be passed to one call.
//   - A line is written with fmt and indented by the braces at its ends. Columns are aligned for
//     fields, constants and maps, as gofmt does. Tests compare the output of every test with that
//     of go/format, which takes ten times as long as the generator: 0.15 s for 10,000 lines of IDL
//     (BenchmarkGenerate). Comments of IDL are brought into the form that gofmt gives to doc
//     comments; without that, gofmt would make lists and headings of them.
//   - AppendThrift makes room for heads and values with a fixed size that follow each other in one
//     step, and appends what has no fixed size after them (append.go). The room is exact, so that Write
//     fits into a buffer of SizeThrift bytes. BodyThrift has the same statements, but links.
//   - Lists of structs are loops in the methods. Other containers that the runtime has no functions
//     for get functions, one set for a type in a package.
//   - Each IDL file has one table, for Equal, Copy, String and JSON. It refers to the tables of
//     included files: includes have no cycle, and so neither does the initialization of variables.
//   - Descriptors are the text of the IDL, see idl.Embedded. They come after the views, and so do
//     their names.
//   - Views come last in a file, and so do their names, so that the options change nothing else. A
//     getter has the name of the field unless views have such a method, or vet expects a signature
//     of that name (ReadByte, Unwrap). The name of a setter gives way to that of a getter. Types of
//     views have no typedefs, so the bytes of long ones are limited in all.
//   - Config.Kitex changes Go names, types and what is declared beside them (kitex.go); the code
//     that reads and writes is the same, with three differences. Elements that are structs are
//     pointers: a list of them is read into one allocation (thrift.Pointers), and methods that
//     write accept nil. Enums have 64 bits (wideEnum). An optional scalar with a default is a
//     value, and is sent if it differs. The naming style is that of Kitex's tool (kitexName), in
//     its order: services, structs, enums, typedefs, constants. Its names win over ours: Reset
//     gives way to a field. Clients, servers and Kitex's own codec are not generated, and Equal and
//     views are refused: they would need a second form.
//   - Defaults are set by Reset. A struct literal that leaves out a field with a default is made by
//     a function that begins with New. Structs whose defaults contain themselves are refused. The
//     default of a field whose type is a struct is for messages without the field: a struct that a
//     message has is read into a new one, which has the defaults of its own fields. Only a required
//     struct that Reset has kept is read into again, unless it is the second one in the message.
//   - Reset keeps the memory of lists, maps and required structs, because a message that lacks a
//     required struct is refused anyway. Optional structs become nil. If required structs form a
//     cycle, one field of the cycle is not kept, so that Reset ends. Elements of lists drop kept
//     structs that contain maps, for the reason for which they drop maps. A struct and the first
//     one that it requires are allocated together (thrift.MakeTwo).
//   - Import cycles are looked for among the imports that were written, not among includes: an
//     include that no type comes from is not an import.
//   - Names of constants are not replaced by their values, except strings that another type needs,
//     for which there is a limit. A type may have 100 parts, because views name it in full for
//     each field, and a name 255 bytes, because columns are as wide as their longest name. Names that
//     collide are numbered, so that many of them do not take quadratic time.
//
// The packages below thrift/internal/testpkg are committed output, so that ordinary tests and
// linters see them. TestGeneratedModule builds the same files with other options in a separate module
// and runs the tests of testpkg there. FuzzGenerate checks the types of everything that the generator
// accepts.
