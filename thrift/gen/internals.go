package gen

// This file describes the internals of the generator for its maintainers.
// docs/decisions/0022-thrift-generated-code.md explains the code that it writes.
//
//	idl.Program --> packages --> Go names --> limits --> file by file: declarations, plug-ins --> imports --> []File
//
//   - All Go names are assigned before anything is written, in the order of the files, because a
//     file refers to names of others. Types come first, then constants, values of enums, and the
//     declarations that the generator adds. A name depends on the files that are generated
//     together: files of one package must be passed to one call.
//   - A line is written with fmt and indented by the braces at its ends. Columns are aligned for
//     fields, constants and maps, as gofmt does. Tests compare the output of every test with that
//     of go/format, which takes ten times as long as the generator: 0.15 s for 10,000 lines of IDL
//     (BenchmarkGenerate). Comments of IDL are converted to the form that gofmt gives to doc
//     comments; otherwise gofmt would turn them into lists and headings.
//   - AppendThrift makes room for consecutive heads and values with a fixed size in one step, and
//     then appends the values without a fixed size (append.go). The room is exact, so that Write
//     fits into a buffer of SizeThrift bytes. BodyThrift has the same statements, but links.
//   - Lists of structs are loops in the methods. Other containers that the runtime has no functions
//     for get functions, one set for a type in a package.
//   - Each IDL file has one table, for Equal, Copy, String and JSON. It refers to the tables of
//     included files: includes have no cycles, so the initialization of variables has none either.
//   - Descriptors contain the text of the IDL: see idl.Embedded. They come after the views, and so
//     do their names.
//   - Views come last in a file, and so do their names, so that the options change nothing else. A
//     getter has the name of the field unless views have such a method, or vet expects a signature
//     of that name (ReadByte, Unwrap). The name of a setter gives way to that of a getter. Types of
//     views have no typedefs, so the total size of long ones is limited.
//   - Config.Kitex changes Go names and types and adds declarations (kitex.go); the code that reads
//     and writes is the same, with three differences. Elements that are structs are pointers: a
//     list of them is read into one allocation (thrift.Pointers), and methods that write accept
//     nil. Enums have 64 bits (wideEnum). An optional scalar with a default is a value, and is sent
//     if it differs. The naming style is that of Kitex's tool (kitexName), in its order: services,
//     structs, enums, typedefs, constants. Its names take precedence over ours: Reset gets another
//     name if a field has this name. Clients, servers and Kitex's codec are not generated, and
//     Equal and views are rejected, because they would need a second form.
//   - Defaults are set by Reset. A struct literal that omits a field with a default is made by a
//     function whose name begins with New. Structs whose defaults contain themselves are rejected.
//     The default of a field whose type is a struct is for messages without the field: a struct in
//     a message is read into a new one, which has the defaults of its own fields. Only a required
//     struct that Reset has kept is read into again, unless it is the second one in the message.
//   - Reset keeps the memory of lists, maps and required structs, because a message that lacks a
//     required struct is rejected anyway. Optional structs become nil. If required structs form a
//     cycle, one field of the cycle is not kept, so that Reset ends. Elements of lists drop kept
//     structs that contain maps, for the same reason as they drop maps. A struct and the first one
//     that it requires are allocated together (thrift.MakeTwo).
//   - Import cycles are detected among the imports that were written, not among includes: an
//     include of which no type is used is not an import.
//   - Names of constants are not replaced by their values, except strings that are used as another
//     type, whose total size is limited. A type may have 100 parts, because views name it in full
//     for each field, and a name may have 255 bytes, because columns are as wide as their longest
//     name. Names that collide are numbered, so that many of them do not take quadratic time.
//
// The packages below thrift/internal/testpkg are committed output, so that ordinary tests and
// linters see them. TestGeneratedModule builds the same files with other options in a separate module
// and runs the tests of testpkg there. FuzzGenerate type-checks the output for every accepted
// program.
