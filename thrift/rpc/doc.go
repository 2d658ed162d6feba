// Package rpc serves and calls Thrift services, as slipstream gen thrift --rpc generates them.
//
// A [Server] accepts unmodified clients of other implementations. For each message, it detects the transport (Buffered,
// Framed, TTHeader, or TTHeader around a frame) and the protocol (Binary or Compact), and answers in the same way.
// TTHeader is Kitex's header; Apache Thrift's THeader is different and is not supported. Package protobufrpc adds
// methods that use Protobuf messages, as Kitex sends them.
//
// A [Client] carries the calls of many goroutines over a few connections. The number of calls in flight on a connection
// depends on the server: see the type.
//
// Functions may be streaming, as with Kitex over TTHeader: a [StreamClient] opens streams, and a [Server] serves
// streaming and other functions on one port.
//
// Sources: thrift-rpc.md, thrift-binary-protocol.md and thrift-compact-protocol.md of Apache Thrift, and
// https://www.cloudwego.io/docs/kitex/reference/transport-protocol-ttheader/.
package rpc

//go:generate go run ../../cmd/slipstream gen thrift --rpc --views --setters -o ../internal testdata/calc.thrift
//go:generate go run ../../cmd/slipstream gen thrift --rpc --views -o ../internal testdata/chat.thrift
