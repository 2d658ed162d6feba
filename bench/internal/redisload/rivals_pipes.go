package redisload

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
	"unsafe"

	"github.com/joomcode/redispipe/redis"
	"github.com/joomcode/redispipe/rediscluster"
	"github.com/joomcode/redispipe/redisconn"
	"github.com/mediocregopher/radix/v4"
	pascaldekloe "github.com/pascaldekloe/redis/v2"
	"github.com/redis/rueidis"
)

// errMissing says that the server has no such key.
var errMissing = errors.New("no such key")

// bytesOf returns the bytes of a string without copying it; the result is only
// read.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// rueidisKinds are rueidis with its default number of connections and client-side caching off: with
// its defaults; with pipelining from the first request on; and with the pause after a flush that
// its documentation suggests to reduce CPU use.
var rueidisKinds = []Kind{
	{Name: "rueidis", open: openRueidis(false, 0), openCluster: openRueidis(false, 0), NoWait: true, Pipelined: true},
	{Name: "rueidis-always", open: openRueidis(true, 0), openCluster: openRueidis(true, 0), NoWait: true, Pipelined: true},
	{Name: "rueidis-50us", open: openRueidis(false, flushDelay), openCluster: openRueidis(false, flushDelay), Pipelined: true, Variant: true},
}

const flushDelay = 50 * time.Microsecond

type rueidisClient struct {
	client rueidis.Client
	cached bool
}

func openRueidis(always bool, delay time.Duration) func(context.Context, Setting) (Client, error) {
	return func(_ context.Context, s Setting) (Client, error) {
		o := rueidis.ClientOption{
			InitAddress: s.Cluster, DisableCache: !s.Cached,
			AlwaysPipelining: always, MaxFlushDelay: delay, AlwaysRESP2: s.Plain,
		}
		if len(s.Cluster) == 0 {
			o.InitAddress, o.ForceSingleClient = []string{s.Address}, true
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

func (c *rueidisClient) Get(ctx context.Context, _ []byte, key string) ([]byte, error) {
	if c.cached {
		return c.client.DoCache(ctx, c.client.B().Get().Key(key).Cache(), time.Hour).AsBytes()
	}
	return c.client.Do(ctx, c.client.B().Get().Key(key).Build()).AsBytes()
}

func (c *rueidisClient) Set(ctx context.Context, key, value string) error {
	return c.client.Do(ctx, c.client.B().Set().Key(key).Value(value).Build()).Error()
}

func (c *rueidisClient) Close() error {
	c.client.Close()
	return nil
}

// redispipeKinds are redispipe without a pause and with those of its article. The read deadline is
// longer than the default of 1 s, so that it does not lose its connection on a busy machine. The
// pause between attempts to connect would increase with that deadline, to 10 s, and is set to its
// default.
var redispipeKinds = []Kind{
	redispipeKind("redispipe", -1),
	redispipeKind("redispipe-50us", 50*time.Microsecond),
	redispipeKind("redispipe-150us", 150*time.Microsecond),
}

func redispipeKind(name string, pause time.Duration) Kind {
	o := redisconn.Opts{WritePause: pause, IOTimeout: 5 * time.Second, ReconnectPause: 2 * time.Second, Logger: redisconn.NoopLogger{}}
	return Kind{Name: name, open: openRedispipe(o), openCluster: openRedispipeCluster(o), NoWait: pause < 0, Pipelined: true, Variant: pause > 0}
}

type redispipeClient struct {
	conn  redis.Sender
	plain redis.Sync
	ctx   redis.SyncCtx
}

func newRedispipe(conn redis.Sender) *redispipeClient {
	return &redispipeClient{conn: conn, plain: redis.Sync{S: conn}, ctx: redis.SyncCtx{S: conn}}
}

func openRedispipe(o redisconn.Opts) func(context.Context, Setting) (Client, error) {
	return func(_ context.Context, s Setting) (Client, error) {
		// The connection ends with the context passed here.
		conn, err := redisconn.Connect(context.Background(), s.Address, o)
		if err != nil {
			return nil, err
		}
		return newRedispipe(conn), nil
	}
}

func openRedispipeCluster(o redisconn.Opts) func(context.Context, Setting) (Client, error) {
	return func(_ context.Context, s Setting) (Client, error) {
		cluster, err := rediscluster.NewCluster(context.Background(), s.Cluster, rediscluster.Opts{HostOpts: o, Logger: quiet{}})
		if err != nil {
			return nil, err
		}
		return newRedispipe(cluster), nil
	}
}

// quiet is a logger that writes nothing.
type quiet struct{}

func (quiet) Report(*rediscluster.Cluster, rediscluster.LogEvent) {}

func (quiet) ReqStat(*rediscluster.Cluster, *redisconn.Connection, redis.Request, any, int64) {}

func (c *redispipeClient) do(ctx context.Context, command string, args ...any) (any, error) {
	var reply any
	if ctx.Done() == nil {
		reply = c.plain.Do(command, args...)
	} else {
		reply = c.ctx.Do(ctx, command, args...)
	}
	return reply, redis.AsError(reply)
}

func (c *redispipeClient) Get(ctx context.Context, _ []byte, key string) ([]byte, error) {
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

func (c *redispipeClient) Set(ctx context.Context, key, value string) error {
	_, err := c.do(ctx, "SET", key, value)
	return err
}

func (c *redispipeClient) Close() error {
	c.conn.Close()
	return nil
}

// radixKinds are radix, which shares its default of 4 connections among callers. More than one
// caller gets a flush interval, as its documentation advises; a single one would only wait for it.
var radixKinds = []Kind{{Name: "radix", open: openRadix, openCluster: openRadixCluster, Pipelined: true}}

type radixClient struct {
	client interface {
		Do(context.Context, radix.Action) error
		Close() error
	}
}

func radixPool(s Setting) radix.PoolConfig {
	cfg := radix.PoolConfig{}
	if s.Single {
		cfg.Size = 1
	}
	if s.Callers > 1 {
		cfg.Dialer.WriteFlushInterval = 150 * time.Microsecond
	}
	return cfg
}

func openRadix(ctx context.Context, s Setting) (Client, error) {
	c, err := radixPool(s).New(ctx, "tcp", s.Address)
	if err != nil {
		return nil, err
	}
	return &radixClient{c}, nil
}

func openRadixCluster(ctx context.Context, s Setting) (Client, error) {
	c, err := radix.ClusterConfig{PoolConfig: radixPool(s)}.New(ctx, s.Cluster)
	if err != nil {
		return nil, err
	}
	return &radixClient{c}, nil
}

func (c *radixClient) Get(ctx context.Context, dst []byte, key string) ([]byte, error) {
	// Its type for missing values would allocate six objects; no value here is empty.
	value := dst[:0]
	if err := c.client.Do(ctx, radix.Cmd(&value, "GET", key)); err != nil {
		return nil, err
	}
	if len(value) == 0 {
		return nil, errMissing
	}
	return value, nil
}

func (c *radixClient) Set(ctx context.Context, key, value string) error {
	return c.client.Do(ctx, radix.Cmd(nil, "SET", key, value))
}

func (c *radixClient) Close() error { return c.client.Close() }

// The client of pascaldekloe has one connection and does not support contexts. Without a command
// timeout it sets no deadlines.
var pascaldekloeKinds = []Kind{{Name: "pascaldekloe", open: openPascaldekloe, NoWait: true, Pipelined: true}}

type pascaldekloeClient struct {
	client *pascaldekloe.Client[string, string]
}

func openPascaldekloe(_ context.Context, s Setting) (Client, error) {
	return &pascaldekloeClient{pascaldekloe.NewClient[string, string](pascaldekloe.ClientConfig{
		Addr: s.Address, DialTimeout: 5 * time.Second, CommandTimeout: s.Timeout,
	})}, nil
}

func (c *pascaldekloeClient) Get(_ context.Context, _ []byte, key string) ([]byte, error) {
	value, err := c.client.GET(key)
	if err == nil && value == "" {
		return nil, errMissing
	}
	return bytesOf(value), err
}

func (c *pascaldekloeClient) Set(_ context.Context, key, value string) error {
	return c.client.SET(key, value)
}

func (c *pascaldekloeClient) Close() error { return c.client.Close() }
