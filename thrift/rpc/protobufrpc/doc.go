// Package protobufrpc calls and serves methods whose messages are those of Protocol Buffers, in the format that Kitex has
// for them: a frame, with a TTHeader before it or without, and in it the head of Thrift's Binary protocol with another
// version, and the message. It is not gRPC, and there are no streams.
//
// Types of messages are those of protoc-gen-go. A [Method] describes a method:
//
//	var find = protobufrpc.MustMethod[*pb.FindRequest, *pb.Product](pb.File_catalog_proto, "Catalog.Find")
//
// Clients and servers are those of package rpc. A client needs rpc.ClientConfig.Protobuf; a server detects the format of
// each message, so it serves Thrift and Protobuf at one address.
//
//	product, err := find.Call(ctx, client, &pb.FindRequest{Id: 17})
//
//	server, err := rpc.NewServer(rpc.ServerConfig{}, &rpc.Service{Name: "Catalog", Methods: []rpc.Method{find.Handle(h.Find)}})
//
// Deadlines, metadata, statuses of the application, and the callers of package governance work as with Thrift. Only
// programs that import this package contain the library of Protobuf.
package protobufrpc
