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
// The package knows bytes, and no sockets.
package frame
