//go:build ignore

// Command apache is a server and a client with the Go library of Apache Thrift.
package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/slipstream-go/slipstream/bench/internal/rpcload"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
	"github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/apache"
)

func main() {
	rpcload.Main(rpcload.Program{
		Servers: map[string]func(rpcload.Serving) (net.Addr, error){"apache": serve},
		Clients: map[string]func(context.Context, rpcload.Setting) (rpcload.Client, error){"apache": open},
	})
}

type handler struct{}

func (handler) Echo(_ context.Context, note *apache.Note) (*apache.Note, error) { return note, nil }

func (handler) Sleep(_ context.Context, milliseconds int32) (int32, error) {
	if milliseconds > 0 {
		time.Sleep(time.Duration(milliseconds) * time.Millisecond)
	}
	return milliseconds, nil
}

// A socket is a server socket with or without TLS.
type socket interface {
	thrift.TServerTransport
	Addr() net.Addr
}

// serve runs the server with a goroutine for each connection, framed, in the Binary protocol.
func serve(s rpcload.Serving) (net.Addr, error) {
	var l socket
	var err error
	if s.TLS != nil {
		l, err = thrift.NewTSSLServerSocket(s.Address, s.TLS)
	} else {
		l, err = thrift.NewTServerSocket(s.Address)
	}
	if err != nil {
		return nil, err
	}
	if err := l.Listen(); err != nil {
		return nil, err
	}
	server := thrift.NewTSimpleServer4(apache.NewEchoProcessor(handler{}), l,
		thrift.NewTFramedTransportFactoryConf(thrift.NewTTransportFactory(), nil), thrift.NewTBinaryProtocolFactoryConf(nil))
	// Ends with the process.
	go func() {
		if err := server.Serve(); err != nil {
			sidecar.Fatal(err)
		}
	}()
	return l.Addr(), nil
}

// A client is a pool of connections, each of which has one call at a time. There are as many as
// concurrent calls; the most recently used one is used first.
type client struct {
	// Immutable after open.
	setting rpcload.Setting

	mu sync.Mutex
	// Guarded by mu.
	idle []*conn
	all  []*conn
}

type conn struct {
	socket thrift.TTransport
	echo   *apache.EchoClient
}

func open(_ context.Context, s rpcload.Setting) (rpcload.Client, error) {
	return &client{setting: s}, nil
}

// take returns a connection without a call.
func (c *client) take() (*conn, error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		one := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return one, nil
	}
	c.mu.Unlock()
	config := &thrift.TConfiguration{ConnectTimeout: 5 * time.Second, TLSConfig: c.setting.TLS}
	one := new(conn)
	if config.TLSConfig != nil {
		one.socket = thrift.NewTSSLSocketConf(c.setting.Address, config)
	} else {
		one.socket = thrift.NewTSocketConf(c.setting.Address, config)
	}
	if err := one.socket.Open(); err != nil {
		return nil, err
	}
	framed := thrift.NewTFramedTransportConf(one.socket, config)
	in, out := thrift.NewTBinaryProtocolConf(framed, config), thrift.NewTBinaryProtocolConf(framed, config)
	one.echo = apache.NewEchoClient(thrift.NewTStandardClient(in, out))
	c.mu.Lock()
	c.all = append(c.all, one)
	c.mu.Unlock()
	return one, nil
}

// give returns a connection to the pool. After a failed call, a connection is not reused.
func (c *client) give(one *conn, err error) {
	if err != nil {
		return
	}
	c.mu.Lock()
	c.idle = append(c.idle, one)
	c.mu.Unlock()
}

func (c *client) Echo(ctx context.Context, text string, number int64) (string, int64, error) {
	one, err := c.take()
	if err != nil {
		return "", 0, err
	}
	note, err := one.echo.Echo(ctx, &apache.Note{Text: text, Number: number})
	c.give(one, err)
	if err != nil {
		return "", 0, err
	}
	return note.Text, note.Number, nil
}

func (c *client) Sleep(ctx context.Context, milliseconds int32) (int32, error) {
	one, err := c.take()
	if err != nil {
		return 0, err
	}
	slept, err := one.echo.Sleep(ctx, milliseconds)
	c.give(one, err)
	return slept, err
}

func (c *client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, one := range c.all {
		errs = append(errs, one.socket.Close())
	}
	return errors.Join(errs...)
}
