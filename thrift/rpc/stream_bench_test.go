package rpc_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/thrift/internal/chat"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// BenchmarkStreams sends messages of 1 KB and receives their echoes, on one stream and on many streams of one
// connection. ns/op is the round-trip time of a message; each stream has one message in flight.
func BenchmarkStreams(b *testing.B) {
	for _, streams := range []int{1, 100} {
		b.Run(fmt.Sprint(streams), func(b *testing.B) {
			s, err := rpc.NewServer(rpc.ServerConfig{}, chat.NewChatService(newChatter()))
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
				b.Fatal(err)
			}
			defer s.Shutdown(b.Context())
			_, c := openStreams(b, s, rpc.StreamConfig{})
			text := strings.Repeat("x", 1000)
			b.ReportAllocs()
			var all sync.WaitGroup
			for i := range streams {
				st, err := c.Talk(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				defer st.Close()
				all.Go(func() {
					for n := i; n < b.N; n += streams {
						if err := st.Send(b.Context(), &chat.Message{Text: text}); err != nil {
							b.Error(err)
							return
						}
						if _, err := st.Recv(b.Context()); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
		})
	}
}
