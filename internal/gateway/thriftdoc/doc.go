// Package thriftdoc represents documents as Thrift structs. It determines the fields of a struct,
// encodes it from the JSON of a document, and writes the IDL that clients are compiled from.
//
//	resource.Shape (types, from the database) --+
//	                                            +--> Layout --> Append: JSON --> Binary protocol
//	resource.FieldIDs (numbers, from the file) -+        \--> IDL
//
// A field is found by the name of its member, and has the number that the configuration gives it. Its
// type follows from the database. If the type of a column changes, so does the type of the field in
// new messages, and generated code skips a field of another type than it was compiled for.
//
// Types are those that hold every value of a column:
//
//   - Integers are i32 or i64, floating-point numbers double, Booleans bool.
//   - Text, dates, timestamps, UUIDs, and binary values in the encoding of the document are strings.
//     So are exact decimals (numeric), because a double holds fewer digits.
//   - Values of any type, arrays and objects are strings that hold their JSON. Lists of Thrift cannot
//     hold null, and databases do not enforce the dimensions of arrays.
//   - Nested rows are lists of structs.
//
// null is an absent field. A column of SQLite may hold a value that does not fit its declared type: such
// a document has no encoding, and Append returns a [*MismatchError].
package thriftdoc
