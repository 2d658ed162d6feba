package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
	"unsafe"

	"github.com/joomcode/redispipe/redis"
	"github.com/joomcode/redispipe/redisconn"
	"github.com/mediocregopher/radix/v4"
	pascaldekloe "github.com/pascaldekloe/redis/v2"
	"github.com/redis/rueidis"
)

// errMissing says that the server has no such key.
var errMissing = errors.New("no such key")

// bytesOf looks at a string without copying it; the result is only read.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// rueidis with its default number of connections, client-side caching off, as
// it is; with pipelining from the first request on; and with the pause after a
// flush that its documentation suggests against CPU use.
var rueidisKinds = []kind{
	{name: "rueidis", open: openRueidis(false, 0), noWait: true, pipelined: true},
	{name: "rueidis-always", open: openRueidis(true, 0), noWait: true, pipelined: true},
	{name: "rueidis-50us", open: openRueidis(false, 50*time.Microsecond), pipelined: true, variant: true},
}

type rueidisClient struct {
	client rueidis.Client
	cached bool
}

func openRueidis(always bool, delay time.Duration) func(context.Context, setting) (client, error) {
	return func(_ context.Context, s setting) (client, error) {
		o := rueidis.ClientOption{
			InitAddress: []string{s.Address}, ForceSingleClient: true, DisableCache: !s.Cached,
			AlwaysPipelining: always, MaxFlushDelay: delay, AlwaysRESP2: s.Plain,
		}
		if s.Plain {
			o.ClientSetInfo = rueidis.DisableClientSetInfo
			o.DialCtxFn = func(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return dialPlain(ctx, "tcp", address)
			}
		}
		if s.Single {
			o.PipelineMultiplex = -1 // one connection
		}
		c, err := rueidis.NewClient(o)
		if err != nil {
			return nil, err
		}
		return &rueidisClient{c, s.Cached}, nil
	}
}

func (c *rueidisClient) get(ctx context.Context, _ []byte, key string) ([]byte, error) {
	if c.cached {
		return c.client.DoCache(ctx, c.client.B().Get().Key(key).Cache(), time.Hour).AsBytes()
	}
	return c.client.Do(ctx, c.client.B().Get().Key(key).Build()).AsBytes()
}

func (c *rueidisClient) set(ctx context.Context, key, value string) error {
	return c.client.Do(ctx, c.client.B().Set().Key(key).Value(value).Build()).Error()
}

func (c *rueidisClient) close() error {
	c.client.Close()
	return nil
}

// redispipe without a pause and with those of its article. Its read deadline is
// wider than the default of 1 s, because a busy machine must not cost it its
// connection.
var redispipeKinds = []kind{
	{name: "redispipe", open: openRedispipe(-1), noWait: true, pipelined: true},
	{name: "redispipe-50us", open: openRedispipe(50 * time.Microsecond), pipelined: true, variant: true},
	{name: "redispipe-150us", open: openRedispipe(150 * time.Microsecond), pipelined: true, variant: true},
}

type redispipeClient struct {
	conn  *redisconn.Connection
	plain redis.Sync
	ctx   redis.SyncCtx
}

func openRedispipe(pause time.Duration) func(context.Context, setting) (client, error) {
	return func(_ context.Context, s setting) (client, error) {
		// Its connection ends with the context it is given.
		conn, err := redisconn.Connect(context.Background(), s.Address, redisconn.Opts{
			WritePause: pause, IOTimeout: 5 * time.Second, Logger: redisconn.NoopLogger{},
		})
		if err != nil {
			return nil, err
		}
		return &redispipeClient{conn: conn, plain: redis.Sync{S: conn}, ctx: redis.SyncCtx{S: conn}}, nil
	}
}

func (c *redispipeClient) do(ctx context.Context, command string, args ...any) (any, error) {
	var reply any
	if ctx.Done() == nil {
		reply = c.plain.Do(command, args...)
	} else {
		reply = c.ctx.Do(ctx, command, args...)
	}
	return reply, redis.AsError(reply)
}

func (c *redispipeClient) get(ctx context.Context, _ []byte, key string) ([]byte, error) {
	reply, err := c.do(ctx, "GET", key)
	if err != nil {
		return nil, err
	}
	value, ok := reply.([]byte)
	if !ok {
		return nil, fmt.Errorf("redispipe: a reply of type %T, want bytes", reply)
	}
	return value, nil
}

func (c *redispipeClient) set(ctx context.Context, key, value string) error {
	_, err := c.do(ctx, "SET", key, value)
	return err
}

func (c *redispipeClient) close() error {
	c.conn.Close()
	return nil
}

// radix shares its default of 4 connections among callers. More than one caller
// gets a flush interval, as its documentation advises; a single one would only
// wait for it.
var radixKinds = []kind{{name: "radix", open: openRadix, pipelined: true}}

type radixClient struct{ client radix.Client }

func openRadix(ctx context.Context, s setting) (client, error) {
	cfg := radix.PoolConfig{}
	if s.Single {
		cfg.Size = 1
	}
	if s.Callers > 1 {
		cfg.Dialer.WriteFlushInterval = 150 * time.Microsecond
	}
	c, err := cfg.New(ctx, "tcp", s.Address)
	if err != nil {
		return nil, err
	}
	return &radixClient{c}, nil
}

func (c *radixClient) get(ctx context.Context, dst []byte, key string) ([]byte, error) {
	// Its type for missing values costs six objects; no value here is empty.
	value := dst[:0]
	if err := c.client.Do(ctx, radix.Cmd(&value, "GET", key)); err != nil {
		return nil, err
	}
	if len(value) == 0 {
		return nil, errMissing
	}
	return value, nil
}

func (c *radixClient) set(ctx context.Context, key, value string) error {
	return c.client.Do(ctx, radix.Cmd(nil, "SET", key, value))
}

func (c *radixClient) close() error { return c.client.Close() }

// pascaldekloe has one connection and knows no contexts. Without a limit to the
// time of a command it sets no deadlines.
var pascaldekloeKinds = []kind{{name: "pascaldekloe", open: openPascaldekloe, noWait: true, pipelined: true}}

type pascaldekloeClient struct {
	client *pascaldekloe.Client[string, string]
}

func openPascaldekloe(_ context.Context, s setting) (client, error) {
	return &pascaldekloeClient{pascaldekloe.NewClient[string, string](pascaldekloe.ClientConfig{
		Addr: s.Address, DialTimeout: 5 * time.Second, CommandTimeout: s.Timeout,
	})}, nil
}

func (c *pascaldekloeClient) get(_ context.Context, _ []byte, key string) ([]byte, error) {
	value, err := c.client.GET(key)
	if err == nil && value == "" {
		return nil, errMissing
	}
	return bytesOf(value), err
}

func (c *pascaldekloeClient) set(_ context.Context, key, value string) error {
	return c.client.SET(key, value)
}

func (c *pascaldekloeClient) close() error { return c.client.Close() }
