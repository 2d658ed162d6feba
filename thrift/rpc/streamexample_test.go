package rpc_test

import (
	"context"
	"fmt"
	"io"
	"log"

	"github.com/slipstream-go/slipstream/thrift/internal/chat"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// counter is the handler of a streaming service.
type counter struct{ chat.Chat }

// Watch sends the number of responses that the request asks for.
func (counter) Watch(ctx context.Context, request *chat.Message, stream *rpc.ServerStreamingServer[chat.Message]) error {
	for i := range request.Number {
		if err := stream.Send(ctx, &chat.Message{Number: i}); err != nil {
			return err
		}
	}
	return nil
}

// Talk answers each request.
func (counter) Talk(ctx context.Context, stream *rpc.BidiStreamingServer[chat.Message, chat.Message]) error {
	for request, err := range stream.All(ctx) {
		if err != nil {
			return err
		}
		if err := stream.Send(ctx, &chat.Message{Text: request.Text + "!"}); err != nil {
			return err
		}
	}
	return nil
}

// A generated client opens streams through a StreamClient, which all goroutines share.
func ExampleStreamClient() {
	s, err := rpc.NewServer(rpc.ServerConfig{}, chat.NewChatService(counter{}))
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
		log.Fatal(err)
	}
	defer s.Shutdown(context.Background())

	client, err := rpc.NewStreamClient(rpc.StreamConfig{Addr: s.Addr().String()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	numbers, err := chat.NewChatStreamClient(client).Watch(ctx, &chat.Message{Number: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer numbers.Close()
	for m, err := range numbers.All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Number)
	}

	talk, err := chat.NewChatStreamClient(client).Talk(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer talk.Close()
	if err := talk.Send(ctx, &chat.Message{Text: "hello"}); err != nil {
		log.Fatal(err)
	}
	m, err := talk.Recv(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Text)
	if err := talk.CloseSend(ctx); err != nil {
		log.Fatal(err)
	}
	_, err = talk.Recv(ctx)
	fmt.Println(err == io.EOF)
	// Output:
	// 0
	// 1
	// 2
	// hello!
	// true
}
