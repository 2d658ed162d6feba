package generic_test

import (
	"fmt"
	"log"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/generic"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

const shop = `
struct Order { 1: required i64 id, 2: list<string> items, 3: i32 priority = 5 }
exception NotFound { 1: i64 id }
service Orders { Order find(1: i64 id) throws (1: NotFound missing) }
`

// A tool calls a function with JSON, and prints the reply as JSON.
func Example() {
	program, err := idl.Load(idl.Config{ReadFile: func(string) ([]byte, error) { return []byte(shop), nil }}, "shop.thrift")
	if err != nil {
		log.Fatal(err)
	}
	service := program.Roots[0].Service("Orders")
	find := service.Function("find")
	var c generic.Codec

	args, err := c.FromJSON([]byte(`{"id": 17}`), find.ArgsStruct())
	if err != nil {
		log.Fatal(err)
	}
	frame, err := c.AppendMessage(nil, &generic.Message{Function: find, Type: thrift.Call, Seq: 1, Value: args})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q\n", frame)

	reply, _, err := c.ReadMessage(answer(frame, service), 0, service)
	if err != nil {
		log.Fatal(err)
	}
	text, err := c.AppendJSON(nil, find.ResultStruct(), reply.Value)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", text)
	// Output:
	// "\x80\x01\x00\x01\x00\x00\x00\x04find\x00\x00\x00\x01\n\x00\x01\x00\x00\x00\x00\x00\x00\x00\x11\x00"
	// {"success":{"id":17,"items":["spoon"],"priority":5}}
}

// answer is a server.
func answer(frame []byte, service *idl.Service) []byte {
	var c generic.Codec
	call, _, err := c.ReadMessage(frame, 0, service)
	if err != nil {
		log.Fatal(err)
	}
	order := map[string]any{"id": call.Value["id"], "items": []any{"spoon"}}
	reply, err := c.AppendMessage(nil, &generic.Message{Function: call.Function, Type: thrift.Reply, Seq: call.Seq, Value: map[string]any{"success": order}})
	if err != nil {
		log.Fatal(err)
	}
	return reply
}
