// Package thrift is the runtime of generated Thrift code: the Binary and Compact protocols,
// messages, errors, and JSON.
//
// [Unmarshal] and [Reader] read structs, [Append] and [Write] write them. Most other functions are
// meant for generated code.
//
//	b := thrift.AppendMessage(nil, "getUser", thrift.Call, seq)
//	b = args.AppendThrift(b)
//	...
//	var m thrift.Message
//	off := thrift.ReadMessage(b, 0, &m)
//	if off < 0 {
//		return thrift.Err(off, 0)
//	}
//	var r thrift.Reader
//	_, err := r.Read(b, off, &result)
//
// The protocols are those of https://thrift.apache.org, as thrift-binary-protocol.md and
// thrift-compact-protocol.md in the sources of Apache Thrift specify them. Messages in the Binary
// protocol are written in the strict form; both forms are read. In the Compact protocol, bool
// elements are written as other implementations write them, with the type 1 and the values 1 and 2.
//
// # Writing
//
// Generated code appends to a slice. It makes room once for all fields whose size is known, and
// then stores them with functions whose names begin with Put. Nothing is allocated if the slice has
// room for the number of bytes that SizeThrift returns. Maps are written in the order in which Go
// ranges over them, unless generated code uses [SortedKeys]. Fields may be written in any order.
// Strings and containers of 2^31 or more bytes or elements cannot be encoded: the output for them
// is not valid.
//
// [AppendBody] links large strings and binaries into the body of a request instead of copying them.
//
// # Reading
//
// Functions that read take the input and an offset. They return the next offset, or a negative
// code, which [Reader.Read] converts to an [Error] with the offset and the path of the field.
//
// The input need not be trusted. A count is compared with the rest of the input before memory is
// allocated, a field of an unexpected type is skipped, elements of an unexpected type are an error,
// and so are more than [MaxDepth] levels. Strings, binaries and lists of numbers take at most about
// twice the size of the input. Structs and maps can be much larger in Go than in the input, which
// is why [Reader].MaxMemory limits them.
//
// Strings of one message share allocations by default: see [Memory] for the alternatives. A value
// that is read into again keeps its slices, its maps and its required structs, so reading allocates
// little. With [Reader.Recycle] it allocates only structs in fields that are not required. Without
// Recycle, a Reader keeps no memory between messages.
//
// A bool is false if its byte is 0, and true otherwise. If a field occurs twice in a message, the
// last value replaces the first one completely.
//
// # Values
//
// Optional scalars and strings have the type [Opt]. Optional binaries, containers and structs are
// absent if they are nil. A set is a slice; [Distinct] reports whether its elements are distinct.
// Values of enums are int32; unknown values are kept. [Unknown] holds fields that a struct does not
// declare, if an option of the generator keeps them.
//
// # JSON
//
// Types generated with the option for JSON have the methods of [JSONStruct]: AppendJSON and
// ReadJSON. [JSON] documents what is written and read. It is not Thrift's JSON protocol.
//
// # Views
//
// A [View] reads fields of a struct in the Binary protocol without decoding it, and forwards it with
// changes. The generator has options for views and for their setters.
//
// # Concurrency
//
// Functions are safe for concurrent use as long as their arguments are not shared. A [Reader] is
// not safe for concurrent use.
package thrift
