// Package rpc serves and calls Thrift services, as slipstream gen thrift --rpc generates them.
//
// A [Server] accepts unmodified clients of other implementations. It detects for each message how it
// is delimited (Buffered, Framed, TTHeader, or TTHeader around a frame) and whether it is in the
// Binary or the Compact protocol, and answers in the same way. TTHeader is the header of Kitex; the
// header of Apache Thrift (THeader) is another one, and is not supported. Messages of Protobuf, as Kitex sends them, are for
// methods of package protobufrpc.
//
// A [Client] carries the calls of many goroutines over few connections. How many calls a connection has depends on
// what its server has shown: see the type.
//
// Functions may have streams of messages, as those of Kitex over TTHeader: a [StreamClient] opens them, and a [Server] serves
// functions with and without streams on one port.
//
// Sources: thrift-rpc.md, thrift-binary-protocol.md and thrift-compact-protocol.md of Apache Thrift, and
// https://www.cloudwego.io/docs/kitex/reference/transport-protocol-ttheader/.
package rpc

//go:generate go run ../../cmd/slipstream gen thrift --rpc --views --setters -o ../internal testdata/calc.thrift
//go:generate go run ../../cmd/slipstream gen thrift --rpc --views -o ../internal testdata/chat.thrift
