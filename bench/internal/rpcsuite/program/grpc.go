//go:build ignore

// Command grpc is a server and a client with gRPC for Go.
package main

import (
	"context"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/slipstream-go/slipstream/bench/internal/rpcload"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
	"github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/protobuf"
)

func main() {
	rpcload.Main(rpcload.Program{
		Servers: map[string]func(rpcload.Serving) (net.Addr, error){"grpc": serve},
		Clients: map[string]func(context.Context, rpcload.Setting) (rpcload.Client, error){"grpc": open},
	})
}

// Names of the functions, as a generated package has them.
const (
	service   = "bench.Echo"
	echoName  = "/" + service + "/Echo"
	sleepName = "/" + service + "/Sleep"

	streamService = "bench.Streams"
	talkName      = "/" + streamService + "/Talk"
	watchName     = "/" + streamService + "/Watch"
)

// echoServer is the interface that the tool of gRPC generates for the service.
type echoServer interface {
	Echo(context.Context, *protobuf.Note) (*protobuf.Note, error)
	Sleep(context.Context, *protobuf.Rest) (*protobuf.Rest, error)
}

type handler struct{}

func (handler) Echo(_ context.Context, note *protobuf.Note) (*protobuf.Note, error) { return note, nil }

func (handler) Sleep(_ context.Context, rest *protobuf.Rest) (*protobuf.Rest, error) {
	if rest.Milliseconds > 0 {
		time.Sleep(time.Duration(rest.Milliseconds) * time.Millisecond)
	}
	return rest, nil
}

// description is equivalent to what the tool of gRPC generates for the service.
var description = grpc.ServiceDesc{
	ServiceName: service,
	HandlerType: (*echoServer)(nil),
	Methods: []grpc.MethodDesc{
		{MethodName: "Echo", Handler: func(h any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(protobuf.Note)
			if err := decode(in); err != nil {
				return nil, err
			}
			return h.(echoServer).Echo(ctx, in)
		}},
		{MethodName: "Sleep", Handler: func(h any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			in := new(protobuf.Rest)
			if err := decode(in); err != nil {
				return nil, err
			}
			return h.(echoServer).Sleep(ctx, in)
		}},
	},
}

// streamsServer is the interface that the tool of gRPC generates for the service with streams.
type streamsServer interface {
	Talk(grpc.BidiStreamingServer[protobuf.Note, protobuf.Note]) error
	Watch(*protobuf.Note, grpc.ServerStreamingServer[protobuf.Note]) error
}

func (handler) Talk(s grpc.BidiStreamingServer[protobuf.Note, protobuf.Note]) error {
	for {
		note, err := s.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.Send(note); err != nil {
			return err
		}
	}
}

func (handler) Watch(note *protobuf.Note, s grpc.ServerStreamingServer[protobuf.Note]) error {
	for i := range note.Number {
		if err := s.Send(&protobuf.Note{Text: note.Text, Number: i}); err != nil {
			return err
		}
	}
	return nil
}

// streamDescription is equivalent to what the tool of gRPC generates for the service with streams.
var streamDescription = grpc.ServiceDesc{
	ServiceName: streamService,
	HandlerType: (*streamsServer)(nil),
	Streams: []grpc.StreamDesc{
		{StreamName: "Talk", ServerStreams: true, ClientStreams: true, Handler: func(h any, s grpc.ServerStream) error {
			return h.(streamsServer).Talk(&grpc.GenericServerStream[protobuf.Note, protobuf.Note]{ServerStream: s})
		}},
		{StreamName: "Watch", ServerStreams: true, Handler: func(h any, s grpc.ServerStream) error {
			in := new(protobuf.Note)
			if err := s.RecvMsg(in); err != nil {
				return err
			}
			return h.(streamsServer).Watch(in, &grpc.GenericServerStream[protobuf.Note, protobuf.Note]{ServerStream: s})
		}},
	},
}

func serve(s rpcload.Serving) (net.Addr, error) {
	l, err := net.Listen("tcp", s.Address)
	if err != nil {
		return nil, err
	}
	var options []grpc.ServerOption
	if s.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(s.TLS)))
	}
	server := grpc.NewServer(options...)
	server.RegisterService(&description, handler{})
	server.RegisterService(&streamDescription, handler{})
	// Ends with the process.
	go func() {
		if err := server.Serve(l); err != nil {
			sidecar.Fatal(err)
		}
	}()
	return l.Addr(), nil
}

type client struct{ conn *grpc.ClientConn }

// open opens a client with one connection, the default. Calls are made like those in code generated
// by the tool of gRPC.
func open(_ context.Context, s rpcload.Setting) (rpcload.Client, error) {
	secure := insecure.NewCredentials()
	if s.TLS != nil {
		secure = credentials.NewTLS(s.TLS)
	}
	conn, err := grpc.NewClient("passthrough:///"+s.Address, grpc.WithTransportCredentials(secure))
	if err != nil {
		return nil, err
	}
	return client{conn}, nil
}

func (c client) Echo(ctx context.Context, text string, number int64) (string, int64, error) {
	out := new(protobuf.Note)
	if err := c.conn.Invoke(ctx, echoName, &protobuf.Note{Text: text, Number: number}, out, grpc.StaticMethod()); err != nil {
		return "", 0, err
	}
	return out.Text, out.Number, nil
}

func (c client) Sleep(ctx context.Context, milliseconds int32) (int32, error) {
	out := new(protobuf.Rest)
	if err := c.conn.Invoke(ctx, sleepName, &protobuf.Rest{Milliseconds: milliseconds}, out, grpc.StaticMethod()); err != nil {
		return 0, err
	}
	return out.Milliseconds, nil
}

func (c client) Close() error { return c.conn.Close() }

// open opens a stream, in the way of code generated by the tool of gRPC.
func (c client) open(ctx context.Context, index int, name string) (*grpc.GenericClientStream[protobuf.Note, protobuf.Note], error) {
	s, err := c.conn.NewStream(ctx, &streamDescription.Streams[index], name, grpc.StaticMethod())
	return &grpc.GenericClientStream[protobuf.Note, protobuf.Note]{ClientStream: s}, err
}

// noteOf returns what a note has.
func noteOf(note *protobuf.Note, err error) (string, int64, error) {
	if err != nil {
		return "", 0, err
	}
	return note.Text, note.Number, nil
}

// Talk implements [rpcload.Streamer].
func (c client) Talk(ctx context.Context) (rpcload.Stream, error) {
	stream, err := c.open(ctx, 0, talkName)
	if err != nil {
		return rpcload.Stream{}, err
	}
	return rpcload.Stream{
		Send:  func(text string, number int64) error { return stream.Send(&protobuf.Note{Text: text, Number: number}) },
		Recv:  func() (string, int64, error) { return noteOf(stream.Recv()) },
		Close: func() {},
	}, nil
}

// Watch implements [rpcload.Streamer].
func (c client) Watch(ctx context.Context, text string, notes int64) (rpcload.Stream, error) {
	stream, err := c.open(ctx, 1, watchName)
	if err != nil {
		return rpcload.Stream{}, err
	}
	if err := stream.ClientStream.SendMsg(&protobuf.Note{Text: text, Number: notes}); err != nil {
		return rpcload.Stream{}, err
	}
	if err := stream.ClientStream.CloseSend(); err != nil {
		return rpcload.Stream{}, err
	}
	return rpcload.Stream{Recv: func() (string, int64, error) { return noteOf(stream.Recv()) }, Close: func() {}}, nil
}
