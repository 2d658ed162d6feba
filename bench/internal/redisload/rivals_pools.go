package redisload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// poolWait is how long a caller may wait for a connection: 8,192 callers share
// maxPool of them.
const poolWait = 30 * time.Second

// redigo uses a connection from a pool for each request. Callers wait for a connection, and no
// connection is closed because it is idle.
var redigoKinds = []Kind{{Name: "redigo", open: openRedigo, NoWait: true}}

type redigoClient struct{ pool *redis.Pool }

func openRedigo(_ context.Context, s Setting) (Client, error) {
	n := s.pool()
	return &redigoClient{&redis.Pool{
		MaxIdle: n, MaxActive: n, Wait: true,
		DialContext: func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", s.Address) },
	}}, nil
}

// do uses the methods without a context if the context cannot end, because those with one start a
// goroutine each.
func (c *redigoClient) do(ctx context.Context, command string, args ...any) (any, error) {
	if ctx.Done() == nil {
		conn := c.pool.Get()
		reply, err := conn.Do(command, args...)
		return reply, errors.Join(err, conn.Close())
	}
	conn, err := c.pool.GetContext(ctx)
	if err != nil {
		return nil, err
	}
	reply, err := redis.DoContext(conn, ctx, command, args...)
	return reply, errors.Join(err, conn.Close())
}

func (c *redigoClient) Get(ctx context.Context, _ []byte, key string) ([]byte, error) {
	return redis.Bytes(c.do(ctx, "GET", key))
}

func (c *redigoClient) Set(ctx context.Context, key, value string) error {
	_, err := c.do(ctx, "SET", key, value)
	return err
}

func (c *redigoClient) Close() error { return c.pool.Close() }

// goRedisKinds are go-redis with its pool, and with its automatic pipelining in half and in full
// duplex. GetToBuffer is its method with the fewest copies and allocations.
var goRedisKinds = []Kind{
	{Name: "go-redis-pool", open: openGoRedis(nil), openCluster: openGoRedisCluster(nil), NoWait: true},
	{Name: "go-redis-ap-half", open: openGoRedis(goredis.DefaultBlockingAutoPipelineOptions), openCluster: openGoRedisCluster(goredis.DefaultBlockingAutoPipelineOptions), Pipelined: true},
	{Name: "go-redis-ap-full", open: openGoRedis(fullDuplex), openCluster: openGoRedisCluster(fullDuplex), NoWait: true, Pipelined: true},
}

func fullDuplex() *goredis.AutoPipelineOptions {
	o := goredis.DefaultBlockingAutoPipelineOptions()
	o.FullDuplex = true
	return o
}

// SilenceLogs keeps the clients from logging every connection that cannot be opened.
func SilenceLogs() { goredis.SetLogger(silentLogger{}) }

type silentLogger struct{}

func (silentLogger) Printf(context.Context, string, ...any) {}

// goRedisCommands is the interface that its client and its automatic pipeline share.
type goRedisCommands interface {
	GetToBuffer(ctx context.Context, key string, buf []byte) *goredis.ZeroCopyStringCmd
	Set(ctx context.Context, key string, value any, expiration time.Duration) *goredis.StatusCmd
	RPush(ctx context.Context, key string, values ...any) *goredis.IntCmd
}

type goRedisClient struct {
	client interface {
		goRedisCommands
		Pipelined(ctx context.Context, fn func(goredis.Pipeliner) error) ([]goredis.Cmder, error)
		AutoPipelineWithOptions(*goredis.AutoPipelineOptions) (*goredis.AutoPipeliner, error)
		Close() error
	}
	commands goRedisCommands
}

// idlePool is the size of a pool for commands that do not use the automatic pipeline, of which
// there are none here.
const idlePool = 4

func openGoRedis(pipeline func() *goredis.AutoPipelineOptions) func(context.Context, Setting) (Client, error) {
	return func(_ context.Context, s Setting) (Client, error) {
		options := &goredis.Options{
			Addr: s.Address, PoolSize: s.pool(), PoolTimeout: poolWait, DisableIdentity: true, ContextTimeoutEnabled: true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}
		if s.Plain {
			options.Protocol, options.Dialer = 2, dialPlain
		}
		if pipeline != nil {
			options.PoolSize = idlePool
		}
		c := &goRedisClient{client: goredis.NewClient(options)}
		return c, c.pipelined(pipeline)
	}
}

func openGoRedisCluster(pipeline func() *goredis.AutoPipelineOptions) func(context.Context, Setting) (Client, error) {
	return func(_ context.Context, s Setting) (Client, error) {
		options := &goredis.ClusterOptions{
			Addrs: s.Cluster, PoolSize: s.pool(), PoolTimeout: poolWait, DisableIdentity: true, ContextTimeoutEnabled: true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}
		if pipeline != nil {
			options.PoolSize = idlePool
		}
		c := &goRedisClient{client: goredis.NewClusterClient(options)}
		return c, c.pipelined(pipeline)
	}
}

// pipelined sets the pipeline for commands. If pipeline is nil, the pool is used. If there is an
// error, the client is closed.
func (c *goRedisClient) pipelined(pipeline func() *goredis.AutoPipelineOptions) error {
	c.commands = c.client
	if pipeline == nil {
		return nil
	}
	ap, err := c.client.AutoPipelineWithOptions(pipeline())
	if err != nil {
		return errors.Join(err, c.client.Close())
	}
	c.commands = ap
	return nil
}

func (c *goRedisClient) Get(ctx context.Context, dst []byte, key string) ([]byte, error) {
	cmd := c.commands.GetToBuffer(ctx, key, dst[:cap(dst)])
	if err := cmd.Err(); err != nil {
		return nil, err
	}
	if n := cmd.Val(); n < 0 || n > cap(dst) {
		return nil, fmt.Errorf("go-redis: %d bytes in a buffer of %d", n, cap(dst))
	}
	return cmd.Bytes(), nil
}

func (c *goRedisClient) Set(ctx context.Context, key, value string) error {
	return c.commands.Set(ctx, key, value, 0).Err()
}

func (c *goRedisClient) Close() error { return c.client.Close() }
