// Package generic encodes and decodes Thrift without generated code, from IDL that is parsed at run
// time. It is meant for tools: programs that call a service for which they have only the IDL,
// display messages, or convert them to JSON. It is slower than generated code, and allocates more.
//
//	program, err := idl.Load(idl.Config{}, "shop.thrift")
//	...
//	find := program.Roots[0].Service("Orders").Function("find")
//	var c generic.Codec
//	args, err := c.FromJSON([]byte(`{"query": {"id": 17}}`), find.ArgsStruct())
//	...
//	frame, err := c.AppendMessage(nil, &generic.Message{Function: find, Type: thrift.Call, Seq: 1, Value: args})
//
// Programs with generated code that contains its IDL (the option for descriptors) get the File
// from there: see [idl.Embedded].
//
// # Values
//
//	bool                  bool
//	i8, i16, i32, i64     int8, int16, int32, int64
//	enum                  int32
//	double                float64
//	string, binary        string, []byte; a binary that is the key of a map is a string
//	uuid                  thrift.UUID
//	list, set             []any
//	map                   map[any]any; []thrift.Entry[any, any] if Go cannot compare keys
//	struct                map[string]any, with the names of fields in the IDL
//
// Reading returns values of these types. Writing accepts them. It also accepts an int for any
// integer type, if the value fits, and entries for any map. Entries are written in their order,
// other maps in the order of their keys.
//
// A field that is absent, or nil, has no value. When a struct is read, fields that are not in the
// message get the same values as in generated code: their default or, if they are neither optional
// nor structs, zero or an empty container. When a struct is written, absent fields are written with
// the same values. Optional fields stay absent, except that reading sets binaries, containers and
// structs to their defaults. A required field that is absent is an error in both directions, and so
// is a union that does not have exactly one field. When a struct is written, an unknown name is an
// error, too. Fields that the IDL does not declare are skipped; a union that has such a field is
// read as an empty map.
//
// # Hostile input
//
// The bounds are those of generated code: counts are compared with the rest of the input before
// memory is allocated, [thrift.MaxDepth] limits nesting, and [Codec].MaxMemory limits the values.
// The IDL may also come from an untrusted source, if idl.Config.ReadFile is set: MaxMemory also
// limits the memory for defaults.
package generic
