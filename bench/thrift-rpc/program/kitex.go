//go:build ignore

// Command kitex is Kitex as a server and as a client.
package main

import (
	"context"
	"net"
	"time"

	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/pkg/connpool"
	"github.com/cloudwego/kitex/pkg/klog"
	"github.com/cloudwego/kitex/server"

	"github.com/slipstream-go/slipstream/bench/internal/rpcload"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
	"github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/kitex"
	"github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/kitex/echo"
)

func main() {
	klog.SetLevel(klog.LevelError)
	rpcload.Main(rpcload.Program{
		Servers: map[string]func(rpcload.Serving) (net.Addr, error){"kitex": serve, "kitex-mux": serveMux},
		Clients: map[string]func(context.Context, rpcload.Setting) (rpcload.Client, error){"kitex-pool": openPool, "kitex-mux": openMux},
	})
}

type handler struct{}

func (handler) Echo(_ context.Context, note *kitex.Note) (*kitex.Note, error) { return note, nil }

func (handler) Sleep(_ context.Context, milliseconds int32) (int32, error) {
	if milliseconds > 0 {
		time.Sleep(time.Duration(milliseconds) * time.Millisecond)
	}
	return milliseconds, nil
}

func serve(s rpcload.Serving) (net.Addr, error) { return start(s) }

func serveMux(s rpcload.Serving) (net.Addr, error) { return start(s, server.WithMuxTransport()) }

// start returns when the address is bound: the kernel accepts connections until the server does.
func start(s rpcload.Serving, options ...server.Option) (net.Addr, error) {
	l, err := net.Listen("tcp", s.Address)
	if err != nil {
		return nil, err
	}
	// Signals end the process at once, as they do without a server: nothing is drained.
	never := make(chan error)
	options = append(options, server.WithListener(l), server.WithExitSignal(func() <-chan error { return never }))
	run := echo.NewServer(new(handler), options...)
	addr := l.Addr()
	// Ends with the process.
	go func() {
		if err := run.Run(); err != nil {
			sidecar.Fatal(err)
		}
	}()
	return addr, nil
}

// openPool is the default, a pool of connections that each have one call at a time, framed; the pool keeps as
// many idle connections as there are callers, in place of 10.
func openPool(_ context.Context, s rpcload.Setting) (rpcload.Client, error) {
	return open(s, client.WithLongConnection(connpool.IdleConfig{MaxIdlePerAddress: s.Callers, MaxIdleGlobal: s.Callers, MaxIdleTimeout: time.Minute}))
}

// openMux multiplexes over two connections, as many as Kitex's own benchmark uses.
func openMux(_ context.Context, s rpcload.Setting) (rpcload.Client, error) {
	return open(s, client.WithMuxConnection(2))
}

func open(s rpcload.Setting, options ...client.Option) (rpcload.Client, error) {
	c, err := echo.NewClient("echo", append(options, client.WithHostPorts(s.Address))...)
	if err != nil {
		return nil, err
	}
	return caller{c}, nil
}

type caller struct{ echo.Client }

func (c caller) Echo(ctx context.Context, text string, number int64) (string, int64, error) {
	note, err := c.Client.Echo(ctx, &kitex.Note{Text: text, Number: number})
	if err != nil {
		return "", 0, err
	}
	return note.Text, note.Number, nil
}

func (c caller) Sleep(ctx context.Context, milliseconds int32) (int32, error) {
	return c.Client.Sleep(ctx, milliseconds)
}

// Close does nothing: the connections end with the process.
func (c caller) Close() error { return nil }
