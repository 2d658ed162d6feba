package protobufrpc_test

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/slipstream-go/slipstream/thrift/rpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/protobufrpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/protobufrpc/internal/catalog"
)

// BenchmarkCall measures a call over loopback, including the server.
func BenchmarkCall(b *testing.B) {
	s := serve(b, rpc.ServerConfig{}, new(products).service().Inline("Echo"))
	c := connect(b, rpc.ClientConfig{Addr: s.Addr().String(), Protobuf: true})
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := echo.Call(context.Background(), c, &catalog.Text{Text: "hello"}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkRead compares decoding a message without a memory limit, with one, and with a walk through the message.
func BenchmarkRead(b *testing.B) {
	in, err := proto.Marshal(product(17))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := proto.Unmarshal(in, new(catalog.Product)); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, limit := range map[string]int{"limit": 0, "walk": 4000} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := new(protobufrpc.Message[*catalog.Product]).ReadProtobuf(in, limit); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
