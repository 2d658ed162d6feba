package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/internal/bench"
	"github.com/slipstream-go/slipstream/internal/bench/redisload"
	"github.com/slipstream-go/slipstream/redis"
)

// benchRedisFlags are the flags of slipstream bench redis besides those of all
// commands of bench.
type benchRedisFlags struct {
	benchFlags
	o        redisload.Options
	keys     keyFlags
	mix      mixFlags
	login    loginFlags
	client   clientFlags
	protocol int
}

func (p program) benchRedis() *cobra.Command {
	var f benchRedisFlags
	c := &cobra.Command{
		Use:   "redis ADDR [COMMAND ARG...]",
		Short: "Load a Redis server with GET and SET, or any command",
		Long: `Redis sends commands through the Redis client of this module: the callers
share --sockets connections, as the goroutines of a program that uses the client do.

ADDR is host:port, or a URL of the client: redis://USER:PASSWORD@HOST:PORT/DB, rediss://
for TLS, unix:///PATH. The password comes from the URL, -a, --password-file, or
` + passwordVariable + ` in the environment, and never printed.

` + benchText + `

Without COMMAND it writes and reads the keys PREFIX0 to PREFIXn with SET and GET, in the
ratio of --ratio. Each value contains its key and the time at which it was written, and
every GET is checked: values of other keys, and values that an acknowledged SET had already
replaced, are counted separately, and the exit code is then 1. The values remain on the server.
In a COMMAND, __key__ and __data__ stand for a key and a value; put -- before a command with
arguments that begin with a hyphen.

` + mixText + ` An operation is a command in
words: {"operations": [{"weight": 9, "command": ["GET", "__key__"]}, {"weight": 1, "command":
["HSET", "h", "__key__", "__data__"], "name": "store"}]}

` + exitCodes,
		Example: `  slipstream bench redis 127.0.0.1:6379
  slipstream bench redis --fill --ratio 1:10 --keys 1000000 --key-dist zipf -d 256 127.0.0.1:6379
  slipstream bench redis -c 1 -P 16 -n 1000000 127.0.0.1:6379 INCR __key__
  slipstream bench redis -q 10000 127.0.0.1:6379 -- LRANGE list 0 -1
  slipstream bench redis --mix shop.json 127.0.0.1:6379
  slipstream bench redis --yes --cluster --user app --password-file redis.password node-1:6379`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.against(c, args[0], func(addr string) (benchServer, error) { return f.server(c, addr, args[1:]) })
		},
	}
	f.unreachable = "is Redis listening there, does it require TLS (--tls), and are user and password correct?"
	f.register(c, "callers, each of which waits for its reply before the next command")
	flags := c.Flags()
	flags.IntVarP(&f.plan.Batch, "pipeline", "P", 1, "how many `commands` a caller sends together; they share their latency")
	f.mix.register(c, "SET", "GET")
	f.keys.register(c, "slipstream-bench:", "the `text` that keys begin with")
	f.keys.registerSize(c)
	f.login.register(c, passwordVariable, "the `name` of the ACL user, if the URL has none")
	flags.BoolVar(&f.o.Cluster, "cluster", false, "ADDR is a node of a Redis Cluster")
	flags.IntVar(&f.protocol, "protocol", 0, "the `version` of the protocol, 2 or 3; 0 uses the best one that the server has")
	f.client.register(c, "rediss://")
	return c
}

// server returns the server at an address, if it may be loaded.
func (f *benchRedisFlags) server(c *cobra.Command, addr string, command []string) (benchServer, error) {
	o, err := f.options(addr, command)
	return f.clientServer(c, clientTarget{
		name: o.Client.String(), addr: o.Client.Addr, connections: f.client.sockets, fill: f.client.fill,
		connect: func(ctx context.Context) (bench.Workload, error) {
			target, err := redisload.Connect(ctx, o)
			return bench.Redis{Target: target}, err
		},
	}, err)
}

// options returns the options of a target.
func (f *benchRedisFlags) options(addr string, command []string) (o redisload.Options, err error) {
	o = f.o
	switch {
	case strings.Contains(addr, "://"):
		user, text := cutUser(addr)
		if o.Client, err = redis.ParseURL(text); err != nil {
			return o, err
		}
		o.Client.User = cmp.Or(o.Client.User, user)
	default:
		o.Client.Addr = withPort(addr, "6379")
	}
	name := func(words []string) string { return strings.ToUpper(words[0]) }
	if o.Operations, err = f.mix.operations(command, name, redisload.Set, redisload.Get); err != nil {
		return o, err
	}
	if f.plan.Batch < 1 {
		return o, fmt.Errorf("-P %d; expected at least 1", f.plan.Batch)
	}
	if f.protocol != 0 && f.protocol != 2 && f.protocol != 3 {
		return o, fmt.Errorf("--protocol %d; expected 2 or 3, or 0 to choose", f.protocol)
	}
	o.Callers, o.Batch, o.Each = f.plan.Callers, f.plan.Batch, f.mix.file != ""
	o.Keys, o.Size, o.Keys.Seed = f.keys.keys, f.keys.size, f.plan.Seed
	client := &o.Client
	client.Addr = cmp.Or(client.Addr, redis.DefaultAddr)
	client.Dialer = f.dialer()
	client.Sockets, client.Protocol = cmp.Or(client.Sockets, f.client.sockets), cmp.Or(client.Protocol, f.protocol)
	if t := f.plan.Timeout; t > 0 {
		client.StallTimeout = cmp.Or(client.StallTimeout, t)
		client.DialTimeout = cmp.Or(client.DialTimeout, min(t, 5*time.Second))
	}
	if err := f.login.apply(&client.User, &client.Password); err != nil {
		return o, err
	}
	if f.o.Cluster && client.TLS != nil { // nodes other than that of the URL have other names
		client.TLS.ServerName = ""
	}
	if err := f.client.apply(&client.TLS, "rediss://"); err != nil {
		return o, err
	}
	return o, o.Check()
}
