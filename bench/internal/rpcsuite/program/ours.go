//go:build ignore

// Command ours is a server and a client with slipstream, and the floor.
package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/rpcload"
	"github.com/slipstream-go/slipstream/bench/thrift-codec/shapes"
	"github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/ours"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

func main() {
	rpcload.Main(rpcload.Program{
		Servers: map[string]func(rpcload.Serving) (net.Addr, error){
			"slipstream":        server(ours.NewEchoService(handler{}), ours.NewMessagesService(handler{})),
			"slipstream-inline": server(ours.NewEchoService(handler{}).Inline("echo")),
			"slipstream-views":  server(ours.NewMessagesViewService(viewer{})),
			"floor":             rpcload.ServeFloor,
			"thrift-floor":      rpcload.ServeThriftFloor,
		},
		Clients: map[string]func(context.Context, rpcload.Setting) (rpcload.Client, error){
			"slipstream":       opener(rpc.ClientConfig{}, false),
			"slipstream-views": openViews,
			"framed":           opener(rpc.ClientConfig{Transport: rpc.Framed}, false),
			"cautious":         opener(rpc.ClientConfig{Depth: 1}, true),
			"floor":            rpcload.OpenFloor,
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

// opener returns a function that opens clients with a configuration. If cautious, no function is
// declared idempotent.
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
	c, err := opener(rpc.ClientConfig{}, false)(ctx, s)
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
