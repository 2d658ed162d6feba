package protobufrpc_test

import (
	"context"
	"fmt"
	"log"

	"github.com/slipstream-go/slipstream/thrift/rpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/protobufrpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/protobufrpc/internal/catalog"
)

// findProduct is a method of the .proto file, with its types. Programs have a variable for each method.
var findProduct = protobufrpc.MustMethod[*catalog.FindRequest, *catalog.Product](catalog.File_catalog_proto, "Catalog.Find")

// findByID is a handler: it receives a message and returns one.
func findByID(_ context.Context, req *catalog.FindRequest) (*catalog.Product, error) {
	if req.GetId() != 17 {
		return nil, &rpc.StatusError{Code: 404, Message: "there is no such product"}
	}
	return &catalog.Product{Id: 17, Title: "spoon"}, nil
}

// A server and a client of package rpc with Protobuf messages.
func Example() {
	server, err := rpc.NewServer(rpc.ServerConfig{}, &rpc.Service{Name: "Catalog", Methods: []rpc.Method{findProduct.Handle(findByID)}})
	if err != nil {
		log.Fatal(err)
	}
	if err := server.Listen("tcp", "127.0.0.1:0"); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer server.Shutdown(ctx)

	client, err := rpc.NewClient(rpc.ClientConfig{Addr: server.Addr().String(), Protobuf: true})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	product, err := findProduct.Call(ctx, client, &catalog.FindRequest{Id: 17})
	fmt.Println(product.GetTitle(), err)
	_, err = findProduct.Call(ctx, client, &catalog.FindRequest{Id: 4})
	fmt.Println(err != nil)
	// Output:
	// spoon <nil>
	// true
}
