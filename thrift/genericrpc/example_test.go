package genericrpc_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/slipstream-go/slipstream/thrift/generic"
	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

const shop = `
struct Order { 1: i64 id, 2: list<string> items }
exception NotFound { 1: i64 id }
service Orders { Order find(1: i64 id) throws (1: NotFound missing) }
`

// orders returns the service of the IDL, which a program usually loads from files.
func orders() *idl.Service {
	program, err := idl.Load(idl.Config{ReadFile: func(string) ([]byte, error) { return []byte(shop), nil }}, "shop.thrift")
	if err != nil {
		log.Fatal(err)
	}
	return program.Roots[0].Service("Orders")
}

// start starts a server whose orders contain a spoon, and returns its address. The caller must shut
// it down.
func start() (addr string, s *rpc.Server) {
	service, err := genericrpc.NewService(orders(), func(_ context.Context, f *idl.Function, args genericrpc.Raw) (result genericrpc.Raw, err error) {
		c := generic.Codec{Compact: args.Compact} // the protocol that the client has chosen
		values, _, err := c.Read(args.Bytes, 0, f.ArgsStruct())
		if err != nil {
			return result, err
		}
		reply := map[string]any{"success": map[string]any{"id": values["id"], "items": []any{"spoon"}}}
		if values["id"] == int64(0) {
			reply = map[string]any{"missing": map[string]any{"id": int64(0)}}
		}
		result.Compact = args.Compact
		result.Bytes, err = c.Append(nil, f.ResultStruct(), reply)
		return result, err
	})
	if err != nil {
		log.Fatal(err)
	}
	if s, err = rpc.NewServer(rpc.ServerConfig{}, service); err != nil {
		log.Fatal(err)
	}
	if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
		log.Fatal(err)
	}
	return s.Addr().String(), s
}

// A tool that has only the IDL calls a function with JSON.
func ExampleClient() {
	addr, server := start()
	defer server.Shutdown(context.Background())

	caller, err := rpc.NewClient(rpc.ClientConfig{Addr: addr})
	if err != nil {
		log.Fatal(err)
	}
	defer caller.Close()
	client, err := genericrpc.NewClient(caller, orders(), genericrpc.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for _, args := range []string{`{"id": 17}`, `{"id": 0}`, `{"id": true}`, `{"ID": 17}`} {
		order, err := client.Call(context.Background(), "find", []byte(args))
		if thrown, ok := errors.AsType[*genericrpc.Exception](err); ok {
			fmt.Printf("%v: %s\n", thrown, thrown.JSON)
		} else if err != nil {
			fmt.Println(err)
		} else {
			fmt.Printf("%s\n", order)
		}
	}
	// Output:
	// {"id":17,"items":["spoon"]}
	// Orders.find has thrown NotFound: {"id":0}
	// find: thrift: JSON: field id: expected an integer, found a bool, at byte 11 (not sent)
	// find: thrift: JSON: field ID: find_args has no field with this name; expected id, at byte 5 (not sent)
}

// A proxy forwards calls without decoding them.
func ExampleNewService() {
	addr, server := start()
	defer server.Shutdown(context.Background())
	caller, err := rpc.NewClient(rpc.ClientConfig{Addr: addr})
	if err != nil {
		log.Fatal(err)
	}
	defer caller.Close()
	client, err := genericrpc.NewClient(caller, orders(), genericrpc.Config{})
	if err != nil {
		log.Fatal(err)
	}

	service, err := genericrpc.NewService(orders(), func(ctx context.Context, f *idl.Function, args genericrpc.Raw) (genericrpc.Raw, error) {
		if args.Compact {
			return args, errors.New("this proxy forwards only the Binary protocol")
		}
		result, err := client.CallBinary(ctx, f.Name, args.Bytes)
		return genericrpc.Raw{Bytes: result}, err
	})
	if err != nil {
		log.Fatal(err)
	}
	proxy, err := rpc.NewServer(rpc.ServerConfig{}, service)
	if err != nil {
		log.Fatal(err)
	}
	if err := proxy.Listen("tcp", "127.0.0.1:0"); err != nil {
		log.Fatal(err)
	}
	defer proxy.Shutdown(context.Background())

	through, err := rpc.NewClient(rpc.ClientConfig{Addr: proxy.Addr().String(), Transport: rpc.Framed})
	if err != nil {
		log.Fatal(err)
	}
	defer through.Close()
	c, err := genericrpc.NewClient(through, orders(), genericrpc.Config{})
	if err != nil {
		log.Fatal(err)
	}
	order, err := c.Call(context.Background(), "find", []byte(`{"id": 17}`))
	fmt.Printf("%s, %v\n", order, err)
	// Output: {"id":17,"items":["spoon"]}, <nil>
}
