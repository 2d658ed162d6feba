//go:build ignore

// Command ours is a server and a client with slipstream, and the floor.
package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"

	"github.com/slipstream-go/slipstream/bench/internal/rpcload"
	"github.com/slipstream-go/slipstream/bench/thrift-codec/shapes"
	"github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/ours"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/rpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/governance"
)

func main() {
	rpcload.Main(rpcload.Program{
		Servers: map[string]func(rpcload.Serving) (net.Addr, error){
			"slipstream":         server(ours.NewEchoService(handler{}), ours.NewMessagesService(handler{})),
			"slipstream-inline":  server(ours.NewEchoService(handler{}).Inline("echo")),
			"slipstream-views":   server(ours.NewMessagesViewService(viewer{})),
			"slipstream-streams": server(ours.NewStreamsService(handler{})),
			"floor":              rpcload.ServeFloor,
			"thrift-floor":       rpcload.ServeThriftFloor,
		},
		Clients: map[string]func(context.Context, rpcload.Setting) (rpcload.Client, error){
			"slipstream":         opener(rpc.ClientConfig{}, nil),
			"slipstream-views":   openViews,
			"slipstream-streams": openStreams,
			"framed":             opener(rpc.ClientConfig{Transport: rpc.Framed}, nil),
			"cautious":           opener(rpc.ClientConfig{Depth: 1}, notIdempotently),
			"bare":               opener(rpc.ClientConfig{Retries: -1}, nil),
			"chain":              opener(rpc.ClientConfig{Retries: -1}, chain),
			"floor":              rpcload.OpenFloor,
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

var errEmpty = errors.New("the message has an empty field")

func (handler) Forward(_ context.Context, m *ours.Message) (*ours.Message, error) {
	if m == nil || m.Name == "" || m.Origin.Host == "" || m.Origin.Port == 0 {
		return nil, errEmpty
	}
	m.Key++
	return m, nil
}

// viewer is the handler that receives views.
type viewer struct{}

func (viewer) Forward(_ context.Context, args *ours.MessagesForwardArgsView) (thrift.Struct, error) {
	m, _ := args.Message()
	o, _ := m.Origin()
	if m.Name() == "" || o.Host() == "" || o.Port() == 0 {
		return nil, errEmpty
	}
	m.SetKey(m.Key() + 1)
	return &m, nil
}

// server returns a function that starts a server of some services.
func server(services ...*rpc.Service) func(rpcload.Serving) (net.Addr, error) {
	return func(s rpcload.Serving) (net.Addr, error) {
		server, err := rpc.NewServer(rpc.ServerConfig{TLS: s.TLS}, services...)
		if err != nil {
			return nil, err
		}
		if err := server.Listen("tcp", s.Address); err != nil {
			return nil, err
		}
		return server.Addr(), nil
	}
}

type client struct {
	*rpc.Client
	echo     *ours.EchoClient
	messages *ours.MessagesClient
}

// opener returns a function that opens clients with a configuration. Calls are made by what wrap
// returns; if nil, by the client itself.
func opener(config rpc.ClientConfig, wrap func(*rpc.Client) (rpc.Caller, error)) func(context.Context, rpcload.Setting) (rpcload.Client, error) {
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
		if wrap != nil {
			if caller, err = wrap(c); err != nil {
				_ = c.Close()
				return nil, err
			}
		}
		return client{c, ours.NewEchoClient(caller), ours.NewMessagesClient(caller)}, nil
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

// messageOf returns a message as a generated struct.
func messageOf(m *shapes.Message) *ours.Message {
	place := m.Origin.Place
	to := &ours.Message{Key: m.Key, Name: m.Name, Payload: m.Payload, Tags: m.Tags, Attributes: make(map[string]string, len(m.Attributes)),
		Origin: &ours.Origin{Host: m.Origin.Host, Port: m.Origin.Port, Place: &ours.Place{Latitude: place.Latitude, Longitude: place.Longitude, City: place.City}}}
	for _, i := range m.Items {
		to.Items = append(to.Items, ours.Item{Key: i.Key, Name: i.Name, Price: i.Price, Tags: i.Tags})
	}
	for _, a := range m.Attributes {
		to.Attributes[a.Key] = a.Value
	}
	return to
}

// Pass implements [rpcload.Messenger].
func (c client) Pass(m *shapes.Message) func(ctx context.Context, key int64) (rpcload.Passed, error) {
	message := messageOf(m)
	return func(ctx context.Context, key int64) (rpcload.Passed, error) {
		message.Key = key
		got, err := c.messages.Forward(ctx, message)
		if err != nil {
			return rpcload.Passed{}, err
		}
		return rpcload.Passed{Key: got.Key, Name: got.Name, Host: got.Origin.Host, Port: got.Origin.Port, Items: len(got.Items), Price: got.Items[0].Price}, nil
	}
}

// viewing is a client that sends and receives views of messages.
type viewing struct{ client }

func openViews(ctx context.Context, s rpcload.Setting) (rpcload.Client, error) {
	c, err := opener(rpc.ClientConfig{}, nil)(ctx, s)
	if err != nil {
		return nil, err
	}
	return viewing{c.(client)}, nil
}

// Pass implements [rpcload.Messenger].
func (c viewing) Pass(m *shapes.Message) func(ctx context.Context, key int64) (rpcload.Passed, error) {
	var message ours.MessageView
	broken := message.OpenThrift(messageOf(m).AppendThrift(nil))
	return func(ctx context.Context, key int64) (p rpcload.Passed, err error) {
		if broken != nil {
			return p, broken
		}
		var args ours.MessagesForwardArgsView
		sent := message
		sent.SetKey(key)
		args.SetMessageView(&sent)
		r, err := c.messages.ForwardView(ctx, &args)
		if err != nil {
			return p, err
		}
		got, _ := r.Success()
		origin, _ := got.Origin()
		p = rpcload.Passed{Key: got.Key(), Name: got.Name(), Host: origin.Host(), Port: origin.Port(), Items: got.Items().Len()}
		for _, item := range got.Items().All() {
			p.Price = item.Price()
			break
		}
		return p, nil
	}
}

// chain returns a retry, a circuit breaker and a limit around a client. The circuit breaker and the
// limit are those of failsafe-go, and no call is denied.
func chain(c *rpc.Client) (rpc.Caller, error) {
	limit, err := governance.NewBulkhead(c, bulkhead.New[any](1000), 0)
	if err != nil {
		return nil, err
	}
	breaker, err := governance.NewBreaker(limit, circuitbreaker.NewWithDefaults[any]())
	if err != nil {
		return nil, err
	}
	return governance.NewRetry(breaker, governance.RetryConfig{})
}

// Talk and Watch are the handlers of streams.
func (handler) Talk(ctx context.Context, s *rpc.BidiStreamingServer[ours.Note, ours.Note]) error {
	for note, err := range s.All(ctx) {
		if err != nil {
			return err
		}
		if err := s.Send(ctx, note); err != nil {
			return err
		}
	}
	return nil
}

func (handler) Watch(ctx context.Context, note *ours.Note, s *rpc.ServerStreamingServer[ours.Note]) error {
	for i := range note.Number {
		if err := s.Send(ctx, &ours.Note{Text: note.Text, Number: i}); err != nil {
			return err
		}
	}
	return nil
}

// streaming is a client of only the service Streams.
type streaming struct {
	rpcload.Client // nil
	all            *rpc.StreamClient
	streams        *ours.StreamsStreamClient
}

func openStreams(_ context.Context, s rpcload.Setting) (rpcload.Client, error) {
	all, err := rpc.NewStreamClient(rpc.StreamConfig{Addr: s.Address})
	if err != nil {
		return nil, err
	}
	return streaming{all: all, streams: ours.NewStreamsStreamClient(all)}, nil
}

func (s streaming) Close() error { return s.all.Close() }

// noteOf returns what a note has.
func noteOf(note *ours.Note, err error) (string, int64, error) {
	if err != nil {
		return "", 0, err
	}
	return note.Text, note.Number, nil
}

// Talk implements [rpcload.Streamer].
func (s streaming) Talk(ctx context.Context) (rpcload.Stream, error) {
	stream, err := s.streams.Talk(ctx)
	if err != nil {
		return rpcload.Stream{}, err
	}
	return rpcload.Stream{
		Send:  func(text string, number int64) error { return stream.Send(ctx, &ours.Note{Text: text, Number: number}) },
		Recv:  func() (string, int64, error) { return noteOf(stream.Recv(ctx)) },
		Close: stream.Close,
	}, nil
}

// Watch implements [rpcload.Streamer].
func (s streaming) Watch(ctx context.Context, text string, notes int64) (rpcload.Stream, error) {
	stream, err := s.streams.Watch(ctx, &ours.Note{Text: text, Number: notes})
	if err != nil {
		return rpcload.Stream{}, err
	}
	return rpcload.Stream{Recv: func() (string, int64, error) { return noteOf(stream.Recv(ctx)) }, Close: stream.Close}, nil
}

// notIdempotently makes calls as if no function were declared idempotent.
func notIdempotently(c *rpc.Client) (rpc.Caller, error) { return &notIdempotent{Caller: c}, nil }

// notIdempotent calls functions as if the IDL did not declare them idempotent.
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
