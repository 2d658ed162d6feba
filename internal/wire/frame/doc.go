// Package frame has the transports of Thrift messages: where a message ends, and what is around it.
//
// A message of the Binary or Compact protocol travels as it is (Buffered), after its length (Framed),
// or after a header of its own (Header, called TTHeader by Kitex), which may be followed by either. The
// first bytes tell which it is, so one port serves all of them, and an answer has the transport of its
// request.
//
// Sources: thrift-binary-protocol.md, thrift-compact-protocol.md and thrift-rpc.md of Apache Thrift;
// https://www.cloudwego.io/docs/kitex/reference/transport-protocol-ttheader/ and the code of
// github.com/cloudwego/gopkg/protocol/ttheader, where the two differ.
//
// In place of a message of Thrift a frame, or a header and a frame, can have one of Protobuf as Kitex sends it: its head is that
// of the Binary protocol with the version 0x9001.
//
// The package knows bytes, and no sockets.
//
// Six bytes tell the transport and the protocol: Binary, in the strict and in the old form, or Compact. The
// old form and Framed both begin with a length: a letter follows the length of a name, and a byte of a
// message that of a frame. Formats that are recognized and not supported (HTTP, TLS, THeader, zlib, mesh
// headers) are named in the log. Frames of streams (stream.go) are told by a flag of their headers.
//
// Messages without a length are searched for their end (walk.go). If one is incomplete, a walker remembers
// where it is, with the levels of structs and containers above it, so the bytes of a large message are passed
// once and not again at each read.
package frame
