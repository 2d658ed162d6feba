//go:build ignore

// Command kitex is a server and a client with Kitex.
package main

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/pkg/connpool"
	"github.com/cloudwego/kitex/pkg/klog"
	"github.com/cloudwego/kitex/server"

	"github.com/slipstream-go/slipstream/bench/internal/rpcload"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
	"github.com/slipstream-go/slipstream/bench/thrift-codec/shapes"
	"github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/kitex"
	"github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/kitex/echo"
	"github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/kitex/messages"
	"github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/kitex/streams"
)

func main() {
	klog.SetLevel(klog.LevelError)
	rpcload.Main(rpcload.Program{
		Servers: map[string]func(rpcload.Serving) (net.Addr, error){
			"kitex": serve(newEcho), "kitex-mux": serve(newEcho, server.WithMuxTransport()),
			"kitex-messages": serve(newMessages), "kitex-mux-messages": serve(newMessages, server.WithMuxTransport()),
			"kitex-streams": serve(newStreams),
		},
		Clients: map[string]func(context.Context, rpcload.Setting) (rpcload.Client, error){
			"kitex-pool": opener(openEcho, pool), "kitex-mux": opener(openEcho, mux),
			"kitex-pool-messages": opener(openMessages, pool), "kitex-mux-messages": opener(openMessages, mux),
			"kitex-streams": openStreams,
		},
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

func (handler) Forward(_ context.Context, m *kitex.Message) (*kitex.Message, error) {
	if m == nil || m.Name == "" || m.Origin.Host == "" || m.Origin.Port == 0 {
		return nil, errors.New("the message has an empty field")
	}
	m.Key++
	return m, nil
}

func newEcho(options ...server.Option) server.Server { return echo.NewServer(new(handler), options...) }

func newMessages(options ...server.Option) server.Server {
	return messages.NewServer(new(handler), options...)
}

func newStreams(options ...server.Option) server.Server {
	return streams.NewServer(new(handler), options...)
}

// Talk and Watch are the handlers of streams.
func (handler) Talk(ctx context.Context, s kitex.Streams_talkServer) error {
	for {
		note, err := s.Recv(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.Send(ctx, note); err != nil {
			return err
		}
	}
}

func (handler) Watch(ctx context.Context, note *kitex.Note, s kitex.Streams_watchServer) error {
	for i := range note.Number {
		if err := s.Send(ctx, &kitex.Note{Text: note.Text, Number: i}); err != nil {
			return err
		}
	}
	return nil
}

// serve returns a function that starts a server and returns when the address is bound: the kernel
// queues connections until the server accepts them.
func serve(newServer func(...server.Option) server.Server, options ...server.Option) func(s rpcload.Serving) (net.Addr, error) {
	return func(s rpcload.Serving) (net.Addr, error) {
		l, err := net.Listen("tcp", s.Address)
		if err != nil {
			return nil, err
		}
		// Signals end the process immediately, as in any program; nothing is drained.
		never := make(chan error)
		run := newServer(append(options, server.WithListener(l), server.WithExitSignal(func() <-chan error { return never }))...)
		addr := l.Addr()
		// Ends with the process.
		go func() {
			if err := run.Run(); err != nil {
				sidecar.Fatal(err)
			}
		}()
		return addr, nil
	}
}

// pool is the default: a pool of framed connections that each have one call at a time. The pool
// keeps as many idle connections as there are callers, instead of 10.
func pool(s rpcload.Setting) client.Option {
	return client.WithLongConnection(connpool.IdleConfig{MaxIdlePerAddress: s.Callers, MaxIdleGlobal: s.Callers, MaxIdleTimeout: time.Minute})
}

// mux multiplexes over two connections, as many as Kitex's own benchmark uses.
func mux(rpcload.Setting) client.Option { return client.WithMuxConnection(2) }

// opener returns a function that opens clients.
func opener(open func(...client.Option) (rpcload.Client, error), option func(rpcload.Setting) client.Option) func(context.Context, rpcload.Setting) (rpcload.Client, error) {
	return func(_ context.Context, s rpcload.Setting) (rpcload.Client, error) {
		return open(option(s), client.WithHostPorts(s.Address))
	}
}

func openEcho(options ...client.Option) (rpcload.Client, error) {
	c, err := echo.NewClient("echo", options...)
	return caller{c}, err
}

func openMessages(options ...client.Option) (rpcload.Client, error) {
	c, err := messages.NewClient("messages", options...)
	return messenger{messages: c}, err
}

// messenger is a client of only the service Messages.
type messenger struct {
	caller
	messages messages.Client
}

// Pass implements [rpcload.Messenger].
func (c messenger) Pass(m *shapes.Message) func(ctx context.Context, key int64) (rpcload.Passed, error) {
	place := m.Origin.Place
	message := &kitex.Message{Key: m.Key, Name: m.Name, Payload: m.Payload, Tags: m.Tags, Attributes: make(map[string]string, len(m.Attributes)),
		Origin: &kitex.Origin{Host: m.Origin.Host, Port: m.Origin.Port, Place: &kitex.Place{Latitude: place.Latitude, Longitude: place.Longitude, City: place.City}}}
	for _, i := range m.Items {
		message.Items = append(message.Items, &kitex.Item{Key: i.Key, Name: i.Name, Price: i.Price, Tags: i.Tags})
	}
	for _, a := range m.Attributes {
		message.Attributes[a.Key] = a.Value
	}
	return func(ctx context.Context, key int64) (rpcload.Passed, error) {
		message.Key = key
		got, err := c.messages.Forward(ctx, message)
		if err != nil {
			return rpcload.Passed{}, err
		}
		return rpcload.Passed{Key: got.Key, Name: got.Name, Host: got.Origin.Host, Port: got.Origin.Port, Items: len(got.Items), Price: got.Items[0].Price}, nil
	}
}

// streaming is a client of only the service Streams, with the default connections.
type streaming struct {
	caller
	streams streams.Client
}

func openStreams(_ context.Context, s rpcload.Setting) (rpcload.Client, error) {
	c, err := streams.NewClient("streams", client.WithHostPorts(s.Address))
	return streaming{streams: c}, err
}

// noteOf returns what a note has.
func noteOf(note *kitex.Note, err error) (string, int64, error) {
	if err != nil {
		return "", 0, err
	}
	return note.Text, note.Number, nil
}

// Talk implements [rpcload.Streamer].
func (c streaming) Talk(ctx context.Context) (rpcload.Stream, error) {
	stream, err := c.streams.Talk(ctx)
	if err != nil {
		return rpcload.Stream{}, err
	}
	return rpcload.Stream{
		Send: func(text string, number int64) error {
			return stream.Send(ctx, &kitex.Note{Text: text, Number: number})
		},
		Recv:  func() (string, int64, error) { return noteOf(stream.Recv(ctx)) },
		Close: func() {},
	}, nil
}

// Watch implements [rpcload.Streamer].
func (c streaming) Watch(ctx context.Context, text string, notes int64) (rpcload.Stream, error) {
	stream, err := c.streams.Watch(ctx, &kitex.Note{Text: text, Number: notes})
	if err != nil {
		return rpcload.Stream{}, err
	}
	return rpcload.Stream{Recv: func() (string, int64, error) { return noteOf(stream.Recv(ctx)) }, Close: func() {}}, nil
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
