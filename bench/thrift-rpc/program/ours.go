//go:build ignore

// Command ours is slipstream as a server and as a client, and the floor.
package main

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/rpcload"
	"github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/ours"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

func main() {
	rpcload.Main(rpcload.Program{
		Servers: map[string]func(rpcload.Serving) (net.Addr, error){"slipstream": serve, "floor": rpcload.ServeFloor},
		Clients: map[string]func(context.Context, rpcload.Setting) (rpcload.Client, error){
			"slipstream": opener(rpc.ClientConfig{}, false),
			"framed":     opener(rpc.ClientConfig{Transport: rpc.Framed}, false),
			"cautious":   opener(rpc.ClientConfig{Depth: 1}, true),
			"floor":      rpcload.OpenFloor,
		},
	})
}

type handler struct{}

func (handler) Echo(_ context.Context, note *ours.Note) (*ours.Note, error) { return note, nil }

func (handler) Sleep(_ context.Context, milliseconds int32) (int32, error) {
	if milliseconds > 0 {
		time.Sleep(time.Duration(milliseconds) * time.Millisecond)
	}
	return milliseconds, nil
}

func serve(s rpcload.Serving) (net.Addr, error) {
	server, err := rpc.NewServer(rpc.ServerConfig{TLS: s.TLS}, ours.NewEchoService(handler{}))
	if err != nil {
		return nil, err
	}
	if err := server.Listen("tcp", s.Address); err != nil {
		return nil, err
	}
	return server.Addr(), nil
}

type client struct {
	*rpc.Client
	echo *ours.EchoClient
}

// opener opens clients with a configuration. A cautious one declares no function to be idempotent.
func opener(config rpc.ClientConfig, cautious bool) func(context.Context, rpcload.Setting) (rpcload.Client, error) {
	return func(ctx context.Context, s rpcload.Setting) (rpcload.Client, error) {
		config := config
		config.Addr, config.TLS = s.Address, s.TLS
		c, err := rpc.NewClient(config)
		if err != nil {
			return nil, err
		}
		if err := c.Connect(ctx); err != nil {
			_ = c.Close()
			return nil, err
		}
		var caller rpc.Caller = c
		if cautious {
			caller = &notIdempotent{Caller: c}
		}
		return client{c, ours.NewEchoClient(caller)}, nil
	}
}

func (c client) Echo(ctx context.Context, text string, number int64) (string, int64, error) {
	note, err := c.echo.Echo(ctx, &ours.Note{Text: text, Number: number})
	if err != nil {
		return "", 0, err
	}
	return note.Text, note.Number, nil
}

func (c client) Sleep(ctx context.Context, milliseconds int32) (int32, error) {
	return c.echo.Sleep(ctx, milliseconds)
}

// notIdempotent calls functions as if the IDL did not say that they are idempotent.
type notIdempotent struct {
	rpc.Caller
	twins sync.Map // of *rpc.Function, by *rpc.Function
}

// Call implements [rpc.Caller].
func (n *notIdempotent) Call(ctx context.Context, in rpc.Invocation) error {
	twin, known := n.twins.Load(in.Function)
	if !known {
		other := *in.Function
		other.Idempotent = false
		twin, _ = n.twins.LoadOrStore(in.Function, &other)
	}
	in.Function = twin.(*rpc.Function)
	return n.Caller.Call(ctx, in)
}
